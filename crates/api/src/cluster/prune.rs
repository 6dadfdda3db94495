//! Removes members from the registry that are no longer raft voters or learners.

use std::{collections::BTreeSet, time::Duration};

use netstead_store::{RaftStore, raft::hex};
use tracing::{debug, info};

use super::{Cluster, ClusterError, Member};

/// The pause between two looks.
const INTERVAL: Duration = Duration::from_secs(2);

/// Removes members that were removed from the raft cluster, or lost their disk and came back as another node. Runs on the
/// leader. Never returns.
pub(super) async fn prune_removed_members(cluster: &Cluster) {
    let Some(node) = cluster.store.as_node() else { return std::future::pending().await };
    loop {
        tokio::time::sleep(INTERVAL).await;
        for member in removed_members(cluster, node) {
            match cluster.forget(&member).await {
                Ok(()) => info!(
                    node = member.id,
                    name = member.name,
                    "A node that keeps the store no longer was forgotten."
                ),
                Err(error) => debug!(%error, node = member.id, "A node could not be forgotten yet."),
            }
        }
    }
}

fn removed_members(cluster: &Cluster, node: &RaftStore) -> Vec<Member> {
    // In this order: a node registers only after it was let into the raft cluster.
    let members = cluster.members();
    let keepers: BTreeSet<String> = node.own_status().members.iter().map(|one| hex(one.id)).collect();
    if !keepers.contains(&cluster.me.id) {
        return Vec::new();
    }
    members.into_iter().filter(|member| !keepers.contains(&member.id)).collect()
}

impl Cluster {
    /// Removes a node from the registry that is no longer in the raft cluster.
    pub async fn forget_removed(&self, node: u64) -> Result<(), ClusterError> {
        let id = hex(node);
        let known = self.members().into_iter().find(|member| member.id == id);
        match known {
            Some(member) => self.forget(&member).await,
            None => Ok(()),
        }
    }
}
