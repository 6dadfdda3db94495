//! The fields of one object that is there and wanted.

use std::collections::BTreeSet;

use netstead_model::{FieldValue, Fields, IpamObject, ObjectChange, ObjectKey, ObjectUnit};

use super::{Diff, IpamInput, Mode, references, subject};
use crate::{
    Line, Sign,
    ipam::{IpamDrift, IpamStep, WantedObject},
};

impl<'a> Diff<'a> {
    pub(super) fn update(&mut self, key: &'a ObjectKey, wanted: &WantedObject, object: &IpamObject) {
        let IpamInput { owned, now, settings, .. } = *self.input;
        let (owned, adopted) = (owned.0.get(key), self.adopting.contains(key));
        let (mut before, mut after, mut same) = (Fields::new(), Fields::new(), Fields::new());
        let names: BTreeSet<&String> =
            wanted.fields.keys().chain(owned.into_iter().flat_map(|owned| owned.fields.keys())).collect();
        for name in names {
            let (want, found) = (wanted.fields.get(name), object.fields.get(name));
            let own = owned.and_then(|owned| owned.fields.get(name));
            if let Some(FieldValue::Ref(target)) = want
                && !self.there.contains(target)
            {
                // It is made in a later pass, or never; the field waits for it.
                continue;
            }
            let target = match (want, found) {
                (Some(FieldValue::Set(want)), _) => merged(Some(want), own.map(|own| &own.value), found),
                (None, Some(FieldValue::Set(_))) => merged(None, own.map(|own| &own.value), found),
                _ => want.cloned(),
            };
            let is_set = matches!(found, Some(FieldValue::Set(_)));
            if target.as_ref() == found {
                let known = own.map(|own| &own.value) == found;
                same.extend(found.filter(|_| !known && !is_set).map(|found| (name.clone(), found.clone())));
                continue;
            }
            // An empty field may be filled; any other is ours only while it has a value that we wrote.
            let ours = found.is_none_or(|found| is_set || own.is_some_and(|own| own.wrote(found, now)));
            if !ours {
                let accepted = owned.and_then(|owned| owned.accepted.get(name)) == found;
                if want.is_some() && !accepted {
                    let (field, found) = (Some(name.clone()), found.cloned());
                    self.drift.push(IpamDrift { key: key.clone(), field, found, wanted: want.cloned() });
                }
                continue;
            }
            before.extend(found.map(|found| (name.clone(), found.clone())));
            after.extend(target.map(|target| (name.clone(), target)));
        }
        if !adopted && (!same.is_empty() || owned.is_none_or(|owned| owned.pending || owned.taken.is_some()))
        {
            self.confirmed.push((key.clone(), same));
        }
        let create_only = settings.mode == Mode::CreateOnly;
        if create_only || before.is_empty() && after.is_empty() && !adopted {
            return;
        }
        let needs = references(&after).filter(|target| self.created.contains(target)).cloned().collect();
        let touched: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let shown =
            |value: Option<&FieldValue>| value.map_or_else(|| "(empty)".to_owned(), ToString::to_string);
        let line = |text: String| Line { sign: Sign::Change, kind: None, text, why: wanted.why.clone() };
        let changed = |name: &&String| {
            let (old, new) = (shown(before.get(*name)), shown(after.get(*name)));
            line(format!("{} {name}: {old} → {new}", subject(key)))
        };
        let adoption = adopted.then(|| line(format!("{} adopted, with the id {}", subject(key), object.id)));
        let lines = adoption.into_iter().chain(touched.iter().map(changed)).collect();
        let change = ObjectChange::Update { id: object.id.clone(), adopted, before, after };
        let unit = ObjectUnit { key: key.clone(), change, needs };
        self.updates.push(IpamStep { unit, lines, counted: 0, approved: None });
    }
}

/// A set with our elements as they shall be and those of others as they are.
fn merged(
    want: Option<&BTreeSet<String>>,
    own: Option<&FieldValue>,
    found: Option<&FieldValue>,
) -> Option<FieldValue> {
    let elements = |value: Option<&FieldValue>| match value {
        Some(FieldValue::Set(set)) => set.clone(),
        _ => BTreeSet::new(),
    };
    let (own, found) = (elements(own), elements(found));
    let want = want.cloned().unwrap_or_default();
    let gone: BTreeSet<&String> = own.difference(&want).collect();
    let mut all: BTreeSet<String> = found.into_iter().filter(|one| !gone.contains(one)).collect();
    all.extend(want);
    (!all.is_empty()).then_some(FieldValue::Set(all))
}
