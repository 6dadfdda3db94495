//! Two workloads, one name.

use netstead_model::{View, Workload};
use netstead_plan::MissingBecause;

use crate::world::*;

fn asks(id: &str, values: &[&str]) -> Workload {
    Workload { wishes: vec![exact("app.example.com", values)], ..bare(id) }
}

#[test]
fn who_came_first_has_the_name_and_the_other_learns_why() {
    let mut world = World::new();
    world.sees([asks("b", &["CNAME one.example.net."])]);
    world.wait(60).sees([asks("b", &["CNAME one.example.net."]), asks("a", &["A 10.0.0.1"])]).pass();
    assert!(world.has("app.example.com", "CNAME one.example.net."));
    assert!(!world.has("app.example.com", "A 10.0.0.1"));
    let why_not = world.desired().why_not;
    assert_eq!(why_not.len(), 1);
    assert_eq!(why_not[0].why, "pve/b has it already with CNAME one.example.net.");
}

#[test]
fn at_the_same_time_the_id_decides_not_the_order_of_the_report() {
    let both = [asks("b", &["CNAME two.example.net."]), asks("a", &["CNAME one.example.net."])];
    for turn in [both.to_vec(), both.iter().rev().cloned().collect()] {
        let mut world = World::new();
        world.sees(turn).pass();
        assert!(world.has("app.example.com", "CNAME one.example.net."));
    }
}

#[test]
fn the_name_passes_on_when_its_holder_ends_and_is_never_empty() {
    let mut world = World::new();
    let (first, second) = (asks("a", &["CNAME one.example.net."]), asks("b", &["A 10.0.0.1"]));
    world.sees([first, second.clone()]).pass();
    world.report("pve", View::Complete, vec![second], &[("a", true)]);
    let plan = world.pass();
    assert_eq!(plan.steps[1].unit.changes.len(), 3, "the alias, the address and the mark are one unit");
    assert!(world.has("app.example.com", "A 10.0.0.1"));
}

#[test]
fn addresses_of_several_workloads_stand_together() {
    let mut world = World::new();
    world.sees([asks("a", &["A 10.0.0.1"]), asks("b", &["A 10.0.0.2", "A 10.0.0.1"])]).pass();
    assert_eq!(world.owned.of(&name("app.example.com")).len(), 2);
    assert_eq!(world.owned.of(&name("app.example.com"))[0].reasons.len(), 2);
}

#[test]
fn the_first_ttl_counts() {
    let (mut one, mut two) = (asks("a", &["A 10.0.0.1"]), asks("b", &["A 10.0.0.2"]));
    (one.wishes[0].ttl, two.wishes[0].ttl) = (Some(60), Some(900));
    let mut world = World::new();
    world.sees([two, one]);
    let desired = world.desired();
    assert_eq!(desired.of(&name("app.example.com"))[0].ttl, 60);
    assert_eq!(desired.why_not[0].why, "its TTL 900 gives way to 60 of pve/a");
    assert_eq!(desired.why_not[0].absence, Some(MissingBecause::Detail));
}

#[test]
fn a_workload_that_turns_its_address_into_an_alias_does_so_in_one_unit() {
    let mut world = World::new();
    world.sees([asks("a", &["A 10.0.0.1"])]).pass();
    world.wait(60).sees([asks("a", &["CNAME one.example.net."])]).pass();
    assert!(world.has("app.example.com", "CNAME one.example.net."));
    assert!(!world.has("app.example.com", "A 10.0.0.1"));
}

#[test]
fn why_not_says_what_led_to_no_record() {
    let mut world = World::new();
    world.settings.types = vec![netstead_model::RecordType::A];
    let mut elsewhere = vm("x", &["10.0.0.1"]);
    elsewhere.wishes[0].name = name("x.example.net");
    let mut for_other = vm("y", &["10.0.0.1"]);
    for_other.wishes[0].providers = vec!["wan".parse().unwrap()];
    let v6 = vm("z", &["fd00::1"]);
    let none = vm("n", &[]);
    world.sees([elsewhere, for_other, v6, none]);
    let desired = world.desired();
    let why: Vec<_> = desired.why_not.iter().map(|one| format!("{}: {}", one.workload, one.why)).collect();
    assert_eq!(
        why,
        [
            "n: it has no address of a type this provider writes",
            "x: it matches no domain of `lan`",
            "y: it is not meant for `lan`",
            "z: `lan` cannot hold AAAA records",
        ]
    );
    let absences: Vec<_> = desired.why_not.iter().map(|one| one.absence).collect();
    let elsewhere = Some(MissingBecause::Elsewhere);
    assert_eq!(absences, [Some(MissingBecause::NoAddress), elsewhere, elsewhere, None]);
    assert!(desired.sets.is_empty());
}

#[test]
fn of_workloads_that_ask_for_a_free_name_the_one_that_was_created_first_gets_it() {
    let alias = |id: &str, to: &str, created: Option<i64>| Workload {
        created: created.map(|at| jiff::Timestamp::from_second(at).unwrap()),
        ..asks(id, &[&format!("CNAME {to}.example.net.")])
    };
    let (young, old) = (alias("a", "a", Some(200)), alias("b", "b", Some(100)));
    let mut world = World::new();
    world.sees([young.clone()]);
    world.wait(60).sees([young.clone(), old.clone()]).pass();
    assert!(world.has("app.example.com", "CNAME b.example.net."), "neither had it");
    // A value that is there stays, whatever is older.
    let older = alias("c", "c", Some(1));
    world.wait(60).sees([young.clone(), old, older]).pass();
    assert!(world.has("app.example.com", "CNAME b.example.net."));
    // One that does not tell leaves it to the first that asked.
    let mut world = World::new();
    world.sees([young.clone()]);
    world.wait(60).sees([young, alias("b", "b", None)]).pass();
    assert!(world.has("app.example.com", "CNAME a.example.net."));
}
