//! Holds changes back that are paused or were rejected, and counts what became of the others.

use std::{collections::BTreeSet, sync::Arc};

use netstead_model::UnitOutcome;

use super::{HeldBy, LoopPlan, LoopStep, Pass, PassReport, PlaceOf, Worker};
use crate::metrics;

/// The longest wait before a rejected change is tried again, in milliseconds.
const LONGEST_RETRY: u64 = 3_600_000;

/// A change that the server rejected.
#[derive(Debug, Clone)]
pub(super) struct Poison<S> {
    step: S,
    pub(super) reason: String,
    tries: u32,
    /// Engine time at which it is tried again.
    next: u64,
}

impl<P: Pass> Worker<P> {
    /// Removes steps from a plan that must wait: those that are paused, and those the server rejected a short time ago. The plan
    /// is shared with readers: it is copied only if a step must wait. Returns the reason of the first that waits; a pause comes
    /// before a rejection, because a person can end it.
    pub(super) fn hold_back(&mut self, plan: &mut Arc<P::Plan>) -> Option<HeldBy> {
        let now = self.shared.now();
        let mut paused = self.shared.pauses.of(&self.about.name, self.about.group.as_ref(), now);
        let (all, mut rejected) = (paused.is_some(), false);
        if !self.poison.is_empty() {
            let current: BTreeSet<PlaceOf<P>> = plan.steps().iter().map(LoopStep::place).collect();
            self.poison.retain(|place, _| current.contains(place));
        }
        // A step that needs one that waits, waits too.
        let mut waits: BTreeSet<PlaceOf<P>> = BTreeSet::new();
        for step in plan.steps() {
            let poison = self.poison.get(&step.place());
            let poison = poison.filter(|poison| poison.step.asks_the_same(step) && now.millis < poison.next);
            let needs = step.needs().iter().any(|need| waits.contains(need));
            rejected |= poison.is_some();
            let own = if all { None } else { P::paused_by(self, step) };
            let must_wait = all || poison.is_some() || needs || own.is_some();
            paused = paused.take().or(own);
            if must_wait {
                waits.insert(step.place());
            }
        }
        if !waits.is_empty() {
            Arc::make_mut(plan).retain_steps(|step| !waits.contains(&step.place()));
        }
        if plan.steps().is_empty() && plan.generation() != self.guard.generation {
            Arc::make_mut(plan).set_generation(self.guard.generation);
        }
        let rejected = rejected.then_some(HeldBy::Rejected);
        paused.map(HeldBy::Pause).or(rejected).filter(|_| !waits.is_empty())
    }

    /// Counts the outcomes of the steps, and remembers the rejected ones.
    pub(super) fn count_outcomes(
        &mut self,
        plan: &P::Plan,
        outcomes: &[UnitOutcome],
        report: &mut PassReport,
    ) {
        let now = self.shared.now();
        for (step, outcome) in plan.steps().iter().zip(outcomes) {
            let place = step.place();
            let label = P::label(self, step);
            metrics::count_outcome(&mut report.tallies, label, step.lines(), outcome);
            match outcome {
                UnitOutcome::Applied => {
                    report.applied += 1;
                    self.poison.remove(&place);
                }
                UnitOutcome::Changed => report.changed += 1,
                UnitOutcome::Rejected { reason } => {
                    report.rejected += 1;
                    let before = self.poison.get(&place).filter(|poison| poison.step.asks_the_same(step));
                    let tries = before.map_or(0, |poison| poison.tries + 1);
                    let next = now.millis + (60_000u64 << tries.min(10)).min(LONGEST_RETRY);
                    tracing::warn!(name = %step.subject(), reason, "The server rejects a change; it is tried again later.");
                    let poison = Poison { step: step.clone(), reason: reason.clone(), tries, next };
                    self.poison.insert(place, poison);
                }
                UnitOutcome::Unknown => report.unknown += 1,
                UnitOutcome::NotTried => report.not_tried += 1,
            }
        }
        // What was written is confirmed by the sign of change or read back; what had changed is planned anew.
        report.again |= report.applied + report.changed > 0;
    }
}
