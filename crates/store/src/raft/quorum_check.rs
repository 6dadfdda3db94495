//! Who answers right now, asked before those who vote change.
//!
//! From the moment a change is in the log of who leads, nothing is confirmed without a majority of those who are to vote
//! after it, and it cannot be taken back. So it is begun only if such a majority is there: asked now and by their ids, for a
//! node that died a moment ago was heard a moment ago, and another one may have come to its address.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use tokio::sync::mpsc;

use super::{
    peers::{Lane, Peers},
    status::Role,
    types::{Metrics, NodeId, hex},
    wire::{Answer, Question},
};

/// How long one may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether more than half of those who are to vote answer; if not, who does not, in words for people.
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
                let _ = sender.send(id).await; // Enough of them may have answered.
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
        // One whose disk failed answers, and confirms nothing.
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
