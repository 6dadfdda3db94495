//! Who leads the ledger: the node that leads the cluster, once it has raised the epoch.
//!
//! The two may differ for a moment, while a node that just came to lead the cluster takes over. What keeps a late leader from
//! doing harm is the epoch: every commit of a leader is conditional on it still being the one it raised.

use std::sync::PoisonError;

use tokio::time::sleep;

use super::{
    POLL_INTERVAL, RaftStore,
    node::{Leader, TICK},
};
use crate::{Commit, Condition, EPOCH_KEY, Epoch, Store as _, StoreError, Version, epoch};

/// What one who leads holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fence {
    /// The version of the epoch's key as we raised it.
    pub(super) version: Version,
}

impl RaftStore {
    pub(super) fn fence(&self) -> Option<Fence> {
        *self.fence.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another node leads the ledger now. What was begun while this one did is refused by its fence; from now on this store
    /// is that of one who follows, and may wait for its turn again.
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
                Err(StoreError::Refused { .. }) => {} // Somebody else was faster; go on from there.
                // Another one leads the cluster by now, perhaps: our turn comes again.
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
