//! A slow server delays no other.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use netstead_model::ProviderError;
use netstead_store::MemoryStore;

use crate::{
    server::Server,
    world::{World, ident, soon, vm},
};

fn two() -> World {
    let server = || Server::new(&["example.com", "0.10.in-addr.arpa"]);
    World::with(Arc::new(MemoryStore::new()), vec![("fast", server()), ("slow", server())])
}

#[tokio::test]
async fn one_server_that_hangs_holds_up_only_itself() {
    let world = two();
    let engine = world.start().await;
    let slow = &world.servers[1].1;
    slow.hangs.store(true, Ordering::SeqCst);
    world.source.sees([vm("web", "10.0.0.1")]);
    world.source.announces_change();
    soon(|| world.server().has("web.example.com", "A 10.0.0.1")).await;
    engine.apply(Some(&ident("fast"))).await.unwrap();
    assert!(!slow.has("web.example.com", "A 10.0.0.1"));
    assert!(engine.status().providers[1].passing.is_some());
    slow.hangs.store(false, Ordering::SeqCst);
    slow.goes_on.notify_one();
    soon(|| slow.has("web.example.com", "A 10.0.0.1")).await;
    engine.close().await;
}

/// A server has few sessions: one that stays behind is missing elsewhere.
#[tokio::test]
async fn sessions_are_given_back_at_the_end_and_when_another_node_leads() {
    for deposed in [false, true] {
        let world = two();
        let engine = world.start().await;
        engine.apply(None).await.unwrap();
        let closes = || [0, 1].map(|at| world.servers[at].1.closes.load(Ordering::SeqCst));
        assert_eq!(closes(), [0, 0]);
        if deposed {
            engine.stop_leading().await;
            soon(|| closes() == [1, 1]).await;
        } else {
            engine.close().await;
        }
        assert_eq!(closes(), [1, 1]);
    }
}

#[tokio::test]
async fn a_server_that_is_down_is_shown_and_found_again() {
    let world = two();
    let engine = world.start().await;
    let down = ProviderError::Unreachable { server: "fake".into(), reason: "no route".into() };
    *world.servers[1].1.fails.lock().unwrap() = Some(down);
    world.source.sees([vm("web", "10.0.0.1")]);
    let reports = engine.apply(None).await.unwrap();
    assert!(reports[0].1.error.is_none() && reports[1].1.error.is_some());
    assert!(engine.status().providers[1].error.as_ref().unwrap().contains("no route"));
    *world.servers[1].1.fails.lock().unwrap() = None;
    tokio::time::timeout(Duration::from_secs(5), async {
        while !world.servers[1].1.has("web.example.com", "A 10.0.0.1") {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .unwrap();
    engine.close().await;
}

#[tokio::test]
async fn a_bug_in_a_provider_does_not_end_its_loop() {
    let world = two();
    let engine = world.start().await;
    world.server().panics.store(true, Ordering::SeqCst);
    engine.apply(None).await.unwrap();
    assert!(!world.server().panics.load(Ordering::SeqCst));
    world.source.sees([vm("web", "10.0.0.1")]);
    engine.apply(None).await.unwrap();
    assert!(world.server().has("web.example.com", "A 10.0.0.1"));
    engine.close().await;
}

#[tokio::test]
async fn a_provider_that_vanishes_is_detached_and_another_name_keeps_what_is_ours() {
    let world = two();
    world.source.sees([vm("web", "10.0.0.1")]);
    let engine = world.start().await;
    let mut setup = world.setup();
    let mut slow = setup.providers.pop().unwrap();
    engine.reconfigure(setup.clone()).await.unwrap();
    let detached = engine.status().detached;
    assert_eq!((detached.len(), detached[0].owned), (1, 2));
    slow.settings.provider = ident("new");
    slow.was = Some(ident("slow"));
    setup.providers.push(slow);
    let writes = world.servers[1].1.writes();
    engine.reconfigure(setup).await.unwrap();
    engine.apply(None).await.unwrap();
    let status = engine.status();
    assert!(status.detached.is_empty());
    assert_eq!((status.providers[1].name.clone(), status.providers[1].owned), (ident("new"), 2));
    assert_eq!(world.servers[1].1.writes(), writes);
    engine.close().await;
}
