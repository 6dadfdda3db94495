//! Changes that each mode may make.

use netstead_model::View;
use netstead_plan::Mode;

use crate::world::*;

fn in_mode(mode: Mode) -> World {
    let mut world = World::new();
    world.settings.reverse = false;
    world.sees([vm("a", &["10.0.0.1"]), vm("b", &["10.0.0.2"])]).pass();
    world.settings.mode = mode;
    world.wait(1).report(
        "pve",
        View::Complete,
        vec![vm("b", &["10.0.0.3"]), vm("c", &["10.0.0.4"])],
        &[("a", true)],
    );
    world.pass();
    world
}

fn left(world: &World) -> Vec<String> {
    world
        .server
        .values()
        .iter()
        .map(|(name, value)| format!("{} {value}", name.labels().next().unwrap()))
        .collect()
}

#[test]
fn managed_creates_changes_and_removes() {
    assert_eq!(left(&in_mode(Mode::Managed)), ["b 10.0.0.3", "c 10.0.0.4"]);
}

#[test]
fn additive_never_removes() {
    assert_eq!(left(&in_mode(Mode::Additive)), ["a 10.0.0.1", "b 10.0.0.3", "c 10.0.0.4"]);
}

#[test]
fn create_only_creates() {
    assert_eq!(left(&in_mode(Mode::CreateOnly)), ["a 10.0.0.1", "b 10.0.0.2", "c 10.0.0.4"]);
}

#[test]
fn observe_plans_as_if_it_managed_and_says_so() {
    let world = in_mode(Mode::Observe);
    assert!(world.plan().to_string().ends_with("(only observed)"));
}

#[test]
fn authoritative_replaces_somebody_elses_addresses_at_wanted_names_only() {
    let mut world = World::new();
    world.settings.reverse = false;
    world.settings.mode = Mode::Authoritative;
    world.server.add("example.com", "a.example.com", "A 192.0.2.1");
    world.server.add("example.com", "z.example.com", "A 192.0.2.2");
    world.sees([vm("a", &["10.0.0.1"])]).pass();
    assert_eq!(left(&world), ["a 10.0.0.1", "z 192.0.2.2"]);
    assert!(world.pass().is_empty());
}
