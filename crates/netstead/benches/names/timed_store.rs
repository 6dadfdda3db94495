//! A store that says how long its commits took.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use netstead_model::{Clock as _, SystemClock};
use netstead_store::{Commit, Committed, Entry, Epoch, Health, Snapshot, Store, StoreError, Watch};

/// Counts commits, and the time in which at least one was under way.
#[derive(Debug)]
pub struct TimedStore {
    inner: Arc<dyn Store>,
    commits: AtomicU32,
    busy: Mutex<Busy>,
}

#[derive(Debug, Default)]
struct Busy {
    under_way: u32,
    since: Duration,
    total: Duration,
}

impl TimedStore {
    pub fn new(inner: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self { inner, commits: AtomicU32::new(0), busy: Mutex::default() })
    }

    /// Commits since this was last called, and how long they took.
    pub fn take(&self) -> (f64, Duration) {
        let commits = self.commits.swap(0, Ordering::Relaxed);
        (commits.into(), std::mem::take(&mut self.busy.lock().expect("no panic").total))
    }
}

#[async_trait]
impl Store for TimedStore {
    async fn get(&self, key: &[u8]) -> Result<Option<Entry>, StoreError> {
        self.inner.get(key).await
    }

    async fn snapshot(&self) -> Result<Arc<dyn Snapshot>, StoreError> {
        self.inner.snapshot().await
    }

    async fn commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        self.commits.fetch_add(1, Ordering::Relaxed);
        {
            let mut busy = self.busy.lock().expect("no panic");
            if busy.under_way == 0 {
                busy.since = SystemClock.monotonic();
            }
            busy.under_way += 1;
        }
        let done = self.inner.commit(commit).await;
        let mut busy = self.busy.lock().expect("no panic");
        busy.under_way -= 1;
        if busy.under_way == 0 {
            let took = SystemClock.monotonic() - busy.since;
            busy.total += took;
        }
        done
    }

    async fn watch(&self, prefix: &[u8]) -> Result<Watch, StoreError> {
        self.inner.watch(prefix).await
    }

    async fn lead(&self) -> Result<Epoch, StoreError> {
        self.inner.lead().await
    }

    fn health(&self) -> Health {
        self.inner.health()
    }

    fn health_changes(&self) -> tokio::sync::watch::Receiver<Health> {
        self.inner.health_changes()
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}
