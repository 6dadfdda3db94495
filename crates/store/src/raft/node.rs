//! [`Node`]: one node while its process runs. Starts the openraft core, and starts it again after the disk failed.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use openraft::{Config, ServerState, SnapshotPolicy};
use tokio::{
    sync::{Mutex as AsyncMutex, watch},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::{
    bootstrap,
    disk::SharedDisk,
    election::ElectionTimer,
    leader_elsewhere::Inquiry,
    log::Log,
    network::Network,
    options::RaftOptions,
    peers::{Lane, NoAnswer, Peers},
    proposer::{Done, NotDone, OwnProposals, Proposer},
    server::Incoming,
    silent_members::SilentMembers,
    snapshot_transfer,
    state_machine::{Progress, StateMachine, count},
    status::{MemberStatus, Role, Status},
    types::{Member, Metrics, NodeId, Proposed, Raft, Vote, hex},
    wire::{Answer, PROTOCOL, Question},
};
use crate::{Health, Store as _, StoreError};

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How long a core that has just started may take to say what is on its disk.
const FIRST_METRICS: Duration = Duration::from_secs(5);

/// The count of ticks without a leader at the start: long enough to be reported.
pub(super) const LONG: u64 = 1000;

/// The unit in which `maintenance` counts time.
pub(super) const TICK: Duration = Duration::from_millis(100);

/// A node, shared by everything that works for it.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) id: NodeId,
    /// See [`Status::run`].
    pub(super) run: u64,
    pub(super) options: RaftOptions,
    pub(super) disk: SharedDisk,
    pub(super) peers: Arc<Peers>,
    pub(super) progress: Arc<Progress>,
    pub(super) ours: Arc<OwnProposals>,
    /// The core that runs, if one does.
    core: watch::Sender<Option<Core>>,
    /// A copy of everything that is being received.
    pub(super) incoming: AsyncMutex<Option<Incoming>>,
    /// One change of members at a time.
    pub(super) changing: Arc<AsyncMutex<()>>,
    /// One look at the members at a time.
    pub(super) tending: AsyncMutex<()>,
    pub(super) health: watch::Sender<Health>,
    /// Counts how long no leader was heard of.
    pub(super) election_timer: ElectionTimer,
    /// Ticks for which no leader is known, since the last one or since the start.
    pub(super) leaderless: AtomicU64,
    /// Whether this node led or heard a leader since the start.
    pub(super) had_leader: AtomicBool,
    /// Ticks for which it has led without any confirmation of a majority.
    pub(super) unheard: AtomicU64,
    /// Why there is no core, or why it cannot work yet.
    pub(super) trouble: Mutex<Option<String>>,
    pub(super) removed: AtomicBool,
    pub(super) silent_members: Mutex<SilentMembers>,
    /// The leader refuses this node's new address, see `readdress`.
    pub(super) displaced: AtomicBool,
    /// It is about to stop, and takes no commit of others any more.
    pub(super) leaving: AtomicBool,
    pub(super) inquiry: Inquiry,
    /// Before there is a cluster: the nodes that answered, once all did.
    pub(super) met: Mutex<Vec<NodeId>>,
    pub(super) closed: CancellationToken,
    /// Closes when the core has been given back.
    pub(super) over: CancellationToken,
}

/// A running core.
#[derive(Clone)]
pub(super) struct Core {
    pub(super) raft: Raft,
    pub(super) proposer: Proposer,
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Core")
    }
}

/// The leader, as far as this node knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Leader {
    Me,
    Other(NodeId, Member),
    Nobody,
}

impl Node {
    pub(super) fn new(
        id: NodeId,
        options: RaftOptions,
        disk: SharedDisk,
        peers: Arc<Peers>,
        closed: CancellationToken,
    ) -> Self {
        let health = Health::Failed { reason: "this node is starting".into() };
        Self {
            id,
            run: rand::random(),
            election_timer: ElectionTimer::new(&options.timings),
            options,
            disk,
            peers,
            progress: Arc::default(),
            ours: Arc::default(),
            core: watch::Sender::new(None),
            incoming: AsyncMutex::new(None),
            changing: Arc::default(),
            tending: AsyncMutex::new(()),
            health: watch::Sender::new(health),
            leaderless: AtomicU64::new(0),
            had_leader: AtomicBool::new(false),
            unheard: AtomicU64::new(0),
            trouble: Mutex::new(None),
            removed: AtomicBool::new(false),
            silent_members: Mutex::default(),
            displaced: AtomicBool::new(false),
            leaving: AtomicBool::new(false),
            inquiry: Inquiry::default(),
            met: Mutex::default(),
            closed,
            over: CancellationToken::new(),
        }
    }

    /// What this node says of itself.
    pub(super) fn me(&self) -> Member {
        Member {
            address: self.options.address().to_owned(),
            api: self.options.api.clone(),
            name: self.options.name.clone(),
            protocol: PROTOCOL,
            format: self.options.format,
            version: env!("CARGO_PKG_VERSION").into(),
        }
    }

    pub(super) fn core(&self) -> Option<Core> {
        self.core.borrow().clone()
    }

    pub(super) fn core_changes(&self) -> watch::Receiver<Option<Core>> {
        self.core.subscribe()
    }

    pub(super) fn metrics(&self) -> Option<Metrics> {
        self.core().map(|core| core.raft.metrics().borrow().clone())
    }

    pub(super) fn leader(&self) -> Leader {
        let Some(metrics) = self.metrics() else { return Leader::Nobody };
        match metrics.current_leader {
            Some(id) if id == self.id && metrics.state == ServerState::Leader => Leader::Me,
            // A leader that has been silent for long counts as gone, although perhaps no other can be elected.
            Some(id) if id != self.id && !self.election_timer.lease_expired() => {
                let member = metrics.membership_config.membership().get_node(&id).cloned();
                member.map_or(Leader::Nobody, |member| Leader::Other(id, member))
            }
            _ => Leader::Nobody,
        }
    }

    /// Proposes on this node, which should lead. What would only wait for a majority that is not there is not begun.
    pub(super) async fn propose_here(&self, proposed: Proposed) -> Result<Done, NotDone> {
        let Some(core) = self.core() else { return Err(NotDone::Never("this node is starting".into())) };
        if self.lost_majority(&core.raft.metrics().borrow()) {
            return Err(NotDone::Never(self.why_no_leader()));
        }
        if self.leaving.load(Ordering::Relaxed) {
            return Err(NotDone::Never("this node is about to stop".into()));
        }
        core.proposer.propose(proposed, self.options.timeout).await
    }

    /// Asks the leader, for as long as `patience`, perhaps more than once: not for requests that must be done only once.
    pub(super) async fn ask_leader(&self, question: &Question, patience: Duration) -> Result<Answer, String> {
        let work = async {
            loop {
                let outcome = match self.leader() {
                    Leader::Me => return Ok(self.answer_as_leader(question).await),
                    Leader::Other(_, member) => {
                        self.peers.ask(&member.address, Lane::Client, question, patience).await
                    }
                    Leader::Nobody => Err(NoAnswer::NotSent("nobody leads".into())),
                };
                match outcome {
                    Ok(Answer::NotLeader) | Err(_) => sleep(TICK / 2).await,
                    Ok(answer) => return Ok(answer),
                }
            }
        };
        timeout(patience, work).await.unwrap_or_else(|_| Err(self.why_no_leader()))
    }

    pub(super) fn status(&self) -> Status {
        let met = self.met.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut status = Status { id: self.id, run: self.run, me: self.me(), met, ..Status::default() };
        let Some(metrics) = self.metrics() else {
            status.role = Role::Failed;
            return status;
        };
        let membership = &metrics.membership_config;
        let voters: Vec<NodeId> = membership.voter_ids().collect();
        let applied = count(metrics.last_applied.as_ref());
        status.leader = match self.leader() {
            Leader::Me if self.lost_majority(&metrics) => None,
            Leader::Me => Some(self.id),
            Leader::Other(id, _) => Some(id),
            Leader::Nobody => None,
        };
        status.term = metrics.current_term;
        status.last_log = metrics.last_log_index.map_or(0, |index| index + 1);
        status.applied = applied;
        status.membership = membership.log_id().map(|log_id| log_id.index);
        status.majority_seen_ms = metrics.millis_since_quorum_ack;
        status.role = match metrics.state {
            _ if self.removed.load(Ordering::Relaxed) => Role::Removed,
            _ if membership.log_id().is_none() => Role::Waiting,
            ServerState::Leader => Role::Leader,
            ServerState::Candidate => Role::Candidate,
            ServerState::Follower => Role::Follower,
            ServerState::Learner | ServerState::Shutdown => Role::Learner,
        };
        status.members = membership
            .nodes()
            .map(|(id, member)| {
                let matched = match &metrics.replication {
                    _ if *id == self.id => Some(status.last_log),
                    Some(replication) => replication.get(id).map(|matched| count(matched.as_ref())),
                    None => None,
                };
                let contact = if *id == self.id { Some(0) } else { self.peers.silent_for(*id) };
                MemberStatus {
                    id: *id,
                    member: member.clone(),
                    voter: voters.contains(id),
                    matched,
                    lag: matched.map(|matched| status.last_log.saturating_sub(matched)),
                    last_contact_ms: contact.map(|ticks| ticks * millis(TICK)),
                    other: self.peers.other_at(&member.address, *id),
                }
            })
            .collect();
        status
    }

    fn config(&self) -> Config {
        let timings = &self.options.timings;
        Config {
            cluster_name: "netstead".into(),
            heartbeat_interval: millis(timings.heartbeat),
            election_timeout_min: millis(timings.election.0),
            election_timeout_max: millis(timings.election.1),
            // See `election`.
            enable_elect: false,
            // Making a snapshot costs nothing here, see `StateMachine`; it only allows the log to be cut.
            snapshot_policy: SnapshotPolicy::LogsSinceLast(timings.keep),
            max_in_snapshot_log_to_keep: timings.keep,
            replication_lag_threshold: timings.keep * 2,
            purge_batch_size: 256,
            max_payload_entries: 500,
            install_snapshot_timeout: 600_000,
            ..Config::default()
        }
    }

    /// Runs the core for as long as the node is open, starting it anew whenever it stopped.
    pub(super) async fn run(self: Arc<Self>) {
        let mut pause = FIRST_PAUSE;
        while !self.closed.is_cancelled() {
            self.until_disk_is_ready().await;
            if self.closed.is_cancelled() {
                break;
            }
            match self.start().await {
                Ok(core) => {
                    pause = FIRST_PAUSE;
                    self.set_trouble(None);
                    self.core.send_replace(Some(core.clone()));
                    let forming = tokio::spawn(bootstrap::bootstrap(Arc::clone(&self), core.raft.clone()));
                    let why = self.watch_over(&core.raft).await;
                    forming.abort();
                    self.remember_members(&core.raft.metrics().borrow());
                    self.core.send_replace(None);
                    let _ = core.raft.shutdown().await;
                    if let Some(why) = why {
                        error!(%why, "The node stopped and is started again.");
                        self.set_trouble(Some(why));
                    }
                }
                Err(error) => {
                    error!(%error, "The node cannot start.");
                    self.set_trouble(Some(error.to_string()));
                }
            }
            tokio::select! {
                () = self.closed.cancelled() => break,
                () = sleep(pause) => {}
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        self.core.send_replace(None);
        self.progress.watchers.end_all();
        self.disk.store.close().await;
        self.judge_health(LONG);
        self.over.cancel();
    }

    async fn until_disk_is_ready(&self) {
        let mut health = self.disk.store.health_changes();
        tokio::select! {
            () = self.closed.cancelled() => {}
            _ = health.wait_for(|health| *health == Health::Ready) => {}
        }
    }

    async fn start(self: &Arc<Self>) -> Result<Core, StoreError> {
        snapshot_transfer::resume(&self.disk).await?;
        let disk = Arc::clone(&self.disk);
        tokio::task::spawn_blocking(move || disk.check_log())
            .await
            .unwrap_or_else(|error| Err(StoreError::Unavailable { reason: error.to_string() }))?;
        self.lead_no_more().await?;
        let applied = self.disk.applied()?;
        self.progress.reopened(count(applied.log_id.as_ref()));
        let log = Log { disk: Arc::clone(&self.disk), ours: Arc::clone(&self.ours) };
        let machine = StateMachine {
            disk: Arc::clone(&self.disk),
            progress: Arc::clone(&self.progress),
            ours: Arc::clone(&self.ours),
        };
        let network = Network { peers: Arc::clone(&self.peers) };
        let config = self.config().validate().map_err(|error| StoreError::Unavailable {
            reason: format!("the timings of the cluster do not fit together: {error}"),
        })?;
        let raft = Raft::new(self.id, Arc::new(config), network, log, machine).await.map_err(|error| {
            StoreError::Unavailable { reason: format!("the log cannot be used: {error}") }
        })?;
        self.until_core_knows_members(&raft).await?;
        let proposer = Proposer::start(raft.clone(), Arc::clone(&self.ours), self.options.timeout);
        Ok(Core { raft, proposer })
    }

    /// openraft publishes what it read from the disk a moment after it has started. Until then a member would say that it is in
    /// no cluster.
    async fn until_core_knows_members(&self, raft: &Raft) -> Result<(), StoreError> {
        if self.disk.last_log_id()?.is_none() {
            return Ok(());
        }
        let mut metrics = raft.metrics();
        let known =
            metrics.wait_for(|now| now.membership_config.log_id().is_some() || now.running_state.is_err());
        // A core that fails instead is noticed where it is watched.
        let _ = timeout(FIRST_METRICS, known).await;
        Ok(())
    }

    /// One who led when it stopped has to be elected again. openraft would let it go on leading, and answer reads from before
    /// it knows which of its entries are committed: what was acknowledged would seem to be gone for a moment.
    async fn lead_no_more(&self) -> Result<(), StoreError> {
        match self.disk.vote()? {
            Some(vote) if vote.committed && vote.leader_id.voted_for() == Some(self.id) => {
                self.disk.set_vote(&Vote { committed: false, ..vote }).await
            }
            _ => Ok(()),
        }
    }

    /// Returns when the core has stopped, with the reason, or when the node is closed.
    async fn watch_over(&self, raft: &Raft) -> Option<String> {
        let mut metrics = raft.metrics();
        let mut last = None;
        loop {
            {
                let now = metrics.borrow_and_update();
                if let Err(fatal) = &now.running_state {
                    return Some(match self.disk.store.health() {
                        Health::Failed { reason } => reason,
                        Health::Ready => fatal.to_string(),
                    });
                }
                let leads = now.current_leader.map(|id| (now.current_term, id));
                if leads.is_some() && leads != last {
                    let (term, leader) = leads.unwrap_or_default();
                    info!(term, leader = %hex(leader), me = leader == self.id, "A node leads the cluster.");
                }
                last = leads.or(last);
            }
            tokio::select! {
                () = self.closed.cancelled() => return None,
                changed = metrics.changed() => if changed.is_err() {
                    return Some("the core of the node ended".into());
                },
            }
        }
    }

    /// Lets another node lead if this one does, stops everything and gives the files back.
    pub(super) async fn close(&self) {
        if !self.closed.is_cancelled() {
            self.transfer_leadership().await;
        }
        self.closed.cancel();
        if timeout(Duration::from_secs(30), self.over.cancelled()).await.is_err() {
            warn!("The node did not stop in time.");
        }
    }
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
