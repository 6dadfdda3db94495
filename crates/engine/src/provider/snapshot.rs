//! The status of a provider that others read while its loop works.

use std::{
    sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard},
    time::Duration,
};

use netstead_model::Name;
use netstead_plan::{Desired, Guard, Owned, Plan};

use crate::{
    records::PlanIndex,
    status::{LastPass, ZoneStatus},
};

#[derive(Debug, Default)]
pub(crate) struct PublishedSnapshot(RwLock<ProviderSnapshot>);

#[derive(Debug, Clone, Default)]
pub(crate) struct ProviderSnapshot {
    /// The number of the inventory that the last finished pass began with.
    pub(crate) number: u64,
    pub(crate) owned: Arc<Owned>,
    pub(crate) guard: Arc<Guard>,
    pub(crate) desired: Arc<Desired>,
    pub(crate) plan: Option<Arc<Plan>>,
    /// Sorted by name.
    pub(crate) zones: Arc<Vec<ZoneStatus>>,
    /// Rejected units: zone, name, reason.
    pub(crate) rejected: Arc<Vec<(Name, Name, String)>>,
    pub(crate) last: Option<LastPass>,
    /// Monotonic time at which a pass last ended without an error; at first, when the loop began.
    pub(crate) succeeded: Option<Duration>,
    /// Steps of the newest plan that are not carried out.
    pub(crate) pending: usize,
    pub(crate) error: Option<String>,
    /// Zones that may hold something else than what was read.
    pub(crate) doubtful: usize,
    /// Monotonic time at which the running pass began.
    pub(crate) passing: Option<Duration>,
    /// The index of the plan by name: built when first asked for, and again after every change.
    pub(crate) plan_index: Arc<OnceLock<Arc<PlanIndex>>>,
}

impl PublishedSnapshot {
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, ProviderSnapshot> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn update(&self, change: impl FnOnce(&mut ProviderSnapshot)) {
        let mut seen = self.0.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut seen);
        seen.plan_index = Arc::default();
    }
}
