//! Snapshots of the local store.

use std::{fmt, sync::Arc};

use async_trait::async_trait;

use super::{
    database_error::DatabaseError,
    engine::Engine,
    shared_state::{LocalShared, Opening},
};
use crate::{
    Entry, Snapshot, StoreError,
    key_range::{self, KeyRange},
};

/// A view that borrows the database for each call and owns none of it: it ends with the opening it was taken
/// from, so it can never keep a failed database from being closed.
#[derive(Clone)]
pub(crate) struct LocalSnapshot {
    shared: Arc<LocalShared>,
    opening: Opening,
    view: fjall::Snapshot,
}

impl fmt::Debug for LocalSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalSnapshot").field("opening", &self.opening).finish_non_exhaustive()
    }
}

impl LocalSnapshot {
    /// To be called on the writer thread, between two writes.
    pub(super) fn capture(shared: &Arc<LocalShared>) -> Result<Self, StoreError> {
        shared.read(|engine, opening| Ok(Self { shared: Arc::clone(shared), opening, view: engine.view() }))
    }

    fn read<T>(
        &self,
        work: impl FnOnce(&Engine, &fjall::Snapshot) -> Result<T, DatabaseError>,
    ) -> Result<T, StoreError> {
        let outcome = self.shared.read(|engine, opening| {
            if opening == self.opening { work(engine, &self.view).map(Some) } else { Ok(None) }
        })?;
        outcome.ok_or_else(|| StoreError::Unavailable {
            reason: "the store was opened again after this snapshot was taken; take a new one".into(),
        })
    }

    /// The former value of a key, as it is on disk.
    #[cfg(feature = "raft")]
    pub(crate) fn raw(&self, disk_key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.read(|engine, view| engine.raw_at(view, disk_key))
    }

    /// Reads a range on a thread that may block: unlike a single key it can take long.
    async fn walk(&self, span: Option<KeyRange>, limit: usize, back: bool) -> Result<Vec<Entry>, StoreError> {
        let Some(span) = span.filter(|_| limit > 0) else { return Ok(Vec::new()) };
        let snapshot = self.clone();
        let read = move || snapshot.read(|engine, view| engine.range_at(view, span, limit, back));
        tokio::task::spawn_blocking(read)
            .await
            .unwrap_or_else(|error| Err(StoreError::Unavailable { reason: error.to_string() }))
    }
}

#[async_trait]
impl Snapshot for LocalSnapshot {
    async fn get(&self, key: &[u8]) -> Result<Option<Entry>, StoreError> {
        self.read(|engine, view| engine.get_at(view, key))
    }

    async fn range(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        self.walk(key_range::forward(prefix, after), limit, false).await
    }

    async fn range_back(
        &self,
        prefix: &[u8],
        before: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        self.walk(key_range::backward(prefix, before), limit, true).await
    }
}
