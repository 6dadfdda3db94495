//! [`Backends`]: the configured backends and what is known of them.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use netstead_model::{BackendPoolInfo, Ident, PoolBackend};
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

    /// Backends that are neither asked nor given anything back.
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

    pub fn status(&self) -> DrawStatus {
        self.shared.status.borrow().clone()
    }

    /// Compares all backends with the ledger soon.
    pub fn reconcile_soon(&self) {
        self.shared.comparisons.fetch_add(1, Relaxed);
        self.shared.wake.notify_one();
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
