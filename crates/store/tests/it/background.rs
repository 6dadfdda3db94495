//! A write that fails in fjall's background, where no caller sees it.

use std::fs;

use netstead_store::{Store, StoreError};
use tempfile::tempdir;

use crate::support::{everything, open, put, until_failed, until_ready};

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_nobody_asked_for_is_noticed_and_healed() {
    let dir = tempdir().unwrap();
    let store = open(dir.path()).await;
    let tables = dir.path().join("db/keyspaces/1/tables");
    let away = dir.path().join("tables, somewhere else");
    fs::rename(&tables, &away).unwrap();

    let mut acked = 0;
    for number in 0..5 {
        // More than a memtable holds: fjall makes a table of it, which has nowhere to go.
        match put(&store, &format!("k/{number}"), vec![number; 1_000_000]).await {
            Ok(()) => acked += 1,
            Err(error) => assert!(!matches!(error, StoreError::Refused { .. }), "{error:?}"),
        }
    }
    let reason = until_failed(&store).await;
    assert!(reason.contains(&*dir.path().to_string_lossy()), "{reason}");
    assert!(matches!(put(&store, "late", "1").await, Err(StoreError::Unavailable { .. })));

    if tables.exists() {
        fs::remove_dir_all(&tables).unwrap(); // fjall may have made an empty one meanwhile.
    }
    fs::rename(&away, &tables).unwrap();
    until_ready(&store).await;
    let there = everything(&store).await;
    assert!(there.len() >= acked && acked >= 4, "{acked} acknowledged, {} there", there.len());
    for (number, entry) in (0..).zip(&there) {
        assert_eq!(entry.value, vec![number; 1_000_000]);
    }
    put(&store, "after", "1").await.unwrap();
    store.close().await;
}
