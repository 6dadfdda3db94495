//! Commands of people: adopt, recover, clean, rollback, rename.

use std::collections::{BTreeMap, BTreeSet};

use netstead_model::{Name, RecordData, RecordType, View};
use netstead_plan::{
    Desired, Input, Inventory, Origin, Owned, OwnedValue, Past, Plan, diff,
    marks::{Tool, adoptable, catalogues, external_dns::Naming, recover},
    record_intent, record_outcome, rollback,
};
use proptest::prelude::*;

use crate::world::*;

fn quiet() -> World {
    let mut world = World::new();
    world.settings.reverse = false;
    world
}

fn adopt(world: &mut World, at: &str, text: &str) {
    let (data, reasons, origin) = (data(text), Vec::new(), Origin::Adopted);
    world.owned.put(&name(at), OwnedValue { data, reasons, origin, pending: false });
}

fn carry_out(world: &mut World, plan: &Plan) {
    let now = world.now();
    let intent = record_intent(plan, &mut world.owned, &mut world.guard, now);
    let outcomes: Vec<_> = plan.steps.iter().map(|step| world.server.write(&step.zone, &step.unit)).collect();
    record_outcome(plan, &intent, &outcomes, &mut world.owned, &mut world.guard, &world.settings, now);
}

fn roll_back(world: &mut World, plans: &[Plan], to: u64) -> Plan {
    let mut past = Past::default();
    let later = plans.iter().filter(|plan| plan.generation > to).flat_map(|plan| &plan.steps);
    later.for_each(|step| past.add(&step.unit));
    let plan =
        rollback(&past, &world.server.actual(), &world.owned, &world.guard, &world.settings, world.now());
    carry_out(world, &plan);
    plan
}

#[test]
fn what_a_person_adopts_gives_way_to_what_is_asked_for() {
    let mut world = quiet();
    world.server.add("example.com", "app.example.com", "A 192.0.2.1");
    world.server.add("example.com", "app.example.com", "TXT \"hands off\"");
    world.sees([vm("app", &["10.0.0.1"])]);
    assert_eq!(world.pass().blocked.len(), 1);
    adopt(&mut world, "app.example.com", "A 192.0.2.1");
    adopt(&mut world, "app.example.com", "TXT \"hands off\"");
    let plan = world.pass();
    assert!(plan.blocked.is_empty() && plan.parked.is_none(), "{plan}");
    assert!(world.has("app.example.com", "A 10.0.0.1") && !world.has("app.example.com", "A 192.0.2.1"));
    // Nothing that was asked for takes the place of the text.
    assert!(world.has("app.example.com", "TXT \"hands off\""));
    assert!(world.pass().is_empty());
}

#[test]
fn an_adopted_alias_turns_into_an_address_in_one_unit() {
    let mut world = quiet();
    world.server.add("example.com", "app.example.com", "CNAME other.example.net.");
    world.sees([vm("app", &["10.0.0.1"])]);
    adopt(&mut world, "app.example.com", "CNAME other.example.net.");
    assert_eq!(world.pass().steps.len(), 1);
    assert!(world.has("app.example.com", "A 10.0.0.1"));
}

#[test]
fn what_was_adopted_is_not_emptied_when_its_successor_cannot_stand_there() {
    let mut world = quiet();
    world.server.add("example.com", "example.com", "A 192.0.2.1");
    let mut alias = vm("top", &[]);
    alias.wishes = vec![exact("example.com", &["CNAME other.example.net."])];
    world.sees([alias]);
    adopt(&mut world, "example.com", "A 192.0.2.1");
    let plan = world.pass();
    assert_eq!(plan.blocked.len(), 1, "{plan}");
    assert!(world.has("example.com", "A 192.0.2.1"));
}

#[test]
fn what_was_adopted_and_somebody_removes_is_forgotten() {
    let mut world = quiet();
    world.server.add("example.com", "old.example.com", "A 192.0.2.1");
    adopt(&mut world, "old.example.com", "A 192.0.2.1");
    world.sees([]).pass();
    assert!(world.has("old.example.com", "A 192.0.2.1"), "nothing asks for it, and it stays");
    world.server.0.get_mut(&name("example.com")).unwrap().clear();
    world.pass();
    assert!(world.owned.is_empty());
}

#[test]
fn a_typed_mark_of_external_dns_is_not_taken_for_an_old_one_of_another_name() {
    let mut world = quiet();
    for (at, value) in [
        ("app.example.com", "A 10.0.0.1"),
        ("a-app.example.com", "A 192.0.2.9"),
        ("a-app.example.com", "TXT \"heritage=external-dns,external-dns/owner=k8s\""),
    ] {
        world.server.add("example.com", at, value);
    }
    let found = adoptable(&world.server.actual(), &Naming::default());
    let names: Vec<_> = found.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["app.example.com"]);
}

#[test]
fn the_catalogue_of_dnsweaver_goes_with_the_last_of_its_marks() {
    let mut world = quiet();
    for (at, value) in [
        ("app.example.com", "A 10.0.0.1"),
        ("_dnsweaver.app.example.com", "TXT \"heritage=dnsweaver,instance=home\""),
        ("web.example.com", "A 10.0.0.2"),
        ("_dnsweaver.web.example.com", "TXT \"heritage=dnsweaver,instance=work\""),
        ("_dnsweaver-catalog-0.example.com", "TXT \"app.example.com\" \"web.example.com\""),
        ("_dnsweaver-catalog-x.example.com", "TXT \"somebody's\""),
    ] {
        world.server.add("example.com", at, value);
    }
    let actual = world.server.actual();
    let all = adoptable(&actual, &Naming::default());
    assert!(all.iter().all(|one| one.tool == Tool::Dnsweaver));
    assert_eq!(catalogues(&actual, &all[..1]), []);
    let found = catalogues(&actual, &all);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].0, name("_dnsweaver-catalog-0.example.com"));
    for one in &all {
        world.owned.put(&one.name, one.owned());
    }
    for (at, value) in all.iter().map(netstead_plan::marks::Adoptable::discarded).chain(found) {
        world.owned.put(&at, value);
    }
    world.pass();
    assert_eq!(world.server.values().len(), 3);
    assert!(world.has("_dnsweaver-catalog-x.example.com", "TXT \"somebody's\""));
}

#[test]
fn the_first_plan_after_a_recovery_waits_as_a_whole_and_goes_with_its_hash() {
    let mut world = World::new();
    world.sees(fleet(0..3)).pass();
    world.owned = recover(&world.settings.owner, &world.server.actual()).owned;
    world.inventory = Inventory::default();
    world.guard.recovered = true;
    let before = world.server.clone();
    world.wait(60).sees([vm("w0", &["10.0.0.99"]), vm("new", &["10.0.0.50"])]);
    let plan = world.pass();
    assert!(plan.steps.is_empty(), "{plan}");
    assert_eq!(world.server, before);
    let parked = plan.parked.unwrap();
    let names: Vec<_> = parked.changes.iter().map(|change| change.name.as_str()).collect();
    assert!(names.contains(&"new.example.com") && names.contains(&"w0.example.com"), "{names:?}");
    world.guard.approve(parked.hash, world.now()).unwrap();
    world.pass();
    assert!(world.has("w0.example.com", "A 10.0.0.99") && world.has("new.example.com", "A 10.0.0.50"));
    assert!(!world.has("w1.example.com", "A 10.0.0.1") && !world.guard.recovered);
    assert!(world.pass().is_empty());
}

#[test]
fn clean_empties_a_provider_that_otherwise_never_deletes() {
    let mut world = quiet();
    world.settings.mode = netstead_plan::Mode::Additive;
    world.sees(fleet(0..3)).pass();
    world.server.add("example.com", "hand.example.com", "A 192.0.2.1");
    let (desired, actual) = (Desired::default(), world.server.actual());
    let World { owned, guard, settings, .. } = &world;
    let now = world.now();
    let input = Input { desired: &desired, actual: &actual, owned, guard, settings, now, clean: true };
    let plan = diff(&input);
    carry_out(&mut world, &plan);
    assert_eq!(world.server.values().len(), 1);
    assert!(world.owned.is_empty());
}

#[test]
fn a_detached_source_is_cleaned_and_shared_values_stay() {
    let mut world = quiet();
    let both = vm("app", &["10.0.0.1"]);
    world.sees([both.clone(), vm("old", &["10.0.0.2"])]);
    world.report("other", View::Complete, vec![both], &[]);
    world.pass();
    assert!(!world.inventory.clean(&"pve".parse().unwrap()), "it is not detached");
    world.configure("other", "", false);
    world.pass();
    assert!(world.has("old.example.com", "A 10.0.0.2"));
    assert!(world.inventory.clean(&"pve".parse().unwrap()));
    let plan = world.pass();
    assert!(plan.parked.is_none(), "{plan}");
    assert!(!world.has("old.example.com", "A 10.0.0.2") && world.has("app.example.com", "A 10.0.0.1"));
    // Also if only what is ours tells that there was such a source.
    world.inventory = Inventory::default();
    world.configure("third", "", false);
    world.inventory.clean(&"other".parse().unwrap());
    world.pass();
    assert!(world.server.values().is_empty());
}

#[test]
fn a_renamed_source_keeps_what_it_brought() {
    let mut world = quiet();
    world.sees(fleet(0..3)).pass();
    let before = world.server.clone();
    let (was, is) = ("pve".parse().unwrap(), "lab".parse().unwrap());
    world.inventory.rename(&was, &is);
    assert_eq!(world.owned.rename_source(&was, &is).len(), 3);
    world.configure("lab", "", false);
    world.wait(60).report("lab", View::Complete, fleet(0..3), &[]);
    assert!(world.pass().is_empty());
    assert_eq!(world.server, before);
    // Told too late, when both have seen the same, the later word stands and nothing is doubled.
    world.sees(fleet(0..3));
    world.owned.rename_source(&is, &was);
    world.inventory.rename(&was, &is);
    world.owned.rename_source(&was, &is);
    assert!(world.pass().is_empty());
    assert!(world.owned.iter().all(|(_, values)| values.iter().all(|value| value.reasons.len() == 1)));
}

#[test]
fn a_rollback_brings_back_what_was_and_leaves_what_is_not_ours() {
    let mut world = quiet();
    world.settings.share = true;
    let first = world.sees([vm("app", &["10.0.0.1"]), vm("old", &["10.0.0.2"])]).pass();
    let was = world.server.values();
    let mut plans = vec![first];
    world.report(
        "pve",
        View::Complete,
        vec![vm("app", &["10.0.0.9"]), vm("new", &["10.0.0.3"])],
        &[("old", true)],
    );
    plans.push(world.wait(600).pass());
    world.server.add("example.com", "new.example.com", "A 192.0.2.7");
    let plan = roll_back(&mut world, &plans, 1);
    assert_eq!(plan.generation, 3);
    let mut expected = was;
    expected.insert((name("new.example.com"), data("A 192.0.2.7")));
    assert_eq!(world.server.values(), expected);
    // What came again is parked until a person decides, for nothing asks for it.
    let plan = world.plan();
    let parked = plan.parked.as_ref().unwrap();
    assert!(parked.changes.iter().any(|change| change.name == name("old.example.com")), "{plan}");
}

/// The machines of one report, by number, with the last part of their address.
type Step = Vec<(u8, u8)>;

/// Plays `steps`, then goes back to the state number `to`: what stands there, and what stood there then.
fn there_and_back(steps: Vec<Step>, to: usize) -> (World, BTreeSet<(Name, RecordData)>) {
    let mut world = quiet();
    (world.settings.breaker.changes, world.settings.breaker.total) = (1000, 1000);
    let (mut plans, mut states) = (Vec::new(), vec![(0, world.server.values())]);
    let mut known: Vec<u8> = Vec::new();
    for step in steps {
        let fleet: BTreeMap<u8, u8> = step.into_iter().collect();
        let gone = known.iter().filter(|id| !fleet.contains_key(id)).map(|id| format!("w{id}"));
        let gone: Vec<String> = gone.collect();
        let gone: Vec<(&str, bool)> = gone.iter().map(|id| (id.as_str(), true)).collect();
        let vms = fleet.iter().map(|(id, n)| vm(&format!("w{id}"), &[&format!("10.0.0.{n}")])).collect();
        world.wait(60).report("pve", View::Complete, vms, &gone);
        known = fleet.into_keys().collect();
        let plan = world.pass();
        if !plan.is_empty() {
            states.push((plan.generation, world.server.values()));
            plans.push(plan);
        }
    }
    let (generation, values) = states[to.min(states.len() - 1)].clone();
    roll_back(&mut world, &plans, generation);
    (world, values)
}

fn values_of(owned: &Owned) -> Vec<(Name, RecordData)> {
    let of = |(name, values): (&Name, &[OwnedValue])| {
        values.iter().map(|value| (name.clone(), value.data.clone())).collect::<Vec<_>>()
    };
    owned.iter().flat_map(of).collect()
}

proptest! {
    #[test]
    fn any_generation_can_be_had_again(
        steps in prop::collection::vec(prop::collection::vec((0u8..6, 0u8..4), 0..6), 1..6),
        to in 0usize..6,
    ) {
        let (world, values) = there_and_back(steps, to);
        prop_assert_eq!(world.server.values(), values);
        // The marks say the same as the store.
        let marked = recover(&world.settings.owner, &world.server.actual()).owned;
        prop_assert_eq!(values_of(&marked), values_of(&world.owned));
    }
}

#[test]
fn a_rolled_back_time_to_live_is_the_old_one() {
    let mut world = quiet();
    let mut plans = vec![world.sees([vm("app", &["10.0.0.1"])]).pass()];
    world.settings.ttl = 60;
    plans.push(world.pass());
    let ttl =
        |world: &World| world.server.0[&name("example.com")][&(name("app.example.com"), RecordType::A)].ttl;
    assert_eq!(ttl(&world), 60);
    roll_back(&mut world, &plans, 1);
    assert_eq!(ttl(&world), 300);
}
