//! One pass of a provider: read the zones, plan, store the intent, write, store the outcome.
//!
//! A pass takes no hint about what changed: after a restart, a missed event or a change of leader it does what it always
//! does, so there is one path to test.

use std::{
    collections::BTreeSet,
    panic::AssertUnwindSafe,
    sync::{Arc, PoisonError},
    time::Duration,
};

use futures::FutureExt;
use netstead_model::{Ident, Name, UnitOutcome};
use netstead_plan::{Desired, Input, Mode, Plan, desired, diff, record_intent, record_outcome};
use netstead_store::Write;

use super::Worker;
use crate::{
    history::{self, EngineEvent, EngineEventKind, StoredPlanRef},
    keys,
    metrics::Tally,
    status::LastPass,
};

/// What one pass did.
#[derive(Debug, Clone)]
pub struct PassReport {
    pub provider: Ident,
    /// What was planned; none if it did not come that far.
    pub plan: Option<Arc<Plan>>,
    /// Names that were changed, were found otherwise than expected, were rejected, or may or may not be changed.
    pub applied: usize,
    pub changed: usize,
    pub rejected: usize,
    pub unknown: usize,
    /// Names for which no request was sent, because the server or the time of the pass did not allow it.
    pub not_tried: usize,
    /// Names that wait: paused, observed only, rejected before.
    pub held: usize,
    /// The same by zone, for numbers.
    pub tallies: Vec<Tally>,
    pub took: Duration,
    /// Why nothing could be planned or carried out.
    pub error: Option<String>,
    /// Why single zones were left out.
    pub zone_errors: Vec<(Name, String)>,
    pub(crate) retry_after: Option<Duration>,
    /// Another pass should follow at once.
    pub(crate) again: bool,
    /// The time of the pass was over before everything was written: the next pass goes on.
    pub(crate) unfinished: bool,
}

impl PassReport {
    pub(super) fn new(provider: Ident) -> Self {
        Self {
            provider,
            plan: None,
            applied: 0,
            changed: 0,
            rejected: 0,
            unknown: 0,
            not_tried: 0,
            held: 0,
            tallies: Vec::new(),
            took: Duration::ZERO,
            error: None,
            zone_errors: Vec::new(),
            retry_after: None,
            again: false,
            unfinished: false,
        }
    }

    /// Whether nothing is left to do.
    pub fn is_in_sync(&self) -> bool {
        self.error.is_none()
            && self.zone_errors.is_empty()
            && self.held + self.rejected + self.unknown + self.changed + self.not_tried == 0
    }
}

/// Why a pass ended early: for people.
pub(super) struct Stopped {
    pub(super) reason: String,
    retry_after: Option<Duration>,
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

impl Worker {
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
            (report.error, report.retry_after) = (Some(stopped.reason), stopped.retry_after);
        }
        report.took = clock.monotonic().saturating_sub(begun);
        let last = LastPass { at: clock.wall(), took: report.took, outcome: outcome(&report) };
        let rejected = self
            .poison
            .iter()
            .map(|((zone, name), poison)| (zone.clone(), name.clone(), poison.reason.clone()));
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
            seen.doubtful = self.zone_cache.doubtful();
            seen.owned = self.owned.clone();
            seen.guard = Arc::new(self.guard.clone());
            if let Some(plan) = &report.plan {
                seen.plan = Some(plan.clone());
                seen.pending = plan.steps.len().saturating_sub(report.applied);
            }
        });
        report
    }

    async fn try_pass(&mut self, report: &mut PassReport) -> Result<(), Stopped> {
        if self.shared.lead.is_deposed() {
            return Err(crate::EngineError::Deposed.into());
        }
        let newest = self.shared.inventory.borrow().clone();
        let number = newest.number;
        // What an earlier pass could not tell the store comes first.
        self.rename_sources();
        self.persist().await?;
        let zones = self.zone_tops();
        let mut wanted = self.desired(newest.inventory.clone()).await?;
        let doubted;
        (report.zone_errors, doubted) = self.refresh_zones(&wanted).await?;
        if self.reclaim_late_values(&doubted).await || self.zone_tops() != zones {
            wanted = self.desired(newest.inventory).await?;
        }
        self.next_end = wanted.next_end();
        let (plan, wanted) = self.plan(wanted).await?;
        let shown = Arc::new(plan.clone());
        report.plan = Some(shown.clone());
        self.send_new_drift(&shown);
        let wanted = Arc::new(wanted);
        self.snapshot.update(|seen| {
            (seen.desired, seen.pending) = (wanted, shown.steps.len());
            seen.plan = Some(shown);
        });
        let done = self.carry_out(plan, report, false).await;
        self.snapshot.update(|seen| seen.number = number);
        done
    }

    /// Carries our reasons over to the new names of sources.
    pub(super) fn rename_sources(&mut self) {
        let renames = self.shared.renames.read().unwrap_or_else(PoisonError::into_inner).clone();
        if renames == self.renamed {
            return;
        }
        for (was, name) in renames.iter() {
            if self.owned.workloads().any(|(source, _)| source == was) {
                self.dirty.extend(Arc::make_mut(&mut self.owned).rename_source(was, name));
            }
        }
        self.renamed = renames;
    }

    /// The names that are the top of a zone, as far as the zones are known.
    fn zone_tops(&self) -> BTreeSet<Name> {
        self.zone_cache.actual.zone_tops(&self.settings)
    }

    pub(super) async fn desired(&self, inventory: Arc<netstead_plan::Inventory>) -> Result<Desired, Stopped> {
        let (settings, domains, zones) = (self.settings.clone(), self.shared.domains(), self.zone_tops());
        let (owned, now) = (self.owned.clone(), self.shared.now());
        let provider = self.setup.provider.clone();
        let work = move || {
            let mut wanted = desired(&inventory, &settings, &domains, &zones, &owned, now);
            wanted.adjust(|set| provider.adjust(set));
            wanted
        };
        blocking(work).await
    }

    pub(super) async fn plan(&self, desired: Desired) -> Result<(Plan, Desired), Stopped> {
        let (settings, actual, owned) =
            (self.settings.clone(), self.zone_cache.actual.clone(), self.owned.clone());
        let (guard, now) = (self.guard.clone(), self.shared.now());
        let work = move || {
            let (actual, owned, guard, settings) = (&*actual, &*owned, &guard, &*settings);
            let plan = diff(&Input { desired: &desired, actual, owned, guard, settings, now, clean: false });
            (plan, desired)
        };
        blocking(work).await
    }

    /// Writes what is planned. What a person asks for `by_hand` is not held back by pauses or what was rejected before,
    /// and leaves what is parked as it is.
    pub(super) async fn carry_out(
        &mut self,
        mut plan: Plan,
        report: &mut PassReport,
        by_hand: bool,
    ) -> Result<(), Stopped> {
        let planned = plan.steps.len();
        if self.shared.options.dry_run || self.settings.mode == Mode::Observe {
            report.held = planned;
            return Ok(());
        }
        if !by_hand {
            self.hold_back(&mut plan);
        }
        report.held = planned - plan.steps.len();
        let now = self.shared.now();
        let before = self.guard.clone();
        self.remember_forgotten(&plan);
        let intent = record_intent(&plan, Arc::make_mut(&mut self.owned), &mut self.guard, now);
        self.dirty.extend(intent.touched.iter().cloned());
        if by_hand {
            self.guard.offers.clone_from(&before.offers);
        } else if planned == 0 && plan.parked.is_none() && report.zone_errors.is_empty() {
            // The first plan after a recovery has nothing to wait for.
            self.guard.recovered = false;
        }
        self.guard_dirty |= before != self.guard;
        // The store learns first.
        self.persist().await?;
        if !by_hand {
            self.record_parked_event(&plan, &before).await;
        }
        if plan.steps.is_empty() {
            return Ok(());
        }
        let outcomes = self.write(&plan, report).await;
        self.remember_removed(&plan, &outcomes);
        let now = self.shared.now();
        let owned = Arc::make_mut(&mut self.owned);
        let guard = &mut self.guard;
        self.dirty.extend(record_outcome(&plan, &intent, &outcomes, owned, guard, &self.settings, now));
        self.guard_dirty = true;
        self.persist().await?;
        // What is done is seen before it is history.
        let (owned, left) = (self.owned.clone(), planned.saturating_sub(report.applied));
        self.snapshot.update(|seen| {
            seen.owned = owned;
            seen.pending = if by_hand { seen.pending } else { left };
        });
        self.record_applied_plan(&plan, &outcomes, report).await;
        Ok(())
    }

    /// Keeps the plan and an event. They are for people: a store that does not take them stops nothing.
    async fn record_applied_plan(&mut self, plan: &Plan, outcomes: &[UnitOutcome], report: &PassReport) {
        let at = self.shared.clock.wall();
        let carried_out = history::applied_plan(plan, outcomes, at);
        let mut writes = history::plan_writes(&carried_out);
        let parts = u32::try_from(writes.len()).unwrap_or(u32::MAX);
        self.plans.insert(plan.generation, plan.steps.len());
        let surplus = history::surplus(&self.plans);
        for generation in &surplus {
            writes.extend(self.stored_plan_deletions(*generation).await);
        }
        match self.fenced_store.put(writes).await {
            Ok(()) => surplus.iter().for_each(|generation| {
                self.plans.remove(generation);
            }),
            Err(error) => tracing::warn!(%error, "A plan that was carried out could not be stored."),
        }
        tracing::info!(
            provider = %self.name(), generation = plan.generation, applied = report.applied,
            rejected = report.rejected, "A plan was carried out."
        );
        let text = format!("generation {}: {}", plan.generation, outcome(report));
        let event = EngineEvent::new(EngineEventKind::Applied, text).on(self.name());
        let plan = Some(StoredPlanRef { generation: plan.generation, parts });
        // The same time as the plan has: that is how they are known to belong together.
        self.shared.history.add_applied(EngineEvent { at, plan, ..event }, &carried_out).await;
    }

    /// The deletion of a stored plan.
    async fn stored_plan_deletions(&self, generation: u64) -> Vec<Write> {
        let prefix = format!("{}{}/{generation:016x}/", keys::PLAN, self.name());
        let found = crate::fenced_store::entries(&*self.shared.store, &prefix).await.unwrap_or_default();
        found.into_iter().map(|entry| Write::Delete(entry.key)).collect()
    }
}

/// Runs long work on another thread, so that it delays no other task.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Stopped> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        tracing::error!(%error, "Planning failed; this is a bug.");
        Stopped { reason: "planning failed; this is a bug".into(), retry_after: None }
    })
}

fn outcome(report: &PassReport) -> String {
    if let Some(error) = &report.error {
        return format!("failed: {error}");
    }
    let counts = [
        (report.applied, "applied"),
        (report.changed, "found changed"),
        (report.rejected, "rejected"),
        (report.unknown, "unknown"),
        (report.not_tried, "not tried yet"),
        (report.held, "held back"),
        (report.zone_errors.len(), "zones left out"),
    ];
    let said: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if said.is_empty() { "nothing to do".into() } else { said.join(", ") }
}
