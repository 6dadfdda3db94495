//! One machine: a runtime of its own with a time of its own, in which a ledger serves.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, Ordering::Relaxed},
    },
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use netstead_ledger::{
    Caller, ClaimFilter, Command, Done, Freshness, Ledger, LedgerError, Options, Randomness, ReadAnswer, Role,
};
use netstead_model::Clock;
use netstead_store::simulated::{Network, SimulatedStore};
use tokio::{
    runtime::{Builder, Runtime},
    sync::{broadcast, mpsc, oneshot, watch},
    time::{Instant, sleep},
};

use super::{history::Claims, judge::Judge};

/// A request of a client to a machine, under a number of its own.
pub(super) struct Call {
    pub number: u64,
    pub what: What,
}

pub(super) enum What {
    Submit(Caller, Command, Duration, oneshot::Sender<Result<Done, LedgerError>>),
    Read(Freshness, oneshot::Sender<Result<ReadAnswer<Claims>, LedgerError>>),
}

/// Answers on their way to clients. In which order tokio wakes those who wait for the same thing is drawn anew in each
/// run, so those of one step are brought in the order of their numbers.
#[derive(Clone, Default)]
pub(super) struct Answers(Arc<Mutex<Vec<(u64, Bring)>>>);

type Bring = Box<dyn FnOnce() + Send>;

impl Answers {
    fn send<T: Send + 'static>(&self, number: u64, answer: oneshot::Sender<T>, value: T) {
        let bring = Box::new(move || drop(answer.send(value)));
        self.0.lock().unwrap().push((number, bring));
    }

    pub fn bring(&self) {
        let mut all = std::mem::take(&mut *self.0.lock().unwrap());
        all.sort_by_key(|(number, _)| *number);
        for (_, bring) in all {
            bring();
        }
    }
}

pub(super) type Calls = mpsc::UnboundedSender<Call>;

pub(super) struct Machine {
    number: usize,
    network: Network,
    judge: Arc<Mutex<Judge>>,
    pub answers: Answers,
    options: Options,
    /// How long one who was deposed lets others lead.
    humility: Duration,
    wall: Arc<AtomicI64>,
    runtime: Option<Runtime>,
    /// Out of a thousand: how fast its clock goes.
    pub rate: u64,
    owed: u64,
    stopped_for: Option<u64>,
}

/// The options of a process.
struct Node {
    store: Arc<SimulatedStore>,
    clock: Arc<MachineClock>,
    options: Options,
    judge: Arc<Mutex<Judge>>,
    process: u64,
    humility: Duration,
    answers: Answers,
}

/// The time of the machine's runtime, and a time of day that may be wrong.
#[derive(Debug)]
struct MachineClock {
    start: Instant,
    wall: Arc<AtomicI64>,
}

#[allow(clippy::disallowed_methods, reason = "this is a clock")]
impl Clock for MachineClock {
    fn wall(&self) -> Timestamp {
        let base = Timestamp::from_second(1_000_000_000).unwrap().checked_add(self.monotonic()).unwrap();
        base.checked_add(SignedDuration::from_secs(self.wall.load(Relaxed))).unwrap()
    }

    fn monotonic(&self) -> Duration {
        Instant::now() - self.start
    }
}

impl Machine {
    pub fn new(
        number: usize,
        network: Network,
        judge: Arc<Mutex<Judge>>,
        options: Options,
        humility: Duration,
    ) -> Self {
        Self {
            number,
            network,
            judge,
            answers: Answers::default(),
            options,
            humility,
            wall: Arc::default(),
            runtime: None,
            rate: 1000,
            owed: 0,
            stopped_for: None,
        }
    }

    /// Starts a process; what its clients send arrives at what is returned.
    pub fn start(&mut self, seed: u64, process: u64) -> Calls {
        let (calls, inbox) = mpsc::unbounded_channel();
        let options = Options { randomness: Randomness::seeded(seed), ..self.options.clone() };
        let (store, wall) = (self.network.process(self.number), self.wall.clone());
        let (judge, humility, answers) = (self.judge.clone(), self.humility, self.answers.clone());
        // The old process is gone, with all it was doing.
        self.runtime = None;
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.spawn(async move {
            #[allow(clippy::disallowed_methods, reason = "this is a clock")]
            let clock = Arc::new(MachineClock { start: Instant::now(), wall });
            run(Node { store, clock, options, judge, process, humility, answers }, inbox).await;
        });
        self.runtime = Some(runtime);
        self.stopped_for = None;
        calls
    }

    pub fn kill(&mut self) {
        self.runtime = None;
    }

    pub fn is_up(&self) -> bool {
        self.runtime.is_some()
    }

    pub fn is_stopped(&self) -> bool {
        self.stopped_for.is_some()
    }

    /// As SIGSTOP does.
    pub fn stop(&mut self) {
        self.stopped_for = Some(0);
    }

    /// As SIGCONT does: with `aware`, its clock went on meanwhile and every timer is late; otherwise it stood still, as
    /// that of a machine that slept.
    pub fn go_on(&mut self, aware: bool) {
        let missed = self.stopped_for.take().unwrap_or_default();
        if let Some(runtime) = self.runtime.as_ref().filter(|_| aware) {
            runtime.block_on(tokio::time::advance(Duration::from_millis(missed * self.rate / 1000)));
        }
    }

    pub fn set_wall(&self, seconds: i64) {
        self.wall.store(seconds, Relaxed);
    }

    /// Lets the machine work for so many milliseconds of the world's.
    pub fn tick(&mut self, by: u64) {
        if let Some(stopped_for) = &mut self.stopped_for {
            *stopped_for += by;
            return;
        }
        let owed = self.owed + by * self.rate;
        self.owed = owed % 1000;
        if let Some(runtime) = self.runtime.as_ref().filter(|_| owed >= 1000) {
            runtime.block_on(async { sleep(Duration::from_millis(owed / 1000)).await });
        }
    }
}

/// A process: it follows, leads when its turn comes, and answers who calls.
async fn run(node: Node, mut inbox: mpsc::UnboundedReceiver<Call>) {
    let (current, ledger) = watch::channel(None::<Ledger>);
    let answers = node.answers.clone();
    tokio::spawn(async move {
        let ledger = loop {
            let options = node.options.clone();
            match Ledger::follow(node.store.clone(), node.clock.clone(), options).await {
                Ok(ledger) => break ledger,
                Err(_) => sleep(Duration::from_millis(100)).await,
            }
        };
        tokio::spawn(listen(ledger.clone(), node.process, node.judge.clone()));
        current.send_replace(Some(ledger.clone()));
        let mut role = ledger.role();
        loop {
            if ledger.lead().await.is_ok() {
                let _ = role.wait_for(|role| *role == Role::Following).await;
            }
            // Who was just deposed lets the other lead for a while.
            sleep(node.humility).await;
        }
    });
    while let Some(call) = inbox.recv().await {
        let ledger = ledger.borrow().clone();
        tokio::spawn(answer(ledger, call, answers.clone()));
    }
}

/// Hears every event, once and in order.
async fn listen(ledger: Ledger, process: u64, judge: Arc<Mutex<Judge>>) {
    let mut events = ledger.subscribe();
    loop {
        match events.recv().await {
            Ok(event) => judge.lock().unwrap().heard(process, &event),
            Err(broadcast::error::RecvError::Lagged(_)) => judge.lock().unwrap().overheard(process),
            Err(broadcast::error::RecvError::Closed) => return,
        }
    }
}

async fn answer(ledger: Option<Ledger>, call: Call, answers: Answers) {
    let number = call.number;
    let nobody = || LedgerError::Unavailable { reason: "this machine knows no ledger yet".into() };
    match call.what {
        What::Submit(caller, command, patience, answer) => {
            let result = match ledger {
                Some(ledger) => ledger.submit(caller, command, patience).await,
                None => Err(nobody()),
            };
            answers.send(number, answer, result);
        }
        What::Read(freshness, answer) => {
            let look = |book: &netstead_ledger::Book| -> Claims {
                let views = book.claims(&ClaimFilter::default(), None, usize::MAX);
                views.into_iter().map(|view| (view.claim.address, view.claim)).collect()
            };
            let result = match ledger {
                Some(ledger) => ledger.read(freshness, look).await,
                None => Err(nobody()),
            };
            answers.send(number, answer, result);
        }
    }
}
