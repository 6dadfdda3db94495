//! The database of a node: the data, the log, the vote and the node's identity.
//!
//! ```text
//! d<key>           the data, as the local store keeps it: version and value
//! n                the id of this node
//! v                the last vote given
//! l<index>         one entry of the log, index as 8 bytes, big-endian
//! p                the last entry that was removed from the log
//! a                the last entry that was applied, and the members as of it
//! i                a snapshot of another node that is being installed, see `snapshot_transfer`
//! ```
//!
//! Each value but the data starts with its format and a checksum. All of it lies in one database with one journal: what is
//! written later is never on the disk without what was written before.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use aws_lc_rs::digest;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{
    log_cache::LogCache,
    types::{Entry, LogId, Membership, NodeId, SnapshotMeta, Vote, decode, encode},
};
use crate::{
    LocalStore, StoreError,
    local::engine::{DiskWrite, NODE},
};

const FORMAT: u8 = 1;
const CHECKSUM: usize = 8;

const VOTE: &[u8] = b"v";
const PURGED: &[u8] = b"p";
const APPLIED: &[u8] = b"a";
const INSTALLING: &[u8] = b"i";
const LOG: u8 = b'l';

/// The id of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    pub(super) id: NodeId,
}

/// How far the data is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Applied {
    pub(super) log_id: Option<LogId>,
    pub(super) membership: Membership,
}

/// The database of a node.
#[derive(Debug)]
pub(super) struct Disk {
    pub(super) store: LocalStore,
    pub(super) dir: PathBuf,
    log_cache: LogCache,
    /// Bytes of entries written since this was last asked for.
    written: AtomicU64,
}

impl Disk {
    pub(super) async fn open(dir: &Path) -> Result<Self, StoreError> {
        let store = LocalStore::open_for_cluster(dir).await?;
        Ok(Self { store, dir: dir.to_path_buf(), log_cache: LogCache::default(), written: AtomicU64::new(0) })
    }

    fn read<T: DeserializeOwned>(&self, key: &[u8]) -> Result<Option<T>, StoreError> {
        self.store.raw(key)?.map(|stored| self.open_value(key, &stored)).transpose()
    }

    fn open_value<T: DeserializeOwned>(&self, key: &[u8], stored: &[u8]) -> Result<T, StoreError> {
        unseal(stored).and_then(|value| decode(value).ok()).ok_or_else(|| self.damaged(key))
    }

    fn damaged(&self, key: &[u8]) -> StoreError {
        let what = match key {
            [LOG, index @ ..] => {
                let index = <[u8; 8]>::try_from(index).map(u64::from_be_bytes).unwrap_or_default();
                format!("entry {index} of the log")
            }
            VOTE => "the last vote".into(),
            NODE => "the id of this node".into(),
            _ => "how far the data is".into(),
        };
        StoreError::Damaged {
            reason: format!(
                "{what} in {} is not as it was written. Other nodes have the same data: stop this one, move the \
                 directory away, and start it again to join as a new node",
                self.dir.display()
            ),
        }
    }

    pub(super) fn identity(&self) -> Result<Option<Identity>, StoreError> {
        self.read(NODE)
    }

    pub(super) async fn set_identity(&self, identity: &Identity) -> Result<(), StoreError> {
        self.store.write_raw(vec![put(NODE, identity)], true).await
    }

    pub(super) fn vote(&self) -> Result<Option<Vote>, StoreError> {
        self.read(VOTE)
    }

    pub(super) async fn set_vote(&self, vote: &Vote) -> Result<(), StoreError> {
        self.store.write_raw(vec![put(VOTE, vote)], true).await
    }

    pub(super) fn applied(&self) -> Result<Applied, StoreError> {
        Ok(self.read(APPLIED)?.unwrap_or_default())
    }

    /// As it was when `view` was taken.
    pub(super) fn applied_at(
        &self,
        view: &crate::local::snapshot::LocalSnapshot,
    ) -> Result<Applied, StoreError> {
        let stored = view.raw(APPLIED)?;
        Ok(stored.map(|stored| self.open_value(APPLIED, &stored)).transpose()?.unwrap_or_default())
    }

    pub(super) fn installing(&self) -> Result<Option<SnapshotMeta>, StoreError> {
        self.read(INSTALLING)
    }

    /// Everything written so far is on the disk when this returns.
    pub(super) async fn sync(&self) -> Result<(), StoreError> {
        self.store.write_raw(Vec::new(), true).await
    }

    pub(super) fn purged(&self) -> Result<Option<LogId>, StoreError> {
        self.read(PURGED)
    }

    /// The entries from `start` up to `end`, no more than about `limit` bytes of them, but at least one.
    pub(super) fn entries(&self, start: u64, end: u64, limit: usize) -> Result<Vec<Entry>, StoreError> {
        if let Some(found) = self.log_cache.get(start, end, limit) {
            return Ok(found);
        }
        let found = self.store.raw_range(&log_key(start), &log_key(end), limit)?;
        found.into_iter().map(|(key, stored)| self.entry(&key, &stored)).collect()
    }

    pub(super) fn last_entry(&self) -> Result<Option<Entry>, StoreError> {
        let last = self.store.raw_last(&log_key(0), &[LOG + 1])?;
        last.map(|(key, stored)| self.entry(&key, &stored)).transpose()
    }

    /// Where the log ends, be it that all of it was cut.
    pub(super) fn last_log_id(&self) -> Result<Option<LogId>, StoreError> {
        match self.last_entry()? {
            Some(entry) => Ok(Some(entry.log_id)),
            None => self.purged(),
        }
    }

    fn entry(&self, key: &[u8], stored: &[u8]) -> Result<Entry, StoreError> {
        let entry: Entry = self.open_value(key, stored)?;
        if log_key(entry.log_id.index) == key { Ok(entry) } else { Err(self.damaged(key)) }
    }

    pub(super) async fn append(&self, entries: Vec<Entry>) -> Result<(), StoreError> {
        let mut writes: Vec<DiskWrite> = Vec::with_capacity(entries.len());
        let mut recent = Vec::with_capacity(entries.len());
        for entry in entries {
            let write = put(&log_key(entry.log_id.index), &entry);
            let bytes = write.1.as_ref().map_or(0, Vec::len);
            self.written.fetch_add(bytes as u64, Ordering::Relaxed);
            writes.push(write);
            recent.push((entry, bytes));
        }
        self.certain(self.store.write_raw(writes, true).await)?;
        self.log_cache.add(recent);
        Ok(())
    }

    /// Marks a failed write as one whose effect is not known.
    fn certain(&self, outcome: Result<(), StoreError>) -> Result<(), StoreError> {
        if outcome.is_err() {
            self.log_cache.forget();
        }
        outcome
    }

    /// Bytes of entries written since the last call.
    pub(super) fn take_written(&self) -> u64 {
        self.written.swap(0, Ordering::Relaxed)
    }

    /// Removes the entries from `index` on.
    pub(super) async fn truncate(&self, index: u64) -> Result<(), StoreError> {
        self.log_cache.cut(index);
        self.certain(self.store.write_raw(self.removals(index, u64::MAX)?, true).await)
    }

    /// Removes the entries up to `log_id`. What they did is on the disk before they are gone.
    pub(super) async fn purge(&self, log_id: &LogId) -> Result<(), StoreError> {
        let mut writes = self.removals(0, log_id.index)?;
        writes.push(put(PURGED, log_id));
        // Also where the log ends before it, because a copy of everything came.
        self.log_cache.forget();
        self.store.write_raw(writes, true).await
    }

    /// From `first` to `last`, both included.
    fn removals(&self, first: u64, last: u64) -> Result<Vec<DiskWrite>, StoreError> {
        let mut removals = Vec::new();
        let end = last.checked_add(1).map_or_else(|| vec![LOG + 1], log_key);
        let mut start = log_key(first);
        loop {
            let page = self.store.raw_range(&start, &end, 4 << 20)?;
            let Some((last, _)) = page.last() else { return Ok(removals) };
            start.clone_from(last);
            start.push(0);
            removals.extend(page.into_iter().map(|(key, _)| (key, None)));
        }
    }

    /// Reads the whole log once: a hole or a damaged entry is better found now than when a leader needs it.
    pub(super) fn check_log(&self) -> Result<(), StoreError> {
        self.log_cache.forget();
        let mut next = self.purged()?.map_or(0, |log_id| log_id.index + 1);
        loop {
            let page = self.entries(next, u64::MAX, 4 << 20)?;
            if page.is_empty() {
                return Ok(());
            }
            for entry in page {
                if entry.log_id.index != next {
                    return Err(self.damaged(&log_key(next)));
                }
                next += 1;
            }
        }
    }
}

pub(super) fn applied_write(applied: &Applied) -> DiskWrite {
    put(APPLIED, applied)
}

pub(super) fn installing_write(meta: Option<&SnapshotMeta>) -> DiskWrite {
    match meta {
        Some(meta) => put(INSTALLING, meta),
        None => (INSTALLING.to_vec(), None),
    }
}

fn put<T: Serialize>(key: &[u8], value: &T) -> DiskWrite {
    (key.to_vec(), Some(seal(&encode(value))))
}

fn log_key(index: u64) -> Vec<u8> {
    [&[LOG][..], &index.to_be_bytes()].concat()
}

fn seal(value: &[u8]) -> Vec<u8> {
    [&[FORMAT][..], &checksum(value), value].concat()
}

fn unseal(stored: &[u8]) -> Option<&[u8]> {
    let (format, rest) = stored.split_first()?;
    let (sum, value) = rest.split_at_checked(CHECKSUM)?;
    (*format == FORMAT && sum == checksum(value)).then_some(value)
}

fn checksum(value: &[u8]) -> [u8; CHECKSUM] {
    digest::digest(&digest::SHA256, value).as_ref().first_chunk().copied().unwrap_or_default()
}

/// A failure of the disk as openraft gets it: the end of the core, until it is started anew.
pub(super) fn fatal(error: &StoreError) -> super::types::StorageError {
    openraft::StorageIOError::write(openraft::AnyError::error(error)).into()
}

pub(super) type SharedDisk = Arc<Disk>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raft::{RaftOptions, RaftSecurity, RaftStore};
    use crate::{Commit, Store as _};

    fn options(dir: &Path) -> RaftOptions {
        RaftOptions::new(dir, "127.0.0.1:0", RaftSecurity::Secret("sixteen characters".into()))
    }

    /// A node with a few commits, and its database without the node.
    async fn used(dir: &Path) -> Disk {
        let store = RaftStore::open(options(dir)).await.unwrap();
        for number in 0..5 {
            store.commit(Commit::new().put("a", number.to_string())).await.unwrap();
        }
        store.close().await;
        Disk::open(dir).await.unwrap()
    }

    async fn refused(dir: &Path) -> String {
        match RaftStore::open(options(dir)).await {
            Err(StoreError::Damaged { reason }) => reason,
            other => panic!("it should have been refused: {other:?}"),
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_entry_that_was_changed_is_refused_with_its_number() {
        let dir = tempfile::tempdir().unwrap();
        let disk = used(dir.path()).await;
        let mut stored = disk.store.raw(&log_key(4)).unwrap().unwrap();
        *stored.last_mut().unwrap() ^= 1;
        disk.store.write_raw(vec![(log_key(4), Some(stored))], true).await.unwrap();
        disk.store.close().await;
        drop(disk);
        let reason = refused(dir.path()).await;
        assert!(reason.contains("entry 4 of the log") && reason.contains("join as a new node"), "{reason}");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_log_with_a_hole_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let disk = used(dir.path()).await;
        disk.store.write_raw(vec![(log_key(3), None)], true).await.unwrap();
        disk.store.close().await;
        drop(disk);
        assert!(refused(dir.path()).await.contains("entry 3 of the log"));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_copy_that_was_being_taken_over_is_finished_and_a_damaged_one_refused() {
        let dir = tempfile::tempdir().unwrap();
        let disk = used(dir.path()).await;
        let applied = disk.applied().unwrap();
        let view = disk.store.view().await.unwrap();
        let mut sending = crate::raft::snapshot_transfer::Sending::new(view);
        let (path, mut offset) = (dir.path().join("taking-over"), 0);
        while let Some(part) = sending.next().await.unwrap() {
            crate::raft::snapshot_transfer::receive(&path, offset, &part).await.unwrap();
            offset += part.len() as u64;
        }
        let meta = SnapshotMeta {
            last_log_id: applied.log_id,
            last_membership: applied.membership.clone(),
            snapshot_id: "1".into(),
        };
        // As if it had been killed with half of it written.
        let half = vec![
            installing_write(Some(&meta)),
            (crate::local::engine::disk_key(b"a"), None),
            (crate::local::engine::disk_key(b"old"), Some(vec![0; 9])),
        ];
        disk.store.write_raw(half.clone(), true).await.unwrap();
        disk.store.close().await;
        drop(disk);
        let store = RaftStore::open(options(dir.path())).await.unwrap();
        assert_eq!(store.get(b"a").await.unwrap().unwrap().value, b"4");
        assert_eq!(store.get(b"old").await.unwrap(), None);
        assert!(!path.exists());
        store.close().await;
        drop(store);

        std::fs::write(&path, b"not a copy").unwrap();
        let disk = Disk::open(dir.path()).await.unwrap();
        disk.store.write_raw(half, true).await.unwrap();
        disk.store.close().await;
        drop(disk);
        assert!(refused(dir.path()).await.contains("is not whole"));
    }
}
