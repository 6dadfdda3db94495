//! Parked changes and the hash that lets them pass.

use netstead_engine::EngineError;
use netstead_model::View;

use crate::world::{World, fleet};

#[tokio::test]
async fn exactly_what_is_parked_goes_once_a_person_says_so() {
    let world = World::new();
    world.source.sees(fleet(1..60));
    let engine = world.start().await;
    world.source.sees(fleet(1..35));
    world.minutes(&engine, 8).await;
    let parked = engine.status().providers[0].parked.clone().unwrap();
    assert!(world.server().has("w59.example.com", "A 10.0.0.59"));
    // Creates still flow, and the hash stays.
    world.source.sees(fleet(1..35).into_iter().chain(fleet(200..201)));
    world.minutes(&engine, 1).await;
    assert!(world.server().has("w200.example.com", "A 10.0.0.200"));
    assert_eq!(engine.status().providers[0].parked.as_ref().unwrap().hash, parked.hash);
    let wrong = engine.approve("0123456789abcdef", "ann").await;
    assert!(matches!(wrong, Err(EngineError::NoSuchPlan { .. })), "{wrong:?}");
    assert!(matches!(engine.approve("nonsense", "ann").await, Err(EngineError::NoSuchPlan { .. })));
    engine.approve(&parked.hash, "ann").await.unwrap();
    assert!(!world.server().has("w59.example.com", "A 10.0.0.59"));
    assert!(world.server().has("w34.example.com", "A 10.0.0.34"));
    assert!(engine.status().providers[0].parked.is_none());
    let again = engine.approve(&parked.hash, "ann").await;
    assert!(matches!(again, Err(EngineError::NoSuchPlan { .. })), "{again:?}");
    assert!(engine.events(10).await.iter().any(|event| event.by.as_deref() == Some("ann")));
    engine.close().await;
}

#[tokio::test]
async fn what_is_parked_can_be_approved_after_a_restart() {
    let world = World::new();
    world.source.sees(fleet(1..60));
    let engine = world.start().await;
    world.source.sees(fleet(1..35));
    world.minutes(&engine, 8).await;
    let hash = engine.status().providers[0].parked.clone().unwrap().hash;
    engine.close().await;
    let engine = world.start().await;
    world.minutes(&engine, 8).await;
    assert!(world.server().has("w59.example.com", "A 10.0.0.59"));
    engine.approve(&hash, "ann").await.unwrap();
    assert!(!world.server().has("w59.example.com", "A 10.0.0.59"));
    engine.close().await;
}

#[tokio::test]
async fn fifty_releases_pass() {
    let world = World::new();
    world.source.sees(fleet(1..60));
    let engine = world.start().await;
    let gone: Vec<String> = (10..60).map(|n| format!("w{n}")).collect();
    let gone: Vec<&str> = gone.iter().map(String::as_str).collect();
    world.source.says(View::Complete, fleet(1..10), &gone);
    engine.apply(None).await.unwrap();
    assert!(!world.server().has("w59.example.com", "A 10.0.0.59"));
    assert!(engine.status().providers[0].parked.is_none());
    engine.close().await;
}

#[tokio::test]
async fn plans_are_kept_with_what_became_of_them() {
    let world = World::new();
    let engine = world.start().await;
    for n in 1..15 {
        world.source.sees(fleet(1..n + 1));
        world.minutes(&engine, 1).await;
    }
    let plans = engine.applied(&"lan".parse().unwrap()).await.unwrap();
    assert_eq!(plans.len(), 14);
    assert!(plans.is_sorted_by(|one, other| one.generation < other.generation));
    assert!(plans.iter().flat_map(|plan| &plan.steps).all(|step| step.outcome == "applied"));
    engine.close().await;
}
