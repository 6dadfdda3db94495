//! The health of a node: whether commits can be expected to work, and the reason if not.

use std::{
    sync::{PoisonError, atomic::Ordering},
    time::Duration,
};

use openraft::ServerState;
use tokio::time::sleep;

use super::{
    node::{LONG, Leader, Node, TICK, millis},
    types::{Metrics, NodeId, hex},
};
use crate::{Health, Store as _};

/// A node that answered within this many ticks counts as there.
const RECENT: u64 = 30;

/// How long a node that has just started waits for a leader: then it answers with its own copy.
const FIRST_PATIENCE: Duration = Duration::from_millis(1500);

impl Node {
    /// Whether this node leads and no majority has confirmed that for long.
    pub(super) fn lost_majority(&self, metrics: &Metrics) -> bool {
        let patience = 3 * millis(self.options.timings.election.1);
        metrics.state == ServerState::Leader
            && metrics.membership_config.voter_ids().count() > 1
            && metrics.millis_since_quorum_ack.unwrap_or_else(|| self.unheard_millis()) > patience
    }

    fn unheard_millis(&self) -> u64 {
        self.unheard.load(Ordering::Relaxed).saturating_mul(millis(TICK))
    }

    /// openraft counts from the first confirmation of a majority. A leader that never got one is counted here, in ticks.
    pub(super) fn count_without_majority(&self) {
        let unheard = self.metrics().is_some_and(|metrics| {
            metrics.state == ServerState::Leader && metrics.millis_since_quorum_ack.is_none()
        });
        let ticks = if unheard { self.unheard.load(Ordering::Relaxed) + 1 } else { 0 };
        self.unheard.store(ticks, Ordering::Relaxed);
    }

    /// Counts how long no leader is known. A node that is in no cluster yet waits for none. The leader that the disk names
    /// after a restart counts once a message of it arrived.
    pub(super) fn count_without_leader(&self) {
        let in_cluster = |metrics: &Metrics| metrics.membership_config.log_id().is_some();
        let leader = self.leader();
        if leader == Leader::Me {
            self.had_leader.store(true, Ordering::Relaxed);
        }
        if leader != Leader::Nobody && self.had_leader.load(Ordering::Relaxed) {
            self.leaderless.store(0, Ordering::Relaxed);
        } else if self.metrics().as_ref().is_none_or(in_cluster) {
            self.leaderless.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether no leader is known for longer than an election takes and no majority answers: more waiting does not help.
    /// While a majority answers, the nodes are electing a leader, and callers wait for it.
    fn waits_in_vain(&self) -> bool {
        if self.metrics().is_some_and(|metrics| self.majority_answers(&metrics)) {
            return false;
        }
        let usual = self.options.timings.election.1 * 3;
        let patience =
            if self.had_leader.load(Ordering::Relaxed) { usual } else { usual.min(FIRST_PATIENCE) };
        let ticks = u32::try_from(self.leaderless.load(Ordering::Relaxed)).unwrap_or(u32::MAX);
        self.leader() == Leader::Nobody && TICK.saturating_mul(ticks) > patience
    }

    /// How many of the nodes that vote answered lately, this one included.
    fn voters_that_answer(&self, metrics: &Metrics) -> usize {
        let answers =
            |id: &NodeId| *id == self.id || self.peers.silent_for(*id).is_some_and(|ticks| ticks < RECENT);
        metrics.membership_config.voter_ids().filter(answers).count()
    }

    fn majority_answers(&self, metrics: &Metrics) -> bool {
        self.voters_that_answer(metrics) > metrics.membership_config.voter_ids().count() / 2
    }

    pub(super) fn leads_nobody(&self) -> bool {
        self.metrics().is_some_and(|metrics| self.lost_majority(&metrics))
    }

    /// Returns when no majority can be expected to answer: this node has led without one for long, or knows no leader.
    pub(super) async fn until_majority_is_lost(&self) {
        while !self.leads_nobody() && !self.waits_in_vain() {
            sleep(TICK).await;
        }
    }

    /// Why there is no leader to ask, for people.
    pub(super) fn why_no_leader(&self) -> String {
        if let Health::Failed { reason } = &*self.health.borrow() {
            return reason.clone();
        }
        "no node leads the cluster right now".into()
    }

    pub(super) fn why_removed(&self) -> Option<String> {
        self.removed.load(Ordering::Relaxed).then(|| {
            format!(
                "this node was removed from the cluster; to bring it back, move {} away and start it with `--join`",
                self.disk.dir.display()
            )
        })
    }

    pub(super) fn set_trouble(&self, reason: Option<String>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = reason;
        self.judge_health(LONG);
    }

    /// Says whether commits can be expected to work. `leaderless` counts the ticks without a leader.
    pub(super) fn judge_health(&self, leaderless: u64) {
        let new = self.reason_to_fail(leaderless).map_or(Health::Ready, |reason| Health::Failed { reason });
        self.health.send_if_modified(|health| {
            let changed = *health != new;
            *health = new;
            changed
        });
    }

    fn reason_to_fail(&self, leaderless: u64) -> Option<String> {
        if self.closed.is_cancelled() {
            return Some("the store is closed".into());
        }
        if let Health::Failed { reason } = self.disk.store.health() {
            return Some(reason);
        }
        if let Some(reason) = self.why_removed() {
            return Some(reason);
        }
        if let Some(reason) = self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            return Some(reason);
        }
        let Some(metrics) = self.metrics() else { return Some("this node is starting".into()) };
        if metrics.membership_config.log_id().is_none() {
            return Some("this node is in no cluster yet".into());
        }
        let patience = self.options.timings.election.1;
        let voters = metrics.membership_config.voter_ids().count();
        if metrics.state == ServerState::Leader {
            return self.lost_majority(&metrics).then(|| {
                format!(
                    "no majority of the {voters} nodes of the cluster answers: {}commits wait, reads of this node's own copy go \
                     on",
                    self.replaced(&metrics)
                )
            });
        }
        let long = u32::try_from(leaderless).unwrap_or(u32::MAX);
        let in_vain = TICK.saturating_mul(long) > 3 * patience || self.waits_in_vain();
        (self.leader() == Leader::Nobody && in_vain).then(|| {
            let answering = self.voters_that_answer(&metrics);
            let why = if self.majority_answers(&metrics) { "they elect one" } else { "a majority is needed" };
            format!(
                "no node leads the cluster: {answering} of {voters} answer, and {why}; {}reads of this node's own copy go on",
                self.replaced(&metrics)
            )
        })
    }

    /// Members whose registered address now belongs to another node, or `None`.
    fn replaced(&self, metrics: &Metrics) -> String {
        let others = metrics.membership_config.nodes().filter_map(|(id, member)| {
            let other = self.peers.other_at(&member.address, *id)?;
            Some(format!("{} is another node now ({}); ", member.address, hex(other)))
        });
        others.collect()
    }
}
