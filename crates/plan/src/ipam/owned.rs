//! [`OwnedObjects`]: what we wrote to an IPAM system, per object and field.

use std::collections::{BTreeMap, BTreeSet};

use netstead_model::{FieldValue, Ident, Key, ObjectKey, Span};
use serde::{Deserialize, Serialize};

use crate::Now;

/// So long a value that we replaced may still come back by a write that arrives late.
pub const LATE: Span = Span::from_secs(300);

/// A field that we wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnedField {
    /// The value we wrote last.
    pub value: FieldValue,
    /// Earlier values that a write may bring back late.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub former: Vec<FormerField>,
    /// Others wrote the value, and a person let us replace it. No write of ours can bring it back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adopted: bool,
}

/// A value that we wrote before, or may have written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormerField {
    pub value: FieldValue,
    /// Engine time until which it counts as ours.
    pub until: u64,
}

/// An object that we made or took over.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnedObject {
    pub fields: BTreeMap<String, OwnedField>,
    /// It is not known yet that it exists.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pending: bool,
    /// The server's id of an object of others that a person lets us take over; it gets our mark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<String>,
    /// Values of others that a person accepts: they stay, and are no drift.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub accepted: BTreeMap<String, FieldValue>,
}

impl OwnedField {
    /// A field with this value and no earlier one.
    pub fn new(value: FieldValue) -> Self {
        Self { value, former: Vec::new(), adopted: false }
    }

    /// A value of others that may be replaced.
    pub fn adopted(value: FieldValue) -> Self {
        Self { adopted: true, ..Self::new(value) }
    }

    /// Whether a value found on the server is one that we wrote.
    pub(crate) fn wrote(&self, found: &FieldValue, now: Now) -> bool {
        let former = self.former.iter().filter(|former| now.millis < former.until);
        self.value == *found || former.map(|former| &former.value).any(|value| value == found)
    }

    /// Takes another value; the one before may still come back late.
    pub(crate) fn replace(&mut self, value: FieldValue, now: Now) {
        self.former.retain(|former| now.millis < former.until && former.value != value);
        if self.value != value {
            let before = std::mem::replace(&mut self.value, value);
            let until = now.millis.saturating_add(LATE.as_millis());
            if !std::mem::take(&mut self.adopted) {
                self.former.push(FormerField { value: before, until });
            }
        }
    }
}

/// All of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnedObjects(pub BTreeMap<ObjectKey, OwnedObject>);

impl OwnedObjects {
    /// The workloads that objects are ours for.
    pub fn workloads(&self) -> BTreeSet<(&Ident, &Key)> {
        self.0.keys().map(|key| (&key.source, &key.workload)).collect()
    }

    pub fn field(&self, key: &ObjectKey, field: &str) -> Option<&OwnedField> {
        self.0.get(key)?.fields.get(field)
    }
}
