//! A ledger that has nothing to do sleeps, instead of asking every millisecond whether it has.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use jiff::Timestamp;
use netstead_ledger::{Caller, Command, Ledger, Options, Reply};
use netstead_model::{Clock, Span};
use netstead_store::MemoryStore;
use tokio::time::sleep;

use crate::{
    determinism::TokioClock,
    support::{PATIENCE, any, claim, create, living, prefixes, target},
};

/// A clock that knows how often it was looked at.
#[derive(Debug)]
struct Watched(Arc<dyn Clock>, AtomicU64);

impl Clock for Watched {
    fn wall(&self) -> Timestamp {
        self.0.wall()
    }

    fn monotonic(&self) -> Duration {
        self.1.fetch_add(1, Relaxed);
        self.0.monotonic()
    }
}

/// A ledger on `store`, and its clock.
async fn open(store: &Arc<MemoryStore>) -> (Ledger, Arc<Watched>) {
    let clock = Arc::new(Watched(TokioClock::shared(), AtomicU64::new(0)));
    let ledger = Ledger::open(store.clone(), clock.clone(), Options::default()).await.unwrap();
    (ledger, clock)
}

async fn ask(ledger: &Ledger, command: Command) {
    ledger.submit(Caller::new("ann"), command, PATIENCE).await.unwrap();
}

/// How often the ledger looked at its clock in this time.
async fn looks(clock: &Watched, time: Duration) -> u64 {
    let before = clock.1.load(Relaxed);
    sleep(time).await;
    clock.1.load(Relaxed) - before
}

#[tokio::test(start_paused = true)]
async fn a_deposed_leader_sleeps() {
    let store = Arc::new(MemoryStore::new());
    let (first, clock) = open(&store).await;
    ask(&first, create("lan", "10.0.0.0/24", |_| {})).await;
    ask(&first, claim("lan", "web", living(60))).await;
    let (second, _) = open(&store).await;
    assert!(first.submit(Caller::new("ann"), any("lan", "db"), PATIENCE).await.is_err());
    // The lease ends, and it is not for this one to end it.
    let looks = looks(&clock, Duration::from_mins(10)).await;
    assert!(looks < 100, "it looked {looks} times");
    second.close().await;
}

#[tokio::test(start_paused = true)]
async fn what_rests_but_serves_nobody_keeps_nobody_awake() {
    let (ledger, clock) = open(&Arc::new(MemoryStore::new())).await;
    ask(&ledger, create("sites", "10.1.0.0/24", prefixes(26))).await;
    ask(&ledger, any("sites", "part")).await;
    ask(&ledger, Command::Release(target("sites", "part", None))).await;
    let all = claim("sites", "all", |request| {
        (request.length, request.wait, request.keep) = (Some(24), Some(Span::ZERO), true);
    });
    ask(&ledger, all).await;
    // From the first minute on what rests could go early, but not to the one who waits for more.
    sleep(Duration::from_secs(61)).await;
    let looks = looks(&clock, Duration::from_mins(8)).await;
    assert!(looks < 2000, "it looked {looks} times");
    sleep(Duration::from_mins(2)).await;
    let (pool, key) = ("sites".parse().unwrap(), "all".parse().unwrap());
    let seen = ledger.read(netstead_ledger::Freshness::Fresh, |book| book.claim(&pool, &key)).await.unwrap();
    assert_eq!(seen.value.unwrap().claim.held(), "10.1.0.0/24");
}

#[tokio::test(start_paused = true)]
async fn old_events_go_although_nobody_asks() {
    let store = Arc::new(MemoryStore::new());
    let (ledger, _) = open(&store).await;
    ask(&ledger, create("lan", "10.0.0.1", |_| {})).await;
    for _ in 0..20 {
        ask(&ledger, any("lan", "web")).await;
        ask(&ledger, Command::Release(target("lan", "web", None))).await;
    }
    ledger.close().await;
    let options = Options { max_events: 10, ..Options::default() };
    let ledger = Ledger::open(store, TokioClock::shared(), options).await.unwrap();
    assert!(ledger.health().events > 10);
    sleep(Duration::from_mins(30)).await;
    assert_eq!(ledger.health().events, 11, "the newest ten, and the event that tells of the removal");
}

#[tokio::test(start_paused = true)]
async fn who_keeps_its_place_hears_that_its_time_is_over_although_nobody_else_asks() {
    let (ledger, _) = open(&Arc::new(MemoryStore::new())).await;
    ask(&ledger, create("one", "10.0.0.1", |_| {})).await;
    ask(&ledger, any("one", "first")).await;
    let keeps = claim("one", "second", |request| {
        (request.wait, request.keep) = (Some(Span::from_secs(1)), true);
    });
    let heard = ledger.submit(Caller::new("ann"), keeps, PATIENCE).await.unwrap();
    assert!(matches!(heard.reply, Reply::Queued(_)), "{heard:?}");
}
