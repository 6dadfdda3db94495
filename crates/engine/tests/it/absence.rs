//! Absence is not deletion.

use std::collections::BTreeSet;

use netstead_engine::Engine;
use netstead_model::View;

use crate::world::{World, fleet, vm};

fn all(world: &World) -> bool {
    (1..10).all(|n| world.server().has(&format!("w{n}.example.com"), &format!("A 10.0.0.{n}")))
}

async fn started() -> (World, Engine) {
    let world = World::new();
    world.source.sees(fleet(1..10));
    let engine = world.start().await;
    assert!(all(&world));
    (world, engine)
}

#[tokio::test]
async fn a_source_that_fails_or_shows_half_removes_nothing() {
    let (world, engine) = started().await;
    world.source.says(View::Failed { reason: "down".into() }, [], &[]);
    world.minutes(&engine, 30).await;
    assert!(all(&world));
    world.source.says(View::Partial { reason: "one node".into() }, fleet(1..4), &[]);
    world.minutes(&engine, 30).await;
    assert!(all(&world));
    engine.close().await;
}

#[tokio::test]
async fn a_source_that_shows_nothing_is_suspect_and_then_a_person_is_asked() {
    let (world, engine) = started().await;
    world.source.sees([]);
    world.minutes(&engine, 4).await;
    assert!(engine.status().sources.iter().any(|source| source.suspect.is_some()));
    assert!(all(&world));
    world.minutes(&engine, 30).await;
    assert!(all(&world), "the last of what is ours never goes by absence alone");
    assert!(engine.status().providers[0].parked.is_some());
    engine.close().await;
}

#[tokio::test]
async fn what_is_missing_for_long_goes_and_what_comes_back_stays() {
    let (world, engine) = started().await;
    world.source.sees(fleet(1..9));
    world.minutes(&engine, 4).await;
    assert!(all(&world));
    world.source.sees(fleet(1..10));
    world.minutes(&engine, 1).await;
    world.source.sees(fleet(1..9));
    world.minutes(&engine, 4).await;
    assert!(all(&world), "grace began anew");
    world.minutes(&engine, 4).await;
    assert!(!world.server().has("w9.example.com", "A 10.0.0.9"));
    engine.close().await;
}

#[tokio::test]
async fn a_restart_begins_every_grace_anew_and_forgets_nothing() {
    let (world, engine) = started().await;
    world.source.sees(fleet(1..9));
    world.minutes(&engine, 4).await;
    engine.close().await;
    let engine = world.start().await;
    world.minutes(&engine, 4).await;
    assert!(all(&world));
    world.minutes(&engine, 4).await;
    assert!(!world.server().has("w9.example.com", "A 10.0.0.9"));
    engine.close().await;
}

#[tokio::test]
async fn a_new_leader_keeps_what_a_silent_source_brought() {
    let (world, engine) = started().await;
    engine.close().await;
    world.source.says(View::Failed { reason: "down".into() }, [], &[]);
    let engine = world.start().await;
    world.minutes(&engine, 60).await;
    assert!(all(&world));
    engine.close().await;
}

#[tokio::test]
async fn a_source_that_vanishes_from_the_configuration_is_detached() {
    let (world, engine) = started().await;
    let mut setup = world.setup();
    setup.sources.clear();
    engine.reconfigure(setup).await.unwrap();
    world.minutes(&engine, 30).await;
    assert!(all(&world));
    let detached: BTreeSet<bool> = engine.status().sources.iter().map(|source| source.detached).collect();
    assert!(detached.contains(&true));
    engine.close().await;
    let mut setup = world.setup();
    setup.sources.clear();
    let engine = world.start_with(setup).await;
    world.minutes(&engine, 30).await;
    assert!(all(&world), "after a restart as well");
    engine.close().await;
}

#[tokio::test]
async fn a_domain_that_is_mistyped_parks_and_removes_nothing() {
    let (world, engine) = started().await;
    let mut setup = world.setup();
    setup.providers[0].settings.domains = vec!["exmaple.com".parse().unwrap()];
    engine.reconfigure(setup).await.unwrap();
    world.minutes(&engine, 30).await;
    assert!(all(&world));
    assert!(engine.status().providers[0].parked.is_some());
    engine.close().await;
}

#[tokio::test]
async fn what_is_long_gone_is_forgotten_and_what_is_ours_because_of_it_is_not() {
    let (world, engine) = started().await;
    world.source.says(View::Complete, fleet(1..9), &["w9"]);
    world.minutes(&engine, 10).await;
    assert!(!world.server().has("w9.example.com", "A 10.0.0.9"));
    assert!(engine.workloads().iter().all(|view| view.workload.name != "w9"));
    let kept = |prefix: &'static str| {
        let store = world.store.clone();
        async move { store.snapshot().await.unwrap().range(prefix.as_bytes(), None, 100).await.unwrap().len() }
    };
    assert_eq!(kept("engine/workload/pve/").await, 8);
    assert_eq!(kept("engine/owned/lan/").await, 16);
    world.source.sees(fleet(1..9).into_iter().chain([vm("w9", "10.0.0.9")]));
    world.minutes(&engine, 1).await;
    assert!(all(&world));
    engine.close().await;
}
