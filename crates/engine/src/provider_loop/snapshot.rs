//! The status of a provider that others read while its loop works.

use std::{
    fmt,
    ops::Deref,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
    time::Duration,
};

use netstead_plan::Guard;

use super::{Pass, PlaceOf};
use crate::status::LastPass;

pub(crate) struct PublishedSnapshot<P: Pass>(RwLock<Snapshot<P>>);

/// The part that every kind of loop has. It derefs to the part of its own kind, so that readers find both in one place.
pub(crate) struct Snapshot<P: Pass> {
    /// The number of the inventory that the last finished pass began with.
    pub(crate) number: u64,
    pub(crate) guard: Arc<Guard>,
    pub(crate) plan: Option<Arc<P::Plan>>,
    /// Rejected changes: where, and why.
    pub(crate) rejected: Arc<Vec<(PlaceOf<P>, String)>>,
    pub(crate) last: Option<LastPass>,
    /// Monotonic time at which a pass last ended without an error; at first, when the loop began.
    pub(crate) succeeded: Option<Duration>,
    /// Steps of the newest plan that are not carried out.
    pub(crate) pending: usize,
    pub(crate) error: Option<String>,
    /// The last pass ended before it had a plan: what the server holds is not known, and `plan` is an older one.
    pub(crate) unread: bool,
    /// Places that may hold something else than what was read.
    pub(crate) doubtful: usize,
    /// Monotonic time at which the running pass began.
    pub(crate) passing: Option<Duration>,
    pub(crate) view: P::View,
}

impl<P: Pass> Default for Snapshot<P> {
    fn default() -> Self {
        Self {
            number: 0,
            guard: Arc::default(),
            plan: None,
            rejected: Arc::default(),
            last: None,
            succeeded: None,
            pending: 0,
            error: None,
            unread: false,
            doubtful: 0,
            passing: None,
            view: P::View::default(),
        }
    }
}

impl<P: Pass> Clone for Snapshot<P> {
    fn clone(&self) -> Self {
        Self {
            number: self.number,
            guard: self.guard.clone(),
            plan: self.plan.clone(),
            rejected: self.rejected.clone(),
            last: self.last.clone(),
            succeeded: self.succeeded,
            pending: self.pending,
            error: self.error.clone(),
            unread: self.unread,
            doubtful: self.doubtful,
            passing: self.passing,
            view: self.view.clone(),
        }
    }
}

impl<P: Pass> Deref for Snapshot<P> {
    type Target = P::View;

    fn deref(&self) -> &P::View {
        &self.view
    }
}

impl<P: Pass> Default for PublishedSnapshot<P> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}

impl<P: Pass> fmt::Debug for PublishedSnapshot<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PublishedSnapshot")
    }
}

impl<P: Pass> PublishedSnapshot<P> {
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Snapshot<P>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn update(&self, change: impl FnOnce(&mut Snapshot<P>)) {
        let mut seen = self.0.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut seen);
        P::snapshot_changed(&mut seen.view);
    }
}
