//! [`Backends`]: the configured backends and what is known of them.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use netstead_model::{BackendError, BackendPoolInfo, Ident, PoolBackend};
use tokio::sync::{Notify, watch};

use super::{reconcile::Drift, restore::RestoreOrder};

/// A backend's description of a pool, and when it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    pub info: BackendPoolInfo,
    pub at: jiff::Timestamp,
}

/// Whether one backend answers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackendHealth {
    /// The last error, while requests fail.
    pub error: Option<String>,
    pub paused: bool,
}

/// The worker's knowledge, for people. Empty on a node that does not lead.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DrawStatus {
    pub backends: BTreeMap<Ident, BackendHealth>,
    pub described: BTreeMap<Ident, Described>,
    pub drift: BTreeMap<Ident, Vec<Drift>>,
    /// Pools that cannot be compared with their backends, and why.
    pub uncompared: BTreeMap<Ident, String>,
}

/// The configured backends and what is known of them: shared by the worker, the API and the configuration.
#[derive(Clone, Default)]
pub struct Backends {
    pub(super) shared: Arc<Shared>,
}

#[derive(Default)]
pub(super) struct Shared {
    backends: Mutex<BTreeMap<Ident, Arc<dyn PoolBackend>>>,
    paused: Mutex<HashSet<Ident>>,
    /// Why no backend is asked by this process.
    idle: Mutex<Option<String>>,
    /// Objects that people want back at a backend.
    pub orders: Mutex<Vec<RestoreOrder>>,
    /// How often a comparison was asked for.
    pub comparisons: AtomicU64,
    pub status: watch::Sender<DrawStatus>,
    pub wake: Notify,
}

impl std::fmt::Debug for Backends {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Backends").field("names", &self.names()).finish()
    }
}

impl Backends {
    /// Replaces the backends: those of a new configuration.
    pub fn configure(&self, backends: BTreeMap<Ident, Arc<dyn PoolBackend>>) {
        *lock(&self.shared.backends) = backends;
        self.shared.wake.notify_one();
    }

    pub fn get(&self, name: &Ident) -> Option<Arc<dyn PoolBackend>> {
        lock(&self.shared.backends).get(name).cloned()
    }

    pub fn names(&self) -> Vec<Ident> {
        lock(&self.shared.backends).keys().cloned().collect()
    }

    /// Pauses these backends, and no others: no request to them begins. One that is under way ends.
    pub fn set_paused(&self, paused: HashSet<Ident>) {
        *lock(&self.shared.paused) = paused;
        self.shared.wake.notify_one();
    }

    /// Says why this process asks no backend; claims that need one are refused with it.
    pub fn set_idle(&self, reason: Option<String>) {
        *lock(&self.shared.idle) = reason;
    }

    pub fn idle_reason(&self) -> Option<String> {
        lock(&self.shared.idle).clone()
    }

    pub(super) fn is_paused(&self, name: &Ident) -> bool {
        lock(&self.shared.paused).contains(name)
    }

    /// The worker's knowledge, with every configured backend in it.
    pub fn status(&self) -> DrawStatus {
        let mut status = self.shared.status.borrow().clone();
        for name in self.names() {
            let health = status.backends.entry(name.clone()).or_default();
            health.paused = self.is_paused(&name);
        }
        status
    }

    /// Forgets pools that do not draw from a backend any more.
    pub(super) fn keep_pools(&self, exists: impl Fn(&Ident) -> bool) {
        self.shared.status.send_if_modified(|status| {
            let count =
                |status: &DrawStatus| status.described.len() + status.drift.len() + status.uncompared.len();
            let before = count(status);
            status.described.retain(|pool, _| exists(pool));
            status.drift.retain(|pool, _| exists(pool));
            status.uncompared.retain(|pool, _| exists(pool));
            count(status) != before
        });
    }

    /// Notes why a pool could not be compared; none if it was.
    pub(super) fn note_comparison(&self, pool: &Ident, error: Option<String>) {
        self.shared.status.send_if_modified(|status| {
            let before = status.uncompared.get(pool);
            if before == error.as_ref() {
                return false;
            }
            match error {
                Some(error) => drop(status.uncompared.insert(pool.clone(), error)),
                None => drop(status.uncompared.remove(pool)),
            }
            true
        });
    }

    /// Compares all backends with the ledger soon.
    pub fn reconcile_soon(&self) {
        self.shared.comparisons.fetch_add(1, Relaxed);
        self.shared.wake.notify_one();
    }
}

pub(super) fn not_configured(name: &Ident) -> BackendError {
    BackendError::unavailable(format!("no backend `{name}` is configured"))
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
