//! The format of the store: the highest that every member understands.
//!
//! The leader raises it when all members have been upgraded. A node that joins at the same moment must not be overlooked:
//!
//! 1. The leader reads the members and the key `cluster/roll` from one snapshot. All understand format 2.
//! 2. An old node, which understands format 1 only, registers. Every node that registers, or changes its format, also
//!    replaces `cluster/roll`.
//! 3. The leader commits format 2, on condition that `cluster/roll` is the one it read. The store refuses, and the leader counts
//!    again.
//!
//! If step 3 comes before step 2, the old node reads the format after it registered, and stops with an error.

use std::time::Duration;

use netstead_store::{Commit, Condition, StoreError};
use tracing::{info, warn};

use super::{
    Cluster, ClusterError, FORMAT_KEY, MEMBERS, Member, ROLL_KEY, cache::ClusterCache,
    member_records::format_of,
};

/// The pause after something did not work.
const RETRY: Duration = Duration::from_secs(5);

/// Refuses what only a newer program understands.
pub(super) fn check(stored: Option<u32>, highest: u32) -> Result<(), ClusterError> {
    match stored {
        Some(stored) if stored > highest => Err(ClusterError::TooOld { stored, highest }),
        _ => Ok(()),
    }
}

/// Looks whenever a member changes, for as long as this node leads.
pub(super) async fn raise_when_possible(cluster: &Cluster, epoch: u64) {
    let mut changes = cluster.changes();
    let members = |known: &ClusterCache| known.members.values().map(key).collect::<Vec<_>>();
    loop {
        // Taken before the members are counted: a change in between is a reason to count again.
        let before = members(&changes.borrow_and_update());
        match raise(cluster, epoch).await {
            Ok(()) => {}
            Err(ClusterError::NotLeading) => return,
            Err(error) => {
                warn!(%error, retry_in = ?RETRY, "The format of the store could not be looked at.");
                tokio::time::sleep(RETRY).await;
                continue;
            }
        }
        let differs = |known: &ClusterCache| members(known) != before;
        if changes.wait_for(differs).await.is_err() {
            return;
        }
    }
}

fn key(member: &Member) -> (String, u32) {
    (member.id.clone(), member.format)
}

/// Raises the format if every member understands a higher one.
async fn raise(cluster: &Cluster, epoch: u64) -> Result<(), ClusterError> {
    let fence = cluster.fence(epoch).await?;
    let snapshot = cluster.store.snapshot().await?;
    let known = ClusterCache::read(&*snapshot).await?;
    let entry = snapshot.get(FORMAT_KEY.as_bytes()).await?;
    let stored = entry.as_ref().map(format_of).transpose()?;
    let oldest = known.members.values().map(|member| member.format).chain([cluster.me.format]).min();
    let wanted = oldest.unwrap_or(cluster.me.format);
    if stored.is_some_and(|stored| stored >= wanted) {
        return Ok(());
    }
    let at = |key: &str, version| match version {
        Some(version) => Condition::Version(key.into(), version),
        None => Condition::Absent(key.into()),
    };
    let roll = snapshot.get(ROLL_KEY.as_bytes()).await?.map(|entry| entry.version);
    let commit = Commit::new()
        .when(fence)
        .when(at(ROLL_KEY, roll))
        .when(at(FORMAT_KEY, entry.map(|entry| entry.version)))
        .put(FORMAT_KEY, wanted.to_string());
    match cluster.store.commit(commit).await {
        Ok(_) => {
            cluster.known.send_modify(|known| known.format = Some(wanted));
            if let Some(stored) = stored {
                info!(from = stored, to = wanted, "Every member understands the new format of the store.");
            }
            Ok(())
        }
        // A node registered, or another leader was faster: count again.
        Err(StoreError::Refused { key }) => {
            let key = String::from_utf8_lossy(&key);
            debug_assert!(!key.starts_with(MEMBERS), "no condition is on a member");
            Box::pin(raise(cluster, epoch)).await
        }
        Err(error) => Err(error.into()),
    }
}
