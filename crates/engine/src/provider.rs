//! The loop of one provider: look, decide, act.

mod actual;
mod expected;
mod imagine;
mod keep;
mod lately;
mod outlook;
mod pass;
mod probe;
mod rise;
mod take;
mod tell;
mod undo;
mod write;

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

use self::{actual::Seen, lately::Lately, write::Poison};
pub(crate) use self::{
    imagine::World,
    keep::{Known, load_owned},
    outlook::{Outlook, Seen as SeenOutlook},
    undo::Undo,
};
pub use self::{
    pass::PassReport,
    take::{LeftValue, Take, Taken, TakenValue},
};
use crate::{
    EngineError, ProviderSetup,
    history::{Happened, Occasion, Stored},
    running::Running,
    shared::Shared,
    shelf::Shelf,
};

/// How often a pass follows at once because the one before changed something.
const AT_ONCE: u32 = 3;
/// The longest wait after an error.
const LONGEST_BACKOFF: Duration = Duration::from_mins(5);

/// The running loop of one provider.
#[derive(Debug, Clone)]
pub(crate) struct ProviderHandle {
    pub(crate) setup: ProviderSetup,
    pub(crate) outlook: Arc<Outlook>,
    asks: mpsc::Sender<Ask>,
    nudges: Arc<Nudges>,
    running: Running,
}

/// What others tell a loop without waiting for it.
#[derive(Debug, Default)]
struct Nudges {
    wake: Notify,
    /// Zones that somebody who no longer leads may have written to.
    doubts: Mutex<BTreeSet<Name>>,
}

enum Ask {
    Pass(oneshot::Sender<PassReport>),
    /// What would a plan be made of, in another world?
    Imagine(Box<World>, oneshot::Sender<Result<Case, String>>),
    Approve {
        hash: Digest,
        by: String,
        done: oneshot::Sender<Result<PassReport, EngineError>>,
    },
    Take {
        take: Take,
        dry: bool,
        by: String,
        done: oneshot::Sender<Result<Taken, EngineError>>,
    },
    Undo {
        undo: Undo,
        dry: bool,
        done: oneshot::Sender<Result<Undoing, EngineError>>,
    },
}

/// A plan that takes something back, and what came of it unless that was only asked for.
pub(crate) type Undoing = (Arc<Plan>, Option<PassReport>);

/// Who waits for the next pass.
type Waiting = Vec<Box<dyn FnOnce(&PassReport) + Send>>;

impl ProviderHandle {
    pub(crate) async fn start(shared: &Arc<Shared>, setup: ProviderSetup) -> Result<Self, EngineError> {
        let nudges = Arc::new(Nudges::default());
        let worker = Worker::load(shared.clone(), setup.clone(), nudges.clone()).await?;
        let outlook = worker.outlook.clone();
        let (asks, inbox) = mpsc::channel(64);
        let stop = shared.stop.child_token();
        let running = Running::start(stop.clone(), worker.run(inbox, stop));
        Ok(Self { setup, outlook, asks, nudges, running })
    }

    pub(crate) fn longest_grace(&self) -> Span {
        self.setup.settings.grace.max(self.setup.settings.ended_grace)
    }

    /// Makes the loop look again soon.
    pub(crate) fn wake(&self) {
        self.nudges.wake.notify_one();
    }

    pub(crate) fn doubt(&self, zone: Name) {
        self.nudges.doubts.lock().unwrap_or_else(PoisonError::into_inner).insert(zone);
        self.wake();
    }

    /// Runs a pass that begins after this call.
    pub(crate) async fn pass(&self) -> Result<PassReport, EngineError> {
        let (done, report) = oneshot::channel();
        self.asks.send(Ask::Pass(done)).await.map_err(|_| EngineError::Closed)?;
        report.await.map_err(|_| EngineError::Closed)
    }

    pub(crate) async fn approve(&self, hash: Digest, by: &str) -> Result<PassReport, EngineError> {
        let (done, report) = oneshot::channel();
        let ask = Ask::Approve { hash, by: by.to_owned(), done };
        self.asks.send(ask).await.map_err(|_| EngineError::Closed)?;
        report.await.map_err(|_| EngineError::Closed)?
    }

    /// Takes values over, or says which, and runs a pass.
    pub(crate) async fn take(&self, take: Take, dry: bool, by: &str) -> Result<Taken, EngineError> {
        let (done, taken) = oneshot::channel();
        let ask = Ask::Take { take, dry, by: by.to_owned(), done };
        self.asks.send(ask).await.map_err(|_| EngineError::Closed)?;
        taken.await.map_err(|_| EngineError::Closed)?
    }

    /// Takes something back whatever is paused, or says what that would be.
    pub(crate) async fn undo(&self, undo: Undo, dry: bool) -> Result<Undoing, EngineError> {
        let (done, undone) = oneshot::channel();
        self.asks.send(Ask::Undo { undo, dry, done }).await.map_err(|_| EngineError::Closed)?;
        undone.await.map_err(|_| EngineError::Closed)?
    }

    /// Tells the loop to end. A write that is on its way ends by itself: whoever leads is told of it then.
    pub(crate) async fn leave(&self) {
        self.running.leave().await;
    }

    /// How many zones may hold something else than what is known of them.
    pub(crate) fn doubtful(&self) -> usize {
        let told = self.nudges.doubts.lock().unwrap_or_else(PoisonError::into_inner).len();
        told.max(self.outlook.read().doubtful)
    }

    /// Ends the loop. A server that keeps it waiting is left as a crash would leave it.
    pub(crate) async fn end(&self) {
        self.running.end().await;
    }
}

/// One provider, and all that its passes remember.
struct Worker {
    shared: Arc<Shared>,
    setup: ProviderSetup,
    settings: Arc<Settings>,
    shelf: Shelf,
    outlook: Arc<Outlook>,
    nudges: Arc<Nudges>,
    owned: Arc<Owned>,
    guard: Guard,
    /// Names whose values in the store are not those here.
    dirty: BTreeSet<Name>,
    guard_dirty: bool,
    seen: Seen,
    poison: BTreeMap<(Name, Name), Poison>,
    lately: Lately,
    /// Plans in the store.
    plans: Stored,
    /// Zones that took a write of ours since this leader began.
    written: BTreeSet<Name>,
    /// The renames of sources that our values know of.
    renamed: Arc<Vec<(Ident, Ident)>>,
    failures: u32,
}

impl Worker {
    fn name(&self) -> &Ident {
        &self.settings.provider
    }

    async fn run(mut self, mut inbox: mpsc::Receiver<Ask>, stop: CancellationToken) {
        let mut inventory = self.shared.inventory.subscribe();
        let nudges = self.nudges.clone();
        let mut waiting = Waiting::new();
        let mut at_once = 0;
        while !stop.is_cancelled() {
            inventory.mark_unchanged();
            let report = self.pass().await;
            waiting.drain(..).for_each(|tell| tell(&report));
            at_once = if report.again && at_once < AT_ONCE { at_once + 1 } else { 0 };
            let pause = if at_once > 0 { Duration::ZERO } else { self.pause(&report) };
            let gated = report.error.is_some();
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                ask = inbox.recv() => match ask {
                    Some(ask) => self.hear(ask, &mut waiting).await,
                    None => break,
                },
                changed = inventory.changed(), if !gated => if changed.is_err() { break },
                () = nudges.wake.notified() => {}
                () = sleep(pause) => {}
            }
            while let Ok(ask) = inbox.try_recv() {
                self.hear(ask, &mut waiting).await;
            }
        }
    }

    /// How long nothing needs to happen by itself.
    fn pause(&mut self, report: &PassReport) -> Duration {
        if report.error.is_none() && report.zone_errors.is_empty() {
            self.failures = 0;
            return self.setup.interval;
        }
        self.failures = self.failures.saturating_add(1);
        let backoff = Duration::from_millis(500 << self.failures.min(12)).min(LONGEST_BACKOFF);
        report.retry_after.unwrap_or(backoff.min(self.setup.interval.max(Duration::from_secs(1))))
    }

    /// Does what was asked for. Whoever asked hears of it at once when nothing changes, else after the next pass.
    async fn hear(&mut self, ask: Ask, waiting: &mut Waiting) {
        match ask {
            Ask::Pass(done) => waiting.push(Box::new(|report| {
                let _ = done.send(report.clone());
            })),
            Ask::Imagine(world, done) => {
                let _ = done.send(self.imagine(*world).await);
            }
            Ask::Approve { hash, by, done } => match self.approve(hash, &by).await {
                Ok(()) => waiting.push(Box::new(|report| {
                    let _ = done.send(Ok(report.clone()));
                })),
                Err(error) => {
                    let _ = done.send(Err(error));
                }
            },
            Ask::Take { take, dry, by, done } => match self.take(&take, dry, &by).await {
                Ok(taken) if !dry => waiting.push(Box::new(|report| {
                    let _ = done.send(Ok(Taken { report: Some(report.clone()), ..taken }));
                })),
                answer => {
                    let _ = done.send(answer);
                }
            },
            Ask::Undo { undo, dry, done } => match self.undo(&undo, dry).await {
                Ok(undone) if !dry => waiting.push(Box::new(|_| {
                    let _ = done.send(Ok(undone));
                })),
                answer => {
                    let _ = done.send(answer);
                }
            },
        }
    }

    /// Lets parked changes pass, once, and remembers that.
    async fn approve(&mut self, hash: Digest, by: &str) -> Result<(), EngineError> {
        let now = self.shared.now();
        let mut guard = self.guard.clone();
        guard.approve(hash, now).map_err(|_| EngineError::NoSuchPlan { hash: hash.to_string() })?;
        std::mem::swap(&mut self.guard, &mut guard);
        self.guard_dirty = true;
        if let Err(error) = self.keep().await {
            self.guard = guard;
            return Err(error);
        }
        let text = format!("{by} approved {hash} on {}", self.name());
        self.shared.tell(Happened::new(Occasion::Approved, text).on(self.name()).by(by)).await;
        Ok(())
    }
}
