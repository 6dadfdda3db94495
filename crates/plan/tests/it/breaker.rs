//! The breaker: what sources cause is counted over ten minutes.

use netstead_model::View;

use crate::world::*;

fn settled(count: u8) -> World {
    let mut world = World::new();
    world.settings.reverse = false;
    world.sees(fleet(0..count)).pass();
    world
}

fn ended(range: std::ops::Range<u8>, asked: bool) -> Vec<(String, bool)> {
    range.map(|n| (format!("w{n}"), asked)).collect()
}

fn end(world: &mut World, count: u8, gone: std::ops::Range<u8>, asked: bool) -> netstead_plan::Plan {
    let ended = ended(gone.clone(), asked);
    let ended: Vec<_> = ended.iter().map(|(id, asked)| (id.as_str(), *asked)).collect();
    let left = fleet(0..count).into_iter().filter(|w| !ended.iter().any(|(id, _)| w.id == *id)).collect();
    world.report("pve", View::Complete, left, &ended);
    world.wait(30).pass()
}

#[test]
fn the_limits_are_ten_and_thirty_percent() {
    // owned, ended at once, whether that passes
    let table =
        [(100, 10, true), (100, 30, true), (100, 31, false), (20, 10, true), (20, 11, false), (9, 9, true)];
    for (count, gone, passes) in table {
        let plan = end(&mut settled(count), count, 0..gone, false);
        assert_eq!(plan.parked.is_none(), passes, "{gone} of {count}");
        assert_eq!(plan.steps.is_empty(), !passes, "{gone} of {count}");
    }
}

#[test]
fn more_than_two_hundred_in_all_are_parked_whatever_the_share() {
    let mut world = settled(250);
    world.settings.breaker.percent = 100;
    let plan = end(&mut world, 250, 0..201, false);
    assert_eq!(plan.parked.map(|parked| parked.changes.len()), Some(201));
    let mut world = settled(250);
    world.settings.breaker.percent = 100;
    assert!(end(&mut world, 250, 0..200, false).parked.is_none());
}

#[test]
fn a_slow_bleed_trips_it() {
    let mut world = settled(30);
    for gone in 1..=30 {
        end(&mut world, 30, 0..gone, false);
    }
    let left = world.server.values().len();
    assert_eq!(left, 20, "ten went, the rest is parked");
    assert_eq!(world.plan().parked.unwrap().changes.len(), 20);
}

#[test]
fn what_is_parked_stays_parked_when_the_window_has_passed() {
    let mut world = settled(30);
    for gone in 1..=12 {
        end(&mut world, 30, 0..gone, false);
    }
    assert_eq!(world.plan().parked.unwrap().changes.len(), 2);
    world.wait(3600).pass();
    assert_eq!(world.server.values().len(), 20);
}

#[test]
fn fifty_released_claims_are_not_counted() {
    let mut world = settled(60);
    assert!(end(&mut world, 60, 0..50, true).parked.is_none());
    assert_eq!(world.server.values().len(), 10);
}

#[test]
fn creates_still_flow() {
    let mut world = settled(40);
    let ended = ended(0..30, false);
    let ended: Vec<_> = ended.iter().map(|(id, asked)| (id.as_str(), *asked)).collect();
    world.report("pve", View::Complete, fleet(30..50), &ended);
    let plan = world.wait(30).pass();
    assert_eq!(plan.parked.unwrap().changes.len(), 30);
    assert!(world.has("w49.example.com", "A 10.0.0.49"));
}

#[test]
fn absence_alone_never_leaves_nothing() {
    let mut world = settled(4);
    world.goes_on(20, &[]);
    assert_eq!(world.server.values().len(), 4);
    let parked = world.plan().parked.unwrap();
    assert_eq!(
        (parked.changes.len(), &*parked.changes[0].guard),
        (4, "nothing would be left of what is ours")
    );
    let mut world = settled(2);
    world.goes_on(20, &[]);
    assert_eq!(world.server.values().len(), 0, "two are few enough");
}

#[test]
fn updates_count_as_well() {
    let mut world = settled(20);
    let moved: Vec<_> = (0..20).map(|n| vm(&format!("w{n}"), &[&format!("10.0.1.{n}")])).collect();
    let plan = world.wait(1).sees(moved).pass();
    assert!(plan.steps.is_empty(), "neither the old goes nor the new comes");
    assert_eq!(plan.parked.unwrap().changes.len(), 20);
}

#[test]
fn a_target_that_moves_counts_once() {
    let mut world = World::new();
    world.settings.target_moves = true;
    world.settings.target =
        Some(netstead_plan::ProviderTarget::Addresses(vec!["192.0.2.1".parse().unwrap()]));
    world.sees(fleet(0..100)).pass();
    world.settings.target =
        Some(netstead_plan::ProviderTarget::Addresses(vec!["192.0.2.2".parse().unwrap()]));
    let plan = world.wait(60).pass();
    assert_eq!((plan.steps.len(), plan.parked), (100, None));
    assert!(world.has("w1.example.com", "A 192.0.2.2") && !world.has("w1.example.com", "A 192.0.2.1"));
}

#[test]
fn a_target_that_is_configured_is_parked() {
    let mut world = World::new();
    world.settings.target =
        Some(netstead_plan::ProviderTarget::Addresses(vec!["192.0.2.1".parse().unwrap()]));
    world.sees(fleet(0..3)).pass();
    world.settings.target = Some(netstead_plan::ProviderTarget::Name(name("proxy.example.com")));
    let plan = world.wait(60).pass();
    assert_eq!((plan.steps.len(), plan.parked.unwrap().changes.len()), (0, 3));
}

#[test]
fn a_target_of_a_source_that_moves_counts_once() {
    let moving = |address: &str, moves: bool| {
        let pointing = |mut workload: netstead_model::Workload| {
            workload.wishes[0] = wish(workload.wishes[0].name.as_str(), &[address]);
            (workload.wishes[0].borrowed, workload.wishes[0].moves) = (true, moves);
            workload
        };
        fleet(0..20).into_iter().map(pointing).collect::<Vec<_>>()
    };
    for (moves, passes) in [(true, true), (false, false)] {
        let mut world = World::new();
        world.sees(moving("203.0.113.7", moves)).pass();
        let plan = world.wait(60).sees(moving("203.0.113.8", moves)).pass();
        assert_eq!(plan.parked.is_none(), passes, "moves: {moves}");
        assert_eq!(world.has("w7.example.com", "A 203.0.113.8"), passes);
        assert_eq!(world.has("w7.example.com", "A 203.0.113.7"), !passes);
    }
}
