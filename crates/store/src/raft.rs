//! The store that three or more nodes keep together, replicated with openraft.
//!
//! Every node has all data and a log of commits, which openraft keeps equal on all nodes. A commit is acknowledged once a
//! majority has it on disk. Any node can be used: commits, and reads that must be fresh, go to the leader.
//! `docs/decisions/0004-raft.md` says what was chosen and why.
//!
//! - Storage: `disk` (one database per node), `log`, `log_cache`, `state_machine`, `snapshot_transfer`.
//! - Messages: `wire`, `secure_channel`, `peers` (asking), `server` (answering), `rejected_peers`, `network` (for openraft).
//! - Commits and reads: `proposer`, `read_index`.
//! - Leadership: `election`, `leadership_transfer`, `leadership` (of the ledger, by epoch).
//! - Members: `bootstrap`, `membership`, `members` (what other crates see), `quorum_check`, `readdress`, `address`, `silent_members`.
//! - The running node: `node`, `maintenance`, `health`, `status`, `examine`.

mod address;
mod bootstrap;
mod disk;
mod election;
mod examine;
mod health;
mod leader_elsewhere;
mod leadership;
mod leadership_transfer;
mod log;
mod log_cache;
mod maintenance;
mod members;
mod membership;
mod network;
mod node;
#[cfg(test)]
mod openraft_suite;
mod options;
mod peers;
mod proposer;
mod quorum_check;
mod read_index;
mod readdress;
mod rejected_peers;
mod secure_channel;
mod server;
mod silent_members;
mod snapshot_transfer;
mod state_machine;
mod status;
#[cfg(test)]
mod tests;
mod types;
mod wire;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use rand::Rng as _;
use tokio::{
    net::TcpListener,
    sync::watch as tokio_watch,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

pub use self::{
    address::node_address,
    options::{RaftOptions, RaftSecurity, RaftTimings},
    server::CONNECTIONS,
    status::{MemberStatus, Role, Status},
    types::{Member, NodeId, hex},
};
use self::{
    disk::{Disk, Identity},
    leadership::Fence,
    node::{Leader, Node},
    peers::{Lane, NoAnswer, Peers},
    proposer::{Done, NotDone},
    read_index::ReadIndex,
    secure_channel::ChannelSecurity,
    types::{Outcome, Proposed},
    wire::{Answer, Question},
};
use crate::{
    Commit, Committed, Condition, EPOCH_KEY, Entry, Epoch, Health, Membership, Snapshot, Store, StoreError,
    Version, Watch,
};

/// Where nodes listen to each other unless told otherwise.
pub const PORT: u16 = 5302;

/// The pause between two looks for a leader.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// How long a commit that another node acknowledged may take to be seen here before the caller is told anyway.
const APPLY_TIMEOUT: Duration = Duration::from_secs(1);

/// A node of a cluster, as a store.
#[derive(Debug)]
pub struct RaftStore {
    node: Arc<Node>,
    reads: ReadIndex,
    fence: Mutex<Option<Fence>>,
}

impl RaftStore {
    /// Opens this node's directory, creating it if need be, and begins to take part. Answers as soon as its own copy can be
    /// read; whether a majority is there is what [`Store::health`] says.
    pub async fn open(options: RaftOptions) -> Result<Self, StoreError> {
        let guard = ChannelSecurity::new(&options.security)?;
        // The files first: who finds its own server running is told of that, not of an address that is taken.
        let disk = Arc::new(Disk::open(&options.path).await?);
        let begun = async { Ok((listen(&options.listen).await?, identify(&disk).await?)) };
        let (listener, id) = match begun.await {
            Ok(begun) => begun,
            Err(error) => {
                disk.store.close().await;
                return Err(error);
            }
        };
        let closed = CancellationToken::new();
        let peers = Arc::new(Peers::new(id, guard.clone(), closed.clone()));
        let alone = options.peers.is_empty() && options.join.is_none();
        let node = Arc::new(Node::new(id, options, disk, peers, closed));
        tracing::info!(id = %hex(id), address = node.options.address(), "This is a node of a cluster.");
        tokio::spawn(server::serve(Arc::clone(&node), listener, guard));
        if let Err(error) = readdress::check_identity(&node).await {
            node.closed.cancel();
            node.disk.store.close().await;
            return Err(error);
        }
        tokio::spawn(Arc::clone(&node).run());
        tokio::spawn(maintenance::run_maintenance(Arc::clone(&node)));
        tokio::spawn(election::run_election_timer(Arc::clone(&node)));
        let reads = ReadIndex::start({
            let node = Arc::clone(&node);
            move || read_index(Arc::clone(&node))
        });
        let store = Self { node, reads, fence: Mutex::new(None) };
        store.started(alone).await?;
        Ok(store)
    }

    /// Waits for the core, and for a node that is alone also until it leads.
    async fn started(&self, alone: bool) -> Result<(), StoreError> {
        let mut core = self.node.core_changes();
        let ready = async {
            let _ = core.wait_for(Option::is_some).await;
            while alone && self.node.status().members.len() < 2 && self.node.leader() == Leader::Nobody {
                sleep(POLL_INTERVAL).await;
            }
        };
        let failed = async {
            let mut health = self.node.health.subscribe();
            loop {
                let damaged = match &*health.borrow_and_update() {
                    Health::Failed { reason } if reason.contains("damaged") => Some(reason.clone()),
                    _ => None,
                };
                if let Some(reason) = damaged {
                    return reason;
                }
                if health.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        };
        let reason = tokio::select! {
            () = ready => {
                self.node.judge_health(node::LONG);
                return Ok(());
            }
            reason = failed => reason,
            () = sleep(self.node.options.timeout.max(Duration::from_secs(5))) => return Ok(()),
        };
        self.node.close().await;
        Err(StoreError::Damaged { reason: reason.trim_start_matches("the store is damaged: ").to_owned() })
    }

    /// Returns when this node is in a cluster. One that is new has nothing to answer with before.
    pub async fn joined(&self) {
        while !self.own_status().is_in_a_cluster() && !self.node.closed.is_cancelled() {
            sleep(node::TICK).await;
        }
    }

    /// This node's id.
    pub fn id(&self) -> NodeId {
        self.node.id
    }

    /// The cluster as this node sees it, with what only the leader knows if it answers.
    pub async fn status(&self) -> Status {
        let own = self.node.status();
        if own.role == Role::Leader {
            return own;
        }
        let Leader::Other(_, leader) = self.node.leader() else { return own };
        let asked =
            self.node.peers.ask(&leader.address, Lane::Client, &Question::Status, Duration::from_secs(2));
        match asked.await {
            Ok(Answer::Status(theirs)) if theirs.role == Role::Leader => {
                Status { members: theirs.members, majority_seen_ms: theirs.majority_seen_ms, ..own }
            }
            _ => own,
        }
    }

    /// The status as this node knows it, without asking another.
    pub fn own_status(&self) -> Status {
        self.node.status()
    }

    /// Asks the node at `address`, which waits to be let in, to come into the cluster.
    pub async fn add(&self, address: &str) -> Result<(), StoreError> {
        self.change(Question::Add(address.to_owned())).await
    }

    /// Removes a node from the cluster, for good: it can come back as a new one only.
    pub async fn remove(&self, id: NodeId) -> Result<(), StoreError> {
        let was_in = self.has(id).await;
        match self.change(Question::Remove(id)).await {
            // The answer to a first try may be lost with the leader that gave it, and the next one knows it no more.
            Err(StoreError::Invalid { .. }) if was_in && !self.has(id).await => Ok(()),
            outcome => outcome,
        }
    }

    async fn has(&self, id: NodeId) -> bool {
        self.status().await.members.iter().any(|member| member.id == id)
    }

    async fn change(&self, question: Question) -> Result<(), StoreError> {
        let patience = self.node.options.timeout * 3;
        match self.node.ask_leader(&question, patience).await {
            Ok(Answer::Ok) => Ok(()),
            Ok(Answer::Error(reason)) => Err(StoreError::Invalid { reason }),
            Ok(other) => Err(StoreError::Unavailable { reason: format!("who leads answers {other:?}") }),
            Err(reason) => Err(StoreError::Unavailable { reason }),
        }
    }

    fn ensure_open(&self) -> Result<(), StoreError> {
        if self.node.closed.is_cancelled() {
            return Err(StoreError::Unavailable { reason: "the store is closed".into() });
        }
        Ok(())
    }

    /// Fails if this node was removed from the cluster: it would wait for ever.
    fn ensure_member(&self) -> Result<(), StoreError> {
        self.ensure_open()?;
        match self.node.why_removed() {
            Some(reason) => Err(StoreError::Unavailable { reason }),
            None => Ok(()),
        }
    }

    /// Returns when this node has applied everything that was acknowledged before the call.
    async fn catch_up(&self, patience: Duration) -> Result<(), StoreError> {
        self.ensure_member()?;
        let unavailable = |reason: String| StoreError::Unavailable { reason };
        let work = async {
            let index = loop {
                if let Ok(index) = self.reads.ask(patience).await {
                    break index;
                }
                // A leader that is being replaced; the next one is asked.
                self.ensure_member()?;
                sleep(POLL_INTERVAL).await;
            };
            self.until_applied(index).await
        };
        tokio::select! {
            done = work => done,
            () = sleep(patience) => Err(unavailable(self.node.why_no_leader())),
            () = self.node.until_majority_is_lost() => Err(unavailable(self.node.why_no_leader())),
        }
    }

    async fn until_applied(&self, count: u64) -> Result<(), StoreError> {
        let mut applied = self.node.progress.applied.subscribe();
        tokio::select! {
            _ = applied.wait_for(|applied| *applied >= count) => Ok(()),
            () = self.node.closed.cancelled() => self.ensure_open(),
        }
    }

    /// Commits without the condition on the epoch.
    async fn commit_unfenced(&self, commit: Commit) -> Result<Committed, StoreError> {
        self.ensure_member()?;
        let node = Arc::clone(&self.node);
        // In a task of its own: who stops waiting does not stop the commit.
        let work = tokio::spawn(async move { commit_on(&node, commit).await });
        work.await.unwrap_or_else(|error| Err(StoreError::Unknown { reason: error.to_string() }))
    }
}

async fn listen(address: &str) -> Result<TcpListener, StoreError> {
    TcpListener::bind(address).await.map_err(|error| StoreError::Unavailable {
        reason: format!("nodes of the cluster cannot reach this one at {address}: {error}"),
    })
}

/// The node that this directory belongs to; drawn when it is new.
async fn identify(disk: &Disk) -> Result<NodeId, StoreError> {
    if let Some(identity) = disk.identity()? {
        return Ok(identity.id);
    }
    let other = disk.store.view().await?.range(b"", None, 1).await?;
    if !other.is_empty() {
        return Err(StoreError::Unavailable {
            reason: format!(
                "{} holds a local store; `netstead store migrate` brings what is in it into a cluster with a directory of its own",
                disk.dir.display()
            ),
        });
    }
    let id = rand::rng().random_range(1..=NodeId::MAX >> 1);
    disk.set_identity(&Identity { id }).await?;
    Ok(id)
}

/// One round for all reads that wait: asks the leader.
async fn read_index(node: Arc<Node>) -> Result<u64, String> {
    let patience = node.options.timings.election.1;
    let answer = match node.leader() {
        Leader::Me => node.answer_as_leader(&Question::ReadIndex).await,
        Leader::Other(_, member) => node
            .peers
            .ask(&member.address, Lane::Client, &Question::ReadIndex, patience)
            .await
            .map_err(|error| error.to_string())?,
        Leader::Nobody => return Err(node.why_no_leader()),
    };
    match answer {
        Answer::Index(count) => Ok(count),
        Answer::Error(reason) => Err(reason),
        _ => Err("no node leads the cluster right now".into()),
    }
}

async fn commit_on(node: &Arc<Node>, commit: Commit) -> Result<Committed, StoreError> {
    let id = rand::rng().random();
    let mut waiting = node.ours.wait(id);
    let proposed = Proposed::new(id, commit);
    // Whether it may be in a log by now.
    let maybe = AtomicBool::new(false);
    let work = propose(node, proposed, &maybe);
    let patience = sleep(node.options.timeout);
    tokio::pin!(work, patience);
    let mut answer: Option<NotDone> = None;
    loop {
        tokio::select! {
            // It came back in our own log, whatever became of the answer.
            Ok(done) = &mut waiting.done => return result(done),
            outcome = &mut work, if answer.is_none() => match outcome {
                Ok(done) => {
                    let mut applied = node.progress.applied.subscribe();
                    let _ = timeout(APPLY_TIMEOUT, applied.wait_for(|applied| *applied > done.index)).await;
                    return result(done);
                }
                Err(why) => answer = Some(why),
            },
            () = &mut patience => break,
            // It leads without a majority: the caller may ask another node.
            () = node.until_majority_is_lost() => break,
            () = node.closed.cancelled() => break,
        }
        if let Some(NotDone::Never(reason)) = answer {
            return Err(StoreError::Unavailable { reason });
        }
    }
    match answer {
        Some(NotDone::Maybe(reason)) => Err(StoreError::Unknown { reason }),
        _ if maybe.load(Ordering::Relaxed) => {
            Err(StoreError::Unknown { reason: "no majority has confirmed it in time".into() })
        }
        _ => Err(StoreError::Unavailable { reason: node.why_no_leader() }),
    }
}

/// Brings a commit to the leader. A commit that is certainly in no log is brought to the next leader; any other is sent once.
async fn propose(node: &Arc<Node>, proposed: Proposed, maybe: &AtomicBool) -> Result<Done, NotDone> {
    loop {
        maybe.store(true, Ordering::Relaxed);
        let outcome = match node.leader() {
            Leader::Me => node.propose_here(proposed.clone()).await,
            Leader::Other(_, member) => {
                let question = Question::Commit(proposed.clone());
                let asked =
                    node.peers.ask(&member.address, Lane::Client, &question, node.options.timeout).await;
                match asked {
                    Ok(Answer::Done(index, outcome)) => Ok(Done { index, outcome }),
                    Ok(Answer::Never(reason)) | Err(NoAnswer::NotSent(reason)) => Err(NotDone::Never(reason)),
                    Ok(Answer::Maybe(reason)) | Err(NoAnswer::Lost(reason)) => Err(NotDone::Maybe(reason)),
                    Ok(other) => Err(NotDone::Maybe(format!("{} answers {other:?}", member.address))),
                }
            }
            Leader::Nobody => Err(NotDone::Never(node.why_no_leader())),
        };
        match outcome {
            Err(NotDone::Never(_)) => {
                maybe.store(false, Ordering::Relaxed);
                sleep(POLL_INTERVAL).await;
            }
            outcome => return outcome,
        }
    }
}

fn result(done: Done) -> Result<Committed, StoreError> {
    match done.outcome {
        Outcome::Landed(version) => Ok(Committed { version: Version(version) }),
        Outcome::Refused(key) => Err(StoreError::Refused { key: key.into_vec() }),
    }
}

#[async_trait]
impl Store for RaftStore {
    async fn get(&self, key: &[u8]) -> Result<Option<Entry>, StoreError> {
        self.catch_up(self.node.options.timeout).await?;
        self.node.progress.own_view(&self.node.disk).await?.get(key).await
    }

    async fn snapshot(&self) -> Result<Arc<dyn Snapshot>, StoreError> {
        self.catch_up(self.node.options.timeout).await?;
        self.own_snapshot().await
    }

    async fn own_snapshot(&self) -> Result<Arc<dyn Snapshot>, StoreError> {
        self.ensure_open()?;
        Ok(Arc::new(self.node.progress.own_view(&self.node.disk).await?))
    }

    async fn commit(&self, mut commit: Commit) -> Result<Committed, StoreError> {
        commit.validate()?;
        let fence = self.fence();
        if let Some(fence) = fence {
            commit.conditions.insert(0, Condition::Version(EPOCH_KEY.to_vec(), fence.version));
        }
        let outcome = self.commit_unfenced(commit).await;
        if let (Some(fence), Err(StoreError::Refused { key })) = (fence, &outcome)
            && key == EPOCH_KEY
        {
            self.deposed(fence);
        }
        outcome
    }

    async fn watch(&self, prefix: &[u8]) -> Result<Watch, StoreError> {
        self.ensure_open()?;
        // What was acknowledged before is not to be seen again. Without a majority there is nothing to wait for.
        let patience = self.node.options.timeout.min(Duration::from_secs(2));
        if self.catch_up(patience).await.is_err() {
            self.ensure_open()?;
        }
        Ok(self.node.progress.watchers.add(prefix))
    }

    async fn lead(&self) -> Result<Epoch, StoreError> {
        self.lead_cluster().await
    }

    fn health(&self) -> Health {
        self.node.health.borrow().clone()
    }

    fn health_changes(&self) -> tokio_watch::Receiver<Health> {
        self.node.health.subscribe()
    }

    async fn examine(&self) -> Vec<crate::StoreFinding> {
        self.remarks().await
    }

    fn damage(&self) -> Option<&crate::DamageLog> {
        self.node.disk.store.damage()
    }

    fn membership(&self) -> Option<&dyn Membership> {
        Some(self)
    }

    async fn close(&self) {
        self.node.close().await;
    }
}

impl Drop for RaftStore {
    fn drop(&mut self) {
        self.node.closed.cancel();
    }
}
