//! How a node that is in no cluster comes into one.
//!
//! Nodes that were given each other as `peers` wait until all of them have answered and none is in a cluster; then the one
//! with the smallest id makes the cluster out of all. If one of them is in a cluster already, the new node asks to be let in
//! there: so a node whose disk was lost comes back as a new one and never makes a second cluster.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError},
    time::Duration,
};

use tokio::time::sleep;
use tracing::{info, warn};

use super::{
    node::{Leader, Node},
    peers::Lane,
    status::Status,
    types::{Member, NodeId, Raft},
    wire::{Answer, Question},
};

const PATIENCE: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(250);

/// Returns when this node is in a cluster.
pub(super) async fn form(node: Arc<Node>, raft: Raft) {
    let mut complaints = 0_u32;
    while !is_in_a_cluster(&raft).await {
        let waits_for = if node.options.join.is_none() && node.options.peers.is_empty() {
            make(&raft, BTreeMap::from([(node.id, node.me())])).await;
            None
        } else {
            attempt(&node, &raft).await
        };
        if let Some(reason) = waits_for {
            if complaints.is_multiple_of(120) {
                warn!(reason, "This node is in no cluster yet.");
            }
            complaints += 1;
            node.set_trouble(Some(reason));
        }
        sleep(PAUSE).await;
    }
    node.set_trouble(None);
}

/// Whether there is anything in its log, a vote aside: who is a member has at least the entry that says so.
pub(super) async fn is_in_a_cluster(raft: &Raft) -> bool {
    raft.is_initialized().await.unwrap_or(false)
}

/// One round; what it waits for, if it does.
async fn attempt(node: &Arc<Node>, raft: &Raft) -> Option<String> {
    let mut known: BTreeMap<NodeId, Member> = BTreeMap::from([(node.id, node.me())]);
    let (mut silent, mut met) = (Vec::new(), Vec::new());
    let addresses: Vec<String> = node.options.join.iter().chain(&node.options.peers).cloned().collect();
    let asked = addresses.iter().map(|address| {
        let (node, address) = (Arc::clone(node), with_port(address));
        tokio::spawn(async move {
            let answer = node.peers.ask(&address, Lane::Client, &Question::Status, PATIENCE).await;
            (address, answer)
        })
    });
    let asked: Vec<_> = asked.collect();
    for answer in asked {
        let Ok((address, answer)) = answer.await else { continue };
        match answer {
            Ok(Answer::Status(status)) if status.id == node.id => {} // Our own address may stand in the list.
            Ok(Answer::Status(status)) if status.is_in_a_cluster() => {
                return join(node, &address, &status).await;
            }
            Ok(Answer::Status(status)) => {
                met.push(status.met.clone());
                known.insert(status.id, Member { address, ..status.me });
            }
            Ok(other) => silent.push(format!("{address} answers {other:?}")),
            Err(error) => silent.push(error.to_string()),
        }
    }
    if !silent.is_empty() {
        return Some(format!("waiting for the other nodes of the cluster: {}", silent.join("; ")));
    }
    if node.options.join.is_some() {
        return Some("the node this one is to join is in no cluster itself yet".into());
    }
    // Each must have met the same ones: two lists of `peers` that differ could make two clusters.
    let all: Vec<NodeId> = known.keys().copied().collect();
    node.met.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&all);
    if known.keys().next() != Some(&node.id) {
        return Some("all nodes answered; the one with the smallest id makes the cluster".into());
    }
    if met.iter().any(|theirs| *theirs != all) {
        return Some(
            "the other nodes have not met the same ones; `peers` must name all of them on each node".into(),
        );
    }
    make(raft, known).await;
    None
}

async fn make(raft: &Raft, members: BTreeMap<NodeId, Member>) {
    let nodes = members.len();
    match raft.initialize(members).await {
        Ok(()) => info!(nodes, "Made a new cluster."),
        // Another one made it in the same moment, and this node is in it.
        Err(error) => info!(%error, "The cluster was made already."),
    }
}

async fn join(node: &Arc<Node>, address: &str, status: &Status) -> Option<String> {
    let leader = status.leader.and_then(|id| status.members.iter().find(|member| member.id == id));
    let Some(leader) = leader else {
        return Some(format!("{address} is in a cluster in which nobody leads right now"));
    };
    let question = Question::Join(node.id, node.me());
    match node.peers.ask(&leader.member.address, Lane::Client, &question, node.options.timeout).await {
        Ok(Answer::Ok) => {
            // The log comes by itself; look again a little later.
            sleep(PAUSE * 4).await;
            Some(format!("the cluster of {address} lets this node in"))
        }
        Ok(Answer::Error(reason)) => {
            Some(format!("{} does not let this node in: {reason}", leader.member.address))
        }
        Ok(_) => Some(format!("{} does not lead any more", leader.member.address)),
        Err(error) => Some(error.to_string()),
    }
}

/// A port may be left out where it is the usual one.
pub(super) fn with_port(address: &str) -> String {
    let address = address.trim_start_matches("raft://").trim_end_matches('/');
    let has_port = address.rsplit_once(':').is_some_and(|(host, port)| {
        port.parse::<u16>().is_ok() && (!host.contains(':') || host.ends_with(']'))
    });
    if has_port { address.to_owned() } else { format!("{address}:{}", super::PORT) }
}

/// Looks after what changes by itself: a node that learns wants to vote, and one that says something new of itself wants it
/// known. Called about once a second.
pub(super) async fn keep_membership(node: &Arc<Node>) {
    let Some(metrics) = node.metrics() else { return };
    let membership = &metrics.membership_config;
    let Some(known) = membership.membership().get_node(&node.id) else { return };
    let votes = membership.voter_ids().any(|id| id == node.id);
    if (votes && *known == node.me()) || node.leader() == Leader::Nobody {
        return;
    }
    let question = Question::Join(node.id, node.me());
    if let Ok(Answer::Error(reason)) = node.ask_leader(&question, node.options.timeout).await {
        tracing::debug!(reason, "Who leads does not let this node vote yet.");
    }
}

#[cfg(test)]
mod tests {
    use super::with_port;

    #[test]
    fn a_port_is_added_where_there_is_none() {
        for (given, wanted) in [
            ("10.0.0.1", "10.0.0.1:5302"),
            ("10.0.0.1:7000", "10.0.0.1:7000"),
            ("raft://node2", "node2:5302"),
            ("[::1]:7000", "[::1]:7000"),
            ("[::1]", "[::1]:5302"),
        ] {
            assert_eq!(with_port(given), wanted);
        }
    }
}
