//! When a node stands for election.
//!
//! openraft has a timer for this, which is off here: it draws how long it waits only once, waits longer for ever after the
//! first meeting with a longer log, and raises the term without asking whether anybody would vote. Here a node that has not
//! heard who leads for long enough first asks the others, and stands once a majority would vote for it. So one that was cut
//! off comes back without disturbing anybody, and one whose log is too short leaves the way to who may win.
//!
//! Nothing here elects anybody: votes are asked for and given by openraft, with a look at the log.

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

/// What silence is counted in. A process that stood still counts one step for it, however long it was: what others said
/// meanwhile is heard first.
const STEP: Duration = Duration::from_millis(20);

/// How long the others may take to say whether they would vote.
const ANSWER: Duration = Duration::from_millis(300);

/// Steps until the next try, at least and at most. Drawn, so that two who stood at once do not meet again.
const AGAIN: (u64, u64) = (4, 16);

/// How long a node has heard of nobody who leads, and when it has had enough of it. In steps.
#[derive(Debug)]
pub(super) struct ElectionTimer {
    steps: AtomicU64,
    due: AtomicU64,
    /// For so long after they heard of one who leads, nodes vote for nobody else.
    lease: u64,
    /// Up to so much longer a node waits before it stands.
    spread: u64,
}

impl ElectionTimer {
    pub(super) fn new(timings: &RaftTimings) -> Self {
        let steps = |duration: Duration| millis(duration).div_ceil(millis(STEP));
        let (shortest, longest) = timings.election;
        // One step more: time is counted coarsely here, and exactly where votes are given.
        let lease = steps(longest) + 1;
        let spread = steps(longest.saturating_sub(shortest)).max(1);
        let silence = Self { steps: AtomicU64::new(0), due: AtomicU64::new(0), lease, spread };
        silence.reset();
        silence
    }

    /// Who leads has said something.
    pub(super) fn reset(&self) {
        self.steps.store(0, Ordering::Relaxed);
        self.due.store(self.lease + rand::rng().random_range(0..=self.spread), Ordering::Relaxed);
    }

    /// Somebody else stands and may win, or we just tried: the next try is a little later.
    pub(super) fn retry_later(&self) {
        let pause = rand::rng().random_range(AGAIN.0..=AGAIN.1);
        self.due.store(self.steps.load(Ordering::Relaxed) + pause, Ordering::Relaxed);
    }

    /// Somebody who cannot win would stand: we may win, so we need not wait longer than we must.
    fn shorten_wait(&self) {
        self.due.fetch_min(self.lease, Ordering::Relaxed);
    }

    /// Whether nobody is held to lead any more.
    pub(super) fn lease_expired(&self) -> bool {
        self.steps.load(Ordering::Relaxed) >= self.lease
    }

    /// Counts a step; whether it is time to stand.
    fn count_step(&self) -> bool {
        self.steps.fetch_add(1, Ordering::Relaxed) + 1 >= self.due.load(Ordering::Relaxed)
    }
}

/// Looks after it for as long as the node is open.
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
            // One that leads nobody any more is in nobody's way.
            Candidacy::Waits | Candidacy::LeadsNobody => {
                node.election_timer.count_step();
            }
            Candidacy::Alone => node.start_election(&core).await,
            Candidacy::May(voters) => {
                // Somebody may have come to lead while the others were asked.
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

/// What a node may do about it that nobody leads.
enum Candidacy {
    Leads,
    /// It leads and no majority has said so for long.
    LeadsNobody,
    /// It may not stand.
    Waits,
    /// The only one who votes.
    Alone,
    /// Who votes; more than one such set while members change.
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
            // Another process may have the same id, and with it the same vote.
            _ if self.displaced.load(Ordering::Relaxed) => Candidacy::Waits,
            [only] if only.len() == 1 => Candidacy::Alone,
            _ => Candidacy::May(voters.clone()),
        }
    }

    async fn start_election(&self, core: &Core) {
        debug!("Nobody leads: this node stands for election.");
        let mut metrics = core.raft.metrics();
        let before = metrics.borrow().vote;
        // A core that does not work cannot be elected; it is started anew by who watches over it.
        let _ = core.raft.trigger().elect().await;
        // Votes go to disks first: who stands again before they can have come is never elected.
        let decided = metrics.wait_for(|metrics| metrics.vote.committed && metrics.vote > before);
        let _ = timeout(self.options.timings.election.0, decided).await;
        self.election_timer.retry_later();
    }

    /// Asks the others; whether a majority would vote for this node.
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
                let _ = sender.send((id, answer)).await; // Enough of them may have answered.
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

    /// Another node asks whether this one would vote for it if it stood now, with a log that ends with `theirs`.
    pub(super) fn answer_pre_vote(&self, theirs: Option<LogId>) -> Answer {
        // One that leads hears itself, see `watch`.
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

    /// Somebody who leads, or led, speaks with this vote.
    pub(super) fn note_leader_contact(&self, core: &Core, vote: &Vote) {
        if *vote >= core.raft.metrics().borrow().vote {
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

    /// Steps until it is time.
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
