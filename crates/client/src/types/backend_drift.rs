//! Differences between pools and their backends.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::PoolDriftKind;

/// How a backend differs from a claim that draws from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PoolDriftOutput {
    #[schema(format = "identifier")]
    pub pool: String,
    pub kind: PoolDriftKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "address")]
    pub address: Option<String>,
    /// The number of a stray object, to give it back by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stray: Option<u64>,
    pub reason: String,
    #[schema(value_type = String, format = "date-time")]
    pub seen: Timestamp,
}

/// The claim whose address the backend shall hold again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RestoreDriftInput {
    #[schema(format = "identifier")]
    pub pool: String,
    pub key: String,
}

/// The stray object to give back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseDriftInput {
    pub stray: u64,
}
