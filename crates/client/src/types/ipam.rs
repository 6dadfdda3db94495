//! Objects of IPAM systems: plans, and what is taken over or taken back.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::ChangeAction;

/// The part of a plan that is about the objects of an IPAM system.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ObjectPlanOutput {
    /// Changes that are made without a person.
    pub changes: Vec<ObjectChangeOutput>,
    /// Changes that a person must approve.
    #[serde(default)]
    pub parked_changes: Vec<ObjectChangeOutput>,
    /// Objects that cannot be made.
    #[serde(default)]
    pub blocked: Vec<BlockedObjectOutput>,
    /// Objects that stay although nothing asks for them.
    #[serde(default)]
    pub kept: Vec<KeptObjectOutput>,
    /// Fields and objects that others changed.
    #[serde(default)]
    pub drift: Vec<ObjectDriftOutput>,
}

/// One change of one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ObjectChangeOutput {
    /// The key of the object: its kind, the workload it stands for, and which part of that.
    #[schema(example = "address:docker:10.0.3.7@web-1")]
    pub object: String,
    pub action: ChangeAction,
    /// The change, for people.
    pub text: String,
    pub why: String,
    /// The guard that holds it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<String>,
}

/// An object that cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BlockedObjectOutput {
    pub object: String,
    pub why: String,
    /// The system's id of the object in the way, if `adopt` can take it over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopt: Option<String>,
}

/// An object that stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeptObjectOutput {
    pub object: String,
    pub why: String,
}

/// A field that is not as we left it, or with no field a whole object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ObjectDriftOutput {
    #[schema(format = "identifier")]
    pub provider: String,
    pub object: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The value on the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// The value that is wanted there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<String>,
}

/// An object that the system rejects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RejectedObjectOutput {
    pub object: String,
    /// The system's own words.
    pub reason: String,
}

/// An object that is ours now, or of which fields are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TakenObjectOutput {
    #[schema(format = "identifier")]
    pub provider: String,
    pub object: String,
    /// The system's id, if the whole object was taken over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Fields that had another value than ours, with that value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, String>,
    /// These values stay, and are no longer reported as drift.
    #[serde(default)]
    pub kept: bool,
}

/// One change of one object on one system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UndoneObjectOutput {
    #[schema(format = "identifier")]
    pub provider: String,
    #[serde(flatten)]
    pub change: ObjectChangeOutput,
}
