//! [`ipam_rollback`]: a plan that brings back what an earlier generation had. Fields get their values back and objects are
//! made again; ids and journals of the server do not come back.

use std::collections::{BTreeMap, BTreeSet};

use netstead_model::{FieldValue, Fields, IpamObject, ObjectChange, ObjectKey, ObjectUnit};

use super::{IpamInput, IpamKept, IpamPlan, IpamStep, diff::subject};
use crate::{Digest, Line, Sign};

/// The changes since the generation to go back to that took effect.
#[derive(Debug, Clone, Default)]
pub struct IpamPast {
    objects: BTreeMap<ObjectKey, PastObject>,
}

#[derive(Debug, Clone)]
struct PastObject {
    existed: bool,
    /// Each field that changed since then, with its value at that time; none if it was empty.
    fields: BTreeMap<String, Option<FieldValue>>,
}

impl IpamPast {
    /// Adds the next change that took effect, in the order they happened.
    pub fn add(&mut self, unit: &ObjectUnit) {
        let existed = !matches!(unit.change, ObjectChange::Create { .. });
        let first = || PastObject { existed, fields: BTreeMap::new() };
        let object = self.objects.entry(unit.key.clone()).or_insert_with(first);
        let none = Fields::new();
        let (before, after) = match &unit.change {
            ObjectChange::Create { fields } => (&none, fields),
            ObjectChange::Update { before, after, .. } => (before, after),
            ObjectChange::Delete { before, .. } => (before, &none),
        };
        for name in before.keys().chain(after.keys()) {
            object.fields.entry(name.clone()).or_insert_with(|| before.get(name).cloned());
        }
    }
}

/// The plan that takes `past` back. Objects that were made since then are removed, unless something else hangs on them or others
/// changed fields of ours. Fields that others changed meanwhile stay. `input.desired` is not looked at.
pub fn ipam_rollback(past: &IpamPast, input: &IpamInput<'_>) -> IpamPlan {
    let owner = input.settings.owner.as_str();
    let ours = |object: &&IpamObject| object.mark.as_ref().is_some_and(|mark| mark.owner == owner);
    let there: BTreeMap<&ObjectKey, &IpamObject> = (input.actual.iter().filter(ours))
        .filter_map(|object| Some((&object.mark.as_ref()?.key, object)))
        .collect();
    let rank = |key: &ObjectKey| input.can.kinds.iter().position(|one| one.kind == key.kind);
    let (mut made, mut changed, mut gone) = (Vec::new(), Vec::new(), Vec::new());
    for (key, past) in &past.objects {
        match (past.existed, there.get(key)) {
            (false, Some(object)) => gone.push((key, *object)),
            (true, None) => made.push((key, past)),
            (true, Some(object)) => changed.push((key, past, *object)),
            (false, None) => {}
        }
    }
    made.sort_by_key(|(key, _)| rank(key));
    gone.sort_by_key(|(key, _)| std::cmp::Reverse(rank(key)));
    let mut going: BTreeSet<&ObjectKey> = gone.iter().map(|(key, _)| *key).collect();
    let coming: BTreeSet<&ObjectKey> = made.iter().map(|(key, _)| *key).collect();
    let line = |sign, text| vec![Line { sign, kind: None, text, why: "rolled back".into() }];
    let step = |key: &ObjectKey, change, needs, lines| IpamStep {
        unit: ObjectUnit { key: key.clone(), change, needs },
        lines,
        counted: 0,
        approved: None,
    };
    let (mut steps, mut kept) = (Vec::new(), Vec::new());
    for (key, object) in gone {
        match removal(input, &there, &going, key, object) {
            Ok((change, needs)) => steps.push(step(key, change, needs, line(Sign::Remove, subject(key)))),
            Err(why) => {
                going.remove(key);
                kept.push(IpamKept { key: key.clone(), why: why.into() });
            }
        }
    }
    for (key, past) in made {
        let known = |key: &ObjectKey| there.contains_key(key) && !going.contains(key);
        let mut fields: Fields =
            past.fields.iter().filter_map(|(name, value)| Some((name.clone(), value.clone()?))).collect();
        fields.retain(|_, value| match value {
            FieldValue::Ref(target) => known(target) || coming.contains(target) && rank(target) < rank(key),
            _ => true,
        });
        let needs = fields.values().filter_map(|value| match value {
            FieldValue::Ref(target) if coming.contains(target) => Some(target.clone()),
            _ => None,
        });
        let needs = needs.collect();
        let text = format!("{}, made again: its id and journal do not come back", subject(key));
        steps.push(step(key, ObjectChange::Create { fields }, needs, line(Sign::Add, text)));
    }
    for (key, past, object) in changed {
        let (mut before, mut after) = (Fields::new(), Fields::new());
        for (name, value) in &past.fields {
            let found = object.fields.get(name);
            let own = input.owned.field(key, name);
            let ours = found.is_none_or(|found| own.is_some_and(|own| own.wrote(found, input.now)));
            let missing = matches!(value, Some(FieldValue::Ref(target)) if !there.contains_key(target) || going.contains(target));
            if found == value.as_ref() || !ours || missing {
                continue;
            }
            before.extend(found.map(|found| (name.clone(), found.clone())));
            after.extend(value.clone().map(|value| (name.clone(), value)));
        }
        if before.is_empty() && after.is_empty() {
            continue;
        }
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let shown = |fields: &Fields, name: &str| {
            fields.get(name).map_or_else(|| "(empty)".to_owned(), ToString::to_string)
        };
        let text = |name: &&String| {
            format!("{} {name}: {} → {}", subject(key), shown(&before, name), shown(&after, name))
        };
        let lines = names.iter().flat_map(|name| line(Sign::Change, text(name))).collect();
        let change = ObjectChange::Update { id: object.id.clone(), adopted: false, before, after };
        steps.push(step(key, change, Vec::new(), lines));
    }
    let hash = Digest::of(steps.iter().map(|step| serde_json::to_string(&step.unit).unwrap_or_default()));
    let generation = input.guard.generation + u64::from(!steps.is_empty());
    IpamPlan {
        provider: input.settings.provider.clone(),
        mode: input.settings.mode,
        hash,
        generation,
        steps,
        parked: None,
        blocked: Vec::new(),
        kept,
        drift: Vec::new(),
        forgotten: Vec::new(),
        confirmed: Vec::new(),
    }
}

fn rank_of(input: &IpamInput<'_>, object: &IpamObject) -> Option<usize> {
    input.can.kinds.iter().position(|one| one.kind == object.kind)
}

/// The removal of an object that was made since then, and the objects that must be removed before it; or why it stays.
fn removal(
    input: &IpamInput<'_>,
    there: &BTreeMap<&ObjectKey, &IpamObject>,
    going: &BTreeSet<&ObjectKey>,
    key: &ObjectKey,
    object: &IpamObject,
) -> Result<(ObjectChange, Vec<ObjectKey>), String> {
    let refers = |fields: &Fields| {
        fields.values().any(|value| matches!(value, FieldValue::Ref(target) if target == key))
    };
    let hangs =
        |other: &&&IpamObject| refers(&other.fields) && rank_of(input, other) > rank_of(input, object);
    let dependents = there.values().filter(hangs).filter_map(|one| one.mark.as_ref());
    let mut needs = Vec::new();
    for mark in dependents {
        if !going.contains(&mark.key) {
            return Err(format!("{} still hangs on it", mark.key));
        }
        needs.push(mark.key.clone());
    }
    let mut before = Fields::new();
    // What is not ours is not expected either: it may change until the request arrives.
    for (name, field) in input.owned.0.get(key).into_iter().flat_map(|owned| &owned.fields) {
        let Some(found) = object.fields.get(name) else { continue };
        if !field.wrote(found, input.now) {
            return Err(format!("others changed its {name}"));
        }
        before.insert(name.clone(), found.clone());
    }
    Ok((ObjectChange::Delete { id: object.id.clone(), before }, needs))
}
