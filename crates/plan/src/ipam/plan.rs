//! [`IpamPlan`]: the changes for one IPAM system, and what is held back.

use std::sync::Arc;

use netstead_model::{FieldValue, Fields, Ident, ObjectKey, ObjectUnit};
use serde::{Deserialize, Serialize};

use crate::{Digest, KeptReason, Line, Mode};

/// A plan is data: what would change on one IPAM system, what would not, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IpamPlan {
    pub provider: Ident,
    pub mode: Mode,
    /// Over the changes, not the generation.
    pub hash: Digest,
    pub generation: u64,
    /// In the order in which they are written: a step comes after those it needs.
    pub steps: Vec<IpamStep>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parked: Option<IpamParked>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<IpamBlocked>,
    /// Objects that stay although nothing asks for them, with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<IpamKept>,
    /// Changes that others made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drift: Vec<IpamDrift>,
    /// Objects of ours that are gone from the server and that nothing wants.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forgotten: Vec<ObjectKey>,
    /// Objects with our mark, and fields of them that have the wanted value already: they count as ours.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub confirmed: Vec<(ObjectKey, Fields)>,
}

impl IpamPlan {
    /// Whether nothing would be written.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The part of the plan that is about objects which are `shown`. Its hashes are still those of the whole.
    #[must_use]
    pub fn only(mut self, shown: impl Fn(&ObjectKey) -> bool) -> Self {
        self.steps.retain(|step| shown(&step.unit.key));
        if let Some(parked) = &mut self.parked {
            parked.changes.retain(|change| shown(&change.key));
        }
        self.parked = self.parked.filter(|parked| !parked.changes.is_empty());
        self.blocked.retain(|blocked| shown(&blocked.key));
        self.kept.retain(|kept| shown(&kept.key));
        self.drift.retain(|drift| shown(&drift.key));
        self.forgotten.retain(&shown);
        self.confirmed.retain(|(key, _)| shown(key));
        self
    }
}

/// One change of one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IpamStep {
    pub unit: ObjectUnit,
    /// For people.
    pub lines: Vec<Line>,
    /// For the breaker: the first step of a workload that counts has a 1.
    #[serde(default)]
    pub counted: u32,
    /// The approval this uses up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<Digest>,
}

/// Changes a guard holds back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IpamParked {
    pub hash: Digest,
    /// Engine time.
    pub since: u64,
    pub changes: Vec<IpamParkedChange>,
}

/// A removal that a guard holds back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IpamParkedChange {
    pub id: Digest,
    pub key: ObjectKey,
    /// `docker/web-1`.
    pub workload: String,
    pub lines: Vec<Line>,
    /// Which guard: the end of the sentence "parked because".
    pub guard: Arc<str>,
}

/// An object that cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IpamBlocked {
    pub key: ObjectKey,
    pub why: String,
    /// The server's id of the object in the way, if `adopt` can take it over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopt: Option<String>,
}

/// An object that stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IpamKept {
    pub key: ObjectKey,
    pub why: KeptReason,
}

/// A field that is not as we left it, or with no field a whole object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IpamDrift {
    pub key: ObjectKey,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The value on the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<FieldValue>,
    /// The value that is wanted there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<FieldValue>,
}
