//! [`rollback`]: a plan that brings back what an earlier generation had.

use std::collections::{BTreeMap, BTreeSet};

use netstead_model::{Name, RecordData, RecordSet, RecordType, Unit};

use crate::{
    Actual, Desired, DesiredSet, DesiredValue, Guard, Input, Now, Origin, Owned, OwnedValue, Plan, Settings,
    desired::{RemovalDecision, UndesiredValue},
    diff,
};

/// The changes that took effect since the generation to go back to, in their order.
#[derive(Debug, Clone, Default)]
pub struct Past {
    sets: BTreeMap<(Name, RecordType), Change>,
}

/// The history of one set since then.
#[derive(Debug, Clone, Default)]
struct Change {
    /// As it stood at first.
    before: Option<RecordSet>,
    added: BTreeSet<RecordData>,
    removed: BTreeSet<RecordData>,
}

impl Past {
    /// Adds the next change that took effect.
    pub fn add(&mut self, unit: &Unit) {
        for change in unit.own_changes() {
            let Some(kind) = change.after.as_ref().or(change.before.as_ref()).map(|set| set.kind) else {
                continue;
            };
            let first = || Change { before: change.before.clone(), ..Change::default() };
            let known = self.sets.entry((unit.name.clone(), kind)).or_insert_with(first);
            let values = |set: &Option<RecordSet>| {
                set.as_ref()
                    .map(|set| set.values.iter().cloned().collect::<BTreeSet<_>>())
                    .unwrap_or_default()
            };
            let (before, after) = (values(&change.before), values(&change.after));
            known.added.extend(after.difference(&before).cloned());
            known.removed.extend(before.difference(&after).cloned());
        }
    }

    /// The names that changed.
    pub fn names(&self) -> BTreeSet<&Name> {
        self.sets.keys().map(|(name, _)| name).collect()
    }
}

/// The plan that takes `past` back: what we added since then goes, what we removed comes again, and values that were
/// never ours are left. It is a plan like any other, and makes a new generation.
///
/// What comes again has no reason: as soon as plans are made of what runs, it is parked.
pub fn rollback(
    past: &Past,
    actual: &Actual,
    owned: &Owned,
    guard: &Guard,
    settings: &Settings,
    now: Now,
) -> Plan {
    let names = past.names();
    let there: BTreeMap<(&Name, RecordType), &RecordSet> = actual
        .zones
        .iter()
        .flat_map(|zone| zone.sets.iter().flatten())
        .filter(|set| names.contains(&set.name))
        .map(|set| ((&set.name, set.kind), set))
        .collect();
    let mut desired = Desired::default();
    let mut ours = Owned::default();
    for name in names {
        let values = owned.of(name);
        if !values.is_empty() {
            ours.insert(name.clone(), values.to_vec());
        }
        let kinds: BTreeSet<RecordType> = RecordType::ALL
            .iter()
            .copied()
            .filter(|kind| {
                past.sets.contains_key(&(name.clone(), *kind))
                    || values.iter().any(|value| value.data.kind() == *kind)
            })
            .collect();
        for kind in kinds {
            let change = past.sets.get(&(name.clone(), kind));
            let there = there.get(&(name, kind)).copied();
            restore_set(name, kind, change, there, values, settings, &mut desired);
        }
    }
    let guard = Guard { recovered: false, ..guard.clone() };
    let mut plan =
        diff(&Input { desired: &desired, actual, owned: &ours, guard: &guard, settings, now, clean: false });
    // The marks of all other names would look as if they stood for nothing.
    plan.drift.clear();
    for step in &mut plan.steps {
        let returned = step.puts.iter_mut().filter(|value| value.reasons.is_empty());
        returned.for_each(|value| value.origin = Origin::Returned);
        // What comes again has no reason to tell.
        let silent = step.lines.iter_mut().filter(|line| line.why.is_empty() || line.why.starts_with(':'));
        silent.for_each(|line| line.why = "rolled back".into());
    }
    plan
}

/// One set as it shall be.
fn restore_set(
    name: &Name,
    kind: RecordType,
    change: Option<&Change>,
    there: Option<&RecordSet>,
    ours: &[OwnedValue],
    settings: &Settings,
    desired: &mut Desired,
) {
    let before = change.and_then(|change| change.before.as_ref());
    let stood = |data: &RecordData| before.is_some_and(|before| before.values.contains(data));
    let goes = |value: &OwnedValue| {
        let added = change.is_some_and(|change| change.added.contains(&value.data));
        (added || value.pending) && !stood(&value.data)
    };
    let (go, stay): (Vec<_>, Vec<_>) =
        ours.iter().filter(|value| value.data.kind() == kind).partition(|value| goes(value));
    let known = |data: &&RecordData| ours.iter().all(|value| value.data != **data);
    let comes =
        change.into_iter().flat_map(|change| &change.removed).filter(|data| stood(data)).filter(known);
    let value = |data: &RecordData, reasons| {
        let (data, waiting, claim, joined) = (data.clone(), None, false, None);
        DesiredValue { data, reasons, waiting, claim, joined }
    };
    let mut values: Vec<DesiredValue> = comes.map(|data| value(data, Vec::new())).collect();
    values.extend(stay.iter().map(|own| value(&own.data, own.reasons.clone())));
    values.sort_by(|one, other| one.data.cmp(&other.data));
    let ttl = before.or(there).map_or(settings.ttl, |set| set.ttl);
    if !values.is_empty() {
        let (name, adopt, share) = (name.clone(), false, settings.share);
        let proxied = before.or(there).and_then(|set| set.proxied);
        desired.sets.push(DesiredSet { name, kind, ttl, values, adopt, share, proxied });
    }
    let leaving = go.iter().map(|own| {
        let fate = RemovalDecision::Remove(crate::Cause::Asked, "rolled back".into());
        UndesiredValue { data: own.data.clone(), decision: fate }
    });
    desired.undesired.entry(name.clone()).or_default().extend(leaving);
}
