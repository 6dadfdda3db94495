//! Newer wins.

use std::sync::{Arc, atomic::Ordering};

use netstead_store::MemoryStore;

use crate::{
    server::Server,
    world::{World, name, soon, vm},
};

#[tokio::test]
async fn a_late_write_is_refused_by_a_server_that_can() {
    let world = World::new();
    let old = world.start().await;
    world.server().hangs.store(true, Ordering::SeqCst);
    world.source.sees([vm("web", "10.0.0.1")]);
    world.source.tells();
    soon(|| old.status().providers[0].passing.is_some()).await;
    // Another leader comes while the first waits, and writes something newer.
    world.store.lead().await.unwrap();
    world.server().lock().get_mut(&name("example.com")).unwrap().fence = (99, 1);
    world.server().hangs.store(false, Ordering::SeqCst);
    world.server().goes_on.notify_one();
    soon(|| old.status().deposed).await;
    assert!(!world.server().has("web.example.com", "A 10.0.0.1"));
    old.close().await;
    // The server is ahead of this epoch: the write is refused, nothing is concluded, and it is told.
    let new = world.start().await;
    assert!(!world.server().has("web.example.com", "A 10.0.0.1"));
    assert!(new.status().providers[0].error.as_ref().unwrap().contains("late"));
    world.server().lock().get_mut(&name("example.com")).unwrap().fence = (1, 1);
    new.apply(None).await.unwrap();
    assert!(world.server().has("web.example.com", "A 10.0.0.1"));
    new.close().await;
}

#[tokio::test]
async fn who_no_longer_leads_writes_nothing_to_a_server_that_cannot_refuse() {
    let server = Server { fenced: false, ..Server::new(&["example.com", "0.10.in-addr.arpa"]) };
    let world = World::with(Arc::new(MemoryStore::new()), vec![("lan", server)]);
    let old = world.start().await;
    world.store.lead().await.unwrap();
    world.source.sees([vm("web", "10.0.0.1")]);
    old.apply(None).await.unwrap();
    assert_eq!(world.server().writes(), 0);
    assert!(old.status().deposed);
    old.close().await;
}

#[tokio::test]
async fn a_zone_somebody_wrote_to_late_is_read_at_once() {
    let world = World::new();
    world.source.sees([vm("web", "10.0.0.1")]);
    let engine = world.start().await;
    world.minutes(&engine, 1).await;
    // The late write takes our value away and does not move the serial.
    let zone = name("example.com");
    world.server().lock().get_mut(&zone).unwrap().sets.clear();
    engine.apply(None).await.unwrap();
    assert!(!world.server().has("web.example.com", "A 10.0.0.1"));
    let doubt = netstead_store::Commit::new().put("engine/doubt/lan/example.com", "1null");
    world.store.commit(doubt).await.unwrap();
    soon(|| world.server().has("web.example.com", "A 10.0.0.1")).await;
    engine.apply(None).await.unwrap();
    assert!(world.store.get(b"engine/doubt/lan/example.com").await.unwrap().is_none());
    engine.close().await;
}
