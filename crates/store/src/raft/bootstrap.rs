//! How a node that is in no cluster gets into one.
//!
//! Nodes that name each other as `peers` make a new cluster together:
//!
//! 1. Each node asks all its peers for their status, until all have answered.
//! 2. If one of them is in a cluster already, the node asks that cluster to let it in, and makes none. So a node whose disk was
//!    lost comes back as a new node and never makes a second cluster.
//! 3. Otherwise each node publishes the set of nodes it met.
//! 4. The node with the smallest id makes the cluster of all of them, once all have met the same set. Two lists of `peers` that
//!    differ would otherwise make two clusters.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, PoisonError, atomic::Ordering},
    time::Duration,
};

use tokio::time::sleep;
use tracing::{info, warn};

use super::{
    address::{is_url_of_an_api, node_address},
    node::{Leader, Node},
    peers::Lane,
    status::Status,
    types::{Member, Metrics, NodeId, Raft},
    wire::{Answer, Question},
};

const PATIENCE: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(250);

/// Returns when this node is in a cluster.
pub(super) async fn bootstrap(node: Arc<Node>, raft: Raft) {
    let mut complaints = 0_u32;
    while !is_in_a_cluster(&node) {
        let waits_for = if node.options.join.is_none() && node.options.peers.is_empty() {
            initialize_cluster(&raft, BTreeMap::from([(node.id, node.me())])).await;
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

/// Whether its log has any entry: a member has at least the entry that made it one.
fn is_in_a_cluster(node: &Node) -> bool {
    node.disk.last_log_id().is_ok_and(|last| last.is_some())
}

/// One round; what it waits for, if it does.
async fn attempt(node: &Arc<Node>, raft: &Raft) -> Option<String> {
    let mut known: BTreeMap<NodeId, Member> = BTreeMap::from([(node.id, node.me())]);
    let (mut silent, mut met) = (Vec::new(), Vec::new());
    let addresses: Vec<String> = node.options.join.iter().chain(&node.options.peers).cloned().collect();
    let mut asked = Vec::new();
    for given in addresses {
        let Some(address) = node_address(&given) else {
            silent.push(format!("`{given}` is no address of a node"));
            continue;
        };
        let node = Arc::clone(node);
        asked.push(tokio::spawn(async move {
            let answer = node.peers.ask(&address, Lane::Client, &Question::Status, PATIENCE).await;
            (given, address, answer)
        }));
    }
    for answer in asked {
        let Ok((given, address, answer)) = answer.await else { continue };
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
            Err(error) if is_url_of_an_api(&given) => silent.push(format!(
                "{error} (of `{given}` only the host counts: nodes listen to each other at a port of their own)"
            )),
            Err(error) => silent.push(error.to_string()),
        }
    }
    if !silent.is_empty() {
        return Some(format!("waiting for the other nodes of the cluster: {}", silent.join("; ")));
    }
    if node.options.join.is_some() {
        return Some("the node this one is to join is in no cluster itself yet".into());
    }
    if known.len() == 1 {
        return Some(
            "`peers` names no other node; name the others, or leave it out for a cluster of one".into(),
        );
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
    initialize_cluster(raft, known).await;
    None
}

async fn initialize_cluster(raft: &Raft, members: BTreeMap<NodeId, Member>) {
    let nodes = members.len();
    match raft.initialize(members).await {
        Ok(()) => info!(nodes, "Made a new cluster."),
        // Another one made it in the same moment, and this node is in it.
        Err(error) => info!(%error, "The cluster was made already."),
    }
}

pub(super) async fn join(node: &Arc<Node>, address: &str, status: &Status) -> Option<String> {
    let leader = status.leader.and_then(|id| status.members.iter().find(|member| member.id == id));
    let Some(leader) = leader else {
        return Some(format!("{address} is in a cluster in which no node leads right now"));
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

/// Looks after what changes by itself: a node that learns wants to vote, and one that says something new of itself wants it
/// known. Called about once a second.
pub(super) async fn maintain_membership(node: &Arc<Node>) {
    if node.removed.load(Ordering::Relaxed) {
        return;
    }
    let Some(metrics) = node.metrics() else { return };
    let membership = &metrics.membership_config;
    let Some(known) = membership.membership().get_node(&node.id) else { return };
    let votes = membership.voter_ids().any(|id| id == node.id);
    if node.leader() == Leader::Nobody {
        if !votes {
            ask_to_rejoin(node, &metrics).await;
        }
        return;
    }
    if votes && *known == node.me() {
        return;
    }
    let question = Question::Join(node.id, node.me());
    if let Ok(Answer::Error(reason)) = node.ask_leader(&question, node.options.timeout).await {
        tracing::debug!(reason, "Who leads does not let this node vote yet.");
    }
}

/// Asks again to be let in, if the others do not know this node:
///
/// 1. A leader lets this node in and sends it the entry that says so, but is replaced before a majority has the entry.
/// 2. This node believes to be a member. The others have an earlier membership, without it.
/// 3. This node sees that and asks the leader again.
///
/// A node that was removed finds a later membership without it, and does not ask. A member that is far behind may know
/// neither of this node's coming nor of its removal, so only the leader's answer counts.
async fn ask_to_rejoin(node: &Arc<Node>, metrics: &Metrics) {
    let ours = metrics.membership_config.log_id().map(|log_id| log_id.index);
    let known = metrics.membership_config.nodes().map(|(_, member)| member.address.clone());
    let told =
        node.options.join.iter().chain(&node.options.peers).filter_map(|address| node_address(address));
    let addresses: BTreeSet<String> = known.chain(told).filter(|one| one != node.options.address()).collect();
    let status = async |address: &str| match node
        .peers
        .ask(address, Lane::Client, &Question::Status, PATIENCE)
        .await
    {
        Ok(Answer::Status(status)) => Some(*status),
        _ => None,
    };
    for address in addresses {
        let Some(theirs) = status(&address).await else { continue };
        let leader = theirs.leader.and_then(|id| theirs.members.iter().find(|member| member.id == id));
        let Some(leader) = leader.filter(|_| theirs.is_before(ours, node.id)) else { continue };
        let address = &leader.member.address;
        let Some(leads) = status(address).await.filter(|leads| leads.leader == Some(leads.id)) else {
            continue;
        };
        if node.is_removed(&leads, ours) {
            node.was_removed();
            return;
        }
        if leads.is_before(ours, node.id) {
            warn!(address, "The cluster does not know this node; it asks again to be let in.");
            join(node, address, &leads).await;
            return;
        }
    }
}
