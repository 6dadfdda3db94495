//! Servers that take one record after the other, slowly, or not all of them.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use netstead_engine::{Engine, Scope};
use netstead_model::{Clock as _, View};
use netstead_store::MemoryStore;

use crate::{
    server::Server,
    world::{World, data, fleet, ident, name, soon, vm},
};

/// A world with a server of which each unit takes so long.
fn world_with(takes: Duration, change: impl FnOnce(&mut Server)) -> World {
    let mut world = World::with(Arc::new(MemoryStore::new()), Vec::new());
    let mut server = Server { fenced: false, ..Server::new(&["example.com"]) };
    server.one_by_one = Some((world.clock.clone(), takes));
    change(&mut server);
    world.servers = vec![(ident("lan"), Arc::new(server))];
    world
}

fn standing(world: &World) -> usize {
    (0..250).filter(|n| world.server().has(&format!("w{n}.example.com"), &format!("A 10.0.0.{n}"))).count()
}

async fn without_reverse(world: &World) -> Engine {
    let mut setup = world.setup();
    setup.providers.iter_mut().for_each(|provider| provider.settings.reverse = false);
    world.start_with(setup).await
}

/// Twenty minutes of work: passes of half a minute each follow one another until all is written.
#[tokio::test]
async fn a_pass_ends_in_time_and_the_next_one_goes_on() {
    let world = world_with(Duration::from_secs(5), |_| {});
    world.source.sees(fleet(0..240));
    let engine = without_reverse(&world).await;
    let (_, report) = engine.apply(None).await.unwrap().pop().unwrap();
    assert!(report.took <= Duration::from_secs(40), "{:?}", report.took);
    assert!(report.not_tried > 0 && report.applied <= 7, "{report:?}");
    assert!(report.error.is_none() && report.zone_errors.is_empty(), "{report:?}");
    soon(|| standing(&world) == 240).await;
    soon(|| engine.status().providers[0].pending == 0).await;
    assert_eq!(world.server().writes(), 240, "nothing is sent twice");
    engine.close().await;
}

#[tokio::test]
async fn a_pause_and_newer_wishes_do_not_wait_behind_a_slow_server() {
    let world = world_with(Duration::from_secs(5), |_| {});
    world.source.sees(fleet(0..200));
    let engine = without_reverse(&world).await;
    engine.apply(None).await.unwrap();
    engine.pause(Scope::Provider(ident("lan")), None, None, "ann").await.unwrap();
    engine.apply(None).await.unwrap();
    let written = world.server().writes();
    assert!(written < 60, "{written} of 200 were written before the pause");
    engine.apply(None).await.unwrap();
    assert_eq!(world.server().writes(), written, "nothing is written while it is paused");
    // What was never sent is not ours, and leaves no trace once nothing asks for it.
    world.source.sees(fleet(0..100));
    engine.resume(Scope::Provider(ident("lan")), "ann").await.unwrap();
    soon(|| (0..100).all(|n| world.server().has(&format!("w{n}.example.com"), &format!("A 10.0.0.{n}"))))
        .await;
    engine.close().await;
}

#[tokio::test]
async fn after_a_429_nothing_is_asked_before_the_pause_is_over() {
    let world = world_with(Duration::ZERO, |server| *server.patience.get_mut().unwrap() = Some(3));
    world.source.sees(fleet(0..10));
    let engine = without_reverse(&world).await;
    engine.apply(None).await.unwrap();
    assert_eq!(standing(&world), 3);
    *world.server().patience.lock().unwrap() = None;
    let reads = world.server().reads();
    world.source.sees(fleet(0..11));
    world.source.announces_change();
    let (_, report) = engine.apply(None).await.unwrap().pop().unwrap();
    assert!(report.error.as_ref().unwrap().contains("slow down"), "{report:?}");
    assert_eq!((standing(&world), world.server().reads()), (3, reads), "the server is left alone");
    world.clock.advance(Duration::from_secs(91));
    engine.apply(None).await.unwrap();
    assert_eq!(standing(&world), 11);
    engine.close().await;
}

/// A server that asks to slow down and does not say for how long: what changes meanwhile waits, too.
#[tokio::test]
async fn after_a_429_without_a_time_news_do_not_reach_the_server_before_the_pause_is_over() {
    let world = world_with(Duration::ZERO, |server| {
        (*server.patience.get_mut().unwrap(), server.retry_after) = (Some(3), None);
    });
    world.source.sees(fleet(0..10));
    let engine = without_reverse(&world).await;
    engine.apply(None).await.unwrap();
    assert_eq!(standing(&world), 3);
    let asked = || (world.server().reads(), world.server().refusals.load(Ordering::SeqCst));
    let before = asked();
    for news in 11..15 {
        world.source.sees(fleet(0..news));
        let looks = world.source.looks();
        world.source.announces_change();
        soon(|| world.source.looks() > looks).await;
        let (_, report) = engine.apply(None).await.unwrap().pop().unwrap();
        assert!(report.error.as_ref().unwrap().contains("slow down"), "{report:?}");
    }
    assert_eq!((standing(&world), asked()), (3, before), "the server is left alone");
    *world.server().patience.lock().unwrap() = None;
    // The pause is no longer than that between two passes.
    world.clock.advance(Duration::from_mins(1));
    engine.apply(None).await.unwrap();
    assert_eq!(standing(&world), 14);
    engine.close().await;
}

/// Ownership of what was not tried: a foreign value that appears meanwhile is not taken for ours.
#[tokio::test]
async fn a_value_that_was_never_sent_is_not_taken_for_ours_when_another_writes_it() {
    let world = world_with(Duration::ZERO, |server| *server.patience.get_mut().unwrap() = Some(0));
    world.source.sees([vm("web", "10.0.0.1")]);
    let engine = without_reverse(&world).await;
    engine.apply(None).await.unwrap();
    world.server().add("web.example.com", "A 10.0.0.1");
    *world.server().patience.lock().unwrap() = None;
    world.source.sees([]);
    world.minutes(&engine, 20).await;
    assert!(world.server().has("web.example.com", "A 10.0.0.1"), "it is not ours to remove");
    engine.close().await;
}

#[tokio::test]
async fn after_a_lost_answer_only_the_names_in_question_are_read_again() {
    let world = world_with(Duration::ZERO, |server| (server.signless, server.can_read_names) = (true, true));
    world.source.sees(fleet(0..10));
    world.server().loses.lock().unwrap().insert(name("w4.example.com"));
    let engine = without_reverse(&world).await;
    engine.apply(None).await.unwrap();
    soon(|| engine.status().providers[0].pending == 0).await;
    let server = world.server();
    assert_eq!((server.reads(), server.name_reads.load(Ordering::SeqCst)), (1, 1));
    assert_eq!((standing(&world), server.writes()), (10, 10));
    // What is known of a server without a sign of change is not older than the interval.
    server.remove("w3.example.com", "A 10.0.0.3");
    world.minutes(&engine, 1).await;
    assert_eq!(standing(&world), 10);
    engine.close().await;
}

/// A node loses the lead while it writes: the guard ends it before its next request.
#[tokio::test]
async fn a_slow_write_ends_with_the_lead() {
    let world = world_with(Duration::from_millis(1), |_| {});
    let engine = without_reverse(&world).await;
    engine.apply(None).await.unwrap();
    world.source.sees(fleet(0..50));
    world.store.lead().await.unwrap();
    let done = engine.apply(None).await;
    assert!(engine.status().deposed, "{done:?}");
    assert_eq!(world.server().writes(), 0);
    engine.close().await;
    let next = without_reverse(&world).await;
    next.apply(None).await.unwrap();
    assert_eq!(standing(&world), 50);
    assert!(
        world.server().lock()[&name("example.com")]
            .sets
            .values()
            .all(|set| { set.kind != data("A 10.0.0.1").kind() || set.values.len() == 1 })
    );
    next.close().await;
}

/// The schedule of the outage at AWS in 2025, on a server that takes one record per call for twenty minutes:
///
/// 1. Node A writes its plan. Its request for `w3` passes the guard and stays on its way.
/// 2. Node B takes the lead and writes a newer plan, with another address for `w3`.
/// 3. The request of A arrives and takes effect.
/// 4. A sends nothing more and says that the zone is doubtful. B reads it and puts its own value back.
#[tokio::test]
async fn a_request_that_arrives_after_a_newer_plan_is_taken_back_on_a_slow_server() {
    let world = world_with(Duration::from_secs(5), |_| {});
    let old = without_reverse(&world).await;
    old.apply(None).await.unwrap();
    *world.server().stalls.lock().unwrap() = Some(name("w3.example.com"));
    world.source.sees(fleet(0..240));
    world.source.announces_change();
    soon(|| world.server().stalls.lock().unwrap().is_none()).await;
    world.store.lead().await.unwrap();

    let mut newer = fleet(0..240);
    newer[3] = vm("w3", "10.0.9.3");
    world.source.sees(newer);
    let new = without_reverse(&world).await;
    soon(|| world.server().has("w3.example.com", "A 10.0.9.3")).await;
    world.server().goes_on.notify_waiters();
    soon(|| old.status().deposed).await;
    soon(|| standing(&world) == 239).await;
    soon(|| new.status().providers[0].pending == 0).await;
    soon(|| world.server().has("w3.example.com", "A 10.0.9.3")).await;
    assert!(!world.server().has("w3.example.com", "A 10.0.0.3"));
    old.close().await;
    new.close().await;
}

/// A late write is found and taken back while the server is still busy with twenty minutes of newer changes.
#[tokio::test]
async fn a_late_write_does_not_wait_until_a_slow_server_is_done() {
    let world = world_with(Duration::from_secs(5), |_| {});
    world.source.sees(fleet(0..20));
    let engine = without_reverse(&world).await;
    engine.apply(None).await.unwrap();
    soon(|| standing(&world) == 20).await;
    let begun = world.clock.monotonic();
    world.source.says(View::Complete, fleet(1..240), &["w0"]);
    world.source.announces_change();
    soon(|| !world.server().has("w0.example.com", "A 10.0.0.0")).await;
    // The former leader had this on its way.
    world.server().add("w0.example.com", "A 10.0.0.0");
    let doubt = netstead_store::Commit::new().put("engine/doubt/lan/example.com", "1null");
    world.store.commit(doubt).await.unwrap();
    assert!(standing(&world) < 200, "the server is still busy");
    soon(|| !world.server().has("w0.example.com", "A 10.0.0.0")).await;
    let busy = standing(&world);
    assert!(busy < 239, "it was taken back before all of {busy} stood there");
    soon(|| standing(&world) == 239).await;
    soon(|| engine.status().providers[0].pending == 0).await;
    let took = world.clock.monotonic().saturating_sub(begun);
    assert!(took >= Duration::from_mins(18), "{took:?}");
    assert!(!world.server().has("w0.example.com", "A 10.0.0.0"));
    engine.close().await;
}
