//! Single addresses and observations.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{AddressState, ClaimOutput, EventOutput, text_format};

/// One address that is not simply free, or a stretch of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AddressOutput {
    /// An address or a prefix; what is reserved or excluded is a stretch, written like a range of a pool.
    #[schema(format = "range")]
    pub address: String,
    #[schema(format = "identifier")]
    pub vrf: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "identifier")]
    pub pool: Option<String>,
    pub state: AddressState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// When it began to be so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "date-time")]
    pub since: Option<Timestamp>,
    /// When that ends by itself, as far as is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "date-time")]
    pub until: Option<Timestamp>,
    /// Sources that see it in use.
    #[serde(default)]
    #[schema(inline, value_type = Vec<text_format::Identifier>)]
    pub seen_by: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Everything known about one address or prefix, in sentences and as data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExplainOutput {
    #[schema(format = "address")]
    pub address: String,
    /// One entry per VRF in which the address means something; for a prefix, one per pool that has some of it.
    pub places: Vec<ExplainPlace>,
    /// Why sources leave the address out, one sentence each: then it has no name. Only for callers that may see every name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExplainPlace {
    pub address: AddressOutput,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<ClaimOutput>,
    /// Why it is so, one sentence each.
    pub why: Vec<String>,
    /// The newest events of it.
    pub history: Vec<EventOutput>,
}

/// Addresses a source or a scan has seen in use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ObservationInput {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "identifier")]
    pub vrf: Option<String>,
    /// The source saw all there is: what it does not name any more ends, after `grace`.
    #[serde(default)]
    pub complete: bool,
    pub seen: Vec<SightingInput>,
    /// Default `5m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "time-span")]
    pub grace: Option<String>,
    /// Sightings of a scan end by themselves after this long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "time-span")]
    pub ttl: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SightingInput {
    #[schema(format = "address")]
    pub address: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ObservationOutput {
    pub begun: usize,
    pub ended: usize,
}
