//! Giving the lead away before this node stops, so that the others need not find out by its silence.
//!
//! openraft 0.9 knows no such thing, and a node that heard of its leader a moment ago votes for nobody else. So the one that
//! leads first makes sure that another one has every entry, then tells all that it leads no more, and asks that one to stand
//! for election. Nothing here elects anybody: votes are asked for and given as always, with a look at the log. If a message
//! is lost, or the chosen one dies, there is an election as after a crash.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use openraft::{CommittedLeaderId, ServerState, raft::AppendEntriesRequest};
use tokio::time::{sleep, timeout};
use tracing::{debug, info};

use super::{
    node::{Core, Leader, Node},
    peers::Lane,
    types::{LogId, Member, NodeId, Raft, Vote, hex},
    wire::{Answer, Question},
};

/// What all of it may take. Without an answer by then the others hold an election, as after a crash.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long one other node may take to answer.
const ANSWER: Duration = Duration::from_millis(300);

/// How often it is looked whether all is ready.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Ticks since a node last answered at which it is not asked to lead.
const RECENT: u64 = 10;

impl Node {
    /// If this node leads, lets another one do so. Returns when one does, or when it takes too long.
    pub(super) async fn transfer_leadership(&self) {
        let Some(core) = self.core().filter(|_| self.leader() == Leader::Me) else { return };
        self.leaving.store(true, Ordering::Relaxed);
        match timeout(PATIENCE, self.try_to_transfer_leadership(&core)).await {
            Ok(Some(id)) => info!(node = %hex(id), "Another node leads the cluster now; this one stops."),
            Ok(None) => debug!("There is nobody to hand the lead to."),
            Err(_) => info!("The lead was not handed over in time; the others elect somebody."),
        }
    }

    async fn try_to_transfer_leadership(&self, core: &Core) -> Option<NodeId> {
        // Nobody comes or goes in between.
        let _one_at_a_time = self.changing.lock().await;
        core.proposer.until_idle().await;
        let (successor, at) = self.until_one_has_everything(&core.raft).await?;
        let term = core.raft.metrics().borrow().current_term + 1;
        let vote = Vote::new(term, successor);
        forget_leader(&core.raft, vote).await.ok()?;
        let others = self.others(&core.raft);
        let told: Vec<_> = others
            .into_iter()
            .filter(|(id, _)| *id != successor)
            .map(|(id, member)| {
                let (peers, question) = (Arc::clone(&self.peers), Question::Resigned(id, vote));
                tokio::spawn(async move {
                    peers.ask(&member.address, Lane::Raft, &question, ANSWER).await.is_ok()
                })
            })
            .collect();
        for answer in told {
            let _ = answer.await; // One that does not hear of it votes later.
        }
        let question = Question::Stand(successor, vote);
        let answer = self.peers.ask(&at.address, Lane::Raft, &question, ANSWER).await;
        if !matches!(answer, Ok(Answer::Ok)) {
            debug!(?answer, "The node that was to lead does not.");
            return None;
        }
        loop {
            if let Leader::Other(id, _) = self.leader() {
                return Some(id);
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    /// The voters beside this node that answered lately.
    fn others(&self, raft: &Raft) -> Vec<(NodeId, Member)> {
        let membership = raft.metrics().borrow().membership_config.clone();
        let there = |id: &NodeId| self.peers.silent_for(*id).is_some_and(|ticks| ticks < RECENT);
        let voters = membership.voter_ids().filter(|id| *id != self.id && there(id));
        voters.filter_map(|id| Some((id, membership.membership().get_node(&id)?.clone()))).collect()
    }

    /// Who may lead next: it has every entry that this node has. `None` if this node is alone or leads no more.
    async fn until_one_has_everything(&self, raft: &Raft) -> Option<(NodeId, Member)> {
        loop {
            let others = self.others(raft);
            let metrics = raft.metrics().borrow().clone();
            if metrics.state != ServerState::Leader || others.is_empty() {
                return None;
            }
            let replication = metrics.replication?;
            let has_all = |id: &NodeId| {
                let matched = replication.get(id).copied().flatten();
                matched.map(|log_id| log_id.index) >= metrics.last_log_index
            };
            if let Some(found) = others.into_iter().find(|(id, _)| has_all(id)) {
                return Some(found);
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    /// The one that led says that it does so no more.
    pub(super) async fn leader_resigned(&self, raft: &Raft, vote: Vote) -> Answer {
        // A vote that is committed names somebody who leads, and that is only ever said by who does.
        if vote.committed {
            return Answer::Error("nobody resigns by leading".into());
        }
        forget_leader(raft, vote).await.map_or_else(Answer::Error, |()| Answer::Ok)
    }

    /// The one that led wants this node to lead.
    pub(super) async fn stand_for_election(&self, raft: &Raft, vote: Vote) -> Answer {
        // Said so late that there was an election since, it would only disturb.
        let is_late = raft.metrics().borrow().current_term >= vote.leader_id.term;
        if is_late || self.leaving.load(Ordering::Relaxed) {
            return Answer::Error("somebody else was to lead since".into());
        }
        match raft.trigger().elect().await {
            Ok(()) => Answer::Ok,
            Err(error) => Answer::Error(error.to_string()),
        }
    }
}

/// Makes a core take note of a candidate's vote, as if it had been asked for its own. From then on it holds nobody to lead, and
/// may vote at once.
///
/// The only message for which openraft does not wait until the former leader has been silent for long is an append. This one
/// says that it comes after an entry which no log has, so it is refused, and nothing but the vote remains of it.
async fn forget_leader(raft: &Raft, vote: Vote) -> Result<(), String> {
    let nowhere = LogId::new(CommittedLeaderId::new(0, 0), u64::MAX - 1);
    let nothing =
        AppendEntriesRequest { vote, prev_log_id: Some(nowhere), entries: Vec::new(), leader_commit: None };
    raft.append_entries(nothing).await.map(drop).map_err(|error| error.to_string())
}
