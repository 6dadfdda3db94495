//! Moves a node to another address, and refuses to run two processes with one node id.
//!
//! Two processes have one id when a data directory was copied. They must not both take part:
//!
//! 1. Process C votes for node A in term 5.
//! 2. C', a copy of C's directory, votes for node B in term 5. It knows nothing of the first vote.
//! 3. A and B each count two of three votes. Both lead in term 5, and the cluster acknowledges two different histories.
//!
//! So a node that starts, or that moves, is looked for at all addresses at which the others know its id. Processes are told
//! apart by `run`, a number drawn at the start:
//!
//! 1. Node C stops, and starts with the same directory at a new address.
//! 2. Before its core runs, C asks the others where they know it, and asks at these addresses. If a process with the same id
//!    and another `run` answers, C does not start (`check_identity`).
//! 3. The leader's messages still go to the old address. When C has heard no leader for 3 s, it asks the other members who
//!    leads and sends that node its new address (`announce_address`).
//! 4. The leader asks at both addresses. If a node with the id answers at the new one, and no other `run` at the old one, it
//!    stores the new address as a change of members (`may_move`).
//! 5. Otherwise it refuses. C is then `displaced`: it shows the reason and does not stand for election.

use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tracing::{info, warn};

use super::{
    address::node_address,
    node::{Leader, Node},
    peers::{Lane, NoAnswer, Peers},
    status::Status,
    types::{NodeId, hex},
    wire::{Answer, Question},
};
use crate::StoreError;

/// How long another node may take to answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// Asks the node at an address for its status.
async fn status_at(peers: &Arc<Peers>, address: &str, patience: Duration) -> Result<Status, NoAnswer> {
    match peers.ask(address, Lane::Client, &Question::Status, patience).await? {
        Answer::Status(status) => Ok(*status),
        _ => Err(NoAnswer::Lost(format!("{address} gives no answer that can be understood"))),
    }
}

/// The statuses of the nodes that answer.
async fn statuses(node: &Arc<Node>, addresses: impl IntoIterator<Item = String>) -> Vec<(String, Status)> {
    let asked: Vec<_> = addresses
        .into_iter()
        .map(|address| {
            let peers = Arc::clone(&node.peers);
            tokio::spawn(async move {
                let status = status_at(&peers, &address, PATIENCE).await;
                (address, status)
            })
        })
        .collect();
    let mut told = Vec::new();
    for answer in asked {
        if let Ok((address, Ok(status))) = answer.await {
            told.push((address, status));
        }
    }
    told
}

/// Checks, before the core runs, that this node may take part: no other process runs with its id, and it is not in a cluster
/// other than the one it is to join.
pub(super) async fn check_identity(node: &Arc<Node>) -> Result<(), StoreError> {
    // `Node::run` reports a disk that cannot be read, and tries again.
    let Ok(applied) = node.disk.applied() else { return Ok(()) };
    let members = applied.membership.membership();
    let Some(own) = members.get_node(&node.id) else { return Ok(()) };
    let others = members.nodes().filter(|(id, _)| **id != node.id).map(|(_, member)| member.address.clone());
    // The others may know a newer address.
    let mut places = BTreeSet::from([own.address.clone()]);
    for (_, theirs) in statuses(node, others).await {
        let known = theirs.members.into_iter().find(|member| member.id == node.id);
        places.extend(known.map(|known| known.member.address));
    }
    for (address, status) in statuses(node, places).await {
        if status.id == node.id && status.run != node.run {
            let reason = format!(
                "node {} runs already, at {address}, and two of one id would vote twice: {} is a copy of its directory. Move \
                 it away and start this one as a new node with `--join {address}`, or stop the other one for good",
                hex(node.id),
                node.disk.dir.display()
            );
            return Err(StoreError::Unavailable { reason });
        }
    }
    let members: Vec<NodeId> = members.nodes().map(|(id, _)| *id).collect();
    check_join(node, &members).await
}

/// Refuses to join another cluster than the one this node is in. It may have made one of its own by accident.
async fn check_join(node: &Arc<Node>, members: &[NodeId]) -> Result<(), StoreError> {
    let Some(address) = node.options.join.as_deref().and_then(node_address) else { return Ok(()) };
    let ours = format!("this node is in a cluster of {} already", members.len());
    let remedy = format!("to join, move {} away and start it again with `--join`", node.disk.dir.display());
    match status_at(&node.peers, &address, PATIENCE).await {
        Ok(theirs) if members.contains(&theirs.id) => Ok(()),
        Ok(theirs) if theirs.members.iter().any(|member| member.id == node.id) => Ok(()),
        Ok(_) => {
            Err(StoreError::Unavailable { reason: format!("{ours}, and {address} is not in it; {remedy}") })
        }
        Err(error) if members.len() == 1 => {
            warn!(%error, "`--join` is not looked at: {ours}; {remedy}.");
            Ok(())
        }
        Err(_) => Ok(()),
    }
}

impl Node {
    /// The `run` of the process with this id at this address.
    async fn run_of(&self, id: NodeId, address: &str) -> Result<u64, String> {
        if id == self.id && address == self.options.address() {
            return Ok(self.run); // A node need not reach itself.
        }
        self.status_of_node(id, address).await.map(|status| status.run)
    }

    /// The status of the node with this id, if it answers at this address. A node that cannot be reached there must not be
    /// let in: it would get no entries, and never learn why.
    pub(super) async fn status_of_node(&self, id: NodeId, address: &str) -> Result<Status, String> {
        // The node that asks to be let in waits for `timeout` in all.
        match status_at(&self.peers, address, self.options.timeout / 2).await {
            Ok(status) if status.id == id => Ok(status),
            Ok(_) => Err(format!("another node answers at {address}")),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Whether the address of a node may change from `old` to `new`.
    pub(super) async fn may_move(&self, id: NodeId, old: &str, new: &str) -> Result<(), String> {
        let (before, now) = tokio::join!(self.run_of(id, old), self.run_of(id, new));
        let now = now?;
        // One process may be reached at both addresses.
        if before.is_ok_and(|before| before != now) {
            return Err(format!(
                "node {} runs at {old} as well as at {new}, and two of one id would vote twice: one of them has a copy of the \
                 other's directory. Stop it, and start it as a new node with an empty directory and `--join`",
                hex(id)
            ));
        }
        info!(node = %hex(id), old, new, "A node has another address.");
        Ok(())
    }
}

/// Sends this node's address to the leader, if the others know it at another one. Called while it hears no leader.
pub(super) async fn announce_address(node: &Arc<Node>) {
    let ours = node.status();
    let others = ours.members.iter().filter(|member| member.id != node.id);
    let others: Vec<String> = others.map(|member| member.member.address.clone()).collect();
    for (_, theirs) in statuses(node, others).await {
        let member = |id: NodeId| theirs.members.iter().find(|member| member.id == id);
        let is_elsewhere = |member: &super::MemberStatus| member.member.address != node.options.address();
        let (Some(leader), true) =
            (theirs.leader.and_then(member), member(node.id).is_some_and(is_elsewhere))
        else {
            continue;
        };
        let question = Question::Join(node.id, node.me());
        let leader = &leader.member.address;
        match node.peers.ask(leader, Lane::Client, &question, node.options.timeout).await {
            Ok(Answer::Ok) => return,
            Ok(Answer::Error(reason)) => {
                let reason = format!("{leader} does not take this node's address over: {reason}");
                if !node.displaced.swap(true, Ordering::Relaxed) {
                    warn!(reason, "The cluster knows this node at another address.");
                }
                node.set_trouble(Some(reason));
                return;
            }
            _ => {}
        }
    }
}

/// Clears `displaced` once a leader reaches this node.
pub(super) fn clear_displaced(node: &Node) {
    if node.leader() != Leader::Nobody && node.displaced.swap(false, Ordering::Relaxed) {
        node.set_trouble(None);
    }
}
