//! The election timer: decides when a node stands for election. Votes themselves are asked for and given by openraft.
//!
//! openraft has such a timer too. It is off here (`enable_elect`), for three reasons: it draws its timeout only once, it
//! waits longer for ever after the first meeting with a longer log, and it raises the term without asking first. Here a node
//! asks the others first (a *pre-vote*) and stands only if a majority would vote for it.
//!
//! A node that was cut off:
//!
//! 1. Node A leads in term 4. Node C is cut off from the others. Its timer runs out.
//! 2. C asks for pre-votes. No node answers, so C does not stand, and its term stays 4. (With openraft's timer C would
//!    raise its term to 5, 6, 7 and so on.)
//! 3. The network is back. A's next heartbeat resets C's timer, and A leads on. (A term of 7 would depose A for nothing.)
//!
//! A node with a shorter log:
//!
//! 1. Leader A dies. B's log ends at entry 90, C's at 100.
//! 2. B's timer runs out first. B asks C, which refuses because its own log is longer. C also shortens its own wait.
//! 3. C's timer runs out. C asks B, which would vote for it. C stands and is elected.
//!
//! The timer is never shorter than the *lease*: for that long after a heartbeat the other nodes vote for no other node, so
//! standing earlier could not succeed. Two nodes that stand at the same moment draw different pauses before the next try.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use openraft::ServerState;
use rand::Rng as _;
use tokio::{
    sync::mpsc,
    time::{MissedTickBehavior, interval, timeout},
};
use tracing::debug;

use super::{
    node::{Core, Node, millis},
    options::RaftTimings,
    peers::Lane,
    types::{LogId, NodeId, Raft, Vote},
    wire::{Answer, Question},
};

/// The unit in which silence is counted. A process that was stopped counts one step for that time, however long it was, so
/// that it first reads the heartbeats that arrived meanwhile.
const STEP: Duration = Duration::from_millis(20);

/// How long another node may take to answer a pre-vote.
const ANSWER: Duration = Duration::from_millis(300);

/// Steps until the next try, at least and at most. Drawn, so that two candidates do not stand at the same moment again.
const AGAIN: (u64, u64) = (4, 16);

/// Counts how long no leader was heard of, and knows when to stand. In steps.
#[derive(Debug)]
pub(super) struct ElectionTimer {
    steps: AtomicU64,
    due: AtomicU64,
    /// For this long after a heartbeat, nodes vote for no other candidate.
    lease: u64,
    /// A node waits up to this much longer before it stands.
    spread: u64,
}

impl ElectionTimer {
    pub(super) fn new(timings: &RaftTimings) -> Self {
        let steps = |duration: Duration| millis(duration).div_ceil(millis(STEP));
        let (shortest, longest) = timings.election;
        // One step more: time is counted coarsely here, and exactly in openraft, where votes are given.
        let lease = steps(longest) + 1;
        let spread = steps(longest.saturating_sub(shortest)).max(1);
        let silence = Self { steps: AtomicU64::new(0), due: AtomicU64::new(0), lease, spread };
        silence.reset();
        silence
    }

    /// A message of the leader arrived.
    pub(super) fn reset(&self) {
        self.steps.store(0, Ordering::Relaxed);
        self.due.store(self.lease + rand::rng().random_range(0..=self.spread), Ordering::Relaxed);
    }

    /// Another candidate may win, or this node just tried: waits a little before the next try.
    pub(super) fn retry_later(&self) {
        let pause = rand::rng().random_range(AGAIN.0..=AGAIN.1);
        self.due.store(self.steps.load(Ordering::Relaxed) + pause, Ordering::Relaxed);
    }

    /// Another node, which cannot win, asked for a pre-vote. This node may win: waits no longer than the lease.
    fn shorten_wait(&self) {
        self.due.fetch_min(self.lease, Ordering::Relaxed);
    }

    /// Whether the last known leader counts as gone.
    pub(super) fn lease_expired(&self) -> bool {
        self.steps.load(Ordering::Relaxed) >= self.lease
    }

    /// Counts a step. Returns whether it is time to stand.
    fn count_step(&self) -> bool {
        self.steps.fetch_add(1, Ordering::Relaxed) + 1 >= self.due.load(Ordering::Relaxed)
    }
}

/// Runs the timer for as long as the node is open.
pub(super) async fn run_election_timer(node: Arc<Node>) {
    let mut steps = interval(STEP);
    steps.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = node.closed.cancelled() => return,
            _ = steps.tick() => {}
        }
        let Some(core) = node.core() else {
            node.election_timer.reset();
            continue;
        };
        match node.candidacy(&core.raft) {
            Candidacy::Leads => node.election_timer.reset(),
            // A leader without a majority must not hold up an election: its timer runs on.
            Candidacy::Waits | Candidacy::LeadsNobody => {
                node.election_timer.count_step();
            }
            Candidacy::Alone => node.start_election(&core).await,
            Candidacy::May(voters) => {
                // Another node may have been elected during the pre-vote.
                if node.election_timer.count_step()
                    && node.wins_pre_vote(&core, &voters).await
                    && node.election_timer.lease_expired()
                {
                    node.start_election(&core).await;
                }
            }
        }
    }
}

/// Whether a node may stand for election now.
enum Candidacy {
    Leads,
    /// It leads, and no majority has confirmed that for long.
    LeadsNobody,
    /// It may not stand.
    Waits,
    /// It is the only voter.
    Alone,
    /// It may stand, with these sets of voters; more than one set while the members change.
    May(Vec<BTreeSet<NodeId>>),
}

impl Node {
    fn candidacy(&self, raft: &Raft) -> Candidacy {
        let metrics = raft.metrics();
        let metrics = metrics.borrow();
        if metrics.state == ServerState::Leader {
            return if self.lost_majority(&metrics) { Candidacy::LeadsNobody } else { Candidacy::Leads };
        }
        let voters = metrics.membership_config.membership().get_joint_config();
        let votes = voters.iter().any(|voters| voters.contains(&self.id));
        match voters.as_slice() {
            _ if !votes || self.leaving.load(Ordering::Relaxed) => Candidacy::Waits,
            // Another process may have the same id, and would vote too (see `readdress`).
            _ if self.displaced.load(Ordering::Relaxed) => Candidacy::Waits,
            [only] if only.len() == 1 => Candidacy::Alone,
            _ => Candidacy::May(voters.clone()),
        }
    }

    async fn start_election(&self, core: &Core) {
        debug!("No node leads: this one is a candidate.");
        let mut metrics = core.raft.metrics();
        let before = metrics.borrow().vote;
        // A core that does not work cannot be elected; `Node::run` starts it again.
        let _ = core.raft.trigger().elect().await;
        // Votes are flushed to disk first: a node that stands again before they arrive is never elected.
        let decided = metrics.wait_for(|metrics| metrics.vote.committed && metrics.vote > before);
        let _ = timeout(self.options.timings.election.0, decided).await;
        self.election_timer.retry_later();
    }

    /// Asks the other voters. Returns whether a majority would vote for this node.
    async fn wins_pre_vote(&self, core: &Core, voters: &[BTreeSet<NodeId>]) -> bool {
        self.election_timer.retry_later();
        let Ok(last) = self.disk.last_log_id() else { return false };
        let members = core.raft.metrics().borrow().membership_config.clone();
        let others: BTreeSet<NodeId> = voters.iter().flatten().copied().filter(|id| *id != self.id).collect();
        let (sender, mut answers) = mpsc::channel(others.len().max(1));
        for id in others {
            let Some(member) = members.membership().get_node(&id).cloned() else { continue };
            let (peers, sender) = (Arc::clone(&self.peers), sender.clone());
            tokio::spawn(async move {
                let question = Question::Canvass(id, last);
                let answer = peers.ask(&member.address, Lane::Raft, &question, ANSWER).await;
                let _ = sender.send((id, answer)).await; // A majority may have answered already.
            });
        }
        drop(sender);
        let mut ours = BTreeSet::from([self.id]);
        while let Some((id, answer)) = answers.recv().await {
            match answer {
                Ok(Answer::Ok) => drop(ours.insert(id)),
                answer => debug!(?answer, "Another node would not vote for this one."),
            }
            if voters.iter().all(|voters| 2 * voters.intersection(&ours).count() > voters.len()) {
                return true;
            }
        }
        false
    }

    /// Answers a pre-vote: would this node vote for a candidate whose log ends with `theirs`?
    pub(super) fn answer_pre_vote(&self, theirs: Option<LogId>) -> Answer {
        // A leader resets its own timer, see `run_election_timer`.
        if !self.election_timer.lease_expired() {
            return Answer::Error("there is one who leads".into());
        }
        match self.disk.last_log_id() {
            Ok(ours) if ours > theirs => {
                self.election_timer.shorten_wait();
                Answer::Error("this node's log is longer".into())
            }
            Ok(_) => Answer::Ok,
            Err(error) => Answer::Error(error.to_string()),
        }
    }

    /// Resets the timer for a message with this vote, unless its sender is no longer the leader.
    pub(super) fn note_leader_contact(&self, core: &Core, vote: &Vote) {
        if *vote >= core.raft.metrics().borrow().vote {
            self.had_leader.store(true, Ordering::Relaxed);
            self.election_timer.reset();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn silence() -> ElectionTimer {
        ElectionTimer::new(&RaftTimings::default())
    }

    /// Steps until it is time to stand.
    fn patience(silence: &ElectionTimer) -> u64 {
        (1..1000).find(|_| silence.count_step()).expect("it is time at some point")
    }

    #[test]
    fn nobody_stands_while_others_would_not_vote_yet() {
        let silence = silence();
        for _ in 0..100 {
            silence.reset();
            assert!(!silence.lease_expired());
            let steps = patience(&silence);
            assert!(silence.lease_expired());
            // 0.8 s and at most 0.4 s more, in steps of 20 ms.
            assert!((41..=61).contains(&steps), "{steps}");
        }
    }

    #[test]
    fn the_next_try_is_soon_and_never_at_once() {
        let silence = silence();
        patience(&silence);
        for _ in 0..100 {
            silence.retry_later();
            let steps = patience(&silence);
            assert!((AGAIN.0..=AGAIN.1).contains(&steps), "{steps}");
        }
    }

    #[test]
    fn who_may_win_hurries_and_still_waits_until_others_would_vote() {
        let silence = silence();
        silence.shorten_wait();
        assert_eq!(patience(&silence), silence.lease);
    }
}
