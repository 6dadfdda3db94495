//! Updates ownership: before a plan is applied ([`record_intent`]) and after ([`record_outcome`]).

use std::collections::BTreeSet;

use netstead_model::{Name, UnitOutcome};

use crate::{Guard, Now, Owned, OwnedValue, Plan, Settings};

/// Call before the first write to the server: every value the plan will write is ours from now on, and what is parked may be
/// approved. Returns the names whose values changed, which must be stored before the first write.
pub fn record_intent(plan: &Plan, owned: &mut Owned, guard: &mut Guard, now: Now) -> BTreeSet<Name> {
    let mut touched = BTreeSet::new();
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
            let known = owned.get(&step.unit.name, &value.data).is_some_and(|own| !own.pending);
            let pending = value.pending && !known;
            owned.put(&step.unit.name, OwnedValue { pending, ..value.clone() });
            touched.insert(step.unit.name.clone());
        }
    }
    let parked = plan.parked.as_ref();
    guard.offer(parked.map(|parked| (parked.hash, parked.changes.iter().map(|one| one.id).collect())), now);
    guard.generation = guard.generation.max(plan.generation);
    touched
}

/// Call after the server answered: values it took are confirmed, values it removed are no longer ours. `outcomes` are those
/// of the steps in order; `None` where it is unknown whether the change took effect, and then nothing is concluded.
pub fn record_outcome(
    plan: &Plan,
    outcomes: &[Option<UnitOutcome>],
    owned: &mut Owned,
    guard: &mut Guard,
    settings: &Settings,
    now: Now,
) -> BTreeSet<Name> {
    let mut touched = BTreeSet::new();
    for (step, outcome) in plan.steps.iter().zip(outcomes) {
        let name = &step.unit.name;
        match outcome {
            None => continue,
            Some(UnitOutcome::Applied) => {
                for value in step.puts.iter().filter(|value| value.pending) {
                    owned.put(name, OwnedValue { pending: false, ..value.clone() });
                }
                step.forgets.iter().for_each(|data| owned.forget(name, data));
                if step.counted > 0 {
                    guard.count(&step.zone, step.counted, settings.breaker.window, now);
                }
            }
            Some(UnitOutcome::Changed | UnitOutcome::Rejected { .. }) => {
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
