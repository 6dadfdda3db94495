//! The store in memory: for tests, and the plainest reading of the contract.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    ops::Bound,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use tokio::sync::watch;

use crate::{
    Commit, Committed, Entry, Epoch, Health, Snapshot, Store, StoreError, Version, Watch, Write, epoch,
    key_range::{self, KeyRange},
    watch::Watchers,
};

/// All keys in memory. A snapshot shares the map until the next commit, which then copies it.
#[derive(Debug)]
pub struct MemoryStore {
    state: Mutex<State>,
    watchers: Watchers,
    health: watch::Sender<Health>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) revision: u64,
    pub(crate) keys: Arc<Keys>,
    closed: bool,
}

/// Keys and values are shared, so copying the map copies no bytes of theirs.
pub(crate) type Keys = BTreeMap<Bytes, (Version, Bytes)>;
type Bytes = Arc<[u8]>;

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    pub fn new() -> Self {
        let (health, _) = watch::channel(Health::Ready);
        Self { state: Mutex::default(), watchers: Watchers::default(), health }
    }

    fn open_state(&self) -> Result<MutexGuard<'_, State>, StoreError> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.closed {
            return Err(StoreError::Unavailable { reason: "the store is closed".into() });
        }
        Ok(state)
    }
}

impl State {
    /// Does what a commit says if its conditions hold.
    pub(crate) fn apply(&mut self, commit: &Commit) -> Result<Committed, StoreError> {
        let standing =
            |key: &Vec<u8>| Ok::<_, Infallible>(self.keys.get(key.as_slice()).map(|(version, _)| *version));
        if let Ok(Some(key)) = commit.refusal(standing) {
            return Err(StoreError::Refused { key: key.clone() });
        }
        if commit.writes.is_empty() {
            return Ok(Committed { version: Version(self.revision) });
        }
        self.revision += 1;
        let version = Version(self.revision);
        let keys = Arc::make_mut(&mut self.keys);
        for write in &commit.writes {
            match write {
                Write::Put(key, value) => {
                    keys.insert(key.as_slice().into(), (version, value.as_slice().into()));
                }
                Write::Delete(key) => {
                    keys.remove(key.as_slice());
                }
            }
        }
        Ok(Committed { version })
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn get(&self, key: &[u8]) -> Result<Option<Entry>, StoreError> {
        Ok(find(&self.open_state()?.keys, key))
    }

    async fn snapshot(&self) -> Result<Arc<dyn Snapshot>, StoreError> {
        Ok(Arc::new(MemorySnapshot { keys: Arc::clone(&self.open_state()?.keys) }))
    }

    async fn commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        commit.validate()?;
        // Every real store waits here; without this, tests on memory would never see two commits overlap.
        tokio::task::yield_now().await;

        let mut state = self.open_state()?;
        let Committed { version } = state.apply(&commit)?;
        if commit.writes.is_empty() {
            return Ok(Committed { version });
        }
        self.watchers.broadcast_commit(version, commit.writes); // Still under the lock, so in the order of commits.
        Ok(Committed { version })
    }

    async fn watch(&self, prefix: &[u8]) -> Result<Watch, StoreError> {
        let _state = self.open_state()?;
        Ok(self.watchers.add(prefix))
    }

    async fn lead(&self) -> Result<Epoch, StoreError> {
        epoch::raise(self).await
    }

    fn health(&self) -> Health {
        self.health.borrow().clone()
    }

    fn health_changes(&self) -> watch::Receiver<Health> {
        self.health.subscribe()
    }

    async fn close(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        self.watchers.end_all();
        self.health.send_replace(Health::Failed { reason: "the store is closed".into() });
    }
}

#[derive(Debug)]
pub(crate) struct MemorySnapshot {
    pub(crate) keys: Arc<Keys>,
}

#[async_trait]
impl Snapshot for MemorySnapshot {
    async fn get(&self, key: &[u8]) -> Result<Option<Entry>, StoreError> {
        Ok(find(&self.keys, key))
    }

    async fn range(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        let found = key_range::forward(prefix, after).map(|span| self.keys.range::<[u8], _>(borrowed(&span)));
        Ok(found.into_iter().flatten().take(limit).map(entry).collect())
    }

    async fn range_back(
        &self,
        prefix: &[u8],
        before: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        let found =
            key_range::backward(prefix, before).map(|span| self.keys.range::<[u8], _>(borrowed(&span)));
        Ok(found.into_iter().flatten().rev().take(limit).map(entry).collect())
    }
}

pub(crate) fn find(keys: &Keys, key: &[u8]) -> Option<Entry> {
    keys.get_key_value(key).map(entry)
}

fn entry((key, (version, value)): (&Bytes, &(Version, Bytes))) -> Entry {
    Entry { key: key.to_vec(), value: value.to_vec(), version: *version }
}

fn borrowed(span: &KeyRange) -> (Bound<&[u8]>, Bound<&[u8]>) {
    (span.0.as_ref().map(Vec::as_slice), span.1.as_ref().map(Vec::as_slice))
}
