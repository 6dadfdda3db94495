//! Providers that put an HTTPS record beside every address.

use netstead_model::{RecordData, RecordType, Workload};

use crate::world::*;

const COMPANION: &str = "1 . alpn=h2";

fn world() -> World {
    let mut world = World::new();
    world.settings.companion = Some(RecordData::parse(RecordType::Https, COMPANION).unwrap());
    world
}

fn has(world: &World, text: &str) -> bool {
    world.server.has("a.example.com", &format!("HTTPS {text}"))
}

#[test]
fn an_https_record_comes_and_goes_with_the_address() {
    let mut world = world();
    let others = fleet(20..30);
    let with = |own: Workload| [&[own][..], &others].concat();
    world.sees(with(vm("a", &["10.0.0.9", "fd00::9"]))).pass();
    assert!(has(&world, COMPANION));
    assert!(world.plan().steps.is_empty());
    world.wait(60).sees(with(vm("a", &["10.0.0.10"]))).pass();
    assert!(has(&world, COMPANION), "another address changes nothing");
    let plan = world.goes_on(60, &others).pass();
    let gone = !has(&world, COMPANION) && !world.server.has("a.example.com", "A 10.0.0.10");
    assert!(gone, "{plan}");
}

#[test]
fn an_https_record_that_a_workload_asks_for_takes_its_place() {
    let mut world = world();
    let plain = vm("a", &["10.0.0.9"]);
    world.sees([plain.clone()]).pass();
    let mut own = plain.clone();
    own.wishes.push(exact("a.example.com", &["HTTPS 1 . alpn=h3"]));
    world.wait(60).sees([own]).pass();
    assert!(has(&world, "1 . alpn=h3") && !has(&world, COMPANION));
    assert!(world.plan().steps.is_empty());
    world.goes_on(60, &[plain]).pass();
    assert!(has(&world, COMPANION) && !has(&world, "1 . alpn=h3"));
}

#[test]
fn an_https_record_made_by_hand_stays_alone() {
    for by_hand in ["1 . alpn=h3", COMPANION] {
        let mut world = world();
        world.settings.share = true;
        world.server.add("example.com", "a.example.com", &format!("HTTPS {by_hand}"));
        let plan = world.sees([vm("a", &["10.0.0.9"])]).pass();
        assert!(plan.blocked.is_empty(), "{plan}");
        assert!(world.server.has("a.example.com", "A 10.0.0.9") && has(&world, by_hand));
        assert_eq!(has(&world, COMPANION), by_hand == COMPANION);
        assert!(world.plan().steps.is_empty(), "{}", world.plan());
        world.sees([]).wait(3600).sees([]).pass();
        assert!(has(&world, by_hand) && !world.server.has("a.example.com", "A 10.0.0.9"));
    }
}

#[test]
fn a_cname_has_none() {
    let mut world = world();
    let mut alias = bare("a");
    alias.wishes.push(exact("a.example.com", &["CNAME b.example.com."]));
    world.sees([alias]).pass();
    assert!(world.server.has("a.example.com", "CNAME b.example.com.") && !has(&world, COMPANION));
}
