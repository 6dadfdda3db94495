//! Leadership of the ledger on a raft store: the node that leads the cluster, once it has raised the epoch.
//!
//! The leader of the cluster and the leader of the ledger may differ for a moment:
//!
//! 1. A leads the cluster and the ledger, with epoch 7. It is cut off.
//! 2. B is elected leader of the cluster.
//! 3. B raises the epoch to 8 (`lead_cluster`), with a commit that a majority has.
//! 4. A is back and sends a commit of the ledger. Every commit of A has the condition that the epoch's key has the version
//!    that A wrote. That condition fails on all nodes: the commit is refused, and A follows.
//!
//! Between 2 and 3 no node leads the ledger.

use std::sync::PoisonError;

use tokio::time::sleep;

use super::{
    POLL_INTERVAL, RaftStore,
    node::{Leader, TICK},
};
use crate::{Commit, Condition, EPOCH_KEY, Epoch, Store as _, StoreError, Version, epoch};

/// The condition that every commit of a leader carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fence {
    /// The version of the epoch's key as we raised it.
    pub(super) version: Version,
}

impl RaftStore {
    pub(super) fn fence(&self) -> Option<Fence> {
        *self.fence.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another node leads the ledger now. Commits begun while this node led are refused by its fence. From now on this store
    /// belongs to a follower, which may wait for the lead again.
    pub(super) fn deposed(&self, old: Fence) {
        let mut fence = self.fence.lock().unwrap_or_else(PoisonError::into_inner);
        if *fence == Some(old) {
            *fence = None;
        }
    }

    /// Waits until this node leads the cluster, then raises the epoch.
    pub(super) async fn lead_cluster(&self) -> Result<Epoch, StoreError> {
        loop {
            self.until_leader().await?;
            match self.raise().await {
                Ok(epoch) => return Ok(epoch),
                Err(StoreError::Refused { .. }) => {} // Another node raised it first: try again from its value.
                // Another node may lead the cluster by now: wait for the lead again.
                Err(error) if self.node.leader() != Leader::Me => {
                    tracing::debug!(%error, "The lead was lost before the epoch was raised.");
                    self.ensure_open()?;
                    sleep(TICK).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn until_leader(&self) -> Result<(), StoreError> {
        while self.node.leader() != Leader::Me {
            self.ensure_open()?;
            sleep(POLL_INTERVAL).await;
        }
        self.ensure_open()
    }

    async fn raise(&self) -> Result<Epoch, StoreError> {
        let (condition, last) = match self.get(EPOCH_KEY).await? {
            None => (Condition::Absent(EPOCH_KEY.to_vec()), 0),
            Some(entry) => (Condition::Version(entry.key, entry.version), epoch::read(&entry.value)?),
        };
        let number = last + 1;
        let commit = Commit::new().when(condition).put(EPOCH_KEY, number.to_string());
        let version = self.commit_unfenced(commit).await?.version;
        *self.fence.lock().unwrap_or_else(PoisonError::into_inner) = Some(Fence { version });
        Ok(Epoch(number))
    }
}
