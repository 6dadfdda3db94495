//! Memory, local and a store with faults that has none to do all keep the contract.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use netstead_store::{FaultyStore, LocalStore, MemoryStore, Store, WatchItem, contract};
use tempfile::tempdir;

use crate::support::put;

#[tokio::test(flavor = "multi_thread")]
async fn memory_keeps_the_contract() {
    contract::all(async || Arc::new(MemoryStore::new()) as Arc<dyn Store>).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_keeps_the_contract_with_faults_around_it() {
    let make = async || Arc::new(FaultyStore::new(Arc::new(MemoryStore::new()))) as Arc<dyn Store>;
    contract::all(make).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn local_keeps_the_contract() {
    let dir = tempdir().unwrap();
    let count = AtomicU32::new(0);
    let make = async || {
        let path = dir.path().join(count.fetch_add(1, Ordering::Relaxed).to_string());
        Arc::new(LocalStore::open(&path).await.unwrap()) as Arc<dyn Store>
    };
    contract::all(make).await;
}

#[tokio::test]
async fn local_is_durable() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("a/store/in/a/new/directory");
    contract::durable(async || Arc::new(LocalStore::open(&path).await.unwrap()) as Arc<dyn Store>).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_these_stores_who_is_too_slow_is_lost() {
    let dir = tempdir().unwrap();
    let local = LocalStore::open(dir.path()).await.unwrap();
    for store in [Arc::new(MemoryStore::new()) as Arc<dyn Store>, Arc::new(local)] {
        let mut watch = store.watch(b"").await.unwrap();
        for round in 0..50 {
            let puts = (0..100).map(|task| {
                let store = Arc::clone(&store);
                async move { put(&*store, &format!("{round}/{task}"), "1").await.unwrap() }
            });
            futures::future::join_all(puts).await;
        }
        let mut seen = 0;
        while let Some(WatchItem::Changed { .. }) = watch.next().await {
            seen += 1;
        }
        assert_eq!(seen, 4096, "what was queued still came");
        assert_eq!(watch.next().await, None);
        store.close().await;
    }
}
