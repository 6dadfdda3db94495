//! Pauses hold everything back and survive a restart.

use std::time::Duration;

use netstead_engine::{EngineError, Scope};
use netstead_model::Span;

use crate::world::{World, ident, name, soon, vm};

#[tokio::test]
async fn a_pause_outlives_a_restart_and_ends_with_resume() {
    let world = World::new();
    let engine = world.start().await;
    engine.pause(Scope::Provider(ident("lan")), None, Some("moving".into()), "ann").await.unwrap();
    world.source.sees([vm("web", "10.0.0.1")]);
    engine.apply(None).await.unwrap();
    assert_eq!(world.server().writes(), 0);
    engine.close().await;
    let engine = world.start().await;
    let status = engine.status();
    assert_eq!(status.providers[0].paused.as_ref().unwrap().reason.as_deref(), Some("moving"));
    assert_eq!((status.providers[0].pending, world.server().writes()), (2, 0));
    engine.resume(Scope::Provider(ident("lan")), "ann").await.unwrap();
    soon(|| world.server().has("web.example.com", "A 10.0.0.1")).await;
    engine.close().await;
    let engine = world.start().await;
    assert!(engine.status().pauses.is_empty());
    engine.close().await;
}

#[tokio::test]
async fn a_paused_zone_leaves_the_others_alone_and_a_time_ends_it() {
    let world = World::new();
    let engine = world.start().await;
    let scope = Scope::Zone(ident("lan"), name("example.com"));
    engine.pause(scope, Some(Span::from_secs(7200)), None, "ann").await.unwrap();
    world.source.sees([vm("web", "10.0.0.1")]);
    world.minutes(&engine, 1).await;
    assert!(!world.server().has("web.example.com", "A 10.0.0.1"));
    assert!(world.server().has("1.0.0.10.in-addr.arpa", "PTR web.example.com."));
    world.clock.advance(Duration::from_hours(2));
    world.minutes(&engine, 1).await;
    assert!(world.server().has("web.example.com", "A 10.0.0.1"));
    engine.close().await;
}

#[tokio::test]
async fn a_pause_of_nothing_is_refused() {
    let world = World::new();
    let engine = world.start().await;
    let wrong = engine.pause(Scope::Provider(ident("wan")), None, None, "ann").await;
    assert!(matches!(wrong, Err(EngineError::NoSuchProvider { .. })));
    engine.close().await;
}
