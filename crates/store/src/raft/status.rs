//! [`Status`]: what a node knows of itself and of the cluster.

use serde::{Deserialize, Serialize};

use super::types::{Member, NodeId};

/// The role of a node in the cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// In no cluster yet: it waits for the others, or to be let in.
    #[default]
    Waiting,
    /// Gets everything and does not vote: it is catching up.
    Learner,
    Follower,
    Candidate,
    Leader,
    /// The cluster has removed it.
    Removed,
    /// Its disk failed; it tries to go on.
    Failed,
}

/// The cluster as one node sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    pub id: NodeId,
    /// Drawn when the process started: two that differ in it are two processes, also if they have one id.
    pub run: u64,
    pub role: Role,
    pub leader: Option<NodeId>,
    pub term: u64,
    /// Entries in this node's log, and those that are in its data.
    pub last_log: u64,
    pub applied: u64,
    /// The index of the newest membership entry.
    pub membership: Option<u64>,
    /// This node, as it introduces itself when it joins.
    pub me: Member,
    pub members: Vec<MemberStatus>,
    /// Of a node in no cluster yet: itself and the nodes that answered it, once all did.
    pub met: Vec<NodeId>,
    /// On the leader: milliseconds since a majority has confirmed that it leads.
    pub majority_seen_ms: Option<u64>,
    /// The epoch of the ledger in the data of this node; said to other nodes only.
    pub epoch: Option<u64>,
}

/// One node of the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemberStatus {
    pub id: NodeId,
    pub member: Member,
    /// Whether it counts for a majority; one that does not is catching up.
    pub voter: bool,
    /// The last entry it is known to have, and how many it lacks; known on the leader.
    pub matched: Option<u64>,
    pub lag: Option<u64>,
    /// Milliseconds since it last answered the node that says this; 0 for that node itself.
    pub last_contact_ms: Option<u64>,
    /// Another node that answers at its address now.
    pub other: Option<NodeId>,
}

impl Status {
    /// Whether this node is or was in a cluster.
    pub fn is_in_a_cluster(&self) -> bool {
        !self.members.is_empty()
    }

    /// Whether it knows of an earlier membership than this one only, without this node.
    pub(super) fn is_before(&self, membership: Option<u64>, id: NodeId) -> bool {
        self.membership < membership && self.members.iter().all(|member| member.id != id)
    }

    pub fn voters(&self) -> usize {
        self.members.iter().filter(|member| member.voter).count()
    }
}
