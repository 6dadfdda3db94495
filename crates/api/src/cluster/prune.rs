//! Who is on the roll, where nodes keep the store together: those that do, and nobody else.

use std::{collections::BTreeSet, time::Duration};

use netstead_store::{RaftStore, raft::hex};
use tracing::{debug, info};

use super::{Cluster, ClusterError, Member};

/// How often it is looked.
const INTERVAL: Duration = Duration::from_secs(2);

/// Takes off the roll who is no longer one of those that keep the store: it was removed, or lost its disk and came back as
/// another. For whoever leads; returns never.
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
    // In this order: who tells of itself was let in before.
    let members = cluster.members();
    let keepers: BTreeSet<String> = node.own_status().members.iter().map(|one| hex(one.id)).collect();
    if !keepers.contains(&cluster.me.id) {
        return Vec::new();
    }
    members.into_iter().filter(|member| !keepers.contains(&member.id)).collect()
}

impl Cluster {
    /// Forgets one that is no longer among those that keep the store.
    pub async fn forget_removed(&self, node: u64) -> Result<(), ClusterError> {
        let id = hex(node);
        let known = self.members().into_iter().find(|member| member.id == id);
        match known {
            Some(member) => self.forget(&member).await,
            None => Ok(()),
        }
    }
}
