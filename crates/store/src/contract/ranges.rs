//! Keys in order, forward and backward, in pages.

use std::sync::Arc;

use super::{keys, ok};
use crate::{Commit, Key, Snapshot, Store};

async fn filled(store: &dyn Store, keys: impl IntoIterator<Item = Key>) -> Arc<dyn Snapshot> {
    let keys: Vec<Key> = keys.into_iter().collect();
    for chunk in keys.chunks(50) {
        let commit = chunk.iter().fold(Commit::new(), |commit, key| commit.put(key.clone(), key.clone()));
        ok(store.commit(commit).await);
    }
    ok(store.snapshot().await)
}

pub async fn ranges_are_in_order_of_keys(store: Arc<dyn Store>) {
    let names = ["b", "a", "c/2", "c", "c/10", "c/1", "d"].map(|name| name.as_bytes().to_vec());
    let snapshot = filled(&*store, names).await;
    let all = ok(snapshot.range(b"", None, usize::MAX).await);
    assert_eq!(keys(&all), ["a", "b", "c", "c/1", "c/10", "c/2", "d"]);
    for entry in &all {
        assert_eq!(entry.key, entry.value, "each key comes with its own value");
        assert_eq!(ok(store.get(&entry.key).await).as_ref(), Some(entry), "and its own version");
    }
    let mut back = ok(snapshot.range_back(b"", None, usize::MAX).await);
    back.reverse();
    assert_eq!(back, all, "backward is forward reversed");

    assert_eq!(keys(&ok(snapshot.range(b"c/", None, 9).await)), ["c/1", "c/10", "c/2"]);
    assert_eq!(keys(&ok(snapshot.range(b"c/", Some(b"c/1"), 9).await)), ["c/10", "c/2"]);
    assert_eq!(keys(&ok(snapshot.range(b"c/", Some(b"c/1"), 1).await)), ["c/10"]);
    assert_eq!(keys(&ok(snapshot.range_back(b"c/", Some(b"c/2"), 1).await)), ["c/10"]);
    assert_eq!(ok(snapshot.range(b"c/", None, 0).await), [], "no entry when none is asked for");
    assert_eq!(ok(snapshot.range_back(b"c/", None, 0).await), []);
    assert_eq!(ok(snapshot.range(b"c/3", None, 9).await), [], "no entry where none is");
}

pub async fn pages_join_without_gap_or_overlap(store: Arc<dyn Store>) {
    let wanted: Vec<String> = (0..250).map(|number| format!("p/{number:04}")).collect();
    let around = ["o", "p", "p0"].map(String::from);
    let snapshot = filled(&*store, wanted.iter().chain(&around).map(|key| key.clone().into_bytes())).await;
    for limit in [1, 7, 100, 250, 1000] {
        let (mut forward, mut backward) = (Vec::<Key>::new(), Vec::<Key>::new());
        loop {
            let page = ok(snapshot.range(b"p/", forward.last().map(Vec::as_slice), limit).await);
            assert!(page.len() <= limit, "no page is larger than asked for");
            if page.is_empty() {
                break;
            }
            forward.extend(page.into_iter().map(|entry| entry.key));
        }
        loop {
            let page = ok(snapshot.range_back(b"p/", backward.last().map(Vec::as_slice), limit).await);
            assert!(page.len() <= limit, "no page is larger than asked for");
            if page.is_empty() {
                break;
            }
            backward.extend(page.into_iter().map(|entry| entry.key));
        }
        backward.reverse();
        let forward: Vec<String> = forward.iter().map(|key| super::text(key)).collect();
        assert_eq!(forward, wanted, "forward in pages of {limit}");
        assert!(backward.iter().map(|key| super::text(key)).eq(wanted.iter().cloned()), "backward, {limit}");
    }
}

/// Every key of one or two bytes out of those where an off-by-one would show.
fn edge_keys() -> Vec<Key> {
    let bytes = [0x00, 0x01, b'd', b'r', 0xfe, 0xff];
    let pairs = bytes.iter().flat_map(|first| bytes.iter().map(|second| vec![*first, *second]));
    let mut keys: Vec<Key> = bytes.iter().map(|byte| vec![*byte]).chain(pairs).collect();
    keys.sort();
    keys
}

pub async fn prefixes_end_where_they_should(store: Arc<dyn Store>) {
    let all = edge_keys();
    let snapshot = filled(&*store, all.clone()).await;
    for prefix in all.iter().cloned().chain([vec![], vec![0xff; 3]]) {
        let wanted: Vec<&Key> = all.iter().filter(|key| key.starts_with(&prefix)).collect();
        let found = ok(snapshot.range(&prefix, None, usize::MAX).await);
        assert!(
            found.iter().map(|entry| &entry.key).eq(wanted.iter().copied()),
            "with {prefix:?}: {found:?}"
        );
        let found = ok(snapshot.range_back(&prefix, None, usize::MAX).await);
        assert!(
            found.iter().map(|entry| &entry.key).eq(wanted.iter().rev().copied()),
            "backward with {prefix:?}: {found:?}"
        );
    }
}

pub async fn edges_outside_of_the_prefix_are_understood(store: Arc<dyn Store>) {
    let all = edge_keys();
    let snapshot = filled(&*store, all.clone()).await;
    for prefix in [vec![], vec![1], vec![0xfe], vec![0xff], vec![0xff, 0xff]] {
        for edge in all.iter().chain([&vec![], &vec![0xff; 3]]) {
            let wanted = all.iter().filter(|key| key.starts_with(&prefix) && *key > edge);
            let found = ok(snapshot.range(&prefix, Some(edge), usize::MAX).await);
            assert!(found.iter().map(|entry| &entry.key).eq(wanted), "{prefix:?} after {edge:?}: {found:?}");
            let wanted = all.iter().rev().filter(|key| key.starts_with(&prefix) && *key < edge);
            let found = ok(snapshot.range_back(&prefix, Some(edge), usize::MAX).await);
            assert!(found.iter().map(|entry| &entry.key).eq(wanted), "{prefix:?} before {edge:?}: {found:?}");
        }
    }
}
