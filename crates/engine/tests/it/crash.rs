//! The state after a crash, a lost answer or a bad store.

use std::sync::{Arc, atomic::Ordering};

use netstead_model::View;
use netstead_store::{FaultyStore, MemoryStore, faults::Fault};

use crate::{
    server::Server,
    world::{World, fleet, soon, vm},
};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn a_crash_between_store_and_server_loses_and_duplicates_nothing() {
    let world = World::new();
    world.source.sees([vm("db", "10.0.0.2")]);
    let first = runtime();
    first.block_on(async {
        let engine = world.start().await;
        world.server().swallows.store(true, Ordering::SeqCst);
        let writes = world.server().writes();
        world.source.sees([vm("web", "10.0.0.1"), vm("db", "10.0.0.2")]);
        world.source.announces_change();
        soon(|| world.server().writes() > writes).await;
        assert!(world.store.get(b"engine/owned/lan/web.example.com").await.unwrap().is_some());
        drop(engine);
    });
    first.shutdown_background();
    assert!(!world.server().has("web.example.com", "A 10.0.0.1"));
    world.server().swallows.store(false, Ordering::SeqCst);
    runtime().block_on(async {
        let engine = world.start().await;
        assert!(world.server().has("web.example.com", "A 10.0.0.1"));
        engine.apply(None).await.unwrap();
        assert!(engine.status().providers[0].in_sync);
        assert_eq!(engine.status().providers[0].owned, 4);
        engine.close().await;
    });
}

#[tokio::test]
async fn damaged_history_keeps_no_name_waiting() {
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())));
    let world = World::with(store.clone(), vec![("lan", Server::new(&["example.com"]))]);
    let engine = world.start().await;
    world.source.sees([vm("web", "10.0.0.1")]);
    engine.apply(None).await.unwrap();
    engine.close().await;
    store.damage_keys("engine/history/"..="engine/history/~");
    store.damage_keys("engine/plan/"..="engine/plan/~");
    let engine = world.start().await;
    world.source.sees([vm("web", "10.0.0.1"), vm("db", "10.0.0.2")]);
    engine.apply(None).await.unwrap();
    assert!(world.server().has("db.example.com", "A 10.0.0.2"));
    let damage = netstead_store::Store::damage(&*store).unwrap().all();
    let mut parts: Vec<&str> = damage.iter().map(netstead_store::Damage::part).collect();
    parts.sort_unstable();
    assert_eq!(parts, ["engine/history", "engine/plan"]);
    engine.close().await;
}

#[tokio::test]
async fn a_write_whose_answer_is_lost_is_looked_at_before_anything_else() {
    let world = World::new();
    let engine = world.start().await;
    world.source.sees([vm("web", "10.0.0.1")]);
    world.server().loses_answer.store(true, Ordering::SeqCst);
    engine.apply(None).await.unwrap();
    assert!(!world.server().loses_answer.load(Ordering::SeqCst));
    engine.apply(None).await.unwrap();
    assert!(engine.status().providers[0].in_sync);
    assert!(world.server().has("web.example.com", "A 10.0.0.1"));
    world.source.says(View::Complete, [], &["web"]);
    engine.apply(None).await.unwrap();
    assert!(!world.server().has("web.example.com", "A 10.0.0.1"), "it is known to be ours");
    engine.close().await;
}

#[tokio::test]
async fn a_value_that_only_the_store_knows_is_written_after_a_restart() {
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())));
    let world = World::with(store.clone(), vec![("lan", Server::new(&["example.com"]))]);
    let engine = world.start().await;
    // The server takes the value; the store learns of the intent, and of nothing after it.
    store.decide({
        let mut intended = false;
        move |_, commit| {
            let owned = commit.writes.iter().any(|write| write.key().starts_with(b"engine/owned/"));
            let fault = if intended { Fault::Fail } else { Fault::Pass };
            intended |= owned;
            fault
        }
    });
    world.source.sees([vm("web", "10.0.0.1")]);
    engine.apply(None).await.unwrap();
    assert!(world.server().has("web.example.com", "A 10.0.0.1"));
    engine.close().await;
    store.decide(|_, _| Fault::Pass);
    let engine = world.start().await;
    assert!(engine.status().providers[0].in_sync);
    world.source.says(View::Complete, [], &["web"]);
    world.minutes(&engine, 10).await;
    assert!(!world.server().has("web.example.com", "A 10.0.0.1"), "it is known to be ours");
    engine.close().await;
}

#[tokio::test]
async fn nothing_is_written_that_the_store_does_not_know() {
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())));
    let world = World::with(store.clone(), vec![("lan", Server::new(&["example.com"]))]);
    let engine = world.start().await;
    store.decide(|_, _| Fault::Fail);
    world.source.sees(fleet(1..5));
    let report = engine.apply(None).await.unwrap().pop().unwrap().1;
    assert!(report.error.is_some());
    assert_eq!(world.server().writes(), 0);
    store.decide(|_, _| Fault::Pass);
    engine.apply(None).await.unwrap();
    assert!(world.server().has("w4.example.com", "A 10.0.0.4"));
    engine.close().await;
}

#[tokio::test]
async fn commits_whose_answer_is_lost_are_told_again() {
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())));
    let world = World::with(store.clone(), vec![("lan", Server::new(&["example.com"]))]);
    let engine = world.start().await;
    store.decide(|number, _| match number % 3 {
        0 => Fault::LandUnknown,
        1 => Fault::LoseUnknown,
        _ => Fault::Pass,
    });
    world.source.sees(fleet(1..5));
    world.minutes(&engine, 2).await;
    assert!(world.server().has("w4.example.com", "A 10.0.0.4"));
    engine.close().await;
    store.decide(|_, _| Fault::Pass);
    let writes = world.server().writes();
    let engine = world.start().await;
    assert_eq!(world.server().writes(), writes);
    engine.close().await;
}
