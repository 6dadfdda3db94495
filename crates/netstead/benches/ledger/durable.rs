//! Durable claims, beside what the disk itself can do in the same minute.

use std::{fs::File, io::Write as _, path::Path, sync::Arc, time::Duration};

use netstead_ledger::{Caller, Command, Ledger, Options};
use netstead_model::{ClaimRequest, Clock as _, Family, Ident, Key, PoolSpec, SystemClock};
use netstead_store::{LocalStore, Store};

use crate::{
    book::rate,
    report::{Report, median},
};

/// How long one figure is looked at before the next one's turn: disks and processors of machines that are shared with
/// others are twice as fast in one second as in the next, and what is compared must have seen the same ones.
const SLICE: Duration = Duration::from_millis(100);
const ROUNDS: usize = 90;
const PATIENCE: Duration = Duration::from_secs(30);

/// The disk, one client and many, in turn, as a server that has been running has them: on files that are there already.
pub fn measure(report: &mut Report, dir: &Path) {
    let runtime = runtime();
    let (ledger, store) = runtime.block_on(open(&dir.join("clients")));
    let pool = runtime.block_on(make_pool(&ledger, "big", "10.0.0.0/8"));
    let mut file = File::create(dir.join("raw")).expect("a file");
    let (mut raw, mut one, mut many) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        raw.push(fdatasync_rate(&mut file));
        one.push(runtime.block_on(ledger_rate(&ledger, &pool, &format!("one-{round}"), 1)));
        many.push(runtime.block_on(ledger_rate(&ledger, &pool, &format!("many-{round}"), 64)));
    }
    runtime.block_on(async {
        ledger.close().await;
        store.close().await;
    });
    let (to_disk, to_one) = (ratio(&one, &raw), ratio(&many, &one));
    report.note("disk, append + fdatasync", median(raw), "/s");
    report.note("ledger, 1 client", median(one), "claims/s");
    report.judge("ledger, 1 client to the disk's rate", to_disk, "x", "at least 0.7", to_disk >= 0.7);
    report.note("ledger, 64 clients", median(many), "claims/s");
    report.judge("ledger, 64 clients to 1 client", to_one, "x", "at least 20", to_one >= 20.0);
}

/// Of each round by itself.
pub fn ratio(over: &[f64], under: &[f64]) -> f64 {
    median(over.iter().zip(under).map(|(over, under)| over / under).collect())
}

pub fn measure_filling(report: &mut Report, dir: &Path) {
    let (all, first, last) = runtime().block_on(fill(&dir.join("fill")));
    report.note("ledger, time to fill a /16 durably", all.as_secs_f64(), "s");
    let ratio = last.as_secs_f64() / first.as_secs_f64();
    report.judge("ledger, last thousand claims to first", ratio, "x", "at most 2", ratio <= 2.0);
}

pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime")
}

fn fdatasync_rate(file: &mut File) -> f64 {
    let clock = SystemClock;
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

async fn ledger_rate(ledger: &Ledger, pool: &Ident, names: &str, clients: u64) -> f64 {
    let clock = SystemClock;
    let start = clock.monotonic();
    let tasks: Vec<_> = (0..clients)
        .map(|client| {
            let (ledger, pool, names) = (ledger.clone(), pool.clone(), names.to_owned());
            tokio::spawn(async move {
                let mut count = 0u64;
                while SystemClock.monotonic() - start < SLICE {
                    claim(&ledger, &pool, format!("{names}-{client}-{count}")).await;
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
    rate(count, clock.monotonic() - start)
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
