//! Hands the lead to another node before this one stops, so that the others need not wait for a timeout.
//!
//! openraft 0.9 has no leadership transfer, and its nodes vote for no other node while they believe in a leader. So:
//!
//! 1. Leader A sets `leaving`. From now on it takes no commit and will not stand for election.
//! 2. A waits until its own commits are done, and until some voter B has every entry of A's log.
//! 3. A makes its own openraft core note a vote for B in the next term. With that A is no leader any more.
//! 4. A sends `Resigned` with that vote to the other voters. Each notes it and forgets A: now it may vote at once.
//! 5. A sends `Stand` to B. B stands for election in that term, and is elected by the usual votes.
//! 6. A waits until it hears of the new leader, then stops.
//!
//! All of it may take `PATIENCE`. If a message is lost or B dies, there is an election as after a crash. Nothing here can
//! elect two leaders: votes are given by openraft, which compares terms and logs as always.

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

/// How long the transfer may take. After that the others hold an election, as after a crash.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long one other node may take to answer.
const ANSWER: Duration = Duration::from_millis(300);

/// The pause between two looks at the state of the cluster.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A node that has not answered for this many ticks is not asked to lead.
const RECENT: u64 = 10;

impl Node {
    /// If this node leads, hands the lead to another one. Returns when one leads, or after `PATIENCE`.
    pub(super) async fn transfer_leadership(&self) {
        let Some(core) = self.core().filter(|_| self.leader() == Leader::Me) else { return };
        self.leaving.store(true, Ordering::Relaxed);
        match timeout(PATIENCE, self.try_to_transfer_leadership(&core)).await {
            Ok(Some(id)) => info!(node = %hex(id), "Another node leads the cluster now; this one stops."),
            Ok(None) => debug!("There is no node to hand the lead to."),
            Err(_) => info!("The lead was not handed over in time; the others elect a leader."),
        }
    }

    async fn try_to_transfer_leadership(&self, core: &Core) -> Option<NodeId> {
        // The members do not change in between.
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
            let _ = answer.await; // A node that does not get the message votes later.
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

    /// The other voters that answered within `RECENT` ticks.
    fn others(&self, raft: &Raft) -> Vec<(NodeId, Member)> {
        let membership = raft.metrics().borrow().membership_config.clone();
        let there = |id: &NodeId| self.peers.silent_for(*id).is_some_and(|ticks| ticks < RECENT);
        let voters = membership.voter_ids().filter(|id| *id != self.id && there(id));
        voters.filter_map(|id| Some((id, membership.membership().get_node(&id)?.clone()))).collect()
    }

    /// Waits for a voter that has every entry of this node's log. `None` if this node is alone or no longer leads.
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

    /// Handles `Resigned`: the former leader no longer leads.
    pub(super) async fn leader_resigned(&self, raft: &Raft, vote: Vote) -> Answer {
        // A committed vote names a leader. Only that leader itself sends one, in a heartbeat.
        if vote.committed {
            return Answer::Error("a node cannot resign to itself".into());
        }
        forget_leader(raft, vote).await.map_or_else(Answer::Error, |()| Answer::Ok)
    }

    /// Handles `Stand`: the former leader wants this node to lead.
    pub(super) async fn stand_for_election(&self, raft: &Raft, vote: Vote) -> Answer {
        // There was an election since: the message is out of date.
        let is_late = raft.metrics().borrow().current_term >= vote.leader_id.term;
        if is_late || self.leaving.load(Ordering::Relaxed) {
            return Answer::Error("another node was chosen since".into());
        }
        match raft.trigger().elect().await {
            Ok(()) => Answer::Ok,
            Err(error) => Answer::Error(error.to_string()),
        }
    }
}

/// Makes an openraft core note a candidate's vote. From then on it knows no leader and may vote at once.
///
/// An append is the only message that openraft takes without waiting for the lease of the former leader to end. This append
/// claims to follow an entry that no log has. So it is refused, and only its vote is noted.
async fn forget_leader(raft: &Raft, vote: Vote) -> Result<(), String> {
    let nowhere = LogId::new(CommittedLeaderId::new(0, 0), u64::MAX - 1);
    let nothing =
        AppendEntriesRequest { vote, prev_log_id: Some(nowhere), entries: Vec::new(), leader_commit: None };
    raft.append_entries(nothing).await.map(drop).map_err(|error| error.to_string())
}
