//! [`Schedule`]: which job runs next, and what follows from one that ended.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use netstead_model::{BackendError, Claim, Ident, Upstream};
use tracing::{debug, info, warn};

use super::{
    DrawWorker, Finished, Outcome, Stop,
    asked_at::AskedAt,
    backends::lock,
    backoff::Backoff,
    reconcile::{Compare, Compared, Known},
    restore::{RestoreError, RestoreOrder},
};
use crate::book::DrawJob;

/// Requests to one backend at a time.
const AT_ONCE: usize = 8;
/// How often the work is looked at when nothing wakes the worker.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// A pool is listed this often, also while its backend says that nothing changed.
const FULL_LIST_INTERVAL: Duration = Duration::from_hours(1);

/// The comparisons of one pool with its backend.
#[derive(Default)]
struct PoolWatch {
    running: bool,
    /// When it is compared next; none: at once.
    due: Option<Duration>,
    /// The number of the last comparison that was asked for and is done.
    asked: u64,
    /// When everything was listed last, and what was seen then.
    listed: Option<(Duration, Option<Known>)>,
}

/// A restore that can start.
pub(super) struct StartedRestore {
    pub order: RestoreOrder,
    pub upstream: Upstream,
    pub claim: Arc<Claim>,
}

/// The worker's memory. A new leader begins without it.
pub(super) struct Schedule {
    pub asked_at: Arc<AskedAt>,
    running: HashSet<Arc<str>>,
    per_backend: HashMap<Ident, usize>,
    backoff: Backoff,
    hungry: HashSet<(Ident, String)>,
    watches: HashMap<Ident, PoolWatch>,
    /// The ledger was seen paused: a pool is listed before its first request.
    was_paused: bool,
}

impl Schedule {
    pub fn new(begun: Duration) -> Self {
        Self {
            asked_at: Arc::new(AskedAt::since(begun)),
            running: HashSet::new(),
            per_backend: HashMap::new(),
            backoff: Backoff::default(),
            hungry: HashSet::new(),
            watches: HashMap::new(),
            was_paused: false,
        }
    }

    /// The pools that are to be compared with their backends now.
    pub fn due_pools(&mut self, worker: &DrawWorker) -> Vec<Compare> {
        let now = worker.now();
        let asked = worker.backends.shared.comparisons.load(Relaxed);
        let book = worker.ledger.book();
        if book.paused() {
            // What was listed before `resume` does not count.
            self.was_paused = true;
            self.watches.values_mut().for_each(|watch| watch.listed = None);
        }
        self.watches.retain(|pool, watch| watch.running || book.upstreams().any(|(name, _)| name == pool));
        let mut due = Vec::new();
        for (pool, upstream) in book.upstreams() {
            let watch = self.watches.entry(pool.clone()).or_default();
            let unlisted = self.was_paused && watch.listed.is_none() && !book.paused();
            let is_due = watch.due.is_none_or(|at| at <= now) || watch.asked != asked || unlisted;
            if watch.running || !is_due || !self.backoff.is_over_for(&upstream.backend, now) {
                continue;
            }
            let Some(backend) = worker.backends.get(&upstream.backend) else { continue };
            let listed = watch
                .listed
                .as_ref()
                .filter(|(at, _)| watch.asked == asked && now.saturating_sub(*at) < FULL_LIST_INTERVAL);
            let known = listed.and_then(|(_, known)| known.clone());
            watch.running = true;
            let (pool, upstream) = (pool.clone(), upstream.clone());
            let asked_at = self.asked_at.clone();
            due.push(Compare { pool, upstream, backend, known, asked, asked_at });
        }
        due
    }

    /// The jobs that can start now: one per key, a few per backend, the oldest first.
    pub fn next_jobs(&mut self, worker: &DrawWorker) -> Vec<DrawJob> {
        let now = worker.now();
        let hungry: Vec<_> = self.hungry.iter().cloned().collect();
        let book = worker.ledger.book();
        if book.paused() {
            return Vec::new();
        }
        book.draw_jobs(&hungry, |pool, upstream, key| {
            let backend = &upstream.backend;
            let listed = self.watches.get(pool).is_some_and(|watch| watch.listed.is_some());
            let startable = self.has_room(backend)
                && !self.running.contains(key)
                && (!self.was_paused || listed)
                && !worker.backends.is_paused(backend)
                && self.backoff.is_over(backend, key, now);
            if startable {
                self.start(backend, key);
            }
            startable
        })
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
            let Some(key) = claim.drawn.as_ref().map(|drawn| drawn.key.clone()) else {
                order.end(Err(RestoreError::NotDrawn));
                continue;
            };
            if book.paused() || worker.backends.is_paused(&upstream.backend) {
                order.end(Err(RestoreError::Paused { backend: upstream.backend.clone() }));
            } else if self.running.contains(&key) || !self.has_room(&upstream.backend) {
                orders.push(order);
            } else {
                self.start(&upstream.backend, &key);
                started.push(StartedRestore { order, upstream: upstream.clone(), claim });
            }
        }
        started
    }

    fn has_room(&self, backend: &Ident) -> bool {
        self.per_backend.get(backend).copied().unwrap_or(0) < AT_ONCE
    }

    fn start(&mut self, backend: &Ident, key: &Arc<str>) {
        self.running.insert(key.clone());
        *self.per_backend.entry(backend.clone()).or_default() += 1;
    }

    pub fn pause(&self, worker: &DrawWorker) -> Duration {
        let now = worker.now();
        let next = self.backoff.next_end(now).map(|end| end.saturating_sub(now));
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
        self.running.remove(key);
        if let Some(busy) = self.per_backend.get_mut(&upstream.backend) {
            *busy = busy.saturating_sub(1);
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
        self.answered(worker, &upstream.backend);
        match outcome {
            Outcome::Done => self.backoff.forget(key),
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
                self.watches.values_mut().for_each(|watch| watch.due = None);
            }
        }
        false
    }

    fn compared(&mut self, worker: &DrawWorker, compared: Compared) -> bool {
        let now = worker.now();
        let watch = self.watches.entry(compared.pool.clone()).or_default();
        watch.running = false;
        watch.asked = compared.asked;
        watch.due = Some(now.saturating_add(worker.options.reconcile_interval));
        match compared.result {
            Ok(comparison) => {
                if comparison.unsettled {
                    // What may still change is looked at again once no request can be on its way.
                    watch.due = Some(now.saturating_add(worker.options.request_time));
                }
                if comparison.is_full() {
                    let known = comparison.known.clone().filter(|_| !comparison.unsettled);
                    watch.listed = Some((now, known));
                }
                self.answered(worker, &compared.backend);
                comparison.publish(&worker.backends, &compared.pool);
                false
            }
            Err(Stop::Deposed) => true,
            Err(Stop::Store) => {
                watch.due = Some(now.saturating_add(LOOK_INTERVAL));
                false
            }
            Err(Stop::Backend(error)) => {
                debug!(pool = %compared.pool, %error, "The pool cannot be compared with its backend.");
                if !error.kind.is_refusal() {
                    watch.due = None;
                }
                self.failed(worker, &compared.backend, &error, now);
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
