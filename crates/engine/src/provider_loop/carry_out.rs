//! Carries a plan out: stores the intent, writes, stores the outcome, and keeps the plan as history.

use std::sync::Arc;

use jiff::Timestamp;
use netstead_model::UnitOutcome;
use netstead_plan::Mode;
use netstead_store::Write;

use super::{HeldBy, LoopPlan, Pass, PassReport, Stopped, Worker, blocking, change_log};
use crate::{
    history::{self, EngineEvent, EngineEventKind, StoredPlanRef},
    keys::{self, Class},
};

impl<P: Pass> Worker<P> {
    /// Writes what is planned. What a person asks for `by_hand` is not held back by pauses or what was rejected before,
    /// and leaves what is parked as it is.
    pub(crate) async fn carry_out(
        &mut self,
        mut plan: Arc<P::Plan>,
        report: &mut PassReport,
        by_hand: bool,
    ) -> Result<(), Stopped> {
        let planned = plan.steps().len();
        let idle = self.shared.options.only_by_hand && !by_hand;
        if self.shared.options.dry_run || idle || self.about.mode == Mode::Observe {
            report.held = planned;
            let observed = (self.about.mode == Mode::Observe).then_some(HeldBy::Observe);
            let why = if self.shared.options.dry_run { Some(HeldBy::DryRun) } else { observed };
            report.held_by = why.filter(|_| planned > 0);
            return Ok(());
        }
        if !by_hand {
            report.held_by = self.hold_back(&mut plan);
        }
        report.held = planned - plan.steps().len();
        let before = self.guard.clone();
        let intent = P::record_intent(self, &plan);
        if by_hand {
            self.guard.offers.clone_from(&before.offers);
        } else if planned == 0 && plan.parked().is_none() && report.zone_errors.is_empty() {
            // The first plan after a recovery has nothing to wait for.
            self.guard.recovered = false;
        }
        self.guard_dirty |= before != self.guard;
        // The store learns first.
        self.persist().await?;
        if !by_hand {
            self.record_parked_event(&plan, &before).await;
        }
        if plan.steps().is_empty() {
            return Ok(());
        }
        let outcomes = P::write(self, &plan, report).await;
        self.count_outcomes(&plan, &outcomes, report);
        P::record_outcome(self, &plan, &intent, &outcomes);
        self.guard_dirty = true;
        let (name, at, outcomes) = (self.name().clone(), self.shared.clock.wall(), Arc::new(outcomes));
        let past = blocking({
            let (plan, outcomes) = (plan.clone(), outcomes.clone());
            move || history::plan_writes(P::CLASS, &name, &*plan, &outcomes, at)
        });
        // The JSON of a large plan is made while the store is busy.
        let (past, persisted) = tokio::join!(past, self.persist());
        persisted?;
        // What is done is seen before it is history.
        let left = planned.saturating_sub(report.applied);
        self.snapshot.update(|seen| {
            self.state.publish(&mut seen.view);
            seen.pending = if by_hand { seen.pending } else { left };
        });
        self.record_applied_plan(&plan, &outcomes, report, (at, past?)).await;
        Ok(())
    }

    /// Keeps the plan, which is turned into `writes`, and an event. They are for people: a store that does not take them
    /// stops nothing.
    async fn record_applied_plan(
        &mut self,
        plan: &P::Plan,
        outcomes: &[UnitOutcome],
        report: &PassReport,
        (at, mut writes): (Timestamp, Vec<Write>),
    ) {
        let name = self.name().clone();
        let parts = u32::try_from(writes.len()).unwrap_or(u32::MAX);
        self.plans.insert(plan.generation(), plan.steps().len());
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
        change_log::log_changes(self.name(), plan.steps(), outcomes);
        tracing::info!(
            provider = %self.name(), generation = plan.generation(), applied = report.applied,
            rejected = report.rejected, "A plan was carried out."
        );
        let text = format!("generation {}: {}", plan.generation(), report.outcome());
        let event = EngineEvent::new(EngineEventKind::Applied, text).on(self.name());
        let ipam = P::CLASS == Class::Ipam;
        let stored = Some(StoredPlanRef { generation: plan.generation(), parts, ipam });
        let carried_out = || history::applied_plan(&name, plan, outcomes, at);
        // The same time as the plan has: that is how they are known to belong together.
        self.shared.history.add_applied(EngineEvent { at, plan: stored, ..event }, carried_out).await;
    }

    /// The deletion of a stored plan.
    async fn stored_plan_deletions(&self, generation: u64) -> Vec<Write> {
        let prefix = P::CLASS.key(keys::PLAN, &format!("{}/{generation:016x}/", self.name()));
        let found = crate::fenced_store::entries(&*self.shared.store, &prefix).await.unwrap_or_default();
        found.into_iter().map(|entry| Write::Delete(entry.key)).collect()
    }
}
