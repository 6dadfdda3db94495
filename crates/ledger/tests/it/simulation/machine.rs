//! One machine: a runtime of its own with a time of its own, in which a ledger serves.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering::Relaxed},
    },
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use netstead_ledger::{
    Caller, Chance, ClaimFilter, Command, Done, Freshness, Ledger, LedgerError, Options, Seen,
};
use netstead_model::Clock;
use netstead_store::simulated::Network;
use tokio::{
    runtime::{Builder, Runtime},
    sync::{mpsc, oneshot, watch},
    time::{Instant, sleep},
};

use super::history::Claims;

/// What a client sends to a machine.
pub(super) enum Call {
    Submit(Caller, Command, Duration, oneshot::Sender<Result<Done, LedgerError>>),
    Read(Freshness, oneshot::Sender<Result<Seen<Claims>, LedgerError>>),
}

pub(super) type Calls = mpsc::UnboundedSender<Call>;

pub(super) struct Machine {
    number: usize,
    network: Network,
    options: Options,
    wall: Arc<AtomicI64>,
    runtime: Option<Runtime>,
    /// Out of a thousand: how fast its clock goes.
    pub rate: u64,
    owed: u64,
    stopped_for: Option<u64>,
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
    pub fn new(number: usize, network: Network, options: Options) -> Self {
        Self {
            number,
            network,
            options,
            wall: Arc::default(),
            runtime: None,
            rate: 1000,
            owed: 0,
            stopped_for: None,
        }
    }

    /// Starts a process; what its clients send arrives at what is returned.
    pub fn start(&mut self, seed: u64) -> Calls {
        let (calls, inbox) = mpsc::unbounded_channel();
        let options = Options { chance: Chance::seeded(seed), ..self.options.clone() };
        let (network, number, wall) = (self.network.clone(), self.number, self.wall.clone());
        // The old process is gone, with all it was doing.
        self.runtime = None;
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.spawn(async move {
            #[allow(clippy::disallowed_methods, reason = "this is a clock")]
            let clock = Arc::new(MachineClock { start: Instant::now(), wall });
            run(network, number, clock, options, inbox).await;
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

/// A process: it leads when its turn comes and answers who calls.
async fn run(
    network: Network,
    number: usize,
    clock: Arc<dyn Clock>,
    options: Options,
    mut inbox: mpsc::UnboundedReceiver<Call>,
) {
    let (current, ledger) = watch::channel(None::<Ledger>);
    tokio::spawn(async move {
        loop {
            let store = network.process(number);
            let opened = Ledger::open(store.clone(), clock.clone(), options.clone()).await;
            if let Ok(ledger) = opened {
                current.send_replace(Some(ledger.clone()));
                while !ledger.health().reason.is_some_and(|reason| reason.contains("another Netstead")) {
                    sleep(Duration::from_millis(100)).await;
                }
                ledger.close().await;
            }
            sleep(Duration::from_millis(50)).await;
        }
    });
    while let Some(call) = inbox.recv().await {
        let ledger = ledger.borrow().clone();
        tokio::spawn(answer(ledger, call));
    }
}

async fn answer(ledger: Option<Ledger>, call: Call) {
    let nobody = || LedgerError::Unavailable { reason: "this machine does not lead".into() };
    match call {
        Call::Submit(caller, command, patience, answer) => {
            let result = match ledger {
                Some(ledger) => ledger.submit(caller, command, patience).await,
                None => Err(nobody()),
            };
            let _ = answer.send(result);
        }
        Call::Read(freshness, answer) => {
            let look = |book: &netstead_ledger::Book| -> Claims {
                let views = book.claims(&ClaimFilter::default(), None, usize::MAX);
                views.into_iter().map(|view| (view.claim.address, view.claim)).collect()
            };
            let result = match ledger {
                Some(ledger) => ledger.read(freshness, look).await,
                None => Err(nobody()),
            };
            let _ = answer.send(result);
        }
    }
}
