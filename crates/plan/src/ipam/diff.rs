//! [`ipam_diff`]: compares desired, actual and owned objects, and makes a plan.

mod fields;
mod removals;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use netstead_model::{
    FieldValue, Fields, IpamCapabilities, IpamObject, ObjectChange, ObjectKey, ObjectKind, ObjectRole,
    ObjectUnit,
};

use super::{
    IpamBlocked, IpamDesired, IpamDrift, IpamKept, IpamPlan, IpamSettings, IpamStep, OwnedObjects,
    WantedObject, breaker::park,
};
use crate::{Cause, Digest, Guard, Line, Mode, Now, Sign};

/// Everything a plan is made of.
#[derive(Debug, Clone, Copy)]
pub struct IpamInput<'a> {
    pub desired: &'a IpamDesired,
    pub actual: &'a [IpamObject],
    /// The abilities of the system.
    pub can: &'a IpamCapabilities,
    pub owned: &'a OwnedObjects,
    pub guard: &'a Guard,
    pub settings: &'a IpamSettings,
    pub now: Now,
    /// A person wants everything marked as ours to go.
    pub clean: bool,
}

/// A removal before the guards have judged it.
pub(super) struct Removal {
    pub(super) step: IpamStep,
    pub(super) cause: Cause,
}

/// Compares, and lets the guards judge.
pub fn ipam_diff(input: &IpamInput<'_>) -> IpamPlan {
    let mut diff = Diff::new(input);
    diff.removals();
    diff.wanted();
    diff.finish()
}

struct Diff<'a> {
    input: &'a IpamInput<'a>,
    /// Objects with our mark, and those that are taken over.
    ours: BTreeMap<&'a ObjectKey, &'a IpamObject>,
    /// Objects that are taken over and have no mark yet.
    adopting: BTreeSet<&'a ObjectKey>,
    /// Objects of others: their unique fields, and their id.
    foreign: BTreeMap<(&'a ObjectKind, Vec<String>), &'a str>,
    /// Objects that hang on one of ours.
    dependents: BTreeMap<&'a ObjectKey, Vec<&'a IpamObject>>,
    removals: Vec<Removal>,
    removed: BTreeSet<&'a ObjectKey>,
    /// The same by kind and part.
    leaving: BTreeMap<(&'a ObjectKind, &'a str), Vec<&'a ObjectKey>>,
    creates: Vec<IpamStep>,
    updates: Vec<IpamStep>,
    /// Objects that exist, or will once the creates are done.
    there: BTreeSet<&'a ObjectKey>,
    created: BTreeSet<&'a ObjectKey>,
    blocked: Vec<IpamBlocked>,
    kept: Vec<IpamKept>,
    drift: Vec<IpamDrift>,
    forgotten: Vec<ObjectKey>,
    confirmed: Vec<(ObjectKey, Fields)>,
}

/// The values that two objects of a kind cannot share, as comparable texts; none if one is empty.
fn identity(can: &IpamCapabilities, kind: &ObjectKind, fields: &Fields) -> Option<Vec<String>> {
    let about = can.kinds.iter().find(|one| one.kind == *kind)?;
    if about.unique.is_empty() {
        return None;
    }
    let text = |(number, name): (usize, &&str)| {
        let text = fields.get(*name)?.to_string().to_lowercase();
        // `10.0.3.7/24` and `10.0.3.7` are one address.
        let bare = about.role == ObjectRole::Address && number == 0;
        Some(if bare { text.split('/').next().unwrap_or_default().to_owned() } else { text })
    };
    about.unique.iter().enumerate().map(text).collect()
}

/// An object for people.
pub(super) fn subject(key: &ObjectKey) -> String {
    if key.part.is_empty() {
        format!("{} {}", key.kind, key.workload.as_str())
    } else if key.part.parse::<netstead_model::Address>().is_ok() {
        format!("{} {}", key.kind, key.part)
    } else {
        format!("{} {} of {}", key.kind, key.part, key.workload.as_str())
    }
}

impl<'a> Diff<'a> {
    fn new(input: &'a IpamInput<'a>) -> Self {
        let mut ours: BTreeMap<&ObjectKey, &IpamObject> = BTreeMap::new();
        let (mut others, mut drift) = (BTreeMap::new(), Vec::new());
        for object in input.actual {
            match &object.mark {
                Some(mark) if mark.owner == input.settings.owner.as_str() && mark.key.kind == object.kind => {
                    // A write that arrived late may have made a second one; a person decides about it.
                    if let Some(first) = ours.insert(&mark.key, object) {
                        ours.insert(&mark.key, first);
                        let found = Some(FieldValue::Text(object.id.clone()));
                        let (key, field, wanted) = (mark.key.clone(), Some("id".to_owned()), None);
                        drift.push(IpamDrift { key, field, found, wanted });
                    }
                }
                _ => {
                    others.insert((&object.kind, object.id.as_str()), object);
                }
            }
        }
        let mut adopting = BTreeSet::new();
        for (key, owned) in &input.owned.0 {
            let Some(id) = &owned.taken else { continue };
            if ours.contains_key(key) || !input.desired.objects.contains_key(key) {
                continue;
            }
            if let Some(object) = others.remove(&(&key.kind, id.as_str())) {
                ours.insert(key, object);
                adopting.insert(key);
            }
        }
        let mut foreign = BTreeMap::new();
        for object in others.into_values() {
            if let Some(identity) = identity(input.can, &object.kind, &object.fields) {
                foreign.entry((&object.kind, identity)).or_insert(object.id.as_str());
            }
        }
        let mut dependents: BTreeMap<&ObjectKey, Vec<&IpamObject>> = BTreeMap::new();
        for object in input.actual {
            let rank = rank(input.can, &object.kind);
            for target in references(&object.fields).filter(|key| rank > self::rank(input.can, &key.kind)) {
                dependents.entry(target).or_default().push(object);
            }
        }
        Self {
            input,
            there: ours.keys().copied().collect(),
            ours,
            adopting,
            foreign,
            dependents,
            removals: Vec::new(),
            removed: BTreeSet::new(),
            leaving: BTreeMap::new(),
            creates: Vec::new(),
            updates: Vec::new(),
            created: BTreeSet::new(),
            blocked: input.desired.blocked.clone(),
            kept: Vec::new(),
            drift,
            forgotten: Vec::new(),
            confirmed: Vec::new(),
        }
    }

    fn rank(&self, kind: &ObjectKind) -> usize {
        rank(self.input.can, kind)
    }

    fn wanted(&mut self) {
        let desired = self.input.desired;
        let mut wanted: Vec<_> = desired.objects.iter().collect();
        // In the order of creation: the objects that one refers to are decided before it.
        wanted.sort_by_key(|(key, _)| self.rank(&key.kind));
        for (key, wanted) in wanted {
            match self.ours.get(key).copied() {
                None => self.create(key, wanted),
                Some(object) => self.update(key, wanted, object),
            }
        }
    }

    fn create(&mut self, key: &'a ObjectKey, wanted: &WantedObject) {
        let owned = self.input.owned.0.get(key);
        let own = identity(self.input.can, &key.kind, &wanted.fields);
        if let Some(id) = own.and_then(|identity| self.foreign.get(&(&key.kind, identity))) {
            let why = format!("an object with the id {id} is there and not ours");
            self.blocked.push(IpamBlocked { key: key.clone(), why, adopt: Some((*id).to_owned()) });
            return;
        }
        let mut fields = wanted.fields.clone();
        // References to later kinds are filled once those exist.
        let own = self.rank(&key.kind);
        fields.retain(
            |_, value| !matches!(value, FieldValue::Ref(target) if rank(self.input.can, &target.kind) > own),
        );
        let targets: Vec<ObjectKey> = references(&fields).cloned().collect();
        if let Some(missing) = targets.iter().find(|target| !self.there.contains(target)) {
            let why = format!("{} is not there", subject(missing));
            self.blocked.push(IpamBlocked { key: key.clone(), why, adopt: None });
            return;
        }
        if owned.is_some_and(|owned| !owned.pending && owned.taken.is_none()) {
            let (field, found, wanted) = (None, None, None);
            self.drift.push(IpamDrift { key: key.clone(), field, found, wanted });
        }
        let mut needs: Vec<ObjectKey> =
            targets.into_iter().filter(|target| self.created.contains(target)).collect();
        // An address that leaves another object must be free first.
        let address = self.input.can.kind_of(ObjectRole::Address).is_some_and(|one| one.kind == key.kind);
        let leaving = self.leaving.get(&(&key.kind, key.part.as_str())).into_iter().flatten();
        needs.extend(leaving.filter(|_| address).map(|other| (*other).clone()));
        let mut text = subject(key);
        for (name, value) in fields.iter().map(|(name, value)| (name, value.to_string())) {
            // The subject has said this one.
            if value != key.part {
                let _ = write!(text, " {name}={value}");
            }
        }
        let line = Line { sign: Sign::Add, kind: None, text, why: wanted.why.clone() };
        let unit = ObjectUnit { key: key.clone(), change: ObjectChange::Create { fields }, needs };
        self.there.insert(key);
        self.created.insert(key);
        self.creates.push(IpamStep { unit, lines: vec![line], counted: 0, approved: None });
    }

    fn finish(mut self) -> IpamPlan {
        let IpamInput { guard, settings, now, .. } = *self.input;
        let made = self.creates.len();
        let (mut steps, parked) = park(std::mem::take(&mut self.removals), made, self.input);
        // A step that waits for something that is parked waits too.
        let mut waits: BTreeSet<ObjectKey> = parked.iter().map(|(key, _)| key.clone()).collect();
        let mut rest = self.creates;
        rest.append(&mut self.updates);
        for step in steps.split_off(0).into_iter().chain(rest) {
            match step.unit.needs.iter().find(|need| waits.contains(need)) {
                None => steps.push(step),
                Some(need) => {
                    let why =
                        format!("it waits until {} of {} is removed", subject(need), need.workload.as_str());
                    waits.insert(step.unit.key.clone());
                    self.blocked.push(IpamBlocked { key: step.unit.key, why, adopt: None });
                }
            }
        }
        let texts = steps.iter().map(|step| serde_json::to_string(&step.unit).unwrap_or_default());
        let hash = Digest::of(texts);
        let generation = guard.generation + u64::from(!steps.is_empty());
        let parked = super::breaker::offered(parked, guard, now);
        IpamPlan {
            provider: settings.provider.clone(),
            mode: settings.mode,
            hash,
            generation,
            steps,
            parked,
            blocked: self.blocked,
            kept: self.kept,
            drift: self.drift,
            forgotten: self.forgotten,
            confirmed: self.confirmed,
        }
    }
}

/// The place of a kind in the order of creation; kinds that are not held come last.
fn rank(can: &IpamCapabilities, kind: &ObjectKind) -> usize {
    can.kinds.iter().position(|one| one.kind == *kind).unwrap_or(usize::MAX)
}

/// The objects that fields refer to.
fn references(fields: &Fields) -> impl Iterator<Item = &ObjectKey> {
    fields.values().filter_map(|value| match value {
        FieldValue::Ref(target) => Some(target),
        _ => None,
    })
}
