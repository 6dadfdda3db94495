//! Small helpers the tests share.

use std::{path::Path, time::Duration};

use netstead_store::{Commit, Entry, Health, LocalStore, Store, StoreError};
use tokio::time::{sleep, timeout};

pub(crate) async fn open(dir: &Path) -> LocalStore {
    LocalStore::open(dir).await.unwrap()
}

pub(crate) async fn put(store: &dyn Store, key: &str, value: impl Into<Vec<u8>>) -> Result<(), StoreError> {
    store.commit(Commit::new().put(key, value)).await.map(drop)
}

pub(crate) async fn everything(store: &dyn Store) -> Vec<Entry> {
    let snapshot = store.snapshot().await.unwrap();
    snapshot.range(b"", None, usize::MAX).await.unwrap()
}

pub(crate) async fn until_ready(store: &dyn Store) {
    let mut changes = store.health_changes();
    let ready = changes.wait_for(|health| *health == Health::Ready);
    timeout(Duration::from_secs(20), ready).await.expect("the store should heal").unwrap();
}

pub(crate) async fn until_failed(store: &dyn Store) -> String {
    for _ in 0..100 {
        if let Health::Failed { reason } = store.health() {
            return reason;
        }
        sleep(Duration::from_millis(50)).await;
    }
    panic!("health should say that the store failed");
}

/// Numbers that look random and are the same in each run.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}
