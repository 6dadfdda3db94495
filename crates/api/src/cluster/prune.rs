//! Removes members from the registry that no longer keep the store with the others.

use std::{collections::BTreeSet, time::Duration};

use netstead_store::{MemberId, Membership};
use tracing::{debug, info};

use super::{Cluster, ClusterError, Member};

/// The pause between two looks.
const INTERVAL: Duration = Duration::from_secs(2);

/// Removes members that were removed from the cluster, or lost their disk and came back as another node. Runs on the
/// leader. Never returns.
pub(super) async fn prune_removed_members(cluster: &Cluster) {
    let Some(node) = cluster.store.membership() else { return std::future::pending().await };
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

fn removed_members(cluster: &Cluster, node: &dyn Membership) -> Vec<Member> {
    // In this order: a node registers only after it was let into the cluster.
    let members = cluster.members();
    let keepers: BTreeSet<String> = node.own_members().members.iter().map(|one| one.id.to_string()).collect();
    if !keepers.contains(&cluster.me.id) {
        return Vec::new();
    }
    members.into_iter().filter(|member| !keepers.contains(&member.id)).collect()
}

impl Cluster {
    /// Removes a node from the registry that no longer keeps the store with the others.
    pub async fn forget_removed(&self, node: MemberId) -> Result<(), ClusterError> {
        let id = node.to_string();
        let known = self.members().into_iter().find(|member| member.id == id);
        match known {
            Some(member) => self.forget(&member).await,
            None => Ok(()),
        }
    }
}
