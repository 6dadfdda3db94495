//! The data, as openraft's state machine: applies the entries of the log.
//!
//! The conditions of a commit are checked when its entry is applied, so every node comes to the same outcome. The effects are
//! not flushed at once: the flush of the next entry includes them, and after a crash the log still has the entry.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use openraft::{
    EntryPayload, OptionalSend, RaftSnapshotBuilder, Snapshot as RaftSnapshot, storage::RaftStateMachine,
};
use tokio::sync::watch;

use super::{
    disk::{Applied, SharedDisk, applied_write, fatal},
    proposer::OwnProposals,
    snapshot_transfer::{self, SnapshotData},
    types::{Entry, LogId, Membership, Outcome, SnapshotMeta, StorageError, Types, first_version},
};
use crate::{
    Commit, StoreError, Version,
    local::{
        commit_group::{Decision, Group},
        snapshot::LocalSnapshot,
    },
    watch::Watchers,
};

/// The state of the data while the node runs, over restarts of its core.
#[derive(Debug)]
pub(super) struct Progress {
    pub(super) watchers: Watchers,
    /// The last entry whose effects can be read.
    pub(super) applied: watch::Sender<u64>,
    /// The last entry that was told to watchers.
    published: AtomicU64,
    /// The snapshot that own readers get while the data is being replaced.
    former: Mutex<Option<LocalSnapshot>>,
}

impl Default for Progress {
    fn default() -> Self {
        Self {
            watchers: Watchers::default(),
            applied: watch::Sender::new(0),
            published: AtomicU64::new(0),
            former: Mutex::new(None),
        }
    }
}

/// Entries are counted from 0 by openraft; here 0 means none.
pub(super) fn count(log_id: Option<&LogId>) -> u64 {
    log_id.map_or(0, |log_id| log_id.index + 1)
}

impl Progress {
    /// The data was opened and is this far. Commits that were applied without anybody being told are missed by watchers.
    pub(super) fn opened(&self, applied: u64) {
        let told = self.published.fetch_max(applied, Ordering::Relaxed);
        if applied > told {
            self.watchers.lose_all();
        }
        self.applied.send_replace(applied);
    }

    /// As [`Progress::opened`], after the core stopped, whatever it was doing.
    pub(super) fn reopened(&self, applied: u64) {
        self.set_former(None);
        self.opened(applied);
    }

    /// This node's own data as one moment saw it.
    pub(super) async fn own_view(&self, disk: &SharedDisk) -> Result<LocalSnapshot, StoreError> {
        let former = self.former.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match former {
            Some(view) => Ok(view),
            None => disk.store.view().await,
        }
    }

    fn set_former(&self, view: Option<LocalSnapshot>) {
        *self.former.lock().unwrap_or_else(PoisonError::into_inner) = view;
    }
}

#[derive(Debug, Clone)]
pub(super) struct StateMachine {
    pub(super) disk: SharedDisk,
    pub(super) progress: Arc<Progress>,
    pub(super) ours: Arc<OwnProposals>,
}

/// A commit that was decided, waiting for its effects to be written.
struct Decided {
    id: u64,
    index: u64,
    outcome: Outcome,
    commit: Commit,
}

impl StateMachine {
    async fn apply_all(&self, entries: Vec<Entry>) -> Result<Vec<Vec<Outcome>>, StoreError> {
        let mut applied = self.disk.applied()?;
        let mut group = Group::after(0);
        let mut decided = Vec::new();
        let mut answers = Vec::with_capacity(entries.len());
        for entry in entries {
            let index = entry.log_id.index;
            let mut outcomes = Vec::new();
            match entry.payload {
                EntryPayload::Blank => {}
                EntryPayload::Membership(members) => {
                    applied.membership = Membership::new(Some(entry.log_id), members);
                }
                EntryPayload::Normal(proposal) => {
                    group.number_from(first_version(index));
                    for proposed in proposal.commits {
                        let id = proposed.id;
                        let commit = proposed.into_commit();
                        let decision = group.decide(&commit, |key| self.disk.store.version(key))?;
                        let outcome = match decision {
                            Decision::Landed(version) => Outcome::Landed(version.0),
                            Decision::Refused(key) => Outcome::Refused(key.into()),
                        };
                        outcomes.push(outcome.clone());
                        decided.push(Decided { id, index, outcome, commit });
                    }
                }
            }
            applied.log_id = Some(entry.log_id);
            answers.push(outcomes);
        }
        let mut writes = group.into_writes();
        writes.push(applied_write(&applied));
        self.disk.store.write_raw(writes, false).await?;
        self.publish_applied(decided, count(applied.log_id.as_ref()));
        Ok(answers)
    }

    /// To be called when everything can be read. Watchers first: who asked for a commit may look at its watch next.
    fn publish_applied(&self, decided: Vec<Decided>, applied: u64) {
        let told = self.progress.published.load(Ordering::Relaxed);
        for Decided { id, index, outcome, commit } in decided {
            if let Outcome::Landed(version) = outcome
                && index >= told
                && !commit.writes.is_empty()
            {
                self.progress.watchers.broadcast_commit(Version(version), commit.writes);
            }
            self.ours.applied(id, index, outcome);
        }
        self.progress.published.fetch_max(applied, Ordering::Relaxed);
        self.progress.applied.send_replace(applied);
    }

    /// A copy of the data as it is now: nothing is written for it, since the view stays as it is while others write.
    async fn copy(&self) -> Result<RaftSnapshot<Types>, StoreError> {
        let view = self.disk.store.view().await?;
        let Applied { log_id, membership } = self.disk.applied_at(&view)?;
        // The log up to here may be thrown away next, so what it did must not be in memory only.
        self.disk.sync().await?;
        // What is applied up to an entry is the same on every node, so is its name.
        let snapshot_id = log_id.map_or_else(String::new, |log_id| log_id.to_string());
        let meta = SnapshotMeta { last_log_id: log_id, last_membership: membership, snapshot_id };
        Ok(RaftSnapshot { meta, snapshot: Box::new(SnapshotData::View(view)) })
    }
}

impl RaftStateMachine<Types> for StateMachine {
    type SnapshotBuilder = Self;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, Membership), StorageError> {
        let applied = self.disk.applied().map_err(|error| fatal(&error))?;
        Ok((applied.log_id, applied.membership))
    }

    async fn apply<I>(&mut self, entries: I) -> Result<Vec<Vec<Outcome>>, StorageError>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        self.apply_all(entries.into_iter().collect()).await.map_err(|error| fatal(&error))
    }

    async fn get_snapshot_builder(&mut self) -> Self {
        self.clone()
    }

    async fn begin_receiving_snapshot(&mut self) -> Result<Box<SnapshotData>, StorageError> {
        Ok(Box::new(SnapshotData::File(snapshot_transfer::incoming_path(&self.disk.dir))))
    }

    async fn install_snapshot(
        &mut self,
        meta: &SnapshotMeta,
        snapshot: Box<SnapshotData>,
    ) -> Result<(), StorageError> {
        let work = async {
            self.progress.set_former(Some(self.disk.store.view().await?));
            snapshot_transfer::install_copy(&self.disk, meta, *snapshot).await
        };
        let outcome = work.await;
        // After a failure the data is of two moments; the view of before serves until the core was started anew.
        outcome.map_err(|error| fatal(&error))?;
        self.progress.set_former(None);
        self.progress.opened(count(meta.last_log_id.as_ref()));
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<RaftSnapshot<Types>>, StorageError> {
        let copy = self.copy().await.map_err(|error| fatal(&error))?;
        Ok(copy.meta.last_log_id.is_some().then_some(copy))
    }
}

impl RaftSnapshotBuilder<Types> for StateMachine {
    async fn build_snapshot(&mut self) -> Result<RaftSnapshot<Types>, StorageError> {
        self.copy().await.map_err(|error| fatal(&error))
    }
}
