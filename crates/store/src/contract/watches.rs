//! Watches.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use tokio::{task::JoinSet, time::timeout};

use super::{PATIENCE, ok, put, text};
use crate::{Commit, Condition, Key, Store, Value, Version, Watch, WatchItem, Write};

/// The next item, or the end of the test.
async fn next(watch: &mut Watch) -> (Version, Vec<Write>) {
    match timeout(PATIENCE, watch.next()).await {
        Ok(Some(WatchItem::Changed { version, writes })) => (version, writes.to_vec()),
        other => panic!("a commit should have come, and it was {other:?}"),
    }
}

pub async fn commits_come_in_order_and_once(store: Arc<dyn Store>) {
    const COMMITS: usize = 200;
    let mut watch = ok(store.watch(b"").await);
    let mut tasks = JoinSet::new();
    for task in 0..8 {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let mut versions = Vec::new();
            for number in 0..COMMITS / 8 {
                versions.push(put(&*store, &format!("k/{task}"), &number.to_string()).await);
            }
            versions
        });
    }
    let committed: BTreeSet<Version> = tasks.join_all().await.into_iter().flatten().collect();
    let mut state = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for _ in 0..COMMITS {
        let (version, writes) = next(&mut watch).await;
        assert!(seen.insert(version), "{version:?} comes twice");
        check_order(&state, &writes);
        apply(&mut state, writes);
    }
    assert_eq!(seen, committed, "every commit, once");
    let stored = ok(ok(store.snapshot().await).range(b"", None, usize::MAX).await);
    let stored: BTreeMap<Key, Value> = stored.into_iter().map(|entry| (entry.key, entry.value)).collect();
    assert_eq!(state, stored, "who follows the watch has what the store has");

    put(&*store, "last", "1").await;
    assert_eq!(
        next(&mut watch).await.1,
        [Write::Put(b"last".to_vec(), b"1".to_vec())],
        "and nothing between"
    );
}

/// Each key counts up from 0, so what was left out or came too early shows.
fn check_order(state: &BTreeMap<Key, Value>, writes: &[Write]) {
    let count = |value: &[u8]| text(value).parse::<u64>().ok();
    for write in writes {
        if let Write::Put(key, value) = write {
            let expected = state.get(key).map_or(Some(0), |last| count(last).map(|last| last + 1));
            assert_eq!(count(value), expected, "out of order at `{}`", text(key));
        }
    }
}

fn apply(state: &mut BTreeMap<Key, Value>, writes: Vec<Write>) {
    for write in writes {
        match write {
            Write::Put(key, value) => state.insert(key, value),
            Write::Delete(key) => state.remove(&key),
        };
    }
}

/// A delete of what is not there may be seen or not: some stores do nothing then.
pub async fn only_the_prefix_is_seen(store: Arc<dyn Store>) {
    let mut ours = ok(store.watch(b"a/").await);
    let mut edge = ok(store.watch(&[0xff]).await);
    put(&*store, "a", "not below").await;
    put(&*store, "b/1", "elsewhere").await;
    let refused = Commit::new().when(Condition::Absent(b"a".to_vec())).put("a/1", "refused");
    assert!(store.commit(refused).await.is_err());
    ok(store.commit(Commit::new()).await);
    put(&*store, "a/2", "1").await;
    next(&mut ours).await;
    let commit = Commit::new().put("a/1", "1").delete("b/1").delete("a/2").put([0xff, 0xff], "2");
    let version = ok(store.commit(commit).await).version;

    let (seen, mut writes) = next(&mut ours).await;
    writes.sort_by(|one, other| one.key().cmp(other.key()));
    assert_eq!(seen, version);
    assert_eq!(writes, [Write::Put(b"a/1".to_vec(), b"1".to_vec()), Write::Delete(b"a/2".to_vec())]);
    let expected = (version, vec![Write::Put(vec![0xff, 0xff], b"2".to_vec())]);
    assert_eq!(next(&mut edge).await, expected);
}

pub async fn only_what_comes_after_is_seen(store: Arc<dyn Store>) {
    put(&*store, "a", "before").await;
    let mut watch = ok(store.watch(b"").await);
    let version = put(&*store, "a", "after").await;
    assert_eq!(next(&mut watch).await.0, version);
}

/// Watch first, then read everything: what is in neither is lost.
pub async fn a_watch_and_a_snapshot_leave_no_gap(store: Arc<dyn Store>) {
    const COMMITS: u64 = 300;
    let writer = tokio::spawn({
        let store = Arc::clone(&store);
        async move {
            let mut last = Version(0);
            for number in 0..COMMITS {
                last = put(&*store, &format!("k/{number:04}"), "1").await;
            }
            last
        }
    });
    let mut followers = JoinSet::new();
    for pause in 0..10 {
        let store = Arc::clone(&store);
        followers.spawn(async move {
            tokio::time::sleep(std::time::Duration::from_millis(pause * 5)).await;
            let mut watch = ok(store.watch(b"k/").await);
            let start = ok(ok(store.snapshot().await).range(b"k/", None, usize::MAX).await);
            let mut keys: BTreeMap<Key, Value> =
                start.into_iter().map(|entry| (entry.key, entry.value)).collect();
            while (keys.len() as u64) < COMMITS {
                apply(&mut keys, next(&mut watch).await.1);
            }
        });
    }
    let last = writer.await;
    assert!(last.is_ok(), "{last:?}");
    followers.join_all().await;
}

/// A watcher that does not read must not hold anything up. It gets every commit, or some and then word that
/// others were missed.
pub async fn who_is_too_slow_is_told(store: Arc<dyn Store>) {
    const COMMITS: usize = 5000;
    let mut watch = ok(store.watch(b"").await);
    let mut tasks = JoinSet::new();
    for task in 0..50 {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            for number in 0..COMMITS / 50 {
                put(&*store, &format!("k/{task}"), &number.to_string()).await;
            }
        });
    }
    tasks.join_all().await;

    let (mut seen, mut state) = (0, BTreeMap::new());
    while seen < COMMITS {
        match timeout(PATIENCE, watch.next()).await {
            Ok(Some(WatchItem::Changed { writes, .. })) => {
                check_order(&state, &writes);
                apply(&mut state, writes.to_vec());
                seen += 1;
            }
            Ok(Some(WatchItem::Lost)) => {
                assert_eq!(watch.next().await, None, "nothing follows");
                break;
            }
            other => panic!("after {seen} of {COMMITS} commits came {other:?}"),
        }
    }
    let mut fresh = ok(store.watch(b"").await);
    let version = put(&*store, "k", "1").await;
    assert_eq!(next(&mut fresh).await.0, version, "a new watch starts anew");
}

pub async fn a_watch_ends_with_the_store(store: Arc<dyn Store>) {
    let mut watch = ok(store.watch(b"").await);
    let version = put(&*store, "a", "1").await;
    store.close().await;
    assert_eq!(next(&mut watch).await.0, version, "what was committed still comes");
    let end = timeout(PATIENCE, watch.next()).await;
    assert!(matches!(end, Ok(None)), "the end should have come, and it was {end:?}");
}
