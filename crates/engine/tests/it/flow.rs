//! From a workload to its names and back.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use netstead_engine::{Engine, RecordState};
use netstead_model::View;
use netstead_store::MemoryStore;

use crate::{
    server::Server,
    world::{World, data, fleet, name, soon, vm},
};

#[tokio::test]
async fn a_pass_does_not_ask_what_a_server_can_do_for_each_name() {
    let world = World::new();
    world.source.sees(fleet(0..200));
    let engine = world.start().await;
    soon(|| engine.status().providers[0].pending == 0).await;
    let before = world.server().asked.load(Ordering::SeqCst);
    engine.apply(None).await.unwrap();
    let asked = world.server().asked.load(Ordering::SeqCst) - before;
    // There are 400 record sets, and perhaps another pass beside this one.
    assert!((1..50).contains(&asked), "{asked}");
    engine.close().await;
}

#[tokio::test]
async fn a_workload_gets_its_names_and_loses_them_at_once_when_asked() {
    let world = World::new();
    let engine = world.start().await;
    world.source.sees([vm("web", "10.0.0.1")]);
    world.source.announces_change();
    soon(|| world.server().has("web.example.com", "A 10.0.0.1")).await;
    assert!(world.server().has("1.0.0.10.in-addr.arpa", "PTR web.example.com."));
    world.source.says(View::Complete, [], &["web"]);
    world.source.announces_change();
    soon(|| !world.server().has("web.example.com", "A 10.0.0.1")).await;
    assert!(!world.server().has("1.0.0.10.in-addr.arpa", "PTR web.example.com."));
    let left: usize = world.server().lock().values().map(|zone| zone.sets.len()).sum();
    assert_eq!(left, 0, "no mark stays behind");
    engine.close().await;
}

#[tokio::test]
async fn what_people_command_is_on_the_server_within_a_few_milliseconds() {
    let world = World::new();
    let mut setup = world.setup();
    setup.sources[0].commanded = true;
    setup.sources[0].debounce_quiet = Some(Duration::from_millis(5));
    setup.sources[0].debounce_most = Some(Duration::from_millis(20));
    let engine = world.start_with(setup).await;
    engine.apply(None).await.unwrap();
    world.source.sees([vm("web", "10.0.0.1")]);
    world.source.announces_change();
    tokio::time::timeout(Duration::from_millis(100), async {
        while !world.server().has("web.example.com", "A 10.0.0.1") {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await
    .unwrap();
    engine.close().await;
}

#[tokio::test]
async fn a_restart_writes_nothing_and_keeps_the_serial() {
    let world = World::new();
    world.source.sees(fleet(1..20));
    let engine = world.start().await;
    engine.close().await;
    let (writes, before) = (world.server().writes(), world.server().lock().clone());
    assert!(writes > 0);
    let engine = world.start().await;
    world.minutes(&engine, 3).await;
    assert_eq!(world.server().writes(), writes);
    assert_eq!(*world.server().lock(), before);
    assert!(engine.status().providers[0].in_sync);
    engine.close().await;
}

#[tokio::test]
async fn an_unchanged_serial_means_no_read_until_an_hour_has_passed() {
    let world = World::new();
    world.source.sees(fleet(1..5));
    let engine = world.start().await;
    world.minutes(&engine, 1).await;
    let reads = world.server().reads();
    world.minutes(&engine, 30).await;
    assert_eq!(world.server().reads(), reads);
    world.clock.advance(Duration::from_hours(1));
    world.minutes(&engine, 1).await;
    assert_eq!(world.server().reads(), reads + 2, "both zones");
    engine.close().await;
}

#[tokio::test]
async fn what_was_written_is_not_read_back_when_the_serial_says_that_nothing_else_happened() {
    for tells_moves in [true, false] {
        let zones = ["example.com", "0.10.in-addr.arpa"];
        let server = Server { tells_moves, ..Server::new(&zones) };
        let world = World::with(Arc::new(MemoryStore::new()), vec![("lan", server)]);
        world.source.sees(fleet(1..5));
        let engine = world.start().await;
        let report = world.minutes(&engine, 1).await;
        assert!(report.plan.unwrap().steps() == 0);
        let reads = world.server().reads();
        world.source.sees(fleet(1..9));
        world.minutes(&engine, 1).await;
        let report = world.minutes(&engine, 1).await;
        assert!(world.server().has("w8.example.com", "A 10.0.0.8"));
        assert!(report.plan.unwrap().steps() == 0);
        assert_eq!(world.server().reads() - reads, if tells_moves { 0 } else { 2 });
        // It is still seen when another tool changes a name that was never read.
        world.server().remove("w8.example.com", "A 10.0.0.8");
        world.minutes(&engine, 1).await;
        assert!(world.server().has("w8.example.com", "A 10.0.0.8"));
        engine.close().await;
    }
}

#[tokio::test]
async fn what_somebody_else_writes_beside_our_own_write_is_seen_at_once() {
    let world = World::new();
    world.source.sees(fleet(1..5));
    let engine = world.start().await;
    world.minutes(&engine, 1).await;
    *world.server().intruder.lock().unwrap() = Some((name("w1.example.com"), data("A 192.0.2.7")));
    world.source.sees(fleet(1..6));
    world.minutes(&engine, 1).await;
    world.minutes(&engine, 1).await;
    assert!(world.server().has("w5.example.com", "A 10.0.0.5"));
    let foreign = engine.records().into_iter().find(|record| record.value == data("A 192.0.2.7")).unwrap();
    assert_eq!(foreign.state, RecordState::Foreign);
    engine.close().await;
}

#[tokio::test]
async fn drift_is_repaired_where_the_value_is_ours_and_left_where_it_is_not() {
    let world = World::new();
    world.source.sees([vm("web", "10.0.0.1")]);
    let engine = world.start().await;
    world.server().remove("web.example.com", "A 10.0.0.1");
    world.minutes(&engine, 1).await;
    assert!(world.server().has("web.example.com", "A 10.0.0.1"));
    world.server().add("web.example.com", "A 10.0.0.99");
    world.server().add("other.example.com", "A 10.0.0.98");
    world.minutes(&engine, 1).await;
    assert!(world.server().has("web.example.com", "A 10.0.0.1"));
    assert!(world.server().has("web.example.com", "A 10.0.0.99"));
    assert!(world.server().has("other.example.com", "A 10.0.0.98"));
    let foreign = engine.records().into_iter().find(|record| record.value == data("A 10.0.0.99")).unwrap();
    assert_eq!(foreign.state, RecordState::Foreign);
    engine.close().await;
}

#[tokio::test]
async fn somebody_elses_name_is_blocked_and_untouched() {
    let world = World::new();
    world.server().add("web.example.com", "A 192.0.2.1");
    let before = world.server().lock().clone();
    world.source.sees([vm("web", "10.0.0.1")]);
    let engine = world.start().await;
    assert_eq!(world.server().lock()[&name("example.com")].sets, before[&name("example.com")].sets);
    assert_eq!(engine.status().providers[0].blocked, 1);
    let records = engine.records();
    let blocked = records.iter().find(|record| record.value == data("A 10.0.0.1")).unwrap();
    assert_eq!((blocked.state, blocked.zone.clone()), (RecordState::Blocked, Some(name("example.com"))));
    let said = engine.explain(&name("web.example.com"), None).await;
    assert!(said.iter().any(|line| line.contains("blocked")), "{said:?}");
    engine.close().await;
}

#[tokio::test]
async fn what_changed_since_it_was_read_is_planned_anew_at_once() {
    let world = World::new();
    world.source.sees([vm("web", "10.0.0.1"), vm("db", "10.0.0.2")]);
    let engine = world.start().await;
    *world.server().intruder.lock().unwrap() = Some((name("web.example.com"), data("A 192.0.2.7")));
    world.source.sees([vm("web", "10.0.0.1"), vm("db", "10.0.0.3")]);
    world.minutes(&engine, 1).await;
    world.source.says(View::Complete, [vm("db", "10.0.0.3")], &["web"]);
    *world.server().intruder.lock().unwrap() = Some((name("web.example.com"), data("A 192.0.2.8")));
    world.minutes(&engine, 1).await;
    soon(|| !world.server().has("web.example.com", "A 10.0.0.1")).await;
    assert!(world.server().has("web.example.com", "A 192.0.2.7"));
    assert!(world.server().has("web.example.com", "A 192.0.2.8"));
    engine.close().await;
}

#[tokio::test]
async fn one_name_the_server_will_not_have_stops_no_other() {
    let world = World::new();
    world.server().rejects.lock().unwrap().insert(name("w3.example.com"));
    world.source.sees(fleet(1..10));
    let engine = world.start().await;
    assert!(world.server().has("w9.example.com", "A 10.0.0.9"));
    assert!(!world.server().has("w3.example.com", "A 10.0.0.3"));
    let status = engine.status();
    assert_eq!(status.providers[0].rejected.len(), 1);
    let writes = world.server().writes();
    engine.apply(None).await.unwrap();
    assert_eq!(world.server().writes(), writes, "it is tried again later, not at once");
    world.server().rejects.lock().unwrap().clear();
    world.minutes(&engine, 2).await;
    assert!(world.server().has("w3.example.com", "A 10.0.0.3"));
    engine.close().await;
}

#[tokio::test]
async fn a_zone_that_comes_with_its_first_record_is_made() {
    let world = World::with(Arc::new(MemoryStore::new()), vec![("builtin", Server::new(&[]))]);
    let mut setup = world.setup();
    world.server().makes_zones.store(true, std::sync::atomic::Ordering::Relaxed);
    setup.providers[0].settings.domains = vec!["*".parse().unwrap()];
    world.source.sees([vm("web", "10.0.0.1")]);
    let engine = world.start_with(setup).await;
    engine.apply(None).await.unwrap();
    assert!(world.server().has("web.example.com", "A 10.0.0.1"));
    assert!(world.server().lock().contains_key(&name("1.0.0.10.in-addr.arpa")));
    world.source.says(View::Complete, [], &["web"]);
    engine.apply(None).await.unwrap();
    assert!(!world.server().has("web.example.com", "A 10.0.0.1"));
    engine.close().await;
}

#[tokio::test]
async fn a_dry_run_plans_and_writes_nothing() {
    let mut world = World::new();
    world.options.dry_run = true;
    world.source.sees([vm("web", "10.0.0.1")]);
    let engine = world.start().await;
    assert_eq!(engine.plans()[0].1.steps.len(), 2);
    assert_eq!(world.server().writes.load(Ordering::SeqCst), 0);
    assert!(engine.records().iter().all(|record| record.state == RecordState::Pending));
    engine.close().await;
}

#[tokio::test]
async fn an_installation_keeps_its_owner_id() {
    let world = World::new();
    let owner = Engine::owner(&*world.store).await.unwrap();
    assert_eq!(Engine::owner(&*world.store).await.unwrap(), owner);
    assert_ne!(Engine::owner(&MemoryStore::new()).await.unwrap(), owner);
}

#[tokio::test]
async fn drift_that_is_ignored_is_reported_again_when_it_changes() {
    let world = World::new();
    world.source.sees([vm("web", "10.0.0.1")]);
    let engine = world.start().await;
    world.server().add("web.example.com", "A 10.0.0.99");
    world.minutes(&engine, 1).await;
    let drift = |engine: &Engine| engine.status().providers[0].drift;
    assert_eq!(drift(&engine), 1);
    let web = name("web.example.com");
    let nowhere = engine.ignore_drift(None, &name("nowhere.example.com"), None, "why not", "ann").await;
    assert_eq!(nowhere.unwrap_err().to_string(), "name: nothing at nowhere.example.com drifted");
    let ignored = engine.ignore_drift(None, &web, None, "the printer's own", "ann").await.unwrap();
    assert_eq!((ignored.len(), drift(&engine)), (1, 0));
    assert_eq!(
        (ignored[0].value.clone(), ignored[0].reason.as_str()),
        (data("A 10.0.0.99"), "the printer's own")
    );
    // It stays on the server, and a restart does not forget it.
    engine.close().await;
    let engine = world.start().await;
    world.minutes(&engine, 1).await;
    assert_eq!((engine.ignored_drift(), drift(&engine)), (ignored.clone(), 0));
    assert!(world.server().has("web.example.com", "A 10.0.0.99"));
    // Another value is news, and the choice about the first one ends with it.
    world.server().remove("web.example.com", "A 10.0.0.99");
    world.server().add("web.example.com", "A 10.0.0.98");
    world.minutes(&engine, 1).await;
    assert_eq!((engine.ignored_drift(), drift(&engine)), (Vec::new(), 1));
    world.server().add("web.example.com", "A 10.0.0.99");
    world.minutes(&engine, 1).await;
    assert_eq!(drift(&engine), 2, "what comes back is news, too");
    // It can be taken back.
    engine.ignore_drift(None, &web, None, "both", "ann").await.unwrap();
    assert_eq!((engine.ignored_drift().len(), drift(&engine)), (2, 0));
    assert_eq!(engine.report_drift_again(None, &web, None, "ann").await.unwrap().len(), 2);
    assert_eq!((engine.ignored_drift(), drift(&engine)), (Vec::new(), 2));
    engine.close().await;
}
