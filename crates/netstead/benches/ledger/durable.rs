//! Durable claims, beside what the disk itself can do in the same minute.

use std::{fs::File, io::Write as _, path::Path, sync::Arc, time::Duration};

use netstead_ledger::{Caller, Command, Ledger, Options};
use netstead_model::{ClaimRequest, Clock as _, Family, Ident, Key, PoolSpec, SystemClock};
use netstead_store::{LocalStore, Store};

use crate::{
    book::rate,
    report::{Report, median},
    through_api::claims_per_second,
};

pub const SLICE: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(30);
const ROUNDS: usize = 3;

/// Rounds of all figures one after the other, so that a busy moment of the machine hits all of them.
pub fn measure(report: &mut Report, dir: &Path, api: bool) {
    let runtime = runtime();
    let (mut raw, mut one, mut many) = (Vec::new(), Vec::new(), Vec::new());
    let (mut api_one, mut api_many) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        raw.push(fdatasync_rate(&dir.join(format!("raw-{round}"))));
        one.push(runtime.block_on(ledger_rate(&dir.join(format!("one-{round}")), 1)));
        many.push(runtime.block_on(ledger_rate(&dir.join(format!("many-{round}")), 64)));
        if api {
            api_one.push(runtime.block_on(claims_per_second(&dir.join(format!("api-one-{round}")), 1)));
            api_many.push(runtime.block_on(claims_per_second(&dir.join(format!("api-many-{round}")), 64)));
        }
    }
    let (raw, one, many) = (median(raw), median(one), median(many));
    report.note("disk, append + fdatasync", raw, "/s");
    report.note("ledger, 1 client", one, "claims/s");
    report.judge("ledger, 1 client to the disk's rate", one / raw, "x", "at least 0.7", one / raw >= 0.7);
    report.note("ledger, 64 clients", many, "claims/s");
    report.judge("ledger, 64 clients to 1 client", many / one, "x", "at least 20", many / one >= 20.0);
    if api {
        let (api_one, api_many) = (median(api_one), median(api_many));
        report.note("API, 1 client", api_one, "claims/s");
        report.note("API, 64 clients", api_many, "claims/s");
        report.note("API, 64 clients to 1 client", api_many / api_one, "x");
    }
}

pub fn measure_filling(report: &mut Report, dir: &Path) {
    let (all, first, last) = runtime().block_on(fill(&dir.join("fill")));
    report.note("ledger, time to fill a /16 durably", all.as_secs_f64(), "s");
    let ratio = last.as_secs_f64() / first.as_secs_f64();
    report.judge("ledger, last thousand claims to first", ratio, "x", "at most 2", ratio <= 2.0);
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime")
}

fn fdatasync_rate(path: &Path) -> f64 {
    let clock = SystemClock;
    let mut file = File::create(path).expect("a file");
    let (start, mut count) = (clock.monotonic(), 0);
    while clock.monotonic() - start < SLICE {
        file.write_all(&[7; 512]).expect("room");
        file.sync_data().expect("a disk");
        count += 1;
    }
    rate(count, clock.monotonic() - start)
}

pub async fn open(dir: &Path) -> (Ledger, Arc<dyn Store>) {
    let store: Arc<dyn Store> = Arc::new(LocalStore::open(dir).await.expect("a store"));
    let ledger =
        Ledger::open(store.clone(), SystemClock::shared(), Options::default()).await.expect("a ledger");
    (ledger, store)
}

pub async fn make_pool(ledger: &Ledger, name: &str, range: &str) -> Ident {
    let name: Ident = name.parse().expect("a name");
    let mut spec = PoolSpec::new(name.clone(), Family::Ipv4);
    spec.ranges = vec![range.parse().expect("a range")];
    let command = Command::CreatePool(Box::new(spec));
    ledger.submit(Caller::new("bench"), command, PATIENCE).await.expect("a pool");
    name
}

async fn claim(ledger: &Ledger, pool: &Ident, key: String) {
    let key: Key = key.parse().expect("a key");
    let command = Command::Claim(Box::new(ClaimRequest::any(pool.clone(), key)));
    ledger.submit(Caller::new("bench"), command, PATIENCE).await.expect("an address");
}

async fn ledger_rate(dir: &Path, clients: u64) -> f64 {
    let (ledger, store) = open(dir).await;
    let pool = make_pool(&ledger, "big", "10.0.0.0/8").await;
    let clock = SystemClock;
    let start = clock.monotonic();
    let tasks: Vec<_> = (0..clients)
        .map(|client| {
            let (ledger, pool) = (ledger.clone(), pool.clone());
            tokio::spawn(async move {
                let mut count = 0u64;
                while SystemClock.monotonic() - start < SLICE {
                    claim(&ledger, &pool, format!("client-{client}-{count}")).await;
                    count += 1;
                }
                count
            })
        })
        .collect();
    let mut count = 0;
    for task in tasks {
        count += task.await.expect("a client");
    }
    let took = clock.monotonic() - start;
    ledger.close().await;
    store.close().await;
    rate(count, took)
}

/// Fills a /16 with 64 clients; how long it took, the first thousand of it and the last.
async fn fill(dir: &Path) -> (Duration, Duration, Duration) {
    let (ledger, store) = open(dir).await;
    let pool = make_pool(&ledger, "full", "10.1.0.0/16").await;
    let clock = SystemClock;
    let total = 65_534u64;
    let next = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let start = clock.monotonic();
    let tasks: Vec<_> = (0..64)
        .map(|_| {
            let (ledger, pool, next) = (ledger.clone(), pool.clone(), next.clone());
            tokio::spawn(async move {
                let mut times = Vec::new();
                loop {
                    let number = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if number >= total {
                        return times;
                    }
                    claim(&ledger, &pool, format!("machine-{number}")).await;
                    times.push(SystemClock.monotonic() - start);
                }
            })
        })
        .collect();
    let mut times = Vec::new();
    for task in tasks {
        times.extend(task.await.expect("a client"));
    }
    times.sort_unstable();
    let at = |place: usize| times.get(place).copied().unwrap_or_default();
    let last = times.len() - 1;
    ledger.close().await;
    store.close().await;
    (at(last), at(999), at(last) - at(last - 999))
}
