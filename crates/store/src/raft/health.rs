//! The health of a node: whether commits can be expected to work, and the reason if not.

use std::sync::{PoisonError, atomic::Ordering};

use openraft::ServerState;
use tokio::time::sleep;

use super::{
    node::{LONG, Leader, Node, TICK, millis},
    types::{Metrics, hex},
};
use crate::{Health, Store as _};

/// A node that answered within this many ticks counts as there.
const RECENT: u64 = 30;

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

    pub(super) fn leads_nobody(&self) -> bool {
        self.metrics().is_some_and(|metrics| self.lost_majority(&metrics))
    }

    /// Returns when this node has led without a majority for long.
    pub(super) async fn until_majority_is_lost(&self) {
        loop {
            sleep(TICK).await;
            if self.leads_nobody() {
                return;
            }
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
        (self.leader() == Leader::Nobody && TICK.saturating_mul(long) > 3 * patience).then(|| {
            let heard = metrics.membership_config.voter_ids().filter(|id| {
                *id == self.id || self.peers.silent_for(*id).is_some_and(|ticks| ticks < RECENT)
            });
            format!(
                "no node leads the cluster: {} of {voters} answer, and a majority is needed; {}reads of this node's own copy go \
                 on",
                heard.count(),
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
