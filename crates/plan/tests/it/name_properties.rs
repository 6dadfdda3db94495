//! Properties of names that containers under changing rules, claims of two owners and records ask for.

use std::collections::{BTreeMap, BTreeSet};

use netstead_model::{Name, RecordData, View, Wish, Workload};
use netstead_plan::{Digest, Presence, Reason, SourceConfig, SourceRules};
use proptest::prelude::*;

use crate::world::*;

#[derive(Debug, Clone)]
enum Happens {
    Containers(Vec<Workload>),
    Claims(Vec<Workload>),
    Records(Vec<Workload>),
    /// Labels are limited, or as they were in an older version.
    Limited(bool),
    Share(bool),
    Waits(u64),
    Restarts,
    Pass,
}

const NAMES: [&str; 6] = [
    "a.example.com",
    "b.example.com",
    "c.example.com",
    "*.example.com",
    "example.com",
    "_netstead-x.a.example.com",
];

fn any_name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&NAMES[..])
}

fn address() -> impl Strategy<Value = String> {
    (0u8..6).prop_map(|n| format!("10.0.0.{n}"))
}

fn any_wish() -> impl Strategy<Value = Wish> {
    prop_oneof![
        6 => (any_name(), address()).prop_map(|(at, address)| wish(at, &[&address])),
        1 => any_name().prop_map(|at| exact(at, &["TXT \"text\""])),
        1 => any_name().prop_map(|at| exact(at, &["NS ns.example.net."])),
        1 => (any_name(), 0u8..2).prop_map(|(at, n)| exact(at, &[&format!("CNAME t{n}.example.net.")])),
    ]
}

fn containers() -> impl Strategy<Value = Vec<Workload>> {
    let one = (0u8..3, prop::collection::vec(any_wish(), 0..3));
    let one =
        one.prop_map(|(id, wishes)| Workload { kind: "container".into(), wishes, ..bare(&format!("c{id}")) });
    prop::collection::vec(one, 0..3)
}

/// Each has an address of its own, as claims do.
fn claims() -> impl Strategy<Value = Vec<Workload>> {
    let one = (0u8..4, prop::sample::select(&["alice", "bob", "source/docker"][..]), any_name());
    let one = one.prop_map(|(id, owner, at)| Workload {
        kind: "claim".into(),
        owner: Some(owner.into()),
        wishes: vec![wish(at, &[&format!("10.0.1.{id}")])],
        ..bare(&format!("lan/k{id}"))
    });
    prop::collection::vec(one, 0..4)
}

fn records() -> impl Strategy<Value = Vec<Workload>> {
    let one = (any_name(), address()).prop_map(|(at, address)| Workload {
        kind: "record".into(),
        wishes: vec![exact(at, &[&format!("A {address}")])],
        ..bare(&format!("{at}/A"))
    });
    prop::collection::vec(one, 0..2)
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        4 => containers().prop_map(Happens::Containers),
        4 => claims().prop_map(Happens::Claims),
        2 => records().prop_map(Happens::Records),
        1 => any::<bool>().prop_map(Happens::Limited),
        1 => any::<bool>().prop_map(Happens::Share),
        3 => (1u64..400).prop_map(Happens::Waits),
        1 => Just(Happens::Restarts),
        8 => Just(Happens::Pass),
    ]
}

type Values = BTreeSet<(Name, RecordData)>;

/// Everything of ours, with its reasons.
fn owned(world: &World) -> BTreeMap<(Name, RecordData), Vec<Reason>> {
    let values =
        world.owned.iter().flat_map(|(at, values)| values.iter().map(move |value| (at.clone(), value)));
    values.map(|(at, value)| ((at, value.data.clone()), value.reasons.clone())).collect()
}

fn configure(world: &mut World, limited: bool) {
    let config = |source: &str| {
        let rules =
            if limited && source == "docker" { SourceRules::for_labels() } else { SourceRules::default() };
        SourceConfig { config: Digest::of([source]), commanded: source != "docker", movable: false, rules }
    };
    let sources = ["docker", "ledger", "manual"].map(|name| (name.parse().unwrap(), config(name)));
    let now = world.now();
    world.inventory.configure(&sources.into(), now);
}

/// The source says this; what people took back they asked to end.
fn report(world: &mut World, source: &str, workloads: Vec<Workload>) {
    let there: BTreeSet<String> = workloads.iter().map(|one| one.id.to_string()).collect();
    let known =
        world.inventory.source(&source.parse().unwrap()).into_iter().flat_map(|state| state.entries.keys());
    let gone: Vec<String> = known.map(ToString::to_string).filter(|id| !there.contains(id)).collect();
    let ended: Vec<(&str, bool)> =
        gone.iter().filter(|_| source != "docker").map(|id| (id.as_str(), true)).collect();
    world.wait(1).report(source, View::Complete, workloads, &ended);
}

/// Party that has the value: the claims of one owner, or the workloads of one source.
fn party(world: &World, reason: &Reason) -> String {
    let entry = world.inventory.entry(&reason.source, &reason.workload);
    let owner = entry.and_then(|entry| entry.workload.owner.clone());
    match owner {
        Some(owner) => owner.strip_prefix("source/").map_or(format!("owner {owner}"), str::to_owned),
        None => reason.source.to_string(),
    }
}

fn is_claim(reasons: &[Reason]) -> bool {
    !reasons.is_empty() && reasons.iter().all(|reason| reason.source.as_str() == "ledger")
}

/// No claim that came stands beside what another party had there before and still has.
fn no_claim_joined(world: &World, before: &BTreeMap<(Name, RecordData), Vec<Reason>>, stood: &Values) {
    let after = owned(world);
    let there = world.server.values();
    for ((at, data), reasons) in
        after.iter().filter(|(key, reasons)| is_claim(reasons) && !stood.contains(key))
    {
        if !there.contains(&(at.clone(), data.clone())) {
            continue;
        }
        let mine: BTreeSet<String> = reasons.iter().map(|reason| party(world, reason)).collect();
        let others = before.iter().filter(|((other, value), _)| other == at && value != data);
        for ((_, value), theirs) in others.filter(|(key, _)| stood.contains(key) && there.contains(key)) {
            // It may have passed on meanwhile.
            let theirs = after.get(&(at.clone(), value.clone())).unwrap_or(theirs);
            let held = theirs.iter().all(|reason| !mine.contains(&party(world, reason)));
            assert!(!held, "{data} of {mine:?} joined {value} of {theirs:?} at {at}");
        }
    }
}

/// Values that containers ask for and may not have.
fn refused(world: &World, limited: bool) -> Values {
    let docker = world.inventory.source(&"docker".parse().unwrap());
    let present = docker.into_iter().flat_map(|state| state.entries.values());
    let present = present.filter(|entry| entry.presence == Presence::Present);
    let mut found = Values::new();
    for wish in present.flat_map(|entry| entry.workload.wishes.clone()) {
        let values: Vec<RecordData> = match wish.content {
            netstead_model::Content::Records { values, .. } => values,
            netstead_model::Content::Addresses(addresses) => {
                addresses.iter().filter_map(|one| one.to_ip()).map(RecordData::address).collect()
            }
        };
        for data in values {
            let ns = data.kind() == netstead_model::RecordType::Ns;
            let top = wish.name == name("example.com");
            let mark = wish.name.as_str().starts_with("_netstead-");
            if mark || (ns && top) || (limited && (ns || top || wish.name.is_wildcard())) {
                found.insert((wish.name.clone(), data));
            }
        }
    }
    found
}

fn pass(world: &mut World, limited: bool) {
    let (before, stood, shares) = (owned(world), world.server.values(), world.settings.share);
    let plan = world.pass();
    let (after, there) = (owned(world), world.server.values());
    let lost: Values = stood.difference(&there).cloned().collect();
    assert!(lost.iter().all(|key| before.contains_key(key)), "only what is ours goes");
    if !shares {
        no_claim_joined(world, &before, &stood);
    }
    let docker = |reasons: &[Reason]| reasons.iter().all(|reason| reason.source.as_str() == "docker");
    for key in refused(world, limited) {
        let came = there.contains(&key) && !stood.contains(&key);
        assert!(!(came && after.get(&key).is_some_and(|reasons| docker(reasons))), "{key:?} is refused");
        let kept = before.get(&key).is_some_and(|reasons| !reasons.is_empty() && docker(reasons));
        let asks = |reason: &Reason| {
            let entry = world.inventory.entry(&reason.source, &reason.workload);
            entry.is_some_and(|entry| {
                entry.presence == Presence::Present
                    && entry.workload.wishes.iter().any(|wish| {
                        let has = match &wish.content {
                            netstead_model::Content::Records { values, .. } => values.contains(&key.1),
                            netstead_model::Content::Addresses(addresses) => {
                                addresses.iter().any(|one| one.to_ip() == key.1.to_address())
                            }
                        };
                        wish.name == key.0 && has
                    })
            })
        };
        let asked = before.get(&key).is_some_and(|reasons| reasons.iter().any(asks));
        assert!(!(kept && asked && lost.contains(&key)), "{key:?} is refused and was removed:\n{plan}");
    }
    let marks = world.owned.iter().any(|(at, _)| netstead_plan::marks::is_mark(at.as_str()).is_some());
    assert!(!marks, "no source writes a mark");
    let again = world.plan();
    assert!(again.is_empty(), "a second plan is empty, but:\n{again}\nafter\n{plan}");
    let hash = |plan: &netstead_plan::Plan| plan.parked.as_ref().map(|parked| parked.hash);
    assert_eq!(hash(&again), hash(&plan), "{again}\nafter\n{plan}");
}

fn step(world: &mut World, event: Happens, limited: &mut bool) {
    match event {
        Happens::Containers(workloads) => report(world, "docker", workloads),
        Happens::Claims(workloads) => report(world, "ledger", workloads),
        Happens::Records(workloads) => report(world, "manual", workloads),
        Happens::Limited(now) => {
            *limited = now;
            configure(world, now);
        }
        Happens::Share(share) => world.settings.share = share,
        Happens::Waits(seconds) => drop(world.wait(seconds)),
        Happens::Restarts => {
            let text = serde_json::to_string(&(&world.inventory, &world.owned, &world.guard)).unwrap();
            let plan = world.plan();
            (world.inventory, world.owned, world.guard) = serde_json::from_str(&text).unwrap();
            assert_eq!(world.plan(), plan, "a restart changes nothing");
        }
        Happens::Pass => pass(world, *limited),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_claim_joins_and_what_is_refused_neither_comes_nor_goes(
        events in prop::collection::vec(happens(), 1..40),
    ) {
        let mut world = World::new();
        world.settings.reverse = false;
        configure(&mut world, false);
        let mut limited = false;
        for event in events {
            step(&mut world, event, &mut limited);
        }
    }

    #[test]
    fn who_has_a_name_does_not_depend_on_the_order_of_a_report(
        containers in containers(), claims in claims(), records in records(),
    ) {
        let plan = |turned: bool| {
            let mut world = World::new();
            configure(&mut world, true);
            let mut all = [("docker", containers.clone()), ("ledger", claims.clone()), ("manual", records.clone())];
            if turned {
                all.reverse();
                for (_, workloads) in &mut all {
                    workloads.reverse();
                }
            }
            for (source, workloads) in all {
                world.report(source, View::Complete, workloads, &[]);
            }
            world.plan()
        };
        prop_assert_eq!(plan(false), plan(true));
    }
}
