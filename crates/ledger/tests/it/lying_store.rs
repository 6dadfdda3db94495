//! A store that says yes and does something else: how a broken disk, or a fault further below, looks from above.

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use netstead_store::{
    Commit, Committed, Entry, Epoch, Health, Key, MAX_WRITES, Snapshot, Store, StoreError, Watch, Write,
};
use tokio::sync::watch;

type Twist = Box<dyn FnMut(&mut Vec<Write>) + Send>;

/// Every commit is answered as if it had landed as it was asked for.
pub(crate) struct LyingStore {
    inner: Arc<dyn Store>,
    twist: Mutex<Twist>,
}

impl LyingStore {
    pub fn new(inner: Arc<dyn Store>, twist: impl FnMut(&mut Vec<Write>) + Send + 'static) -> Self {
        Self { inner, twist: Mutex::new(Box::new(twist)) }
    }

    /// From now on it does what it says.
    pub fn stop_lying(&self) {
        *self.twist.lock().unwrap() = Box::new(|_| {});
    }
}

/// All that can become of one key: it is lost, it changes, or something stands beside it.
pub(crate) fn twists(key: &Key) -> [(&'static str, Twist); 3] {
    let (lost, changed, more) = (key.clone(), key.clone(), key.clone());
    let change = move |writes: &mut Vec<Write>| {
        for write in writes {
            if let Write::Put(key, value) = write
                && *key == changed
            {
                let last = value.last_mut().expect("there is a value");
                *last ^= 1;
            }
        }
    };
    let mut due = false;
    let add = move |writes: &mut Vec<Write>| {
        due |= writes.iter().any(|write| *write.key() == more);
        // A commit that is full has no room for it; another comes.
        if due && writes.len() < MAX_WRITES {
            writes.push(Write::Put([&more[..], b"!"].concat(), b"1".to_vec()));
            due = false;
        }
    };
    [
        ("lost", Box::new(move |writes| writes.retain(|write| *write.key() != lost))),
        ("changed", Box::new(change)),
        ("more than", Box::new(add)),
    ]
}

impl fmt::Debug for LyingStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

#[async_trait]
impl Store for LyingStore {
    async fn get(&self, key: &[u8]) -> Result<Option<Entry>, StoreError> {
        self.inner.get(key).await
    }

    async fn snapshot(&self) -> Result<Arc<dyn Snapshot>, StoreError> {
        self.inner.snapshot().await
    }

    async fn commit(&self, mut commit: Commit) -> Result<Committed, StoreError> {
        (self.twist.lock().unwrap())(&mut commit.writes);
        self.inner.commit(commit).await
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

    fn health_changes(&self) -> watch::Receiver<Health> {
        self.inner.health_changes()
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}
