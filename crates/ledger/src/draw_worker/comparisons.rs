//! [`Comparisons`]: when each pool is compared with its backend, and which pools may be asked for addresses.
//!
//! A pool is listed before its first request, by every leader anew: an earlier leader may have stopped between the `resume` of a
//! restored ledger and its list, and nothing stored says so. Steps:
//!
//! 1. A leader begins, or a restored ledger is resumed: nothing counts as listed.
//! 2. The pool is described and listed. Until then its claims wait, and rests are not given back.
//! 3. If the backend refuses that, requests begin all the same, because the refusal of a claim says more to its caller; but not
//!    in a ledger that this process saw paused, where a list must come first.

use std::{
    collections::HashMap,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use netstead_model::{BackendError, Ident, Upstream, Waiting};
use tracing::{debug, warn};

use super::{
    DrawWorker, Stop,
    asked_at::AskedAt,
    backoff::{Backoff, Pause, longer},
    reconcile::{Compare, Compared, Known},
};

/// A pool is listed this often, also while its backend says that nothing changed.
const FULL_LIST_INTERVAL: Duration = Duration::from_hours(1);
/// The longest pause after a comparison that failed.
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

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
    /// The pause after a comparison that failed.
    pause: Option<Pause>,
    /// Why the last comparison failed.
    error: Option<BackendError>,
}

/// When each pool is compared with its backend.
#[derive(Default)]
pub(super) struct Comparisons {
    watches: HashMap<Ident, PoolWatch>,
    /// The ledger was paused when it was looked at last.
    paused: bool,
    /// The ledger was seen paused: it was restored from a backup.
    restored: bool,
}

impl Comparisons {
    /// The pools that are to be compared with their backends now.
    pub fn due(&mut self, worker: &DrawWorker, backoff: &Backoff, asked_at: &Arc<AskedAt>) -> Vec<Compare> {
        let now = worker.now();
        let asked = worker.backends.shared.comparisons.load(Relaxed);
        let book = worker.ledger.book();
        self.note_pause(book.paused());
        self.watches.retain(|pool, watch| watch.running || book.upstreams().any(|(name, _)| name == pool));
        worker.backends.keep_pools(|pool| book.upstreams().any(|(name, _)| name == pool));
        let mut due = Vec::new();
        for (pool, upstream) in book.upstreams() {
            let watch = self.watches.entry(pool.clone()).or_default();
            let is_due = watch.due.is_none_or(|at| at <= now) || watch.asked != asked;
            let waits =
                !backoff.is_over_for(&upstream.backend, now) || worker.backends.is_paused(&upstream.backend);
            if watch.running || !is_due || waits {
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
            let (asked_at, may_release) = (asked_at.clone(), !book.paused());
            due.push(Compare { pool, upstream, backend, known, asked, asked_at, may_release });
        }
        due
    }

    /// Forgets the lists that were read before `resume`.
    fn note_pause(&mut self, paused: bool) {
        if self.paused && !paused {
            for watch in self.watches.values_mut() {
                (watch.listed, watch.due, watch.pause, watch.error) = (None, None, None, None);
            }
        }
        self.paused = paused;
        self.restored |= paused;
    }

    /// Whether requests for this pool can begin.
    pub fn may_ask(&self, pool: &Ident) -> bool {
        self.watches.get(pool).is_some_and(|watch| {
            let refused = watch.error.as_ref().is_some_and(|error| error.kind.is_refusal());
            watch.listed.is_some() || (refused && !self.restored)
        })
    }

    /// Why requests for this pool cannot begin, if a comparison failed.
    pub fn obstacle(&self, pool: &Ident) -> Option<&BackendError> {
        let error = self.watches.get(pool).and_then(|watch| watch.error.as_ref());
        error.filter(|_| !self.may_ask(pool))
    }

    /// Compares every pool soon.
    pub fn compare_all(&mut self) {
        self.watches.values_mut().for_each(|watch| watch.due = None);
    }

    /// Notes the end of a comparison: when the next one is due, and whether this one counts as a list.
    pub fn ended(&mut self, worker: &DrawWorker, compared: &Compared) {
        let (now, options) = (worker.now(), &worker.options);
        let watch = self.watches.entry(compared.pool.clone()).or_default();
        watch.running = false;
        watch.asked = compared.asked;
        match &compared.result {
            Ok(comparison) => {
                (watch.pause, watch.error) = (None, None);
                // What may still change is looked at again once no request can be on its way.
                let next =
                    if comparison.unsettled { options.request_time } else { options.reconcile_interval };
                watch.due = Some(now.saturating_add(next));
                if !compared.may_release {
                    // One that began before `resume` is not the list that must follow it.
                    if !worker.ledger.book().paused() {
                        watch.due = None;
                    }
                } else if comparison.is_full() {
                    let known = comparison.known.clone().filter(|_| !comparison.unsettled);
                    watch.listed = Some((now, known));
                }
                worker.backends.note_comparison(&compared.pool, None);
            }
            Err(Stop::Backend(error)) => {
                let is_new = watch.error.as_ref() != Some(error);
                let (pool, backend) = (&compared.pool, &compared.backend);
                if is_new && error.kind.is_refusal() {
                    warn!(%pool, %backend, %error, "The pool cannot be compared with its backend.");
                } else {
                    debug!(%pool, %backend, %error, "The pool cannot be compared with its backend.");
                }
                watch.error = Some(error.clone());
                let pause = watch.fail(now);
                let settled = error.kind.is_refusal() && watch.listed.is_some();
                let next = if settled { options.reconcile_interval } else { pause };
                watch.due = Some(now.saturating_add(next));
                worker.backends.note_comparison(&compared.pool, Some(error.to_string()));
            }
            Err(Stop::Store | Stop::Deposed) => {
                let pause = watch.fail(now);
                watch.due = Some(now.saturating_add(pause));
            }
        }
    }

    /// When the next comparison is due.
    pub fn next_due(&self, now: Duration) -> Option<Duration> {
        self.watches.values().filter_map(|watch| watch.due).filter(|due| *due > now).min()
    }
}

impl PoolWatch {
    /// Makes the pause longer, and returns it.
    fn fail(&mut self, now: Duration) -> Duration {
        let pause = longer(self.pause.as_ref(), now, LONGEST_PAUSE);
        self.pause = Some(pause);
        pause.length
    }
}

/// A waiting claim whose pool cannot be asked yet, and why.
pub(super) struct Obstacle {
    pub upstream: Upstream,
    pub waiting: Arc<Waiting>,
    pub error: BackendError,
}
