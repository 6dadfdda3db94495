//! All keys at one moment.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tokio::task::JoinSet;

use super::{ok, put, text};
use crate::{Commit, Entry, Snapshot, Store};

async fn everything(snapshot: &dyn Snapshot) -> Vec<Entry> {
    ok(snapshot.range(b"", None, usize::MAX).await)
}

pub async fn a_snapshot_stays_as_it_was(store: Arc<dyn Store>) {
    put(&*store, "a", "1").await;
    put(&*store, "b", "1").await;
    let snapshot = ok(store.snapshot().await);
    let before = everything(&*snapshot).await;

    put(&*store, "a", "2").await;
    ok(store.commit(Commit::new().delete("b").put("c", "2")).await);
    let later = ok(store.snapshot().await);
    put(&*store, "c", "3").await;

    assert_eq!(everything(&*snapshot).await, before, "the same again");
    assert_eq!(ok(snapshot.get(b"a").await).as_ref(), before.first());
    assert_eq!(ok(snapshot.get(b"c").await), None, "what came later is not in it");
    let mut back = ok(snapshot.range_back(b"", None, usize::MAX).await);
    back.reverse();
    assert_eq!(back, before);

    let later: Vec<_> = everything(&*later).await.iter().map(|e| (text(&e.key), text(&e.value))).collect();
    assert_eq!(later, [("a".into(), "2".into()), ("c".into(), "2".into())], "each has its own moment");
}

pub async fn a_snapshot_has_what_was_acknowledged(store: Arc<dyn Store>) {
    for number in 0..50 {
        let version = put(&*store, "a", &number.to_string()).await;
        let seen = ok(ok(store.snapshot().await).get(b"a").await);
        assert_eq!(seen.map(|entry| entry.version), Some(version));
    }
}

pub async fn an_own_snapshot_is_whole_and_stays_as_it_was(store: Arc<dyn Store>) {
    ok(store.commit(Commit::new().put("a", "1").put("b", "1")).await);
    // It may be behind, yet what this process was told is there soon.
    let own = loop {
        let own = ok(store.own_snapshot().await);
        if !everything(&*own).await.is_empty() {
            break own;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    };
    let before = everything(&*own).await;
    assert_eq!(before.len(), 2, "all of a commit or nothing");
    put(&*store, "a", "2").await;
    assert_eq!(everything(&*own).await, before, "the same again");
}

/// Keys that every commit sets to the same value, so that half a commit shows.
const TOGETHER: usize = 20;

/// Large enough that a store which collects writes in memory has to put them away meanwhile.
const PADDING: usize = 8 << 10;

/// The writer stops at some point and not the readers: old states pile up as long as a reader has them.
const COMMITS: u64 = 400;

pub async fn a_snapshot_is_whole_under_load(store: Arc<dyn Store>) {
    let done = Arc::new(AtomicBool::new(false));
    let mut readers = JoinSet::new();
    for _ in 0..2 {
        let (store, done) = (Arc::clone(&store), Arc::clone(&done));
        readers.spawn(async move {
            while !done.load(Ordering::Relaxed) {
                look_twice(&*ok(store.snapshot().await)).await;
            }
        });
    }
    for round in 0..COMMITS {
        let mut value = round.to_be_bytes().to_vec();
        value.resize(PADDING, 0);
        let commit =
            (0..TOGETHER).fold(Commit::new(), |commit, key| commit.put(format!("k/{key}"), value.clone()));
        ok(store.commit(commit).await);
    }
    done.store(true, Ordering::Relaxed);
    readers.join_all().await;
}

async fn look_twice(snapshot: &dyn Snapshot) {
    let first = ok(snapshot.range(b"k/", None, usize::MAX).await);
    let versions: Vec<_> = first.iter().map(|entry| entry.version).collect();
    assert!(versions.is_sorted_by(|one, other| one == other), "half a commit is seen: {versions:?}");
    tokio::task::yield_now().await;
    let again = ok(snapshot.range(b"k/", None, usize::MAX).await);
    assert!(first == again, "the same snapshot says something else when asked again");
}
