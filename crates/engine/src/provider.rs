//! The worker of one provider: a loop of passes, and the requests that it answers between them.
//!
//! - `pass`: one pass. `zone_cache`, `names_to_read`: reading. `write`: writing. `persist`: the store.
//! - `late_writes`, `fence_catch_up`: writes that arrive late, and fences.
//! - `adopt`, `undo`, `what_if`: what operators ask for. `probe`: reads for the doctor.
//! - `snapshot`, `events`: what others see.

mod adopt;
mod events;
mod fence_catch_up;
mod late_writes;
mod names_to_read;
mod pass;
mod persist;
mod probe;
mod snapshot;
mod undo;
mod what_if;
mod write;
mod zone_cache;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use netstead_model::{Ident, Name, Span};
use netstead_plan::{Case, Digest, Guard, Owned, Plan, Settings};
use tokio::{
    sync::{Notify, mpsc, oneshot},
    time::sleep,
};
use tokio_util::sync::CancellationToken;

pub use self::{
    adopt::{AdoptedValue, Adoption, AdoptionReport, LeftValue},
    pass::PassReport,
};
use self::{late_writes::RecentlyRemoved, write::Poison, zone_cache::ZoneCache};
pub(crate) use self::{
    persist::{StoredProvider, load_owned},
    snapshot::{ProviderSnapshot, PublishedSnapshot},
    undo::Undo,
    what_if::Overrides,
};
use crate::{
    EngineError, ProviderSetup,
    background_task::BackgroundTask,
    engine_state::EngineState,
    fenced_store::FencedStore,
    history::{EngineEvent, EngineEventKind, Stored},
};

/// How often a pass follows at once because the one before changed something.
const AT_ONCE: u32 = 3;
/// The longest wait after an error.
const LONGEST_BACKOFF: Duration = Duration::from_mins(5);

/// The longest pause that a server may ask for.
const LONGEST_PAUSE: Duration = Duration::from_hours(1);

/// How long a server may take to end a session.
const CLOSING: Duration = Duration::from_secs(2);

/// The running loop of one provider.
#[derive(Debug, Clone)]
pub(crate) struct ProviderHandle {
    pub(crate) setup: ProviderSetup,
    pub(crate) snapshot: Arc<PublishedSnapshot>,
    asks: mpsc::Sender<WorkerRequest>,
    nudges: Arc<Nudges>,
    running: BackgroundTask,
}

/// Signals to a loop that do not wait for an answer.
#[derive(Debug, Default)]
struct Nudges {
    wake: Notify,
    /// Zones that a former leader may have written to late.
    doubts: Mutex<BTreeSet<Name>>,
}

enum WorkerRequest {
    Pass(oneshot::Sender<PassReport>),
    /// Asks for the input of a what-if plan.
    WhatIf(Box<Overrides>, oneshot::Sender<Result<Case, String>>),
    Approve {
        hash: Digest,
        by: String,
        done: oneshot::Sender<Result<PassReport, EngineError>>,
    },
    Adopt {
        take: Adoption,
        dry: bool,
        by: String,
        done: oneshot::Sender<Result<AdoptionReport, EngineError>>,
    },
    Undo {
        undo: Undo,
        dry: bool,
        done: oneshot::Sender<Result<Undoing, EngineError>>,
    },
}

/// A plan that takes something back, and the report of its pass unless it was a dry run.
pub(crate) type Undoing = (Arc<Plan>, Option<PassReport>);

/// Callers that wait for the next pass.
type Waiting = Vec<Box<dyn FnOnce(&PassReport) + Send>>;

impl ProviderHandle {
    pub(crate) async fn start(shared: &Arc<EngineState>, setup: ProviderSetup) -> Result<Self, EngineError> {
        let nudges = Arc::new(Nudges::default());
        let worker = Worker::load(shared.clone(), setup.clone(), nudges.clone()).await?;
        let snapshot = worker.snapshot.clone();
        let (asks, inbox) = mpsc::channel(64);
        let stop = shared.stop.child_token();
        let running = BackgroundTask::start(stop.clone(), worker.run(inbox, stop));
        Ok(Self { setup, snapshot, asks, nudges, running })
    }

    pub(crate) fn longest_grace(&self) -> Span {
        self.setup.settings.grace.max(self.setup.settings.ended_grace)
    }

    /// Makes the loop start a pass soon.
    pub(crate) fn wake(&self) {
        self.nudges.wake.notify_one();
    }

    pub(crate) fn mark_zone_doubtful(&self, zone: Name) {
        self.nudges.doubts.lock().unwrap_or_else(PoisonError::into_inner).insert(zone);
        self.wake();
    }

    /// Runs a pass that begins after this call.
    pub(crate) async fn pass(&self) -> Result<PassReport, EngineError> {
        let (done, report) = oneshot::channel();
        self.asks.send(WorkerRequest::Pass(done)).await.map_err(|_| EngineError::Closed)?;
        report.await.map_err(|_| EngineError::Closed)
    }

    pub(crate) async fn approve(&self, hash: Digest, by: &str) -> Result<PassReport, EngineError> {
        let (done, report) = oneshot::channel();
        let ask = WorkerRequest::Approve { hash, by: by.to_owned(), done };
        self.asks.send(ask).await.map_err(|_| EngineError::Closed)?;
        report.await.map_err(|_| EngineError::Closed)?
    }

    /// Takes values over, or says which, and runs a pass.
    pub(crate) async fn request_adoption(
        &self,
        take: Adoption,
        dry: bool,
        by: &str,
    ) -> Result<AdoptionReport, EngineError> {
        let (done, taken) = oneshot::channel();
        let ask = WorkerRequest::Adopt { take, dry, by: by.to_owned(), done };
        self.asks.send(ask).await.map_err(|_| EngineError::Closed)?;
        taken.await.map_err(|_| EngineError::Closed)?
    }

    /// Takes something back whatever is paused, or says what that would be.
    pub(crate) async fn undo(&self, undo: Undo, dry: bool) -> Result<Undoing, EngineError> {
        let (done, undone) = oneshot::channel();
        self.asks.send(WorkerRequest::Undo { undo, dry, done }).await.map_err(|_| EngineError::Closed)?;
        undone.await.map_err(|_| EngineError::Closed)?
    }

    /// Tells the loop to end. A write that is on its way ends by itself, and is then reported to the new leader.
    pub(crate) async fn stop_gracefully(&self) {
        self.running.stop_gracefully().await;
    }

    /// How many zones may hold something else than what is known of them.
    pub(crate) fn doubtful(&self) -> usize {
        let told = self.nudges.doubts.lock().unwrap_or_else(PoisonError::into_inner).len();
        told.max(self.snapshot.read().doubtful)
    }

    /// Ends the loop. A server that keeps it waiting is left as a crash would leave it.
    pub(crate) async fn stop_or_abort(&self) {
        self.running.stop_or_abort().await;
    }
}

/// One provider, and all that its passes remember.
struct Worker {
    shared: Arc<EngineState>,
    setup: ProviderSetup,
    settings: Arc<Settings>,
    fenced_store: FencedStore,
    snapshot: Arc<PublishedSnapshot>,
    nudges: Arc<Nudges>,
    owned: Arc<Owned>,
    guard: Guard,
    /// Names whose values in the store are not those here.
    dirty: BTreeSet<Name>,
    guard_dirty: bool,
    zone_cache: ZoneCache,
    poison: BTreeMap<(Name, Name), Poison>,
    recently_removed: RecentlyRemoved,
    /// Plans in the store.
    plans: Stored,
    /// Zones that took a write of ours since this leader began.
    written: BTreeSet<Name>,
    /// The renames of sources that our values know of.
    renamed: Arc<Vec<(Ident, Ident)>>,
    failures: u32,
    /// When the pause is over that the server asked for, on the monotonic clock.
    not_before: Option<Duration>,
    /// Engine time at which the next name may go because its workload ended.
    next_end: Option<u64>,
}

impl Worker {
    fn name(&self) -> &Ident {
        &self.settings.provider
    }

    async fn run(mut self, mut inbox: mpsc::Receiver<WorkerRequest>, stop: CancellationToken) {
        let mut inventory = self.shared.inventory.subscribe();
        let nudges = self.nudges.clone();
        let mut waiting = Waiting::new();
        let mut at_once = 0;
        while !stop.is_cancelled() {
            inventory.mark_unchanged();
            let report = self.pass().await;
            waiting.drain(..).for_each(|tell| tell(&report));
            let asked = report.retry_after.map(|pause| pause.min(LONGEST_PAUSE));
            self.not_before = asked.map(|pause| self.shared.clock.monotonic().saturating_add(pause));
            let again = report.again && asked.is_none();
            at_once = if again && at_once < AT_ONCE { at_once + 1 } else { 0 };
            let now = at_once > 0 || report.unfinished;
            let pause = if now { Duration::ZERO } else { self.delay_until_next_pass(&report) };
            let gated = report.error.is_some() || report.retry_after.is_some();
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                ask = inbox.recv() => match ask {
                    Some(ask) => self.handle_request(ask, &mut waiting).await,
                    None => break,
                },
                changed = inventory.changed(), if !gated => if changed.is_err() { break },
                () = nudges.wake.notified() => {}
                () = sleep(pause) => {}
            }
            while let Ok(ask) = inbox.try_recv() {
                self.handle_request(ask, &mut waiting).await;
            }
        }
        if tokio::time::timeout(CLOSING, self.setup.provider.close()).await.is_err() {
            tracing::debug!(provider = %self.name(), "The server did not take the session back in time; it ends by itself.");
        }
    }

    /// How long nothing needs to happen by itself.
    fn delay_until_next_pass(&mut self, report: &PassReport) -> Duration {
        if report.error.is_none() && report.zone_errors.is_empty() {
            self.failures = 0;
            let now = self.shared.now().millis;
            let end = self.next_end.and_then(|end| end.checked_sub(now)).map(Duration::from_millis);
            return end.map_or(self.setup.interval, |end| end.min(self.setup.interval));
        }
        self.failures = self.failures.saturating_add(1);
        let backoff = Duration::from_millis(500 << self.failures.min(12)).min(LONGEST_BACKOFF);
        let asked = report.retry_after.map(|pause| pause.min(LONGEST_PAUSE));
        asked.unwrap_or(backoff.min(self.setup.interval.max(Duration::from_secs(1))))
    }

    /// Does what was asked for. The caller is answered at once if nothing changes, else after the next pass.
    async fn handle_request(&mut self, ask: WorkerRequest, waiting: &mut Waiting) {
        match ask {
            WorkerRequest::Pass(done) => waiting.push(Box::new(|report| {
                let _ = done.send(report.clone());
            })),
            WorkerRequest::WhatIf(world, done) => {
                let _ = done.send(self.assemble_case(*world).await);
            }
            WorkerRequest::Approve { hash, by, done } => match self.approve(hash, &by).await {
                Ok(()) => waiting.push(Box::new(|report| {
                    let _ = done.send(Ok(report.clone()));
                })),
                Err(error) => {
                    let _ = done.send(Err(error));
                }
            },
            WorkerRequest::Adopt { take, dry, by, done } => match self.adopt_values(&take, dry, &by).await {
                Ok(taken) if !dry => waiting.push(Box::new(|report| {
                    let _ = done.send(Ok(AdoptionReport { report: Some(report.clone()), ..taken }));
                })),
                answer => {
                    let _ = done.send(answer);
                }
            },
            WorkerRequest::Undo { undo, dry, done } => match self.undo(&undo, dry).await {
                Ok(undone) if !dry => waiting.push(Box::new(|_| {
                    let _ = done.send(Ok(undone));
                })),
                answer => {
                    let _ = done.send(answer);
                }
            },
        }
    }

    /// Approves parked changes, once, and stores that.
    async fn approve(&mut self, hash: Digest, by: &str) -> Result<(), EngineError> {
        let now = self.shared.now();
        let mut guard = self.guard.clone();
        guard.approve(hash, now).map_err(|_| EngineError::NoSuchPlan { hash: hash.to_string() })?;
        std::mem::swap(&mut self.guard, &mut guard);
        self.guard_dirty = true;
        if let Err(error) = self.persist().await {
            self.guard = guard;
            return Err(error);
        }
        let text = format!("{by} approved {hash} on {}", self.name());
        self.shared
            .record_event(EngineEvent::new(EngineEventKind::Approved, text).on(self.name()).by(by))
            .await;
        Ok(())
    }
}
