//! Updates ownership of objects: before a plan is applied and after.

use std::collections::{BTreeMap, BTreeSet};

use netstead_model::{FieldValue, Fields, ObjectChange, ObjectKey, UnitOutcome};

use super::{IpamPlan, IpamSettings, OwnedField, OwnedObject, OwnedObjects, breaker::window};
use crate::{Guard, Now};

/// Ownership that the intent changed.
#[derive(Debug, Clone, Default)]
pub struct ObjectIntent {
    /// Objects whose ownership changed.
    pub touched: BTreeSet<ObjectKey>,
    /// Objects of steps as they were before.
    before: BTreeMap<ObjectKey, Option<OwnedObject>>,
}

/// Call before the first write to the server: the values the plan will write count as ours from now on, beside those that
/// stand there.
pub fn record_object_intent(
    plan: &IpamPlan,
    owned: &mut OwnedObjects,
    guard: &mut Guard,
    now: Now,
) -> ObjectIntent {
    let mut intent = ObjectIntent::default();
    for key in &plan.forgotten {
        owned.0.remove(key);
        intent.touched.insert(key.clone());
    }
    for (key, fields) in &plan.confirmed {
        let object = owned.0.entry(key.clone()).or_default();
        (object.pending, object.taken) = (false, None);
        for (name, value) in fields {
            object.accepted.remove(name);
            object.fields.insert(name.clone(), OwnedField::new(value.clone()));
        }
        intent.touched.insert(key.clone());
    }
    for step in &plan.steps {
        let key = &step.unit.key;
        let (written, found) = match &step.unit.change {
            ObjectChange::Create { fields } => (fields, None),
            ObjectChange::Update { before, after, .. } => (after, Some(before)),
            ObjectChange::Delete { .. } => continue,
        };
        intent.before.insert(key.clone(), owned.0.get(key).cloned());
        intent.touched.insert(key.clone());
        let object = owned.0.entry(key.clone()).or_default();
        if matches!(step.unit.change, ObjectChange::Create { .. }) {
            (object.pending, object.taken) = (true, None);
        }
        note_fields(object, written, found, now);
    }
    let parked = plan.parked.as_ref();
    guard.offer(parked.map(|parked| (parked.hash, parked.changes.iter().map(|one| one.id).collect())), now);
    guard.generation = guard.generation.max(plan.generation);
    intent
}

/// Remembers fields as written. Of a set only the elements that were not there before are ours.
fn note_fields(object: &mut OwnedObject, written: &Fields, found: Option<&Fields>, now: Now) {
    for (name, value) in written {
        let own = object.fields.get(name).map(|field| &field.value);
        let value = own_elements(value, found.and_then(|found| found.get(name)), own);
        if let Some(field) = object.fields.get_mut(name) {
            field.replace(value, now);
        } else {
            object.fields.insert(name.clone(), OwnedField::new(value));
        }
    }
}

/// Call after the server answered. Nothing is concluded from a step that is unknown;
/// one that was not applied leaves what was ours before. Returns the objects whose ownership changed.
pub fn record_object_outcome(
    plan: &IpamPlan,
    intent: &ObjectIntent,
    outcomes: &[UnitOutcome],
    owned: &mut OwnedObjects,
    guard: &mut Guard,
    settings: &IpamSettings,
    now: Now,
) -> BTreeSet<ObjectKey> {
    let mut touched = BTreeSet::new();
    for (step, outcome) in plan.steps.iter().zip(outcomes) {
        let key = &step.unit.key;
        touched.insert(key.clone());
        match outcome {
            UnitOutcome::Unknown => continue,
            UnitOutcome::Applied => {
                match &step.unit.change {
                    ObjectChange::Create { .. } => {
                        if let Some(object) = owned.0.get_mut(key) {
                            object.pending = false;
                        }
                    }
                    ObjectChange::Update { before, after, .. } => {
                        if let Some(object) = owned.0.get_mut(key) {
                            object.pending = false;
                            object
                                .fields
                                .retain(|name, _| after.contains_key(name) || !before.contains_key(name));
                        }
                    }
                    ObjectChange::Delete { .. } => {
                        owned.0.remove(key);
                    }
                }
                if let Some(window) = window().filter(|_| step.counted > 0) {
                    guard.count(&window, step.counted, settings.breaker.window, now);
                }
            }
            UnitOutcome::Changed | UnitOutcome::Rejected { .. } | UnitOutcome::NotTried => {
                if let Some(was) = intent.before.get(key) {
                    match was {
                        Some(was) => owned.0.insert(key.clone(), was.clone()),
                        None => owned.0.remove(key),
                    };
                }
                if *outcome == UnitOutcome::NotTried {
                    continue;
                }
            }
        }
        if let Some(id) = step.approved {
            guard.use_up(id);
            // A person saw the first plan after a recovery.
            guard.recovered = false;
        }
    }
    touched
}

/// The elements of a written set that are ours: those that were not there before, or were ours.
fn own_elements(value: &FieldValue, found: Option<&FieldValue>, own: Option<&FieldValue>) -> FieldValue {
    match (value, found) {
        (FieldValue::Set(written), Some(FieldValue::Set(found))) => {
            let before = match own {
                Some(FieldValue::Set(own)) => own.clone(),
                _ => BTreeSet::new(),
            };
            let ours = written.iter().filter(|one| !found.contains(*one) || before.contains(*one));
            FieldValue::Set(ours.cloned().collect())
        }
        _ => value.clone(),
    }
}
