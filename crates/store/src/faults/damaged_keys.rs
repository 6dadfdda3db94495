//! Keys that cannot be read, as when a block of a file is damaged.

use std::{
    ops::RangeInclusive,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use async_trait::async_trait;

use crate::{Damage, DamageLog, Entry, Key, Snapshot, StoreError};

/// Which keys are damaged now. Clones are the same.
#[derive(Debug, Clone)]
pub(super) struct DamagedKeys {
    ranges: Arc<Mutex<Vec<RangeInclusive<Key>>>>,
    log: DamageLog,
    /// Raised when the snapshots taken so far are lost.
    era: Arc<AtomicU64>,
}

impl DamagedKeys {
    pub(super) fn new(log: DamageLog) -> Self {
        Self { ranges: Arc::default(), log, era: Arc::default() }
    }

    pub(super) fn lose_snapshots(&self) {
        self.era.fetch_add(1, Relaxed);
    }

    pub(super) fn log(&self) -> &DamageLog {
        &self.log
    }

    pub(super) fn add(&self, keys: RangeInclusive<&str>) {
        let keys = keys.start().as_bytes().to_vec()..=keys.end().as_bytes().to_vec();
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner).push(keys);
    }

    pub(super) fn clear(&self) {
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    pub(super) fn check_key(&self, key: &[u8]) -> Result<(), StoreError> {
        let ranges = self.ranges.lock().unwrap_or_else(PoisonError::into_inner);
        if ranges.iter().any(|range| range.contains(&key.to_vec())) {
            let reason = format!("the test damaged `{}`", String::from_utf8_lossy(key));
            self.log.note(Damage::new(key, &reason));
            return Err(StoreError::Damaged { reason });
        }
        Ok(())
    }

    pub(super) fn wrap(&self, inner: Arc<dyn Snapshot>) -> Arc<dyn Snapshot> {
        Arc::new(DamagedSnapshot { inner, damaged: self.clone(), era: self.era.load(Relaxed) })
    }
}

/// A view that fails where the damage is, also if that came later: it is the disk that is damaged.
#[derive(Debug)]
struct DamagedSnapshot {
    inner: Arc<dyn Snapshot>,
    damaged: DamagedKeys,
    era: u64,
}

impl DamagedSnapshot {
    fn check(&self) -> Result<(), StoreError> {
        if self.era == self.damaged.era.load(Relaxed) {
            return Ok(());
        }
        Err(StoreError::Unavailable { reason: "the test lost this snapshot; take a new one".into() })
    }

    fn whole(&self, entries: Vec<Entry>) -> Result<Vec<Entry>, StoreError> {
        self.check()?;
        entries.iter().try_for_each(|entry| self.damaged.check_key(&entry.key))?;
        Ok(entries)
    }
}

#[async_trait]
impl Snapshot for DamagedSnapshot {
    async fn get(&self, key: &[u8]) -> Result<Option<Entry>, StoreError> {
        self.check()?;
        self.damaged.check_key(key)?;
        self.inner.get(key).await
    }

    async fn range(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        self.whole(self.inner.range(prefix, after, limit).await?)
    }

    async fn range_back(
        &self,
        prefix: &[u8],
        before: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        self.whole(self.inner.range_back(prefix, before, limit).await?)
    }
}
