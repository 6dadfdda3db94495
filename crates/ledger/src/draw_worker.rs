//! The worker that asks pool backends, on the leader.
//!
//! It takes its work from the Book and reports each step back as a command, so everything that matters is stored, and a new
//! leader goes on where the last one stopped. The order of steps for a claim:
//!
//! 1. *Asking* is committed: from now on the claim is never forgotten.
//! 2. The epoch is checked, then the backend is asked with the claim's key. A worker that finds *asking* already committed looks
//!    the key up first: an earlier request may have been done.
//! 3. The answer is bound by a commit. A former leader's commit is refused by the store.
//!
//! Requests time out. A former leader's request may still reach the backend until then, so a withdrawn claim and an address
//! that was given back end only when a look-up finds nothing after that time.

mod ask;
mod asked_at;
mod backends;
mod backoff;
mod comparisons;
mod give_back;
mod reconcile;
mod restore;
mod schedule;
mod upstream_pool;

use std::{sync::Arc, time::Duration};

use futures::{StreamExt as _, stream::FuturesUnordered};
use netstead_model::{BackendError, Event, Ident, PoolBackend, Upstream};
use netstead_store::EPOCH_KEY;
use tokio::{
    sync::broadcast,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use self::{asked_at::AskedAt, backends::not_configured, schedule::Schedule};
pub use self::{
    backends::{BackendHealth, Backends, Described, DrawStatus},
    reconcile::{Drift, DriftKind},
    restore::RestoreError,
    upstream_pool::{UpstreamError, complete_from},
};
use crate::{
    book::{DrawJob, DrawTask},
    command::{Caller, Command, DrawReply, DrawStep, Reply},
    ledger::{Ledger, Role},
    refusal::LedgerError,
    sabotage::Sabotage,
};

/// How long a step may take to be committed.
const STEP_PATIENCE: Duration = Duration::from_secs(10);

/// How patient the worker is.
#[derive(Debug, Clone, Copy)]
pub struct DrawOptions {
    /// A request takes effect within this time or never.
    pub request_time: Duration,
    /// How often a backend's objects are compared with the ledger.
    pub reconcile_interval: Duration,
}

impl Default for DrawOptions {
    fn default() -> Self {
        Self { request_time: Duration::from_secs(10), reconcile_interval: Duration::from_mins(10) }
    }
}

/// Asks the backends for as long as this process leads in `epoch`.
#[derive(Debug)]
pub struct DrawWorker {
    pub ledger: Ledger,
    pub epoch: u64,
    pub backends: Backends,
    pub options: DrawOptions,
}

/// Why a job stopped.
enum Stop {
    /// Another process leads.
    Deposed,
    /// The ledger could not commit a step. It is tried again.
    Store,
    Backend(BackendError),
}

impl From<BackendError> for Stop {
    fn from(error: BackendError) -> Self {
        Self::Backend(error)
    }
}

impl From<LedgerError> for Stop {
    fn from(error: LedgerError) -> Self {
        if error == LedgerError::NotLeading { Self::Deposed } else { Self::Store }
    }
}

/// The result of a job.
enum Outcome {
    Done,
    /// The ledger has no use for the job any more. The backend was not asked.
    Void,
    /// The backend gave an address.
    Given,
    /// Look at it again after a pause.
    Again,
    /// The backend's pool has no free address.
    Exhausted,
    /// An address went back: claims that found nothing free may try again.
    GaveBack,
    /// Several objects are under one key: compare the pool soon.
    Duplicates,
}

impl DrawWorker {
    /// Works until `stop`, or until another process leads.
    pub async fn run(&self, stop: &CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.work() => {}
        }
        self.backends.shared.status.send_replace(DrawStatus::default());
    }

    async fn work(&self) {
        let mut state = Schedule::new(self.now());
        let (mut role, mut events) = (self.ledger.role(), self.ledger.subscribe());
        let mut running = FuturesUnordered::new();
        loop {
            let leads = *role.borrow() == (Role::Leading { epoch: self.epoch });
            if !leads && !self.omits(Sabotage::DrawEpoch) {
                return;
            }
            for pool in state.due_pools(self) {
                running.push(Box::pin(self.compare(pool)) as Running<'_>);
            }
            for obstacle in state.next_obstacles(self) {
                running.push(Box::pin(self.note_obstacle(obstacle)) as Running<'_>);
            }
            for order in state.next_restores(self) {
                running.push(Box::pin(self.restore(order, state.asked_at.clone())) as Running<'_>);
            }
            for job in state.next_jobs(self) {
                running.push(Box::pin(self.job(job, state.asked_at.clone())) as Running<'_>);
            }
            let pause = state.pause(self);
            tokio::select! {
                // In this order, so that a simulated history follows from its seed alone.
                biased;
                Some(finished) = running.next(), if !running.is_empty() => {
                    if state.finish(self, finished) {
                        return;
                    }
                }
                () = self.backends.shared.wake.notified() => {}
                () = self.concerning_event(&mut events) => {}
                _ = role.changed() => {}
                () = sleep(pause) => {}
            }
        }
    }

    /// Waits for an event of a pool with a backend. One that was missed counts.
    async fn concerning_event(&self, events: &mut broadcast::Receiver<Arc<Event>>) {
        loop {
            let pool = match events.recv().await {
                Ok(event) => event.pool().cloned(),
                Err(broadcast::error::RecvError::Lagged(_)) => return,
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            };
            let book = self.ledger.book();
            let drawn = |pool: &Ident| book.upstreams().any(|(name, _)| name == pool);
            if pool.as_ref().is_some_and(drawn) {
                return;
            }
        }
    }

    fn now(&self) -> Duration {
        self.ledger.clock().monotonic()
    }

    async fn job(&self, job: DrawJob, asked_at: Arc<AskedAt>) -> Finished {
        let (key, upstream) = (job.key.clone(), job.upstream.clone());
        let Some(backend) = self.backends.get(&upstream.backend) else {
            let error = not_configured(&upstream.backend);
            return Finished::Job { upstream, key, result: Err(Stop::Backend(error)) };
        };
        let at = Target { backend: &*backend, pool: &upstream.pool, asked_at: &asked_at };
        let result = match &job.task {
            DrawTask::Ask(waiting) => self.ask(&at, waiting).await,
            DrawTask::Withdraw(waiting) => self.end_withdrawn(&at, waiting).await,
            DrawTask::GiveBack { place, early, .. } => self.give_back(&at, place, *early).await,
        };
        Finished::Job { upstream, key, result }
    }

    /// Commits one step.
    async fn step(&self, step: DrawStep) -> Result<DrawReply, Stop> {
        let caller = Caller::new("netstead").manager();
        let command = Command::Draw(Box::new(step));
        match self.ledger.submit(caller, command, STEP_PATIENCE).await?.reply {
            Reply::Drawn(reply) => Ok(reply),
            _ => Err(Stop::Store),
        }
    }

    /// Sends one request, if this process still leads.
    async fn request<T>(
        &self,
        at: &Target<'_>,
        key: &str,
        call: impl Future<Output = Result<T, BackendError>>,
    ) -> Result<T, Stop> {
        if !self.omits(Sabotage::DrawEpoch) && !self.still_leads().await? {
            return Err(Stop::Deposed);
        }
        at.asked_at.note(key, self.now());
        if let Ok(result) = timeout(self.options.request_time, call).await {
            return result.map_err(Stop::Backend);
        }
        let waited = self.options.request_time.as_secs();
        Err(Stop::Backend(BackendError::unknown(format!("it does not answer within {waited} s"))))
    }

    async fn still_leads(&self) -> Result<bool, Stop> {
        let entry = self.ledger.store().get(EPOCH_KEY).await.map_err(|_| Stop::Store)?;
        let epoch = entry.and_then(|entry| std::str::from_utf8(&entry.value).ok()?.parse::<u64>().ok());
        Ok(epoch == Some(self.epoch))
    }

    fn omits(&self, what: Sabotage) -> bool {
        self.ledger.omits(what)
    }
}

type Running<'a> = std::pin::Pin<Box<dyn Future<Output = Finished> + Send + 'a>>;

/// The backend and the pool of a job.
struct Target<'a> {
    backend: &'a dyn PoolBackend,
    pool: &'a str,
    asked_at: &'a AskedAt,
}

enum Finished {
    Job { upstream: Upstream, key: Arc<str>, result: Result<Outcome, Stop> },
    Compared(Box<reconcile::Compared>),
}
