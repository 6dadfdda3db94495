//! The loop of one provider: passes, and the requests that it answers between them. It knows nothing of DNS.
//!
//! A [`Pass`] says what is read, planned and written: `dns_pass` for DNS servers, `ipam_pass` for IPAM systems. The loop does
//! the rest, and does it once for both:
//!
//! - `pass`: one pass, isolated from panics. `carry_out`: intent, write, outcome, history.
//! - `hold_back`: pauses, and changes that the server rejected. `write_guard`: leadership and the time of a pass.
//! - `persist`: the store. `snapshot`, `events`, `report`: what others see.

mod carry_out;
mod change_log;
mod events;
mod held_by;
mod hold_back;
mod loop_plan;
mod pass;
mod persist;
mod report;
mod snapshot;
mod undo;
mod write_guard;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    future::Future,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use netstead_model::{Ident, UnitOutcome};
use netstead_plan::{Digest, Guard, Mode};
use netstead_store::Write;
use tokio::{
    sync::{Notify, mpsc, oneshot},
    time::sleep,
};
use tokio_util::sync::CancellationToken;

pub use self::{held_by::HeldBy, loop_plan::ProviderPlan, report::PassReport};
use self::{hold_back::Poison, report::AskedPause};
pub(crate) use self::{
    loop_plan::{LoopPlan, LoopStep},
    pass::{Stopped, blocking},
    persist::StoredProvider,
    snapshot::{PublishedSnapshot, Snapshot},
    undo::{Undo, Undoing},
    write_guard::{PATIENCE, WRITING, check_leadership},
};
use crate::{
    EngineError,
    background_task::BackgroundTask,
    engine_state::EngineState,
    fenced_store::FencedStore,
    history::{EngineEvent, EngineEventKind, Stored},
    keys::Class,
    pause::Pause,
};

/// How often a pass follows at once because the one before changed something.
const AT_ONCE: u32 = 3;
/// The longest wait after an error.
const LONGEST_BACKOFF: Duration = Duration::from_mins(5);

/// The longest pause that a server may ask for.
const LONGEST_PAUSE: Duration = Duration::from_hours(1);

/// How long a server may take to end a session.
const CLOSING: Duration = Duration::from_secs(2);

/// The configuration of a provider, as far as the loop needs it.
#[derive(Debug, Clone)]
pub(crate) struct LoopSetup {
    pub(crate) name: Ident,
    /// The group it belongs to.
    pub(crate) group: Option<Ident>,
    pub(crate) mode: Mode,
    /// How often it is looked at anyway.
    pub(crate) interval: Duration,
    /// The name it had before.
    pub(crate) was: Option<Ident>,
    pub(crate) kind: &'static str,
    pub(crate) server: String,
}

/// One kind of pass. Its functions take the whole [`Worker`]: its own state is `worker.state`.
pub(crate) trait Pass: Sized + Send + Sync + 'static {
    const CLASS: Class;
    type Setup: fmt::Debug + Clone + Send + Sync;
    type Plan: LoopPlan;
    /// Published for readers, beside what the loop publishes.
    type View: fmt::Debug + Clone + Default + Send + Sync;
    /// Requests that only this kind answers.
    type Ask: Send;
    /// Changes that the intent made, for the outcome.
    type Intent: Send + Sync;

    fn describe(setup: &Self::Setup) -> LoopSetup;

    /// Loads what it remembers. `stored` is what the store knows of the provider; it is stored again if it changes.
    fn load(
        shared: &Arc<EngineState>,
        setup: &Self::Setup,
        fenced_store: &FencedStore,
        stored: &mut StoredProvider,
    ) -> impl Future<Output = Result<Self, EngineError>> + Send;

    /// Publishes what it knows now.
    fn publish(&self, view: &mut Self::View);

    /// Called after every change of the snapshot, for what is derived from it.
    fn snapshot_changed(_view: &mut Self::View) {}

    /// How many places may hold something else than what was read.
    fn doubtful(&self) -> usize;

    /// Carries our reasons over to the new name of a source.
    fn rename_source(&mut self, was: &Ident, name: &Ident);

    /// The writes that bring the store up to date with it.
    fn writes(&self, provider: &Ident) -> Vec<Write>;

    /// Called once those writes are durable.
    fn persisted(&mut self);

    /// Reads, and plans from inventory and server as they are now.
    fn plan(
        worker: &mut Worker<Self>,
        report: &mut PassReport,
    ) -> impl Future<Output = Result<Self::Plan, Stopped>> + Send;

    /// The pause that holds back a step by itself, such as that of its zone.
    fn paused_by(worker: &Worker<Self>, step: &<Self::Plan as LoopPlan>::Step) -> Option<Pause>;

    /// Everything the plan will write is ours from now on; the store learns it next.
    fn record_intent(worker: &mut Worker<Self>, plan: &Self::Plan) -> Self::Intent;

    /// Writes, and returns the outcome of every step.
    fn write(
        worker: &mut Worker<Self>,
        plan: &Self::Plan,
        report: &mut PassReport,
    ) -> impl Future<Output = Vec<UnitOutcome>> + Send;

    fn record_outcome(
        worker: &mut Worker<Self>,
        plan: &Self::Plan,
        intent: &Self::Intent,
        outcomes: &[UnitOutcome],
    );

    /// The label of a step in numbers.
    fn label(worker: &Worker<Self>, step: &<Self::Plan as LoopPlan>::Step) -> String;

    /// Does what was asked for. What is pushed to `waiting` is answered after the next pass.
    fn answer(
        worker: &mut Worker<Self>,
        ask: Self::Ask,
        waiting: &mut Waiting,
    ) -> impl Future<Output = ()> + Send;

    /// Gives back what the server keeps for us.
    fn close(setup: &Self::Setup) -> impl Future<Output = ()> + Send;
}

/// The running loop of one provider.
pub(crate) struct LoopHandle<P: Pass> {
    pub(crate) setup: P::Setup,
    pub(crate) snapshot: Arc<PublishedSnapshot<P>>,
    asks: mpsc::Sender<WorkerRequest<P::Ask>>,
    nudges: Arc<Nudges>,
    running: BackgroundTask,
}

impl<P: Pass> Clone for LoopHandle<P> {
    fn clone(&self) -> Self {
        Self {
            setup: self.setup.clone(),
            snapshot: self.snapshot.clone(),
            asks: self.asks.clone(),
            nudges: self.nudges.clone(),
            running: self.running.clone(),
        }
    }
}

impl<P: Pass> fmt::Debug for LoopHandle<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoopHandle").field("setup", &self.setup).finish_non_exhaustive()
    }
}

/// Signals to a loop that do not wait for an answer.
#[derive(Debug, Default)]
pub(crate) struct Nudges {
    wake: Notify,
    /// Places that a former leader may have written to late: zones, or a whole server.
    pub(crate) doubts: Mutex<BTreeSet<String>>,
}

pub(crate) enum WorkerRequest<A> {
    Pass(oneshot::Sender<PassReport>),
    Approve { hash: Digest, by: String, done: oneshot::Sender<Result<PassReport, EngineError>> },
    Other(A),
}

/// Callers that wait for the next pass.
pub(crate) type Waiting = Vec<Box<dyn FnOnce(&PassReport) + Send>>;

impl<P: Pass> LoopHandle<P> {
    pub(crate) async fn start(shared: &Arc<EngineState>, setup: P::Setup) -> Result<Self, EngineError> {
        let nudges = Arc::new(Nudges::default());
        let worker = Worker::<P>::load(shared.clone(), setup.clone(), nudges.clone()).await?;
        let snapshot = worker.snapshot.clone();
        let (asks, inbox) = mpsc::channel(64);
        let stop = shared.stop.child_token();
        let running = BackgroundTask::start(stop.clone(), worker.run(inbox, stop));
        Ok(Self { setup, snapshot, asks, nudges, running })
    }

    /// Makes the loop start a pass soon.
    pub(crate) fn wake(&self) {
        self.nudges.wake.notify_one();
    }

    pub(crate) fn mark_doubtful(&self, place: &str) {
        self.nudges.doubts.lock().unwrap_or_else(PoisonError::into_inner).insert(place.to_owned());
        self.wake();
    }

    /// Runs a pass that begins after this call.
    pub(crate) async fn pass(&self) -> Result<PassReport, EngineError> {
        self.request(WorkerRequest::Pass).await
    }

    pub(crate) async fn approve(&self, hash: Digest, by: &str) -> Result<PassReport, EngineError> {
        self.request(|done| WorkerRequest::Approve { hash, by: by.to_owned(), done }).await?
    }

    /// Asks for something that only this kind of loop does.
    pub(crate) async fn ask<T>(
        &self,
        ask: impl FnOnce(oneshot::Sender<T>) -> P::Ask,
    ) -> Result<T, EngineError> {
        self.request(|done| WorkerRequest::Other(ask(done))).await
    }

    async fn request<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<T>) -> WorkerRequest<P::Ask>,
    ) -> Result<T, EngineError> {
        let (done, answer) = oneshot::channel();
        self.asks.send(request(done)).await.map_err(|_| EngineError::Closed)?;
        answer.await.map_err(|_| EngineError::Closed)
    }

    /// Tells the loop to end. A write that is on its way ends by itself, and is then reported to the new leader.
    pub(crate) async fn stop_gracefully(&self) {
        self.running.stop_gracefully().await;
    }

    /// How many places may hold something else than what is known of them.
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
pub(crate) struct Worker<P: Pass> {
    pub(crate) shared: Arc<EngineState>,
    pub(crate) setup: P::Setup,
    pub(crate) about: LoopSetup,
    pub(crate) fenced_store: FencedStore,
    pub(crate) snapshot: Arc<PublishedSnapshot<P>>,
    pub(crate) nudges: Arc<Nudges>,
    pub(crate) guard: Guard,
    pub(crate) guard_dirty: bool,
    poison: BTreeMap<PlaceOf<P>, Poison<StepOf<P>>>,
    /// Plans in the store.
    plans: Stored,
    /// The renames of sources that our state knows of.
    renamed: Arc<Vec<(Ident, Ident)>>,
    failures: u32,
    /// When the pause is over that the server asked for, on the monotonic clock.
    pub(crate) not_before: Option<Duration>,
    /// Engine time at which the next thing may go because its workload ended.
    pub(crate) next_end: Option<u64>,
    /// State of this kind of pass.
    pub(crate) state: P,
}

pub(crate) type StepOf<P> = <<P as Pass>::Plan as LoopPlan>::Step;
pub(crate) type PlaceOf<P> = <StepOf<P> as LoopStep>::Place;

impl<P: Pass> Worker<P> {
    pub(crate) fn name(&self) -> &Ident {
        &self.about.name
    }

    async fn run(mut self, mut inbox: mpsc::Receiver<WorkerRequest<P::Ask>>, stop: CancellationToken) {
        let mut inventory = self.shared.inventory.subscribe();
        let nudges = self.nudges.clone();
        let mut waiting = Waiting::new();
        let mut at_once = 0;
        while !stop.is_cancelled() {
            inventory.mark_unchanged();
            let report = self.pass().await;
            let slower = report.asked_pause.is_some();
            let again = report.again && !slower;
            let now = again && at_once < AT_ONCE || report.unfinished;
            let pause = if now { Duration::ZERO } else { self.delay_until_next_pass(&report) };
            // Without a word of the server how long, it is left alone as long as after any other failure.
            self.not_before = slower.then(|| self.shared.clock.monotonic().saturating_add(pause));
            // A caller hears of the pass that writes, not of the one that found out how.
            if !(report.caught_up && again && at_once < AT_ONCE) {
                waiting.drain(..).for_each(|tell| tell(&report));
            }
            at_once = if again && at_once < AT_ONCE { at_once + 1 } else { 0 };
            let gated = report.error.is_some() || slower;
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
        if tokio::time::timeout(CLOSING, P::close(&self.setup)).await.is_err() {
            tracing::debug!(provider = %self.name(), "The server did not take the session back in time; it ends by itself.");
        }
    }

    /// How long nothing needs to happen by itself.
    fn delay_until_next_pass(&mut self, report: &PassReport) -> Duration {
        let interval = self.about.interval;
        if report.error.is_none() && report.zone_errors.is_empty() {
            self.failures = 0;
            let now = self.shared.now().millis;
            let end = self.next_end.and_then(|end| end.checked_sub(now)).map(Duration::from_millis);
            return end.map_or(interval, |end| end.min(interval));
        }
        self.failures = self.failures.saturating_add(1);
        let backoff = Duration::from_millis(500 << self.failures.min(12)).min(LONGEST_BACKOFF);
        match report.asked_pause {
            Some(AskedPause::For(pause)) => pause.min(LONGEST_PAUSE),
            Some(AskedPause::Unsaid) | None => backoff.min(interval.max(Duration::from_secs(1))),
        }
    }

    /// Does what was asked for. The caller is answered at once if nothing changes, else after the next pass.
    async fn handle_request(&mut self, ask: WorkerRequest<P::Ask>, waiting: &mut Waiting) {
        match ask {
            WorkerRequest::Pass(done) => waiting.push(Box::new(|report| {
                let _ = done.send(report.clone());
            })),
            WorkerRequest::Approve { hash, by, done } => match self.approve(hash, &by).await {
                Ok(()) => waiting.push(Box::new(|report| {
                    let _ = done.send(Ok(report.clone()));
                })),
                Err(error) => {
                    let _ = done.send(Err(error));
                }
            },
            WorkerRequest::Other(ask) => P::answer(self, ask, waiting).await,
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
