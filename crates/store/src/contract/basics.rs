//! One caller, one key after the other.

use std::sync::Arc;

use super::{ok, put, refused, value};
use crate::{Commit, Condition, EPOCH_KEY, Entry, Epoch, Health, Store};

pub async fn an_empty_store_has_nothing(store: Arc<dyn Store>) {
    assert_eq!(ok(store.get(b"a").await), None);
    let snapshot = ok(store.snapshot().await);
    assert_eq!(ok(snapshot.get(b"a").await), None);
    assert_eq!(ok(snapshot.range(b"", None, usize::MAX).await), []);
    assert_eq!(ok(snapshot.range_back(b"", None, usize::MAX).await), []);
    assert_eq!(store.health(), Health::Ready);
}

pub async fn what_is_put_is_read_back(store: Arc<dyn Store>) {
    for (key, value) in [
        (b"a".to_vec(), b"1".to_vec()),
        (b"empty value".to_vec(), vec![]),
        (vec![0], vec![0; 10]),
        (vec![0xff; 3], vec![0xff; 10]),
        (b"a/b".to_vec(), b"not a directory".to_vec()),
        (b"a".to_vec(), b"again".to_vec()),
    ] {
        let version = ok(store.commit(Commit::new().put(key.clone(), value.clone())).await).version;
        let entry = Entry { key: key.clone(), value, version };
        assert_eq!(ok(store.get(&key).await), Some(entry.clone()), "by get");
        let snapshot = ok(store.snapshot().await);
        assert_eq!(ok(snapshot.get(&key).await), Some(entry), "by snapshot");
    }
    assert_eq!(ok(store.get(b"").await), None, "nothing ever stands under the empty key");
    let long = vec![0xff; 100_000];
    let snapshot = ok(store.snapshot().await);
    assert_eq!(ok(store.get(&long).await), None, "nor under one that is too long");
    assert_eq!(ok(snapshot.get(&long).await), None);
    assert_eq!(ok(snapshot.range(&long, None, 10).await), []);
    assert_eq!(ok(snapshot.range(b"", Some(&long), 10).await), [], "which lies after all keys");
    assert_eq!(ok(snapshot.range_back(b"", Some(&long), 10).await).len(), 5);
}

pub async fn what_is_deleted_is_gone(store: Arc<dyn Store>) {
    put(&*store, "a", "1").await;
    put(&*store, "b", "2").await;
    ok(store.commit(Commit::new().delete("a").delete("never there")).await);
    assert_eq!(value(&*store, "a").await, None);
    assert_eq!(value(&*store, "b").await.as_deref(), Some("2"));
    let all = ok(ok(store.snapshot().await).range(b"", None, 10).await);
    assert_eq!(super::keys(&all), ["b"]);
}

pub async fn versions_are_never_reused(store: Arc<dyn Store>) {
    let mut seen = Vec::new();
    for round in 0..5 {
        let version = put(&*store, "a", "the same each time").await;
        assert!(!seen.contains(&version), "round {round} got {version:?} again");
        for old in &seen {
            let late = Commit::new().when(Condition::Version(b"a".to_vec(), *old)).put("a", "late");
            assert_eq!(refused(store.commit(late).await), b"a", "an old version must not hold again");
        }
        seen.push(version);
        if round % 2 == 0 {
            ok(store.commit(Commit::new().delete("a")).await);
        }
    }
}

pub async fn one_commit_gives_one_version(store: Arc<dyn Store>) {
    let before = put(&*store, "untouched", "0").await;
    let version = ok(store.commit(Commit::new().put("a", "1").put("b", "2")).await).version;
    for key in ["a", "b"] {
        let entry = ok(store.get(key.as_bytes()).await);
        assert_eq!(entry.map(|entry| entry.version), Some(version), "of `{key}`");
    }
    let untouched = ok(store.get(b"untouched").await);
    assert_eq!(untouched.map(|entry| entry.version), Some(before));
}

pub async fn a_commit_without_writes_changes_nothing(store: Arc<dyn Store>) {
    let version = put(&*store, "a", "1").await;
    ok(store.commit(Commit::new()).await);
    let holds = Commit::new().when(Condition::Version(b"a".to_vec(), version));
    ok(store.commit(holds.clone()).await);
    ok(store.commit(holds.clone()).await);
    put(&*store, "a", "2").await;
    assert_eq!(refused(store.commit(holds).await), b"a");
}

pub async fn the_epoch_grows_with_each_lead(store: Arc<dyn Store>) {
    for epoch in 1..=3 {
        assert_eq!(ok(store.lead().await), Epoch(epoch));
        let stored = ok(store.get(EPOCH_KEY).await).map(|entry| entry.value);
        assert_eq!(stored, Some(epoch.to_string().into_bytes()));
    }
}
