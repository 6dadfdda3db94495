//! Puts commits into the log: commits that wait at the same time share one entry, and with it every flush.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use openraft::{
    EntryPayload,
    error::{ClientWriteError, RaftError},
};
use rand::Rng as _;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch},
    time::timeout,
};

use super::types::{Entry, MAX_COMMITS, Outcome, Proposal, Proposed, Raft};

/// About the most bytes in one entry; a single commit may be larger.
const MAX_BYTES: usize = 1 << 20;

/// Entries on their way at once. While one is being flushed here the one before it is being flushed elsewhere; with more,
/// each would carry less.
const AT_ONCE: usize = 3;

/// Open requests of this node: its proposals that are not in the log yet, and its commits that have no answer yet.
#[derive(Debug, Default)]
pub(super) struct OwnProposals {
    proposed: Mutex<HashSet<u64>>,
    waiting: Mutex<HashMap<u64, oneshot::Sender<Done>>>,
}

/// A commit that was applied: the index of its entry, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Done {
    pub(super) index: u64,
    pub(super) outcome: Outcome,
}

impl OwnProposals {
    /// From now on these count as proposed.
    pub(super) fn appended(&self, entries: &[Entry]) {
        let mut proposed = lock(&self.proposed);
        if proposed.is_empty() {
            return;
        }
        for entry in entries {
            if let EntryPayload::Normal(proposal) = &entry.payload {
                proposed.remove(&proposal.id);
            }
        }
    }

    pub(super) fn applied(&self, id: u64, index: u64, outcome: Outcome) {
        if let Some(waiting) = lock(&self.waiting).remove(&id) {
            let _ = waiting.send(Done { index, outcome });
        }
    }

    /// Resolves when the commit with this id is applied on this node.
    pub(super) fn wait(self: &Arc<Self>, id: u64) -> PendingCommit {
        let (sender, done) = oneshot::channel();
        lock(&self.waiting).insert(id, sender);
        PendingCommit { ours: Arc::clone(self), id, done }
    }
}

/// An entry in the list of waiting commits, removed when it is dropped.
pub(super) struct PendingCommit {
    ours: Arc<OwnProposals>,
    id: u64,
    pub(super) done: oneshot::Receiver<Done>,
}

impl Drop for PendingCommit {
    fn drop(&mut self) {
        lock(&self.ours.waiting).remove(&self.id);
    }
}

/// Why a proposal has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NotDone {
    /// It is in no log and never will be: it may be tried again.
    Never(String),
    /// It may be in a log.
    Maybe(String),
}

type Answer = oneshot::Sender<Result<Done, NotDone>>;

/// A commit in the queue, which its owner may withdraw until it is taken out.
struct Ticket {
    proposed: Proposed,
    state: Arc<AtomicU8>,
    answer: Answer,
}

const QUEUED: u8 = 0;
const TAKEN: u8 = 1;
const WITHDRAWN: u8 = 2;

fn transition_ticket(state: &AtomicU8, as_what: u8) -> bool {
    state.compare_exchange(QUEUED, as_what, Ordering::AcqRel, Ordering::Acquire).is_ok()
}

struct Withdraw(Arc<AtomicU8>);

impl Drop for Withdraw {
    fn drop(&mut self) {
        transition_ticket(&self.0, WITHDRAWN);
    }
}

/// Counts a caller that waits for an answer.
struct WaitCounter<'a>(&'a watch::Sender<usize>);

impl<'a> WaitCounter<'a> {
    fn new(waiting: &'a watch::Sender<usize>) -> Self {
        waiting.send_modify(|waiting| *waiting += 1);
        Self(waiting)
    }
}

impl Drop for WaitCounter<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|waiting| *waiting = waiting.saturating_sub(1));
    }
}

/// The way into the log on the node that leads.
#[derive(Debug, Clone)]
pub(super) struct Proposer {
    queue: mpsc::UnboundedSender<Ticket>,
    /// How many callers wait for an answer.
    waiting: watch::Sender<usize>,
}

impl Proposer {
    /// Works until `raft` is gone or every handle is dropped.
    pub(super) fn start(raft: Raft, ours: Arc<OwnProposals>, patience: Duration) -> Self {
        let (queue, tickets) = mpsc::unbounded_channel();
        tokio::spawn(run(raft, ours, tickets, patience));
        Self { queue, waiting: watch::Sender::new(0) }
    }

    /// Returns when everything that was proposed has its answer.
    pub(super) async fn until_idle(&self) {
        let _ = self.waiting.subscribe().wait_for(|waiting| *waiting == 0).await;
    }

    /// Proposes and waits for it to be applied, at most `patience`.
    pub(super) async fn propose(&self, proposed: Proposed, patience: Duration) -> Result<Done, NotDone> {
        let state = Arc::new(AtomicU8::new(QUEUED));
        let (answer, answered) = oneshot::channel();
        let ticket = Ticket { proposed, state: Arc::clone(&state), answer };
        let _waits = WaitCounter::new(&self.waiting);
        // Who gives up must not leave it in the queue, to land long after.
        let _withdraw = Withdraw(Arc::clone(&state));
        if self.queue.send(ticket).is_err() {
            return Err(NotDone::Never("this node is starting".into()));
        }
        match timeout(patience, answered).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(NotDone::Maybe("this node stopped before it answered".into())),
            Err(_) if transition_ticket(&state, WITHDRAWN) => {
                Err(NotDone::Never("the commits before it find no majority".into()))
            }
            Err(_) => Err(NotDone::Maybe("no majority has confirmed it in time".into())),
        }
    }
}

async fn run(
    raft: Raft,
    ours: Arc<OwnProposals>,
    mut tickets: mpsc::UnboundedReceiver<Ticket>,
    patience: Duration,
) {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    while let Some(first) = tickets.recv().await {
        // While all places are taken the queue grows, and the next entry with it.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let group = gather(first, &mut tickets);
        if !group.is_empty() {
            tokio::spawn(send(raft.clone(), Arc::clone(&ours), group, patience, place));
        }
    }
}

fn gather(first: Ticket, tickets: &mut mpsc::UnboundedReceiver<Ticket>) -> Vec<Ticket> {
    let mut group = Vec::new();
    let mut bytes = 0;
    let mut next = Some(first);
    while let Some(ticket) = next {
        if transition_ticket(&ticket.state, TAKEN) {
            bytes += ticket.proposed.bytes();
            group.push(ticket);
        }
        let full = group.len() >= MAX_COMMITS || bytes >= MAX_BYTES;
        next = if full { None } else { tickets.try_recv().ok() };
    }
    group
}

async fn send(
    raft: Raft,
    ours: Arc<OwnProposals>,
    group: Vec<Ticket>,
    patience: Duration,
    place: OwnedSemaphorePermit,
) {
    let id = rand::rng().random();
    let (commits, answers): (Vec<Proposed>, Vec<Answer>) =
        group.into_iter().map(|ticket| (ticket.proposed, ticket.answer)).unzip();
    lock(&ours.proposed).insert(id);
    // Without a majority openraft waits for ever.
    let answered = timeout(patience, raft.client_write(Proposal { id, commits })).await;
    let never = lock(&ours.proposed).remove(&id);
    drop(place);
    match answered {
        Ok(Ok(response)) => {
            let index = response.log_id.index;
            for (answer, outcome) in answers.into_iter().zip(response.data) {
                let _ = answer.send(Ok(Done { index, outcome }));
            }
        }
        Ok(Err(error)) => {
            let reason = match error {
                RaftError::APIError(ClientWriteError::ForwardToLeader(_)) => "this node does not lead".into(),
                error => error.to_string(),
            };
            // openraft says the same of a proposal it never took and of one that was overwritten, which another node may
            // still have. Only what never reached the log is certain.
            let why = if never { NotDone::Never(reason) } else { NotDone::Maybe(reason) };
            for answer in answers {
                let _ = answer.send(Err(why.clone()));
            }
        }
        Err(_) => {
            let why = NotDone::Maybe("no majority has confirmed it in time".into());
            for answer in answers {
                let _ = answer.send(Err(why.clone()));
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
