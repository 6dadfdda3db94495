//! [`Membership`]: the nodes that keep one store together, as one of them sees it.
//!
//! A store has this capability if its data is replicated by Netstead nodes themselves ([`Store::membership`](crate::Store)).
//! The crates above read and change the members through it and never learn which protocol replicates the data.

use std::fmt;

use async_trait::async_trait;
use tokio::sync::watch;

use crate::StoreError;

/// Id of a node, drawn at random with its data directory. Shown as 16 hexadecimal digits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId(pub u64);

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The members as one node sees them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemberList {
    /// The node that reports this.
    pub me: MemberId,
    /// Whether the others removed the node that reports this.
    pub removed: bool,
    pub leader: Option<MemberId>,
    /// In no particular order; empty until the node is in a cluster.
    pub members: Vec<MemberInfo>,
}

impl MemberList {
    /// Whether the node that reports this is or was in a cluster.
    pub fn is_in_a_cluster(&self) -> bool {
        !self.members.is_empty()
    }
}

/// One member of the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemberInfo {
    pub id: MemberId,
    /// Name of its machine.
    pub name: String,
    /// Where other nodes reach it: `host:port`.
    pub address: String,
    /// The release it runs.
    pub version: String,
    /// Whether it counts for a majority; a member that does not is catching up.
    pub voter: bool,
    /// Entries of the log that it lacks; known on the leader.
    pub lag: Option<u64>,
    /// Milliseconds since it last answered the node that reports this; 0 for that node itself.
    pub last_contact_ms: Option<u64>,
    /// Another node that answers at its address now.
    pub replaced_by: Option<MemberId>,
}

/// The node that leads, as the other nodes say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaderElsewhere {
    pub node: MemberId,
    /// The epoch of the ledger in the data of that node.
    pub epoch: u64,
}

/// One node among those that keep the store together.
#[async_trait]
pub trait Membership: Send + Sync + fmt::Debug {
    /// This node's id.
    fn id(&self) -> MemberId;

    /// The members as this node knows them, without asking another node.
    fn own_members(&self) -> MemberList;

    /// The members, with what only the leader knows if the leader answers.
    async fn members(&self) -> MemberList;

    /// Returns when this node is in a cluster, or when the store is closed. A new node has nothing to answer with before.
    async fn joined(&self);

    /// Asks the node at `address`, which waits to be let in, to come into the cluster. [`StoreError::Invalid`] says why the
    /// members cannot be changed that way now.
    async fn add(&self, address: &str) -> Result<(), StoreError>;

    /// Removes a node for good: it can come back as a new one only. Fails as [`Membership::add`] does.
    async fn remove(&self, id: MemberId) -> Result<(), StoreError>;

    /// How many members have not answered for 10 s; known on the leader.
    fn silent_members(&self) -> Option<usize>;

    /// Whether this node leads and no majority has confirmed it for long.
    fn leads_without_majority(&self) -> bool;

    /// Whether no node is known to lead, here or by the word of the others.
    fn knows_no_leader(&self) -> bool;

    /// The node that leads while the disk of this one has failed; `None` while this node takes part or none is known.
    fn leader_elsewhere(&self) -> watch::Receiver<Option<LeaderElsewhere>>;

    /// Returns when this node cannot take part and another one leads in a later epoch than `epoch`.
    async fn until_led_elsewhere(&self, epoch: u64) {
        let mut found = self.leader_elsewhere();
        let later = |found: &Option<LeaderElsewhere>| found.is_some_and(|leader| leader.epoch > epoch);
        if found.wait_for(later).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
