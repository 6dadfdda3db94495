//! [`Source`]: where workloads come from, as the engine sees it.

use std::time::Duration;

use async_trait::async_trait;

use crate::{Diagnosis, Ident, Key, Report};

/// One configured place to look at what runs.
#[async_trait]
pub trait Source: Send + Sync + std::fmt::Debug {
    fn name(&self) -> &Ident;

    /// `docker`, `hosts`, …
    fn kind(&self) -> &'static str;

    /// Looks once. Never fails as a call: what goes wrong is in the report's view. Bounded in time.
    async fn report(&self) -> Report;

    /// Called after failover, or after a stale report, with the ids the engine still believes exist. A source that knows for
    /// certain what became of an id says so in its next report, as if it had seen the end itself.
    fn remember(&self, _reported: Vec<Key>) {}

    /// How often it is looked at though nothing changed; `None` leaves that to the engine.
    fn poll_interval(&self) -> Option<Duration> {
        None
    }

    /// Checks for `netstead doctor`, asked now and beside the reports: can it be reached, which version is it, what is missing.
    /// Changes nothing.
    async fn diagnose(&self) -> Vec<Diagnosis> {
        Vec::new()
    }

    /// Returns when another look is likely to see something new; may return early, and may wait for ever.
    async fn changed(&self);
}
