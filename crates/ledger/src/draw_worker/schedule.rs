//! [`Schedule`]: which job runs next, and what follows from one that ended.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use netstead_model::{BackendError, Claim, Drawn, Ident, Upstream};
use tracing::{debug, info, warn};

use super::{
    DrawWorker, Finished, Outcome, Stop,
    asked_at::AskedAt,
    backends::lock,
    backoff::Backoff,
    comparisons::{Comparisons, Obstacle},
    reconcile::{Compare, Compared},
    restore::{RestoreError, RestoreOrder},
};
use crate::book::DrawJob;

/// Requests to one backend at a time.
const AT_ONCE: usize = 8;
/// Places of those that are for addresses on their way back before they are for claims: a pool that is full gets room only so.
const FOR_GIVE_BACKS: usize = 2;
/// How often the work is looked at when nothing wakes the worker.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// A restore that can start.
pub(super) struct StartedRestore {
    pub order: RestoreOrder,
    pub upstream: Upstream,
    pub claim: Arc<Claim>,
    pub drawn: Box<Drawn>,
}

/// The jobs under way at one backend.
#[derive(Default)]
struct Busy {
    all: usize,
    /// Those that give an address back.
    giving: usize,
}

/// The worker's memory. A new leader begins without it.
pub(super) struct Schedule {
    pub asked_at: Arc<AskedAt>,
    /// The keys under way, and whether each gives an address back.
    running: HashMap<Arc<str>, bool>,
    per_backend: HashMap<Ident, Busy>,
    backoff: Backoff,
    /// Backends and their pools that had no free address when they were asked last.
    hungry: HashSet<(Ident, String)>,
    comparisons: Comparisons,
}

impl Schedule {
    pub fn new(begun: Duration) -> Self {
        Self {
            asked_at: Arc::new(AskedAt::since(begun)),
            running: HashMap::new(),
            per_backend: HashMap::new(),
            backoff: Backoff::default(),
            hungry: HashSet::new(),
            comparisons: Comparisons::default(),
        }
    }

    /// The pools that are to be compared with their backends now.
    pub fn due_pools(&mut self, worker: &DrawWorker) -> Vec<Compare> {
        self.comparisons.due(worker, &self.backoff, &self.asked_at)
    }

    /// The jobs that can start now: one per key, a few per backend. Two addresses per backend go back first, then the oldest
    /// claims are asked for; the places left are for more addresses on their way back.
    pub fn next_jobs(&mut self, worker: &DrawWorker) -> Vec<DrawJob> {
        let book = worker.ledger.book();
        if book.paused() {
            return Vec::new();
        }
        let hungry = self.hungry.clone();
        let mut jobs = book.give_backs(&hungry, |pool, upstream, key| {
            self.giving(&upstream.backend) < FOR_GIVE_BACKS
                && self.start_job(worker, pool, upstream, key, true)
        });
        jobs.extend(book.asks(|pool, upstream, key| self.start_job(worker, pool, upstream, key, false)));
        jobs.extend(
            book.give_backs(&hungry, |pool, upstream, key| self.start_job(worker, pool, upstream, key, true)),
        );
        jobs
    }

    /// Takes a place for a job, if it can start.
    fn start_job(
        &mut self,
        worker: &DrawWorker,
        pool: &Ident,
        upstream: &Upstream,
        key: &Arc<str>,
        gives: bool,
    ) -> bool {
        let backend = &upstream.backend;
        let may_ask = || self.comparisons.may_ask(pool) || worker.backends.get(backend).is_none();
        let startable = self.has_room(backend)
            && !self.running.contains_key(key)
            && may_ask()
            && !worker.backends.is_paused(backend)
            && self.backoff.is_over(backend, key, worker.now());
        if startable {
            self.start(backend, key, gives);
        }
        startable
    }

    /// The waiting claims that get a reason now, because their pool could not be compared and so cannot be asked.
    pub fn next_obstacles(&mut self, worker: &DrawWorker) -> Vec<Obstacle> {
        let book = worker.ledger.book();
        if book.paused() {
            return Vec::new();
        }
        let mut obstacles = Vec::new();
        for (pool, upstream) in book.upstreams() {
            let backend = &upstream.backend;
            let Some(error) = self.comparisons.obstacle(pool).cloned() else { continue };
            if worker.backends.is_paused(backend) {
                continue;
            }
            for waiting in book.waits_without_reason(pool) {
                let Some(draw) = waiting.draw.as_deref() else { continue };
                if !self.has_room(backend) {
                    break;
                }
                if self.running.contains_key(&draw.key)
                    || !self.backoff.is_over_for_claim(&draw.key, worker.now())
                {
                    continue;
                }
                self.start(backend, &draw.key, false);
                let (upstream, waiting) = (upstream.clone(), waiting.clone());
                obstacles.push(Obstacle { upstream, waiting, error: error.clone() });
            }
        }
        obstacles
    }

    /// The restores that can start now. One that cannot is answered, or waits for another operation of its key.
    pub fn next_restores(&mut self, worker: &DrawWorker) -> Vec<StartedRestore> {
        let mut orders = lock(&worker.backends.shared.orders);
        if orders.is_empty() {
            return Vec::new();
        }
        let book = worker.ledger.book();
        let mut started = Vec::new();
        for order in std::mem::take(&mut *orders) {
            if order.answer.is_closed() {
                continue;
            }
            let upstream = book.upstreams().find(|(name, _)| **name == order.pool).map(|(_, found)| found);
            let claim = book.claim(&order.pool, &order.key).map(|view| view.claim);
            let (Some(upstream), Some(claim)) = (upstream, claim) else {
                order.end(Err(RestoreError::NoSuchClaim));
                continue;
            };
            let Some(drawn) = claim.drawn.clone() else {
                order.end(Err(RestoreError::NotDrawn));
                continue;
            };
            if book.paused() || worker.backends.is_paused(&upstream.backend) {
                order.end(Err(RestoreError::Paused { backend: upstream.backend.clone() }));
            } else if self.running.contains_key(&drawn.key) || !self.has_room(&upstream.backend) {
                orders.push(order);
            } else {
                self.start(&upstream.backend, &drawn.key, false);
                started.push(StartedRestore { order, upstream: upstream.clone(), claim, drawn });
            }
        }
        started
    }

    fn has_room(&self, backend: &Ident) -> bool {
        self.per_backend.get(backend).is_none_or(|busy| busy.all < AT_ONCE)
    }

    fn giving(&self, backend: &Ident) -> usize {
        self.per_backend.get(backend).map_or(0, |busy| busy.giving)
    }

    fn start(&mut self, backend: &Ident, key: &Arc<str>, gives: bool) {
        self.running.insert(key.clone(), gives);
        let busy = self.per_backend.entry(backend.clone()).or_default();
        busy.all += 1;
        busy.giving += usize::from(gives);
    }

    pub fn pause(&self, worker: &DrawWorker) -> Duration {
        let now = worker.now();
        let ends = [self.backoff.next_end(now), self.comparisons.next_due(now)];
        let next = ends.into_iter().flatten().min().map(|end| end.saturating_sub(now));
        next.unwrap_or(LOOK_INTERVAL).clamp(Duration::from_millis(5), LOOK_INTERVAL)
    }

    /// Notes the end of a job. True if this process no longer leads.
    pub fn finish(&mut self, worker: &DrawWorker, finished: Finished) -> bool {
        match finished {
            Finished::Job { upstream, key, result } => self.job_ended(worker, &upstream, &key, result),
            Finished::Compared(compared) => self.compared(worker, *compared),
        }
    }

    fn job_ended(
        &mut self,
        worker: &DrawWorker,
        upstream: &Upstream,
        key: &Arc<str>,
        result: Result<Outcome, Stop>,
    ) -> bool {
        let now = worker.now();
        let gave = self.running.remove(key).unwrap_or_default();
        if let Some(busy) = self.per_backend.get_mut(&upstream.backend) {
            busy.all = busy.all.saturating_sub(1);
            busy.giving = busy.giving.saturating_sub(usize::from(gave));
        }
        let outcome = match result {
            Ok(outcome) => outcome,
            Err(Stop::Deposed) => return true,
            Err(Stop::Store) => {
                self.backoff.claim_again(key, now);
                return false;
            }
            Err(Stop::Backend(error)) => {
                if error.kind.is_refusal() {
                    self.backoff.claim_again(key, now);
                }
                self.failed(worker, &upstream.backend, &error, now);
                return false;
            }
        };
        if !matches!(outcome, Outcome::Void) {
            self.answered(worker, &upstream.backend);
        }
        match outcome {
            Outcome::Done | Outcome::Void => self.backoff.forget(key),
            Outcome::Given => {
                self.backoff.forget(key);
                self.hungry.remove(&(upstream.backend.clone(), upstream.pool.clone()));
            }
            Outcome::Again => self.backoff.claim_again(key, now),
            Outcome::Exhausted => {
                self.hungry.insert((upstream.backend.clone(), upstream.pool.clone()));
                self.backoff.claim_again(key, now);
            }
            Outcome::GaveBack => {
                self.backoff.forget(key);
                if self.hungry.remove(&(upstream.backend.clone(), upstream.pool.clone())) {
                    self.backoff.forget_claims();
                }
            }
            Outcome::Duplicates => {
                self.backoff.forget(key);
                self.comparisons.compare_all();
            }
        }
        false
    }

    fn compared(&mut self, worker: &DrawWorker, compared: Compared) -> bool {
        self.comparisons.ended(worker, &compared);
        match compared.result {
            Ok(comparison) => {
                self.answered(worker, &compared.backend);
                comparison.publish(&worker.backends, &compared.pool);
                false
            }
            Err(Stop::Deposed) => true,
            Err(Stop::Store) => false,
            Err(Stop::Backend(error)) => {
                self.failed(worker, &compared.backend, &error, worker.now());
                false
            }
        }
    }

    fn failed(&mut self, worker: &DrawWorker, backend: &Ident, error: &BackendError, now: Duration) {
        if error.kind.is_refusal() {
            self.answered(worker, backend);
            return;
        }
        self.backoff.backend_again(backend, now);
        let known = &worker.backends.shared.status;
        let is_new = known.borrow().backends.get(backend).is_none_or(|health| health.error.is_none());
        if is_new {
            warn!(%backend, %error, "The backend does not answer; claims wait.");
        } else {
            debug!(%backend, %error, "The backend still does not answer.");
        }
        known.send_modify(|status| {
            status.backends.entry(backend.clone()).or_default().error = Some(error.to_string());
        });
    }

    fn answered(&mut self, worker: &DrawWorker, backend: &Ident) {
        self.backoff.backend_answers(backend);
        let known = &worker.backends.shared.status;
        let had_error = known.borrow().backends.get(backend).is_none_or(|health| health.error.is_some());
        if had_error {
            info!(%backend, "The backend answers.");
            known.send_modify(|status| status.backends.entry(backend.clone()).or_default().error = None);
        }
    }
}
