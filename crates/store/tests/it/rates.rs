//! How fast the local store is beside the bare disk. Prints, and asserts nothing: figures are of a machine.
//!
//! `cargo test --release -p netstead-store --test it rates -- --ignored --nocapture --test-threads 1`

#![expect(clippy::disallowed_methods, reason = "this measures")]

use std::{
    fs::{self, File},
    io::Write,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use netstead_store::{Commit, LocalStore, Store};
use tempfile::tempdir;

use crate::support::open;

const SPAN: Duration = Duration::from_millis(500);
const ROUNDS: usize = 11;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes time and a quiet machine"]
async fn rates() {
    let dir = tempdir().unwrap();
    let store = Arc::new(open(&dir.path().join("store")).await);
    let (mut raw, mut one, mut many, mut gets) = (vec![], vec![], vec![], vec![]);
    for _ in 0..ROUNDS {
        raw.push(appends(&dir.path().join("raw")));
        one.push(commits(&store, 1).await);
        many.push(commits(&store, 64).await);
        gets.push(reads(&store).await);
    }
    let ratios = one.iter().zip(&raw).map(|(one, raw)| one / raw).collect();
    println!(
        "medians of {ROUNDS}: append+fdatasync {:.0}/s, 1 client {:.0}/s, 64 clients {:.0}/s, get {:.0}/s",
        median(raw),
        median(one),
        median(many),
        median(gets)
    );
    println!("1 client beside append+fdatasync, pair by pair: {:.2}", median(ratios));
    store.close().await;
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// The speed of the disk alone: as many bytes as a commit of three puts has, appended and flushed.
fn appends(path: &Path) -> f64 {
    let mut file = File::create(path).unwrap();
    let (start, mut count) = (Instant::now(), 0.0);
    while start.elapsed() < SPAN {
        file.write_all(&[7; 400]).unwrap();
        file.sync_data().unwrap();
        count += 1.0;
    }
    count / start.elapsed().as_secs_f64()
}

async fn commits(store: &Arc<LocalStore>, clients: u32) -> f64 {
    let start = Instant::now();
    let clients = (0..clients).map(|client| {
        let store = Arc::clone(store);
        tokio::spawn(async move {
            let mut count = 0_u32;
            while start.elapsed() < SPAN {
                store.commit(claim(client, count)).await.unwrap();
                count += 1;
            }
            f64::from(count)
        })
    });
    let counts = futures::future::join_all(clients).await;
    counts.into_iter().map(Result::unwrap).sum::<f64>() / start.elapsed().as_secs_f64()
}

async fn reads(store: &LocalStore) -> f64 {
    let (start, mut count) = (Instant::now(), 0.0);
    while start.elapsed() < Duration::from_millis(300) {
        store.get(b"ledger/head").await.unwrap();
        count += 1.0;
    }
    count / start.elapsed().as_secs_f64()
}

/// A large ledger: filling it, the slowest commit on the way, opening it, reading all of it.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes time and a quiet machine"]
async fn a_million_claims() {
    const CLIENTS: u32 = 64;
    const EACH: u32 = 15_625;
    let dir = tempdir().unwrap();
    let store = Arc::new(open(dir.path()).await);
    let start = Instant::now();
    let clients = (0..CLIENTS).map(|client| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let mut slowest = Duration::ZERO;
            for count in 0..EACH {
                let commit = claim(client, count);
                let start = Instant::now();
                store.commit(commit).await.unwrap();
                slowest = slowest.max(start.elapsed());
            }
            slowest
        })
    });
    let slowest = futures::future::join_all(clients).await.into_iter().map(Result::unwrap).max().unwrap();
    println!("filled in {:?}, slowest commit {slowest:?}, {}", start.elapsed(), memory());
    store.close().await;

    let start = Instant::now();
    let store = open(dir.path()).await;
    println!("opened in {:?}", start.elapsed());
    let start = Instant::now();
    let snapshot = store.snapshot().await.unwrap();
    let (mut after, mut count) = (Vec::new(), 0);
    loop {
        let page = snapshot.range(b"", Some(&after), 10_000).await.unwrap();
        let Some(last) = page.last() else { break };
        count += page.len();
        after.clone_from(&last.key);
    }
    println!("read {count} entries in {:?}, {}", start.elapsed(), memory());
    drop(snapshot);
    store.close().await;

    fs::remove_file(dir.path().join("highwater")).unwrap(); // As after a crash.
    let start = Instant::now();
    let store = open(dir.path()).await;
    println!("opened after an unclean end in {:?}", start.elapsed());
    store.close().await;
}

fn claim(client: u32, count: u32) -> Commit {
    Commit::new()
        .put("ledger/head", [7; 40])
        .put(format!("claim/{client}/{count}"), [7; 150])
        .put(format!("event/{client}/{count}"), [7; 80])
}

/// The memory of this process now, and at most.
fn memory() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let lines = status.lines().filter(|line| line.starts_with("VmRSS") || line.starts_with("VmHWM"));
    lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>().join(", ")
}
