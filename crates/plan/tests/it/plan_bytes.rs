//! Stored plans and approvals outlive a release: the same input must give the same bytes and hashes as 0.1.0.

use netstead_model::View;
use netstead_plan::Plan;

use crate::world::*;

/// The plan below as 0.1.0 serialises it.
const GOLDEN: &str = include_str!("plan_bytes/0.1.0.json");

/// Additions, a change, removals, drift, a blocked name, kept values and parked changes.
fn plan() -> Plan {
    let mut world = World::new();
    world.server.add("example.com", "mail.example.com", "A 192.0.2.25");
    let before = [
        vm("app", &["10.0.0.1"]),
        vm("db", &["10.0.0.2"]),
        vm("gone", &["10.0.0.3"]),
        vm("slow", &["10.0.0.5"]),
        vm("lost", &["10.0.0.6"]),
    ];
    world.sees(before).pass();
    let lost = (name("lost.example.com"), netstead_model::RecordType::A);
    world.server.0.get_mut(&name("example.com")).unwrap().remove(&lost);
    world.settings.exclude_domains = vec!["app.example.com".parse().unwrap()];
    let mut alias = bare("alias");
    alias.wishes = vec![exact("alias.example.com", &["CNAME db.example.com."])];
    let after = vec![
        vm("app", &["10.0.0.1"]),
        vm("db", &["10.0.0.12"]),
        vm("new", &["10.0.0.4", "fd00::4"]),
        vm("mail", &["10.0.0.25"]),
        vm("lost", &["10.0.0.6"]),
        alias,
    ];
    world.wait(60).report("pve", View::Complete, after.clone(), &[("gone", false)]);
    world.wait(60).report("pve", View::Complete, after, &[]);
    world.plan()
}

/// The one difference since 0.1.0: a grace is data where it was text. Reasons of kept values are in no hash, and the engine stores steps
/// alone (`engine/src/history/plans.rs`).
const GRACE: [&str; 2] = [r#""absent 1m, grace 5m""#, r#"{"absent_from":1060000,"grace":"5m"}"#];

#[test]
fn plans_keep_the_bytes_and_hashes_of_0_1_0() {
    let plan = plan();
    assert_eq!(GOLDEN.matches(GRACE[0]).count(), 3);
    assert_eq!(serde_json::to_string(&plan).unwrap(), GOLDEN.trim_end().replace(GRACE[0], GRACE[1]));
    let parked = plan.parked.as_ref().unwrap();
    let hashes = (plan.hash.to_string(), parked.hash.to_string());
    assert_eq!(hashes, ("63b0e943b7c706ea".into(), "d4f4b6183d0e9a10".into()));
    let parts =
        [plan.steps.len(), parked.changes.len(), plan.blocked.len(), plan.kept.len(), plan.drift.len()];
    assert!(parts.iter().all(|part| *part > 0), "each part of a plan is in it: {parts:?}");
}

#[test]
fn a_plan_that_0_1_0_stored_is_read_and_written_back_as_it_was() {
    let read: Plan = serde_json::from_str(GOLDEN).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), GOLDEN.trim_end());
    let now = plan();
    assert_eq!((&read.hash, &read.steps, &read.parked), (&now.hash, &now.steps, &now.parked));
    assert_eq!((&read.blocked, &read.drift), (&now.blocked, &now.drift));
}
