//! Servers that can stand in front of what a name leads to.

use netstead_model::{RecordType, Workload};

use crate::world::*;

fn asking(proxied: Option<bool>) -> Workload {
    let mut workload = vm("a", &["10.0.0.9"]);
    workload.wishes[0].proxied = proxied;
    workload
}

fn stands(world: &World) -> Option<bool> {
    let zone = &world.server.0[&name("example.com")];
    zone[&(name("a.example.com"), RecordType::A)].proxied
}

#[test]
fn what_a_workload_says_of_it_reaches_a_server_that_can() {
    let mut world = World::new();
    world.settings.proxies = true;
    world.sees([asking(Some(true))]).pass();
    assert_eq!(stands(&world), Some(true));
    assert!(world.plan().steps.is_empty());
    let plan = world.wait(60).sees([asking(Some(false))]).pass();
    assert!(plan.to_string().contains("no longer proxied"), "{plan}");
    assert_eq!(stands(&world), Some(false));
    world.wait(60).sees([asking(None)]).pass();
    assert_eq!(stands(&world), Some(false), "who says nothing changes nothing");
}

#[test]
fn a_server_that_cannot_is_not_asked_to() {
    let mut world = World::new();
    world.sees([asking(Some(true))]).pass();
    assert_eq!(stands(&world), None);
    assert!(world.plan().steps.is_empty());
}
