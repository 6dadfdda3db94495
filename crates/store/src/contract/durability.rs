//! For stores that outlive their process.

use std::sync::Arc;

use super::{ok, put, refused, value};
use crate::{Commit, Condition, Epoch, Store};

pub async fn everything_is_there_after_opening_again(open: &impl AsyncFn() -> Arc<dyn Store>) {
    let store = open().await;
    for number in 0..100 {
        put(&*store, &format!("k/{number:03}"), &number.to_string()).await;
    }
    ok(store.commit(Commit::new().delete("k/007").put("k/008", vec![8; 500_000])).await);
    assert_eq!(ok(store.lead().await), Epoch(1));
    let before = ok(ok(store.snapshot().await).range(b"", None, usize::MAX).await);
    store.close().await;

    for round in 0..3 {
        let store = open().await;
        let after = ok(ok(store.snapshot().await).range(b"", None, usize::MAX).await);
        assert!(after == before, "opened for the {round}. time, the store differs");
        store.close().await;
    }
    let store = open().await;
    assert_eq!(ok(store.lead().await), Epoch(2));
    store.close().await;
}

pub async fn versions_go_on_after_opening_again(open: &impl AsyncFn() -> Arc<dyn Store>) {
    let mut seen = Vec::new();
    for _ in 0..4 {
        let store = open().await;
        for old in &seen {
            let late = Commit::new().when(Condition::Version(b"v".to_vec(), *old)).put("v", "late");
            assert_eq!(refused(store.commit(late).await), b"v");
        }
        let version = put(&*store, "v", "1").await;
        assert!(!seen.contains(&version), "{version:?} was given before");
        seen.push(version);
        ok(store.commit(Commit::new().delete("v")).await);
        assert_eq!(value(&*store, "v").await, None);
        store.close().await;
    }
}
