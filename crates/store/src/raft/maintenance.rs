//! The maintenance task: every 100 ms it counts time without a leader; every second it syncs, cuts the log and checks members.

use std::sync::{Arc, PoisonError, atomic::Ordering};

use tokio::time::{MissedTickBehavior, interval};
use tracing::{info, warn};

use super::{
    bootstrap,
    node::{LONG, Leader, Node, TICK},
    readdress,
    types::{NodeId, hex},
};

/// Bytes of log after which it is cut, however few entries they are.
const MAX_LOG: u64 = 64 << 20;

/// Entries that stay then, for nodes that are a little behind.
const STAY: u64 = 64;

/// Ticks between two looks at what changes slowly.
const SLOW_CHECK_TICKS: u64 = 10;

/// Ticks between two questions for the leader of a node that cannot take part.
const INQUIRY_TICKS: u64 = 3;

pub(super) async fn run_maintenance(node: Arc<Node>) {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut keeper =
        Maintenance { node: Arc::clone(&node), leaderless: LONG, count: 0, synced: 0, log: 0, joint: 0 };
    loop {
        tokio::select! {
            () = node.closed.cancelled() => return,
            _ = ticks.tick() => keeper.tick().await,
        }
    }
}

struct Maintenance {
    node: Arc<Node>,
    /// Ticks without a leader.
    leaderless: u64,
    count: u64,
    /// How far the data was when it was last known to be on the disk.
    synced: u64,
    /// Bytes written to the log since it was last cut.
    log: u64,
    /// Rounds for which a change of members was seen half done.
    joint: u32,
}

impl Maintenance {
    async fn tick(&mut self) {
        let node = &self.node;
        node.peers.tick();
        self.leaderless = if node.leader() == Leader::Nobody { self.leaderless + 1 } else { 0 };
        node.count_without_leader();
        node.count_without_majority();
        node.judge_health(self.leaderless);
        self.count += 1;
        if self.count.is_multiple_of(INQUIRY_TICKS) {
            let node = Arc::clone(node);
            // In a task of its own: others may take long to answer.
            tokio::spawn(async move { node.find_leader_elsewhere().await });
        }
        if self.count.is_multiple_of(SLOW_CHECK_TICKS) {
            self.sync().await;
            self.cut_log().await;
            self.check_membership();
            self.report_silent_members();
        }
    }

    fn report_silent_members(&self) {
        let node = &self.node;
        let mut missing = node.silent_members.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(metrics) = node.metrics().filter(|_| node.leader() == Leader::Me) else {
            return missing.reset();
        };
        let membership = metrics.membership_config.membership();
        let others = membership.nodes().map(|(id, _)| *id).filter(|id| *id != node.id);
        let news =
            missing.update(SLOW_CHECK_TICKS, &others.map(|id| (id, node.peers.silent_for(id))).collect());
        let address =
            |id: &NodeId| membership.get_node(id).map(|member| member.address.clone()).unwrap_or_default();
        for id in &news.silent {
            let other = node.peers.other_at(&address(id), *id).map(hex);
            warn!(node = %hex(*id), address = address(id), other, "A node of the cluster does not answer.");
        }
        for id in &news.back {
            info!(node = %hex(*id), address = address(id), "A node of the cluster answers again.");
        }
    }

    /// Commits that were applied since the last entry was written would be lost by a crash: they come back from the log, yet only with
    /// a majority.
    async fn sync(&mut self) {
        let applied = *self.node.progress.applied.borrow();
        if applied != self.synced && self.node.disk.sync().await.is_ok() {
            self.synced = applied;
        }
    }

    async fn cut_log(&mut self) {
        self.log += self.node.disk.take_written();
        if self.log < MAX_LOG {
            return;
        }
        let Some(core) = self.node.core() else { return };
        let upto = core.raft.metrics().borrow().last_applied.map_or(0, |log_id| log_id.index);
        if core.raft.trigger().snapshot().await.is_ok() {
            let _ = core.raft.trigger().purge_log(upto.saturating_sub(STAY)).await;
            self.log = 0;
        }
    }

    fn check_membership(&mut self) {
        let Some(core) = self.node.core() else { return };
        let is_joint =
            core.raft.metrics().borrow().membership_config.membership().get_joint_config().len() > 1;
        self.joint = if is_joint { self.joint + 1 } else { 0 };
        let (leads, joint) = (self.node.leader() == Leader::Me, self.joint);
        let lonely = self.leaderless >= 30 && !self.node.removed.load(Ordering::Relaxed);
        let node = Arc::clone(&self.node);
        // In a task of its own: others may take long to answer, and time is counted here. The next one waits for it.
        tokio::spawn(async move {
            let Ok(_only_one) = node.tending.try_lock() else { return };
            if leads && joint >= 3 {
                node.finish_change(&core.raft).await;
            }
            if lonely {
                node.check_whether_removed().await;
                readdress::announce_address(&node).await;
            }
            readdress::clear_displaced(&node);
            bootstrap::maintain_membership(&node).await;
        });
    }
}
