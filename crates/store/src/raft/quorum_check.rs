//! Checks that a majority of the *next* voters answers, before the members of the cluster change.
//!
//! Without this check one command can stop the cluster for good:
//!
//! 1. A, B and C vote. A leads, and C is dead. A and B are a majority, so everything works.
//! 2. An operator removes B. The voters are to be A and C.
//! 3. A appends the change to its log. From that entry on every commit needs a majority of A and C, which is both of them.
//! 4. C is dead: nothing is committed any more, not even the change itself, and an entry cannot be taken back.
//!
//! So A asks all next voters first, now and by their ids. An older sign of life is not enough, because a node that died a
//! moment ago was heard a moment ago. The address is not enough, because another node may run there by now. A node whose
//! disk failed answers and does not count: it cannot confirm an entry.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use tokio::sync::mpsc;

use super::{
    peers::{Lane, Peers},
    status::Role,
    types::{Metrics, NodeId, hex},
    wire::{Answer, Question},
};

/// How long a node may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Succeeds if more than half of the next voters answer. The error names those that do not, in words for people.
pub(super) async fn require_quorum(
    peers: &Arc<Peers>,
    me: NodeId,
    metrics: &Metrics,
    voters: &BTreeSet<NodeId>,
) -> Result<(), String> {
    let (sender, mut answers) = mpsc::channel(voters.len().max(1));
    for id in voters.iter().copied().filter(|id| *id != me) {
        let (peers, sender, address) = (Arc::clone(peers), sender.clone(), address_of(metrics, id));
        tokio::spawn(async move {
            if is_there(&peers, id, &address).await {
                let _ = sender.send(id).await; // A majority may have answered already.
            }
        });
    }
    drop(sender);
    let mut there: BTreeSet<NodeId> = voters.iter().copied().filter(|id| *id == me).collect();
    while 2 * there.len() <= voters.len() {
        let Some(id) = answers.recv().await else { return Err(too_few(metrics, voters, &there)) };
        there.insert(id);
    }
    Ok(())
}

async fn is_there(peers: &Arc<Peers>, id: NodeId, address: &str) -> bool {
    match peers.ask(address, Lane::Client, &Question::Status, PATIENCE).await {
        // A node whose disk failed answers, and confirms nothing.
        Ok(Answer::Status(status)) => status.id == id && status.role != Role::Failed,
        _ => false,
    }
}

fn too_few(metrics: &Metrics, voters: &BTreeSet<NodeId>, there: &BTreeSet<NodeId>) -> String {
    let silent: Vec<String> = voters
        .difference(there)
        .map(|id| format!("node {} at {}", hex(*id), address_of(metrics, *id)))
        .collect();
    let (answer, them) = (if there.len() == 1 { "answers" } else { "answer" }, silent.join(" and "));
    let (do_not, which) = if silent.len() == 1 { ("does not", "it") } else { ("do not", "one of them") };
    format!(
        "the cluster would have {} nodes of which {} {answer}, and that is no majority: {them} {do_not}. Start {which}, or \
         remove {which} first if it is gone for good",
        voters.len(),
        there.len()
    )
}

fn address_of(metrics: &Metrics, id: NodeId) -> String {
    let member = metrics.membership_config.membership().get_node(&id);
    member.map(|member| member.address.clone()).unwrap_or_default()
}
