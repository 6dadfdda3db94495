//! Access for the raft store, which keeps keys of its own in the same database.

use super::{
    LocalStore,
    engine::{DiskEntry, DiskWrite},
    snapshot::LocalSnapshot,
    writer::{Answer, Request},
};
use crate::{StoreError, Version};

impl LocalStore {
    /// Writes all of it or nothing. With `durable` it is on the disk when this returns; without, once anything durable was
    /// written after it.
    pub(crate) async fn write_raw(&self, writes: Vec<DiskWrite>, durable: bool) -> Result<(), StoreError> {
        self.ask(|answer: Answer<()>| Request::Raw(writes, durable, answer)).await
    }

    pub(crate) fn raw(&self, disk_key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.shared.read(|engine, _| engine.raw(disk_key))
    }

    /// Entries from `start` up to `end`, no more than about `limit` bytes of them, but at least one.
    pub(crate) fn raw_range(
        &self,
        start: &[u8],
        end: &[u8],
        limit: usize,
    ) -> Result<Vec<DiskEntry>, StoreError> {
        self.shared.read(|engine, _| engine.raw_range(start, end, limit))
    }

    pub(crate) fn raw_last(&self, start: &[u8], end: &[u8]) -> Result<Option<DiskEntry>, StoreError> {
        self.shared.read(|engine, _| engine.raw_last(start, end))
    }

    /// The version that stands under a key as it lies on disk.
    pub(crate) fn version(&self, disk_key: &[u8]) -> Result<Option<Version>, StoreError> {
        self.shared.read(|engine, _| engine.version(disk_key))
    }

    /// All keys at one moment between two writes.
    pub(crate) async fn view(&self) -> Result<LocalSnapshot, StoreError> {
        self.ask(Request::Snapshot).await
    }
}
