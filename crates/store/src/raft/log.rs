//! The log and the vote, as openraft's log storage.

use std::{
    fmt::Debug,
    ops::{Bound, RangeBounds},
    sync::Arc,
};

use openraft::{
    LogState, OptionalSend, RaftLogReader,
    storage::{LogFlushed, RaftLogStorage},
};

use super::{
    disk::{SharedDisk, fatal},
    proposer::OwnProposals,
    types::{Entry, LogId, StorageError, Types, Vote},
};

/// About the most bytes of entries that travel together.
const MAX_BYTES: usize = 2 << 20;

#[derive(Debug, Clone)]
pub(super) struct Log {
    pub(super) disk: SharedDisk,
    /// The proposals of this node: once one is in the log, it can no longer be reported as never proposed.
    pub(super) ours: Arc<OwnProposals>,
}

impl RaftLogReader<Types> for Log {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: RB,
    ) -> Result<Vec<Entry>, StorageError> {
        let start = match range.start_bound() {
            Bound::Included(index) => *index,
            Bound::Excluded(index) => index.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(index) => index.saturating_add(1),
            Bound::Excluded(index) => *index,
            Bound::Unbounded => u64::MAX,
        };
        self.disk.entries(start, end, usize::MAX).map_err(|error| fatal(&error))
    }

    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> Result<Vec<Entry>, StorageError> {
        self.disk.entries(start, end, MAX_BYTES).map_err(|error| fatal(&error))
    }
}

impl RaftLogStorage<Types> for Log {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> Result<LogState<Types>, StorageError> {
        let purged = self.disk.purged().map_err(|error| fatal(&error))?;
        let last = self.disk.last_log_id().map_err(|error| fatal(&error))?;
        Ok(LogState { last_purged_log_id: purged, last_log_id: last })
    }

    async fn get_log_reader(&mut self) -> Self {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), StorageError> {
        self.disk.set_vote(vote).await.map_err(|error| fatal(&error))
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, StorageError> {
        self.disk.vote().map_err(|error| fatal(&error))
    }

    async fn append<I>(&mut self, entries: I, flushed: LogFlushed<Types>) -> Result<(), StorageError>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let entries: Vec<Entry> = entries.into_iter().collect();
        self.ours.appended(&entries);
        self.disk.append(entries).await.map_err(|error| fatal(&error))?;
        flushed.log_io_completed(Ok(()));
        Ok(())
    }

    async fn truncate(&mut self, log_id: LogId) -> Result<(), StorageError> {
        self.disk.truncate(log_id.index).await.map_err(|error| fatal(&error))
    }

    async fn purge(&mut self, log_id: LogId) -> Result<(), StorageError> {
        self.disk.purge(&log_id).await.map_err(|error| fatal(&error))
    }
}
