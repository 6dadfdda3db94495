//! [`Owned`]: the values on one server that are ours, as the store has them.

use std::collections::BTreeMap;

use netstead_model::{Ident, Key, Name, RecordData};
use serde::{Deserialize, Serialize};

use crate::Reason;

/// The values we wrote, or are about to write, on one provider. Everything else there is foreign.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Owned(BTreeMap<Name, Vec<OwnedValue>>);

/// One value of ours. It goes with the last of its reasons.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnedValue {
    pub data: RecordData,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Reason>,
    #[serde(default, skip_serializing_if = "Origin::is_written")]
    pub origin: Origin,
    /// The store knows of it, the server perhaps not yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pending: bool,
}

/// How a value became ours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    #[default]
    Written,
    /// A person or a setting took it over.
    Adopted,
    /// Learned from marks after the store was lost.
    Recovered,
    /// Taken over only to be removed: the marks of another tool, or of an id that was ours before.
    Discarded,
    /// Ours before, and brought back by a write that came late: it goes.
    Late,
    /// A rollback put it back.
    Returned,
}

impl Origin {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over by reference")]
    fn is_written(&self) -> bool {
        *self == Self::Written
    }
}

impl Owned {
    /// Our values at `name`, sorted.
    pub fn of(&self, name: &Name) -> &[OwnedValue] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    pub fn get(&self, name: &Name, data: &RecordData) -> Option<&OwnedValue> {
        let values = self.of(name);
        values.binary_search_by(|value| value.data.cmp(data)).ok().and_then(|at| values.get(at))
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Name, &[OwnedValue])> {
        self.0.iter().map(|(name, values)| (name, values.as_slice()))
    }

    /// The next name at which something is ours, from `from` on.
    pub fn next_name(&self, from: std::ops::Bound<&Name>) -> Option<&Name> {
        self.0.range::<Name, _>((from, std::ops::Bound::Unbounded)).next().map(|(name, _)| name)
    }

    /// How many values are ours.
    pub fn len(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Makes a value ours, or gives it other reasons.
    pub fn put(&mut self, name: &Name, value: OwnedValue) {
        let values = self.0.entry(name.clone()).or_default();
        match values.binary_search_by(|other| other.data.cmp(&value.data)) {
            Ok(at) => values.get_mut(at).into_iter().for_each(|slot| *slot = value.clone()),
            Err(at) => values.insert(at, value),
        }
    }

    /// Forgets a value.
    pub fn forget(&mut self, name: &Name, data: &RecordData) {
        if let Some(values) = self.0.get_mut(name) {
            values.retain(|value| value.data != *data);
            if values.is_empty() {
                self.0.remove(name);
            }
        }
    }

    /// Everything of a name at once, as the store has it.
    pub fn insert(&mut self, name: Name, mut values: Vec<OwnedValue>) {
        values.sort_by(|one, other| one.data.cmp(&other.data));
        values.dedup_by(|one, other| one.data == other.data);
        if values.is_empty() {
            self.0.remove(&name);
        } else {
            self.0.insert(name, values);
        }
    }

    /// Carries reasons over to a source's new name; the names that changed.
    pub fn rename_source(&mut self, was: &Ident, name: &Ident) -> Vec<Name> {
        let mut touched = Vec::new();
        for (owner, values) in &mut self.0 {
            let reasons = values.iter_mut().flat_map(|value| &mut value.reasons);
            let mut changed = false;
            for reason in reasons.filter(|reason| reason.source == *was) {
                reason.source = name.clone();
                changed = true;
            }
            if changed {
                for value in values.iter_mut() {
                    value.reasons.sort();
                    value
                        .reasons
                        .dedup_by(|one, other| one.source == other.source && one.workload == other.workload);
                }
                touched.push(owner.clone());
            }
        }
        touched
    }

    /// Whether anything is ours because of this workload. One call walks all: collect first when asking often.
    pub fn workloads(&self) -> impl Iterator<Item = (&Ident, &Key)> {
        self.0
            .values()
            .flatten()
            .flat_map(|value| &value.reasons)
            .map(|reason| (&reason.source, &reason.workload))
    }
}
