//! What others may see of a provider while its loop works.

use std::{
    sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard},
    time::Duration,
};

use netstead_model::Name;
use netstead_plan::{Desired, Guard, Owned, Plan};

use crate::{
    records::Noted,
    status::{LastPass, ZoneStatus},
};

#[derive(Debug, Default)]
pub(crate) struct Outlook(RwLock<Seen>);

#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    /// The number of the inventory that the last finished pass began with.
    pub(crate) number: u64,
    pub(crate) owned: Arc<Owned>,
    pub(crate) guard: Arc<Guard>,
    pub(crate) desired: Arc<Desired>,
    pub(crate) plan: Option<Arc<Plan>>,
    /// Sorted by name.
    pub(crate) zones: Arc<Vec<ZoneStatus>>,
    /// Units the server will not have: zone, name, reason.
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
    /// What the plan says, by name: made when somebody asks, and anew after every change.
    pub(crate) noted: Arc<OnceLock<Arc<Noted>>>,
}

impl Outlook {
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Seen> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Seen)) {
        let mut seen = self.0.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut seen);
        seen.noted = Arc::default();
    }
}
