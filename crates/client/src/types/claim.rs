//! Claims.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{ClaimState, Family, ReleaseOutcome, text_format};

/// A request for an address under `key` in the pool of the path. Only what is given is changed on a repeat.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimInput {
    /// This address or none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "10.0.3.60", format = "address")]
    pub address: Option<String>,
    /// This address if it can be had, else any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "address")]
    pub prefer: Option<String>,
    /// Length of the prefix asked for (prefix pools).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u8>,
    /// How long the claim lives without being renewed; `0` for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "1h", format = "time-span")]
    pub ttl: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(inline, value_type = Option<Vec<text_format::DnsName>>)]
    pub hostnames: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Claim for another owner; needs the role `write`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Take over another owner's claim of this key, which needs the role `write`, or an address that was observed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adopt: bool,
    /// Take an address that still rests; with the role `write`, also one that is reserved for another owner.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
    /// Wait this long when there is no address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "time-span")]
    pub wait: Option<String>,
    /// Stay in the queue when the caller goes away.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep: bool,
}

/// A claim that may be served from several pools, or from several at once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimFrom {
    pub key: String,
    /// The first of these with room serves the claim; the key is unique over all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(inline, value_type = Vec<text_format::Identifier>)]
    pub any: Vec<String>,
    /// One address from each of these under one key: all or none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(inline, value_type = Vec<text_format::Identifier>)]
    pub each: Vec<String>,
    /// As `any`, over the pools whose labels match, in order of name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "site=ams,env!=dev")]
    pub select: Option<String>,
    #[serde(default)]
    pub claim: ClaimInput,
}

/// A bound claim, or one in the queue (`state` is `waiting` and `address` is missing).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClaimOutput {
    #[schema(format = "identifier")]
    pub pool: String,
    pub key: String,
    pub state: ClaimState,
    /// The address, or the prefix with its length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "address")]
    pub address: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    pub owner: String,
    /// The caller named the address.
    #[serde(default)]
    pub fixed: bool,
    #[schema(value_type = String, format = "date-time")]
    pub since: Timestamp,
    /// When it ends unless it is renewed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "date-time")]
    pub until: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "time-span")]
    pub ttl: Option<String>,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    #[serde(default)]
    #[schema(inline, value_type = Vec<text_format::DnsName>)]
    pub hostnames: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The names it gives rise to, and why these.
    #[serde(default)]
    #[schema(inline, value_type = Vec<text_format::DnsName>)]
    pub names: Vec<String>,
    #[serde(default)]
    pub names_reason: String,
    #[schema(format = "identifier")]
    pub vrf: String,
    pub family: Family,
    /// Of the pool: what a machine needs beside its address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "address")]
    pub gateway: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "cidr")]
    pub network: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "dns-name")]
    pub domain: Option<String>,
    /// Why it has no address yet, in a pool with a backend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The key at the backend of the pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend_key: Option<String>,
}

/// Renews a claim, with another time to live if one is given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RenewInput {
    /// Only this claim, not a later one under the same key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "time-span")]
    pub ttl: Option<String>,
}

/// Hands an address to another key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveInput {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    pub key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

/// The result of a release: the claim that ended, or nothing if it was gone already.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReleaseOutput {
    pub outcome: ReleaseOutcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<ClaimOutput>,
}
