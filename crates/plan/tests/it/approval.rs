//! Approval is for exactly what is parked, once, within a day.

use netstead_model::UnitOutcome;
use netstead_plan::ApproveError;

use crate::world::*;

/// Three machines whose names are no longer the provider's.
fn parked() -> World {
    let mut world = World::new();
    world.settings.reverse = false;
    world.sees(fleet(0..3)).pass();
    world.settings.exclude_domains =
        vec!["w0.example.com".parse().unwrap(), "w1.example.com".parse().unwrap()];
    world.wait(60).pass();
    world
}

#[test]
fn approval_releases_exactly_the_parked_changes() {
    let mut world = parked();
    let (hash, now) = (world.plan().parked.unwrap().hash, world.now());
    world.guard.approve(hash, now).unwrap();
    let plan = world.pass();
    assert_eq!((plan.steps.len(), plan.parked), (2, None));
    assert_eq!(world.server.values().len(), 1);
    assert!(world.pass().steps.is_empty());
}

#[test]
fn a_second_approval_is_refused() {
    let mut world = parked();
    let (hash, now) = (world.plan().parked.unwrap().hash, world.now());
    world.guard.approve(hash, now).unwrap();
    assert_eq!(world.guard.approve(hash, now), Err(ApproveError::Unknown(hash)));
    world.pass();
    assert_eq!(world.guard.approve(hash, now), Err(ApproveError::Unknown(hash)));
}

#[test]
fn an_approval_expires() {
    let mut world = parked();
    let hash = world.plan().parked.unwrap().hash;
    let now = world.wait(24 * 3600 + 61).now();
    assert_eq!(world.guard.approve(hash, now), Err(ApproveError::Expired(hash)));
    assert!(world.guard.approved.is_empty());
}

#[test]
fn creates_do_not_change_the_hash() {
    let mut world = parked();
    let hash = world.plan().parked.unwrap().hash;
    world.wait(60).sees(fleet(0..9)).pass();
    assert_eq!(world.plan().parked.unwrap().hash, hash);
}

#[test]
fn what_is_parked_later_is_not_part_of_an_earlier_approval() {
    let mut world = parked();
    let (hash, now) = (world.plan().parked.unwrap().hash, world.now());
    world.settings.exclude_domains.push("w2.example.com".parse().unwrap());
    world.guard.approve(hash, now).unwrap();
    let plan = world.pass();
    assert_eq!(plan.steps.len(), 2);
    assert_eq!(plan.parked.unwrap().changes.len(), 1);
    assert!(world.has("w2.example.com", "A 10.0.0.2"));
}

#[test]
fn a_set_that_changed_meanwhile_is_not_covered() {
    let mut world = parked();
    let (hash, now) = (world.plan().parked.unwrap().hash, world.now());
    world.guard.approve(hash, now).unwrap();
    world.server.add("example.com", "w0.example.com", "A 192.0.2.99");
    let plan = world.pass();
    assert_eq!((plan.steps.len(), plan.parked.unwrap().changes.len()), (1, 1));
}

#[test]
fn an_unknown_outcome_keeps_the_approval_and_the_value() {
    let mut world = parked();
    let (hash, now) = (world.plan().parked.unwrap().hash, world.now());
    world.guard.approve(hash, now).unwrap();
    let plan = world.plan();
    let intent = netstead_plan::record_intent(&plan, &mut world.owned, &mut world.guard, now);
    netstead_plan::record_outcome(
        &plan,
        &intent,
        &[UnitOutcome::Unknown, UnitOutcome::Unknown],
        &mut world.owned,
        &mut world.guard,
        &world.settings,
        now,
    );
    assert_eq!(world.owned.len(), 3);
    assert_eq!(world.plan().steps.len(), 2);
}

#[test]
fn what_was_not_tried_leaves_no_trace_and_keeps_the_approval() {
    let mut world = parked();
    let (hash, now) = (world.plan().parked.unwrap().hash, world.now());
    world.guard.approve(hash, now).unwrap();
    let (owned, guard) = (world.owned.clone(), world.guard.clone());
    let plan = world.plan();
    let intent = netstead_plan::record_intent(&plan, &mut world.owned, &mut world.guard, now);
    let outcomes = vec![UnitOutcome::NotTried; plan.steps.len()];
    netstead_plan::record_outcome(
        &plan,
        &intent,
        &outcomes,
        &mut world.owned,
        &mut world.guard,
        &world.settings,
        now,
    );
    assert_eq!(world.owned, owned);
    assert_eq!((&world.guard.approved, &world.guard.window), (&guard.approved, &guard.window));
    assert_eq!(world.plan().steps, plan.steps);
}

/// A write without an answer, and then one that was never sent: the first may still arrive.
#[test]
fn a_value_that_may_have_been_sent_stays_ours_when_a_later_write_is_not_tried() {
    let mut world = World::new();
    world.sees([vm("app", &["10.0.0.1"])]);
    for outcome in [UnitOutcome::Unknown, UnitOutcome::NotTried] {
        let (plan, now) = (world.plan(), world.now());
        let intent = netstead_plan::record_intent(&plan, &mut world.owned, &mut world.guard, now);
        let outcomes = vec![outcome; plan.steps.len()];
        let (owned, guard) = (&mut world.owned, &mut world.guard);
        netstead_plan::record_outcome(&plan, &intent, &outcomes, owned, guard, &world.settings, now);
    }
    assert!(world.owned.get(&name("app.example.com"), &data("A 10.0.0.1")).unwrap().pending);
}
