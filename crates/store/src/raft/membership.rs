//! Changes the members of the cluster, on the leader: let a node in, make it a voter, remove it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use openraft::{
    ChangeMembers,
    error::{ChangeMembershipError, ClientWriteError, RaftError},
};
use tokio::{
    sync::Mutex,
    time::{sleep, timeout},
};
use tracing::{info, warn};

use super::{
    address::node_address,
    node::{Leader, Node, TICK},
    peers::{Lane, Peers},
    quorum_check,
    status::Status,
    types::{Member, Metrics, NodeId, Raft, hex},
    wire::{Answer, Question},
};

/// Entries a learner may lack when it is made a voter; it gets them in no time.
const NEARLY: u64 = 100;

/// How long a learner may take to have everything before who wanted it in has to ask again.
const CATCH_UP: Duration = Duration::from_mins(10);

impl Node {
    /// Answers questions that only the leader can answer; [`Answer::NotLeader`] on any other node.
    pub(super) async fn answer_as_leader(&self, question: &Question) -> Answer {
        let Some(core) = self.core().filter(|_| self.leader() == Leader::Me) else {
            return Answer::NotLeader;
        };
        match question {
            Question::ReadIndex => match self.read_as_leader(&core.raft).await {
                Ok(index) => Answer::Index(index),
                Err(reason) => Answer::Error(reason),
            },
            // A change begun without a majority reaches the new node, and may never be confirmed.
            Question::Join(..) | Question::Add(_) | Question::Remove(_) if self.leads_nobody() => {
                Answer::Error(self.why_no_leader())
            }
            Question::Join(id, member) => said(self.let_in(&core.raft, *id, member.clone()).await),
            Question::Add(address) => said(self.invite(&core.raft, address).await),
            Question::Remove(id) => said(self.remove(&core.raft, *id).await),
            Question::Status => Answer::Status(Box::new(self.status())),
            _ => Answer::Error("this is nothing to ask who leads".into()),
        }
    }

    /// A round of heartbeats: everything acknowledged until now is at or below the index.
    async fn read_as_leader(&self, raft: &Raft) -> Result<u64, String> {
        match timeout(self.options.timeout, raft.get_read_log_id()).await {
            Ok(Ok((index, _))) => Ok(super::state_machine::count(index.as_ref())),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("no majority has answered in time".into()),
        }
    }

    async fn invite(&self, raft: &Raft, address: &str) -> Result<(), String> {
        let address = node_address(address).ok_or_else(|| format!("`{address}` is no address of a node"))?;
        let answer = self.peers.ask(&address, Lane::Client, &Question::Status, self.options.timeout).await;
        match answer {
            Ok(Answer::Status(status)) => {
                let ours = self.metrics().is_some_and(|metrics| has(&metrics, status.id));
                if status.is_in_a_cluster() && !ours {
                    return Err(format!(
                        "{address} is in a cluster of its own; it needs an empty directory and `--join`"
                    ));
                }
                self.let_in(raft, status.id, status.me).await
            }
            Ok(_) => Err(format!("{address} gives no answer that can be understood")),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Lets a node learn, and vote once it has everything. One that is in already may say something new of itself.
    async fn let_in(&self, raft: &Raft, id: NodeId, member: Member) -> Result<(), String> {
        let before = raft.metrics().borrow().clone();
        let found = match before.membership_config.membership().get_node(&id) {
            None => Some(self.status_of_node(id, &member.address).await?),
            Some(known) if known.address != member.address => {
                self.may_move(id, &known.address, &member.address).await?;
                None
            }
            Some(_) => None,
        };
        let _one_at_a_time = self.changing.lock().await;
        let metrics = raft.metrics().borrow().clone();
        let known = metrics.membership_config.membership().get_node(&id).cloned();
        if known.is_none() {
            // It may have been removed since it was asked.
            let found = found.filter(|_| membership_index(&before) == membership_index(&metrics));
            let found = found.ok_or("the members changed meanwhile; ask again")?;
            // A node that has a membership entry which is not later than ours was a member and is no longer. A leader has
            // all confirmed membership entries, however far behind the node is that sent the new one here.
            if found.membership.is_some() && found.membership <= membership_index(&metrics) {
                return Err(
                    "it was removed from the cluster; to bring it back, move its directory away and start it with `--join`"
                        .into(),
                );
            }
            info!(node = %hex(id), address = member.address, "A node comes into the cluster.");
            let learner = BTreeMap::from([(id, member.clone())]);
            self.change(raft, ChangeMembers::AddNodes(learner), true).await?;
        } else if known.as_ref() != Some(&member) {
            let nodes = BTreeMap::from([(id, member.clone())]);
            self.change(raft, ChangeMembers::SetNodes(nodes), true).await?;
        }
        if metrics.membership_config.voter_ids().any(|voter| voter == id) {
            return Ok(());
        }
        let promotion = Promotion {
            raft: raft.clone(),
            peers: Arc::clone(&self.peers),
            changing: Arc::clone(&self.changing),
            patience: self.options.timeout * 2,
            me: self.id,
        };
        tokio::spawn(promotion.of(id, member.address));
        Ok(())
    }

    async fn remove(&self, raft: &Raft, id: NodeId) -> Result<(), String> {
        let _one_at_a_time = self.changing.lock().await;
        let metrics = raft.metrics().borrow().clone();
        if !has(&metrics, id) {
            return Err(format!("node {} is not in the cluster", hex(id)));
        }
        let voters: BTreeSet<NodeId> = metrics.membership_config.voter_ids().collect();
        if !voters.contains(&id) {
            return self.change(raft, ChangeMembers::RemoveNodes(BTreeSet::from([id])), false).await;
        }
        let left: BTreeSet<NodeId> = voters.into_iter().filter(|voter| *voter != id).collect();
        if left.is_empty() {
            return Err(format!("node {} is the last one of the cluster", hex(id)));
        }
        let counted = quorum_check::require_quorum(&self.peers, self.id, &metrics, &left).await;
        counted.map_err(|why| format!("without node {} {why}", hex(id)))?;
        info!(node = %hex(id), "A node is removed from the cluster.");
        self.change(raft, ChangeMembers::RemoveVoters(BTreeSet::from([id])), false).await
    }

    async fn change(&self, raft: &Raft, what: Change, retain: bool) -> Result<(), String> {
        change(raft, self.options.timeout * 2, what, retain).await
    }

    /// A leader that died between the two steps of a change left it half done.
    pub(super) async fn finish_change(&self, raft: &Raft) {
        let membership = raft.metrics().borrow().membership_config.membership().clone();
        if membership.get_joint_config().len() < 2 {
            return;
        }
        let Ok(_one_at_a_time) = self.changing.try_lock() else { return };
        if let Some(voters) = membership.get_joint_config().last() {
            let nodes: Vec<String> = voters.iter().copied().map(hex).collect();
            warn!(?nodes, "Finishing a change of members that was begun before.");
            let _ = self.change(raft, ChangeMembers::ReplaceAllVoters(voters.clone()), false).await;
        }
    }

    /// Whether the others know of a membership, as late as ours or later, in which this node is not.
    pub(super) async fn check_whether_removed(self: &Arc<Self>) {
        let ours = self.status();
        for member in ours.members.iter().filter(|member| member.id != self.id) {
            let address = &member.member.address;
            let answer = self.peers.ask(address, Lane::Client, &Question::Status, TICK * 10).await;
            if let Ok(Answer::Status(theirs)) = answer
                && theirs.id == member.id
                && self.is_removed(&theirs, ours.membership)
            {
                self.was_removed();
                return;
            }
        }
    }

    /// Whether another node knows of a membership, as late as ours or later, in which this node is not.
    pub(super) fn is_removed(&self, theirs: &Status, ours: Option<u64>) -> bool {
        theirs.membership >= ours
            && theirs.leader.is_some()
            && theirs.members.iter().all(|member| member.id != self.id)
    }

    pub(super) fn was_removed(&self) {
        let dir = self.disk.dir.display();
        tracing::error!(%dir, "This node was removed from the cluster; to bring it back, move its directory away and start it with `--join`.");
        self.removed.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

/// The index of the newest membership entry.
fn membership_index(metrics: &Metrics) -> Option<u64> {
    metrics.membership_config.log_id().map(|log_id| log_id.index)
}

/// The steps that make a node a voter.
struct Promotion {
    raft: Raft,
    peers: Arc<Peers>,
    changing: Arc<Mutex<()>>,
    patience: Duration,
    /// The leader: this node.
    me: NodeId,
}

impl Promotion {
    /// Makes a node a voter once it has everything. A former node at the same address goes with that: its disk is lost.
    async fn of(self, id: NodeId, address: String) {
        if !timeout(CATCH_UP, self.until_it_has_everything(id)).await.unwrap_or(false) {
            return;
        }
        let _one_at_a_time = self.changing.lock().await;
        let metrics = self.raft.metrics().borrow().clone();
        let members = metrics.membership_config.membership();
        if members.get_joint_config().len() > 1 || members.get_node(&id).is_none() {
            return; // It asks again.
        }
        let is_gone = |voter: &NodeId| {
            *voter != id && members.get_node(voter).is_some_and(|member| member.address == address)
        };
        let mut voters: BTreeSet<NodeId> = members.voter_ids().filter(|voter| !is_gone(voter)).collect();
        let votes = !voters.insert(id);
        if votes && members.voter_ids().count() == voters.len() {
            return; // It asked more than once.
        }
        let done = match quorum_check::require_quorum(&self.peers, self.me, &metrics, &voters).await {
            Ok(()) => change(&self.raft, self.patience, ChangeMembers::ReplaceAllVoters(voters), false).await,
            Err(why) => Err(format!("with it {why}")),
        };
        match done {
            Ok(()) => info!(node = %hex(id), address, "A node votes now."),
            Err(error) => warn!(node = %hex(id), %error, "A node could not be made a voter yet."),
        }
    }

    /// Waits until the node has nearly every entry. False if this node no longer leads.
    async fn until_it_has_everything(&self, id: NodeId) -> bool {
        loop {
            let metrics = self.raft.metrics().borrow().clone();
            let Some(replication) = &metrics.replication else { return false };
            let last = metrics.last_log_index.unwrap_or(0);
            let matched = replication.get(&id).copied().flatten();
            if matched.is_some_and(|matched| matched.index + NEARLY >= last) {
                return true;
            }
            sleep(TICK).await;
        }
    }
}

type Change = ChangeMembers<NodeId, Member>;

/// Changes the members; with `retain`, who votes no longer stays to learn. A change that is still under way, begun by a
/// leader before this one or not confirmed in time, is waited for.
async fn change(raft: &Raft, patience: Duration, what: Change, retain: bool) -> Result<(), String> {
    let work = async {
        loop {
            match raft.change_membership(what.clone(), retain).await {
                Ok(_) => return Ok(()),
                Err(error) if is_under_way(&error) => sleep(TICK).await,
                Err(error) => return Err(error.to_string()),
            }
        }
    };
    let late = || Err("no majority has confirmed the change in time; look at `cluster status`".into());
    timeout(patience, work).await.unwrap_or_else(|_| late())
}

fn is_under_way(error: &RaftError<NodeId, ClientWriteError<NodeId, Member>>) -> bool {
    matches!(
        error,
        RaftError::APIError(ClientWriteError::ChangeMembershipError(ChangeMembershipError::InProgress(_)))
    )
}

fn has(metrics: &Metrics, id: NodeId) -> bool {
    metrics.membership_config.membership().get_node(&id).is_some()
}

fn said(outcome: Result<(), String>) -> Answer {
    outcome.map_or_else(Answer::Error, |()| Answer::Ok)
}
