//! Properties of any sequence of reports, edits and passes.

use std::collections::BTreeSet;

use netstead_model::{Content, Name, RecordData, View, Workload};
use netstead_plan::Presence;
use proptest::prelude::*;

use crate::world::*;

/// Something that happens.
#[derive(Debug, Clone)]
enum Happens {
    Complete(Vec<Workload>, Vec<u8>, bool),
    Partial(Vec<Workload>),
    Failed,
    Waits(u64),
    Reconnects,
    Hand(u8, u8),
    HandRemoves(u8),
    Pass,
}

/// A wish at one of a few names, for an address or two, or for an alias.
fn any_wish() -> impl Strategy<Value = netstead_model::Wish> {
    let at = |n: u8| format!("n{n}.example.com");
    prop_oneof![
        4 => (0u8..6, prop::collection::vec(0u8..12, 0..3)).prop_map(move |(n, addresses)| {
            let texts: Vec<String> = addresses.iter().map(|n| format!("10.0.0.{n}")).collect();
            wish(&at(n), &texts.iter().map(String::as_str).collect::<Vec<_>>())
        }),
        1 => (0u8..6, 0u8..3).prop_map(move |(n, to)| exact(&at(n), &[&format!("CNAME t{to}.example.net.")])),
    ]
}

fn workload() -> impl Strategy<Value = Workload> {
    (0u8..8, prop::collection::vec(any_wish(), 0..3))
        .prop_map(|(id, wishes)| Workload { wishes, ..bare(&format!("v{id}")) })
}

fn happens() -> impl Strategy<Value = Happens> {
    let workloads = || prop::collection::vec(workload(), 0..8);
    prop_oneof![
        5 => (workloads(), prop::collection::vec(0u8..8, 0..3), any::<bool>())
            .prop_map(|(workloads, ended, asked)| Happens::Complete(workloads, ended, asked)),
        1 => workloads().prop_map(Happens::Partial),
        1 => Just(Happens::Failed),
        4 => (1u64..400).prop_map(Happens::Waits),
        1 => Just(Happens::Reconnects),
        1 => (0u8..6, 0u8..4).prop_map(|(at, value)| Happens::Hand(at, value)),
        1 => (0u8..6).prop_map(Happens::HandRemoves),
        6 => Just(Happens::Pass),
    ]
}

type Values = BTreeSet<(Name, RecordData)>;

/// Values that a person wrote by hand on the server.
fn by_hand(world: &mut World, at: u8, value: u8, hand: &mut Values) {
    let at = format!("n{at}.example.com");
    let value = format!("A 192.0.2.{value}");
    let alias = world
        .server
        .values()
        .iter()
        .any(|(n, data)| *n == name(&at) && data.kind() == netstead_model::RecordType::Cname);
    if !alias {
        world.server.add("example.com", &at, &value);
        hand.insert((name(&at), data(&value)));
    }
}

/// The names for which something that runs asks for something.
fn asked_for(world: &World) -> BTreeSet<Name> {
    let entries = world.inventory.sources().flat_map(|(_, state)| state.entries.values());
    let present = entries.filter(|entry| entry.presence == Presence::Present);
    let wishes = present.flat_map(|entry| &entry.workload.wishes);
    let asks = wishes.filter(|wish| match &wish.content {
        Content::Addresses(addresses) => !addresses.is_empty(),
        Content::Records { values, .. } => !values.is_empty(),
    });
    asks.map(|wish| wish.name.clone()).collect()
}

fn names(values: &Values) -> BTreeSet<Name> {
    values.iter().map(|(name, _)| name.clone()).collect()
}

fn step(world: &mut World, event: Happens, hand: &mut Values) {
    match event {
        Happens::Complete(workloads, ended, asked) => {
            let ended: Vec<String> = ended.iter().map(|id| format!("v{id}")).collect();
            let ended: Vec<_> = ended.iter().map(|id| (id.as_str(), asked)).collect();
            world.report("pve", View::Complete, workloads, &ended);
        }
        Happens::Partial(workloads) => {
            world.report("pve", View::Partial { reason: "half".into() }, workloads, &[]);
        }
        Happens::Failed => world.report("pve", View::Failed { reason: "down".into() }, Vec::new(), &[]),
        Happens::Waits(seconds) => {
            world.wait(seconds);
        }
        Happens::Reconnects => world.session += 1,
        Happens::Hand(at, value) => by_hand(world, at, value, hand),
        Happens::HandRemoves(at) => {
            let at = name(&format!("n{at}.example.com"));
            let zone = world.server.0.get_mut(&name("example.com")).unwrap();
            zone.retain(|(other, _), _| *other != at);
            hand.retain(|(other, _)| *other != at);
        }
        Happens::Pass => {
            let before = world.server.values();
            let owned: Values = world
                .owned
                .iter()
                .flat_map(|(n, values)| values.iter().map(move |value| (n.clone(), value.data.clone())))
                .collect();
            let plan = world.pass();
            let lost: Values = before.difference(&world.server.values()).cloned().collect();
            assert!(lost.is_subset(&owned), "only what is ours goes");
            let emptied: BTreeSet<Name> =
                names(&before).difference(&names(&world.server.values())).cloned().collect();
            let asked = asked_for(world);
            assert!(emptied.is_disjoint(&asked), "{emptied:?} stood there and is asked for:\n{plan}");
            let counted: u32 = plan.steps.iter().map(|step| step.counted).sum();
            assert!(counted <= 200);
            let again = world.plan();
            assert!(again.is_empty(), "a second plan is empty, but:\n{again}\nafter\n{plan}");
            assert_eq!(world.plan().parked.map(|p| p.hash), plan.parked.map(|p| p.hash));
        }
    }
    assert!(hand.is_subset(&world.server.values()), "what somebody else wrote stays");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_ends_in_a_fixpoint_and_leaves_what_is_not_ours(
        events in prop::collection::vec(happens(), 1..40),
        share in any::<bool>(),
        marks in any::<bool>(),
    ) {
        let mut world = World::new();
        (world.settings.share, world.settings.marks) = (share, marks);
        let mut hand = Values::new();
        for event in events {
            step(&mut world, event, &mut hand);
        }
    }

    #[test]
    fn a_partial_or_failed_view_never_removes(
        before in prop::collection::vec(workload(), 0..8),
        views in prop::collection::vec(
            prop_oneof![Just(None), prop::collection::vec(workload(), 0..8).prop_map(Some)], 1..20),
    ) {
        let mut world = World::new();
        world.sees(before).pass();
        let names: BTreeSet<Name> = world.server.values().into_iter().map(|(name, _)| name).collect();
        for view in views {
            let (view, workloads) = match view {
                Some(workloads) => (View::Partial { reason: "half".into() }, workloads),
                None => (View::Failed { reason: "down".into() }, Vec::new()),
            };
            world.wait(600).report("pve", view, workloads, &[]);
            world.pass();
        }
        let after: BTreeSet<Name> = world.server.values().into_iter().map(|(name, _)| name).collect();
        prop_assert!(names.is_subset(&after));
    }

    #[test]
    fn a_plan_does_not_depend_on_the_order_of_anything(
        workloads in prop::collection::vec(workload(), 0..8),
        seed in 0u8..8,
    ) {
        let mut one = World::new();
        one.sees(workloads.clone());
        let mut turned = workloads;
        let length = turned.len();
        turned.rotate_left(usize::from(seed).min(length));
        turned.reverse();
        let mut other = World::new();
        other.sees(turned);
        prop_assert_eq!(one.plan(), other.plan());
        let json = serde_json::to_string(&one.plan()).unwrap();
        prop_assert_eq!(serde_json::from_str::<netstead_plan::Plan>(&json).unwrap(), one.plan());
    }

    #[test]
    fn without_a_person_a_pass_removes_no_more_than_the_limits(
        count in 11u8..120,
        gone in 0u8..120,
    ) {
        let mut world = World::new();
        world.settings.reverse = false;
        world.sees(fleet(0..count)).pass();
        let gone = gone.min(count);
        for _ in 0..30 {
            world.wait(60).sees(fleet(gone..count)).pass();
        }
        let lost = u32::from(count) - u32::try_from(world.server.values().len()).unwrap();
        prop_assert!(lost <= 10 || lost * 100 <= 30 * u32::from(count), "{} of {}", lost, count);
    }
}
