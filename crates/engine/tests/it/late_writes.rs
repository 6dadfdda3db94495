//! Newer wins.

use std::sync::{Arc, atomic::Ordering};

use netstead_engine::{Engine, EngineError, EngineEventKind, poll_on_standby};
use netstead_model::View;
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
    world.source.announces_change();
    soon(|| old.status().providers[0].passing.is_some()).await;
    // Another leader comes while the first waits, and writes something newer.
    world.store.lead().await.unwrap();
    world.server().lock().get_mut(&name("example.com")).unwrap().fence = (99, 1);
    world.server().hangs.store(false, Ordering::SeqCst);
    world.server().goes_on.notify_one();
    soon(|| old.status().deposed).await;
    assert!(!world.server().has("web.example.com", "A 10.0.0.1"));
    old.close().await;
    let new = world.start().await;
    soon(|| world.server().has("web.example.com", "A 10.0.0.1")).await;
    new.close().await;
}

/// As after `recover`: the fence of the lost store is on the server.
#[tokio::test]
async fn a_caller_hears_of_the_pass_that_writes_and_not_of_the_fence_it_had_to_rise_above() {
    let world = World::new();
    let engine = world.start().await;
    world.server().lock().get_mut(&name("example.com")).unwrap().fence = (41, 700);
    world.source.sees([vm("web", "10.0.0.1")]);
    let reports = engine.apply(None).await.unwrap();
    for (_, report) in &reports {
        assert!(report.is_in_sync() && report.error.is_none(), "{report:?}");
    }
    assert!(world.server().has("web.example.com", "A 10.0.0.1"));
    engine.close().await;
}

#[tokio::test]
async fn a_restored_store_goes_on_above_what_its_servers_have_seen() {
    let world = World::new();
    let zone = name("example.com");
    // What was written after the backup was made, with later epochs and more generations.
    world.server().lock().get_mut(&zone).unwrap().fence = (41, 700);
    world.source.sees([vm("web", "10.0.0.1")]);
    let engine = world.start().await;
    soon(|| world.server().has("web.example.com", "A 10.0.0.1")).await;
    let (epoch, generation) = world.server().lock()[&zone].fence;
    assert!(epoch > 41 && generation > 700, "{epoch} {generation}");
    let events = engine.events(20).await;
    assert!(events.iter().any(|event| event.text.contains("the numbers continue above that")), "{events:?}");
    // It is expected and mended by itself: no event says that a write came late.
    assert!(events.iter().all(|event| event.what != EngineEventKind::Late), "{events:?}");
    // A process that gets ahead of us later is another one with our id: newer wins, and we do not race it.
    world.server().lock().get_mut(&zone).unwrap().fence = (9000, 1);
    world.source.sees([vm("web", "10.0.0.1"), vm("new", "10.0.0.2")]);
    engine.apply(None).await.unwrap();
    assert!(!world.server().has("new.example.com", "A 10.0.0.2"));
    assert!(engine.status().providers[0].error.as_ref().unwrap().contains("late"));
    engine.close().await;
    // The next leader stays above what this one reached, and the order of leaders is kept.
    world.server().lock().get_mut(&zone).unwrap().fence = (epoch, generation);
    world.store.lead().await.unwrap();
    let next = world.start().await;
    soon(|| world.server().has("new.example.com", "A 10.0.0.2")).await;
    assert_eq!(world.server().lock()[&zone].fence.0, epoch + 1);
    next.close().await;
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

/// A server that cannot refuse, and a value that was ours a moment ago, before a restart.
#[tokio::test]
async fn what_a_late_write_brings_back_is_known_after_a_restart() {
    let server = Server { fenced: false, ..Server::new(&["example.com", "0.10.in-addr.arpa"]) };
    let world = World::with(Arc::new(MemoryStore::new()), vec![("lan", server)]);
    world.source.sees([vm("web", "10.0.0.1"), vm("db", "10.0.0.2")]);
    let engine = world.start().await;
    world.source.says(View::Complete, [vm("db", "10.0.0.2")], &["web"]);
    engine.apply(None).await.unwrap();
    assert!(!world.server().has("web.example.com", "A 10.0.0.1"));
    engine.close().await;

    world.store.lead().await.unwrap();
    let engine = world.start().await;
    let come_late = async || {
        world.server().add("web.example.com", "A 10.0.0.1");
        let doubt = netstead_store::Commit::new().put("engine/doubt/lan/example.com", "1null");
        world.store.commit(doubt).await.unwrap();
    };
    come_late().await;
    soon(|| !world.server().has("web.example.com", "A 10.0.0.1")).await;
    assert!(world.server().has("db.example.com", "A 10.0.0.2"));
    // Nothing that was sent before arrives after this long: the value is foreign now, and stays.
    world.minutes(&engine, 6).await;
    let remembered = world.store.snapshot().await.unwrap().range(b"engine/lately/", None, 10).await.unwrap();
    assert!(remembered.is_empty(), "{remembered:?}");
    come_late().await;
    world.minutes(&engine, 2).await;
    assert!(world.server().has("web.example.com", "A 10.0.0.1"));
    engine.close().await;
}

/// Another process leads while a write is on its way to a server that cannot refuse it.
#[tokio::test(start_paused = true)]
async fn who_steps_down_begins_nothing_and_tells_where_its_last_write_went() {
    let server = Server { fenced: false, ..Server::new(&["example.com"]) };
    let world = World::with(Arc::new(MemoryStore::new()), vec![("lan", server)]);
    let old = world.start().await;
    world.server().holds.store(true, Ordering::SeqCst);
    world.source.sees([vm("web", "10.0.0.1")]);
    world.source.announces_change();
    soon(|| world.server().writes() > 0).await;
    world.store.lead().await.unwrap();
    let stepping = tokio::spawn({
        let old = old.clone();
        async move { old.stop_leading().await }
    });
    soon(|| old.status().deposed).await;
    world.server().holds.store(false, Ordering::SeqCst);
    world.server().goes_on.notify_waiters();
    stepping.await.unwrap();
    // It arrived, and is doubted.
    assert!(world.server().has("web.example.com", "A 10.0.0.1"));
    assert!(world.store.get(b"engine/doubt/lan/example.com").await.unwrap().is_some());
    let writes = world.server().writes();
    world.source.sees([vm("web", "10.0.0.1"), vm("new", "10.0.0.2")]);
    world.source.announces_change();
    // Time stands still until every task waits, so an hour is long enough for any of them.
    tokio::time::sleep(std::time::Duration::from_hours(1)).await;
    assert_eq!(world.server().writes(), writes, "nothing is begun any more");
}

#[tokio::test]
async fn an_engine_starts_only_in_the_epoch_it_was_told() {
    let mut world = World::new();
    let epoch = world.store.lead().await.unwrap().0;
    world.options.epoch = Some(epoch);
    world.start().await.close().await;
    world.store.lead().await.unwrap();
    let refused =
        Engine::start(world.store.clone(), world.clock.shared(), world.setup(), world.options.clone()).await;
    assert!(matches!(refused, Err(EngineError::Deposed)), "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn sources_are_kept_warm_and_nothing_is_stored() {
    let world = World::new();
    world.source.sees([vm("web", "10.0.0.1")]);
    let setup = world.setup();
    let stop = tokio_util::sync::CancellationToken::new();
    // A change is listened to, and is no reason for a look.
    world.source.announces_change();
    let interval = setup.sources[0].interval;
    let looking = tokio::time::timeout(interval * 7 / 2, poll_on_standby(&setup.sources, &stop));
    assert!(looking.await.is_err(), "it goes on until it is told to stop");
    assert_eq!(world.source.looks(), 4, "at once, and after each of three intervals");
    let stored = world.store.snapshot().await.unwrap().range(b"engine/", None, 10).await.unwrap();
    assert!(stored.is_empty(), "{stored:?}");
    stop.cancel();
    let looking = tokio::time::timeout(interval, poll_on_standby(&setup.sources, &stop));
    assert!(looking.await.is_ok(), "it is told to stop");
}
