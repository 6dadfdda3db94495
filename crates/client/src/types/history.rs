//! Changes of names, and events of the engine.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{ChangeKind, ChangeOutput, EngineEventKind};

/// A change of one name on one provider with what became of it, or something that was noticed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HistoryOutput {
    /// Its place in the history. With the ledger's id in front it is a cursor.
    #[schema(example = "17.0.3")]
    pub id: String,
    #[schema(value_type = String, format = "date-time")]
    pub at: Timestamp,
    pub what: ChangeKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "identifier")]
    pub provider: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "identifier")]
    pub source: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "dns-name")]
    pub zone: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "dns-name")]
    pub name: Option<String>,
    /// The key of the object that it is about, on an IPAM system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// The plan it was part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
    /// The caller that asked for it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The change, or the event, for people.
    pub text: String,
    /// Why the server rejected it, in its own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Value by value, with why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ChangeOutput>,
}

/// A change of one name on one provider, or an event of the engine, as the stream sends it. It has no cursor: the stream
/// sends it once, and `GET /changes` lists what was missed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EngineEventOutput {
    #[schema(value_type = String, format = "date-time")]
    pub at: Timestamp,
    pub what: EngineEventKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "identifier")]
    pub provider: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "identifier")]
    pub source: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "dns-name")]
    pub zone: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "dns-name")]
    pub name: Option<String>,
    /// The key of the object that it is about, on an IPAM system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// The plan it was part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
    /// The subject that asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The change, or the event, for people.
    pub text: String,
    /// Why the server rejected it, in its own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
