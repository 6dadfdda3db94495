//! Where a node is, when that is not where the cluster knows it to be.
//!
//! Who starts with another address tells who leads, which takes it over once nobody with that id answers at the old one. Two
//! processes with one id work on copies of one directory, and would vote twice: the second one does not start.

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

/// How long others may take to answer one that starts, or is lost.
const PATIENCE: Duration = Duration::from_secs(1);

/// What the node at an address says of itself.
async fn status_at(peers: &Arc<Peers>, address: &str, patience: Duration) -> Result<Status, NoAnswer> {
    match peers.ask(address, Lane::Client, &Question::Status, patience).await? {
        Answer::Status(status) => Ok(*status),
        _ => Err(NoAnswer::Lost(format!("{address} gives no answer that can be understood"))),
    }
}

/// What those say that answer.
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

/// Whether this node may take part: its directory is no copy of one that another process works on, and if it is to join a
/// cluster it is not in another one. To be asked before its core runs.
pub(super) async fn check_identity(node: &Arc<Node>) -> Result<(), StoreError> {
    // A disk that cannot be read is told by who runs the core, and tried again.
    let Ok(applied) = node.disk.applied() else { return Ok(()) };
    let members = applied.membership.membership();
    let Some(own) = members.get_node(&node.id) else { return Ok(()) };
    let others = members.nodes().filter(|(id, _)| **id != node.id).map(|(_, member)| member.address.clone());
    // The others may have heard of it elsewhere since.
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

/// One that is in a cluster joins no other; it may have made one of its own by accident.
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
    /// What the process is known by that is the node with this id, if it is at this address.
    async fn run_of(&self, id: NodeId, address: &str) -> Result<u64, String> {
        if id == self.id && address == self.options.address() {
            return Ok(self.run); // It need not reach itself.
        }
        self.status_of_node(id, address).await.map(|status| status.run)
    }

    /// What the node with this id says of itself, if it is where it says. One that cannot be reached would learn nothing, and
    /// not be told why.
    pub(super) async fn status_of_node(&self, id: NodeId, address: &str) -> Result<Status, String> {
        // Who asks to be let in waits for the answer as long as one may take.
        match status_at(&self.peers, address, self.options.timeout / 2).await {
            Ok(status) if status.id == id => Ok(status),
            Ok(_) => Err(format!("another node answers at {address}")),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Whether a node may be known at `new` from now on, and no longer at `old`.
    pub(super) async fn may_move(&self, id: NodeId, old: &str, new: &str) -> Result<(), String> {
        let (before, now) = tokio::join!(self.run_of(id, old), self.run_of(id, new));
        let now = now?;
        // One process may be reached at both.
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

/// One that hears nobody lead may be known elsewhere: it tells who leads where it is.
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

/// Somebody leads, and has found it.
pub(super) fn clear_displaced(node: &Node) {
    if node.leader() != Leader::Nobody && node.displaced.swap(false, Ordering::Relaxed) {
        node.set_trouble(None);
    }
}
