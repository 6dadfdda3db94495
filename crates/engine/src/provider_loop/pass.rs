//! One pass of a provider: read, plan, store the intent, write, store the outcome.
//!
//! A pass takes no hint about what changed: after a restart, a missed event or a change of leader it does what it always
//! does, so there is one path to test.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, PoisonError},
    time::Duration,
};

use futures::FutureExt;

use super::{LoopPlan, Pass, PassReport, Worker, report::AskedPause};
use crate::status::LastPass;

/// Why a pass ended early: for people.
pub(crate) struct Stopped {
    pub(crate) reason: String,
    retry_after: Option<Duration>,
}

impl Stopped {
    pub(crate) fn new(reason: String) -> Self {
        Self { reason, retry_after: None }
    }
}

impl From<netstead_model::ProviderError> for Stopped {
    fn from(error: netstead_model::ProviderError) -> Self {
        let retry_after = match &error {
            netstead_model::ProviderError::Busy { retry_after, .. } => *retry_after,
            _ => None,
        };
        Self { reason: error.to_string(), retry_after }
    }
}

impl From<crate::EngineError> for Stopped {
    fn from(error: crate::EngineError) -> Self {
        Self { reason: error.to_string(), retry_after: None }
    }
}

impl<P: Pass> Worker<P> {
    pub(super) async fn pass(&mut self) -> PassReport {
        let clock = self.shared.clock.clone();
        let begun = clock.monotonic();
        let mut report = PassReport::new(self.name().clone());
        self.snapshot.update(|seen| seen.passing = Some(begun));
        // A bug in one provider is that provider's failure.
        let tried = AssertUnwindSafe(self.try_pass(&mut report)).catch_unwind().await;
        let bug = |_| Err(Stopped { reason: "the pass failed; this is a bug".into(), retry_after: None });
        if let Err(stopped) = tried.unwrap_or_else(bug) {
            if self.snapshot.read().error.as_ref() != Some(&stopped.reason) {
                tracing::warn!(provider = %self.name(), error = stopped.reason, "A pass could not be finished.");
            }
            report.error = Some(stopped.reason);
            report.asked_pause = stopped.retry_after.map(AskedPause::For);
        }
        report.took = clock.monotonic().saturating_sub(begun);
        let last = LastPass { at: clock.wall(), took: report.took, outcome: report.outcome() };
        let rejected = self.poison.iter().map(|(place, poison)| (place.clone(), poison.reason.clone()));
        let rejected = Arc::new(rejected.collect());
        let error =
            report.error.clone().or_else(|| report.zone_errors.first().map(|(_, error)| error.clone()));
        if let Some(observer) = &self.shared.options.observer {
            observer.passed(&report);
        }
        if !self.shared.lead.is_deposed() {
            let before = self.snapshot.read().error.clone();
            self.record_failing_event(before.as_ref(), error.as_ref()).await;
        }
        let succeeded = error.is_none().then(|| clock.monotonic());
        self.snapshot.update(|seen| {
            seen.passing = None;
            seen.succeeded = succeeded.or(seen.succeeded);
            seen.last = Some(last);
            seen.rejected = rejected;
            seen.error = error;
            seen.unread = report.plan.is_none();
            seen.doubtful = self.state.doubtful();
            self.state.publish(&mut seen.view);
            seen.guard = Arc::new(self.guard.clone());
            if let Some(plan) = &report.plan {
                seen.pending = plan.steps().saturating_sub(report.applied);
            }
        });
        report
    }

    async fn try_pass(&mut self, report: &mut PassReport) -> Result<(), Stopped> {
        if self.shared.lead.is_deposed() {
            return Err(crate::EngineError::Deposed.into());
        }
        let number = self.shared.inventory.borrow().number;
        // What an earlier pass could not tell the store comes first.
        self.rename_sources();
        self.persist().await?;
        let plan = Arc::new(P::plan(self, report).await?);
        report.plan = Some(P::Plan::shared(plan.clone()));
        self.snapshot.update(|seen| {
            self.state.publish(&mut seen.view);
            seen.pending = plan.steps().len();
            seen.plan = Some(plan.clone());
        });
        let done = self.carry_out(plan, report, false).await;
        self.snapshot.update(|seen| seen.number = number);
        done
    }

    /// Carries our reasons over to the new names of sources.
    pub(crate) fn rename_sources(&mut self) {
        let renames = self.shared.renames.read().unwrap_or_else(PoisonError::into_inner).clone();
        if renames == self.renamed {
            return;
        }
        for (was, name) in renames.iter() {
            self.state.rename_source(was, name);
        }
        self.renamed = renames;
    }
}

/// Runs long work on another thread, so that it delays no other task.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Stopped> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        tracing::error!(%error, "Planning failed; this is a bug.");
        Stopped { reason: "planning failed; this is a bug".into(), retry_after: None }
    })
}
