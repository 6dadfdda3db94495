//! Updates ownership: before a plan is applied ([`record_intent`]) and after ([`record_outcome`]).

use std::collections::BTreeSet;

use netstead_model::{Name, RecordData, UnitOutcome};

use crate::{Guard, Now, Owned, OwnedValue, Plan, Settings};

/// Changes that [`record_intent`] made.
#[derive(Debug, Clone, Default)]
pub struct Intent {
    /// Names whose values changed. They must be stored before the first write.
    pub touched: BTreeSet<Name>,
    /// Values that nothing of ours was before.
    new: BTreeSet<(Name, RecordData)>,
}

/// Call before the first write to the server: every value the plan will write is ours from now on, and what is parked may be
/// approved.
pub fn record_intent(plan: &Plan, owned: &mut Owned, guard: &mut Guard, now: Now) -> Intent {
    let mut intent = Intent::default();
    let touched = &mut intent.touched;
    for (name, value) in &plan.restated {
        owned.put(name, value.clone());
        touched.insert(name.clone());
    }
    for (name, data) in &plan.forgotten {
        owned.forget(name, data);
        touched.insert(name.clone());
    }
    for step in &plan.steps {
        for value in &step.puts {
            let own = owned.get(&step.unit.name, &value.data);
            let pending = value.pending && own.is_none_or(|own| own.pending);
            if own.is_none() {
                intent.new.insert((step.unit.name.clone(), value.data.clone()));
            }
            owned.put(&step.unit.name, OwnedValue { pending, ..value.clone() });
            touched.insert(step.unit.name.clone());
        }
    }
    let parked = plan.parked.as_ref();
    guard.offer(parked.map(|parked| (parked.hash, parked.changes.iter().map(|one| one.id).collect())), now);
    guard.generation = guard.generation.max(plan.generation);
    intent
}

/// Call after the server answered: values it took are confirmed, values it removed are no longer ours. `outcomes` are those
/// of the steps in order. Nothing is concluded from one that is unknown; one that was not tried leaves everything as it was
/// before the intent.
pub fn record_outcome(
    plan: &Plan,
    intent: &Intent,
    outcomes: &[UnitOutcome],
    owned: &mut Owned,
    guard: &mut Guard,
    settings: &Settings,
    now: Now,
) -> BTreeSet<Name> {
    let mut touched = BTreeSet::new();
    for (step, outcome) in plan.steps.iter().zip(outcomes) {
        let name = &step.unit.name;
        match outcome {
            UnitOutcome::Unknown => continue,
            UnitOutcome::NotTried => {
                for value in step.puts.iter().filter(|value| value.pending) {
                    if intent.new.contains(&(name.clone(), value.data.clone())) {
                        owned.forget(name, &value.data);
                        touched.insert(name.clone());
                    }
                }
                continue;
            }
            UnitOutcome::Applied => {
                for value in step.puts.iter().filter(|value| value.pending) {
                    owned.put(name, OwnedValue { pending: false, ..value.clone() });
                }
                step.forgets.iter().for_each(|data| owned.forget(name, data));
                if step.counted > 0 {
                    guard.count(&step.zone, step.counted, settings.breaker.window, now);
                }
            }
            UnitOutcome::Changed | UnitOutcome::Rejected { .. } => {
                for value in step.puts.iter().filter(|value| value.pending) {
                    if owned.get(name, &value.data).is_some_and(|own| own.pending) {
                        owned.forget(name, &value.data);
                    }
                }
            }
        }
        if let Some(id) = step.approved {
            guard.use_up(id);
            // A person saw the first plan after a recovery.
            guard.recovered = false;
        }
        if !step.puts.is_empty() || !step.forgets.is_empty() {
            touched.insert(name.clone());
        }
    }
    touched
}
