//! A ledger with one pool, `lan`, that draws from a faulty backend `office`.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use netstead_ledger::{
    Backends, Command, DrawOptions, DrawWorker, Drift, DriftKind, Freshness, Reply, Role,
    contract::FaultyBackend,
};
use netstead_model::{ClaimRequest, DrawState, Ident, PoolBackend, PoolSpec, Upstream};
use tokio_util::sync::CancellationToken;

use crate::support::{House, claim, create, target};

pub(crate) const RANGE: &str = "10.0.3.50-10.0.3.54";

pub(crate) struct Branch {
    pub house: House,
    pub office: Arc<FaultyBackend>,
    pub backends: Backends,
    /// How long the worker's clock runs while a second of the ledger's passes.
    pub second: Duration,
    /// The backend is paused.
    paused: AtomicBool,
    stop: CancellationToken,
}

pub(crate) fn upstream(spec: &mut PoolSpec) {
    spec.upstream = Some(Box::new(Upstream {
        backend: "office".parse().unwrap(),
        pool: FaultyBackend::POOL.into(),
        owner: "own".into(),
        installations: Vec::new(),
    }));
}

pub(crate) fn patient(request: &mut ClaimRequest) {
    (request.wait, request.keep) = (Some(netstead_model::Span::from_secs(0)), true);
}

impl Branch {
    pub async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub async fn with(change: impl FnOnce(&mut PoolSpec)) -> Self {
        let house = House::new().await;
        let office = Arc::new(FaultyBackend::new(RANGE.parse().unwrap()));
        let made = create("lan", RANGE, |spec| {
            upstream(spec);
            change(spec);
        });
        house.ask("admin!", made).await.unwrap();
        let branch = Self::idle(house, office);
        branch.work();
        branch.is_listed().await;
        branch
    }

    /// Waits until the worker has listed the pool. Nothing is asked before.
    pub async fn is_listed(&self) {
        let pool: Ident = "lan".parse().unwrap();
        while !self.backends.status().described.contains_key(&pool) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Without a worker.
    pub fn idle(house: House, office: Arc<FaultyBackend>) -> Self {
        let backends = Backends::default();
        let one: Arc<dyn PoolBackend> = office.clone();
        backends.configure(BTreeMap::from([("office".parse().unwrap(), one)]));
        let (paused, stop) = (AtomicBool::new(false), CancellationToken::new());
        Self { house, office, backends, second: Duration::from_millis(3), paused, stop }
    }

    /// Starts a worker of the epoch in which the ledger leads.
    pub fn work(&self) {
        let Role::Leading { epoch } = *self.house.ledger.role().borrow() else { panic!("it does not lead") };
        self.work_in(epoch);
    }

    pub fn work_in(&self, epoch: u64) {
        let worker = DrawWorker {
            ledger: self.house.ledger.clone(),
            epoch,
            backends: self.backends.clone(),
            options: DrawOptions { request_time: Duration::from_secs(10), ..DrawOptions::default() },
        };
        let stop = self.stop.clone();
        tokio::spawn(async move { worker.run(&stop).await });
    }

    pub async fn say(&self, who: &str, command: Command) -> String {
        self.house.say(who, command).await
    }

    /// Claims for `ann`, and stays in the queue.
    pub async fn wants(&self, key: &str) {
        let reply = self.house.ask("ann", claim("lan", key, patient)).await.unwrap();
        assert!(matches!(reply, Reply::Queued(_) | Reply::Claimed { .. }), "{reply:?}");
    }

    /// As [`Branch::wants`], where the answer does not matter.
    pub async fn wants_if_it_can(&self, key: &str) {
        let _ = self.house.ask("ann", claim("lan", key, patient)).await;
    }

    pub async fn release(&self, key: &str) -> String {
        self.say("ann", Command::Release(target("lan", key, None))).await
    }

    /// Pauses the backend, or ends that.
    pub fn pause(&self, paused: bool) {
        self.paused.store(paused, Ordering::Relaxed);
        let names = paused.then(|| "office".parse().unwrap());
        self.backends.set_paused(names.into_iter().collect::<HashSet<_>>());
    }

    /// Time goes by, second by second, so that pauses end.
    pub async fn pass(&self, seconds: u64) {
        for _ in 0..seconds {
            if self.house.ledger.health().paused {
                // To notice the time, the house resumes.
                self.house.clock.advance(Duration::from_secs(1));
            } else {
                self.house.pass(1).await;
            }
            // The worker sleeps by another clock than the ledger's.
            self.pause(self.paused.load(Ordering::Relaxed));
            tokio::time::sleep(self.second).await;
        }
    }

    /// Everything that the ledger has of the pool: `bound`, `waiting`, `withdrawn`, `stray`, `resting` or `giving-back`.
    pub async fn account(&self) -> Vec<String> {
        let pool: Ident = "lan".parse().unwrap();
        let seen = self.house.ledger.read(Freshness::Fresh, |book| {
            let mut lines: Vec<String> = Vec::new();
            for owned in book.owned_objects(&pool) {
                let state = match (&owned.claim, book.explain(owned.address).first()) {
                    (Some(_), _) => "bound",
                    (None, Some(view)) => view.state.as_str(),
                    (None, None) => "lost",
                };
                lines.push(format!("{state} {} {}", owned.address, owned.key));
            }
            for waiting in book.waitings() {
                let draw = waiting.draw.as_deref().unwrap();
                let state = match draw.state {
                    DrawState::Waiting => "waiting",
                    DrawState::Withdrawn => "withdrawn",
                    DrawState::Stray { .. } => "stray",
                };
                lines.push(format!("{state} {}", draw.key));
            }
            lines.sort();
            lines
        });
        seen.await.unwrap().value
    }

    /// The differences, with the objects that could not be bound: kind, address and reason.
    pub async fn drift(&self) -> Vec<(DriftKind, String, String)> {
        let seen =
            self.house.ledger.read(Freshness::Fresh, |book| self.backends.drift(book, Timestamp::UNIX_EPOCH));
        let shown = |drift: Drift| {
            (drift.kind, drift.address.map(|address| address.to_string()).unwrap_or_default(), drift.reason)
        };
        seen.await.unwrap().value.into_iter().map(shown).collect()
    }

    /// Compares the backend with the ledger.
    pub async fn compare(&self) {
        self.backends.reconcile_soon();
        self.pass(3).await;
    }

    /// Waits until the ledger's account is this.
    pub async fn comes_to(&self, wanted: &[&str]) {
        let mut now = Vec::new();
        for _ in 0..2000 {
            now = self.account().await;
            if now == wanted {
                return;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        panic!("it never came to {wanted:?}, but to {now:?}; the backend has {:?}", self.office.held());
    }
}

impl Drop for Branch {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
