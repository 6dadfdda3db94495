//! Pools and reservations.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Family, PoolOrder, PoolOrigin, text_format};

/// A pool as it is asked for. Only `name` on creation, and one of `network` and `ranges`, are needed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PoolInput {
    /// `ipv4`, `ipv6`, `mac` or `prefix`; follows from the addresses unless it is `prefix`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "ipv4")]
    pub family: Option<Family>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "default", format = "identifier")]
    pub vrf: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "10.0.3.0/24", format = "cidr")]
    pub network: Option<String>,
    /// The ranges to hand out: `a-b`, a CIDR or one address each. Empty means the whole network.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(example = json!(["10.0.3.50-10.0.3.200"]), inline, value_type = Vec<text_format::Range>)]
    pub ranges: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(inline, value_type = Vec<text_format::Range>)]
    pub exclude: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "10.0.3.1", format = "address")]
    pub gateway: Option<String>,
    /// Hand out network and broadcast addresses too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub use_reserved: Option<bool>,
    /// Length of a child prefix when the claim names none (prefix pools).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "home.test", format = "dns-name")]
    pub domain: Option<String>,
    /// `lowest` (default), `next`, `random` or `freed-first`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<PoolOrder>,
    /// How long a released address rests; default `10m`, `0` allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "time-span")]
    pub cooldown: Option<String>,
    /// How long it rests at least when nothing else is free; default `1m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "time-span")]
    pub cooldown_min: Option<String>,
    /// Whether a key gets its address back while it rests; default true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sticky: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_per_owner: Option<u32>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The backend that the addresses come from; its pool gives network and ranges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "office", format = "identifier")]
    pub backend: Option<String>,
    /// The pool as the backend calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend_pool: Option<String>,
}

/// A pool as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PoolOutput {
    #[schema(format = "identifier")]
    pub name: String,
    pub family: Family,
    #[schema(format = "identifier")]
    pub vrf: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "cidr")]
    pub network: Option<String>,
    #[schema(inline, value_type = Vec<text_format::Range>)]
    pub ranges: Vec<String>,
    #[serde(default)]
    #[schema(inline, value_type = Vec<text_format::Range>)]
    pub exclude: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "address")]
    pub gateway: Option<String>,
    #[serde(default)]
    pub use_reserved: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "dns-name")]
    pub domain: Option<String>,
    pub order: PoolOrder,
    #[schema(format = "time-span")]
    pub cooldown: String,
    #[schema(format = "time-span")]
    pub cooldown_min: String,
    pub sticky: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_per_owner: Option<u32>,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub origin: PoolOrigin,
    /// The prefix claim it lies in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<String>,
    #[schema(value_type = String, format = "date-time")]
    pub created: Timestamp,
    pub version: u64,
    pub usage: Usage,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "identifier")]
    pub backend: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend_pool: Option<String>,
    /// When the backend last said how much is free; `size` and `free` are as of then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "date-time")]
    pub described: Option<Timestamp>,
    /// It is being deleted: nothing is handed out, and it is removed when its backend has everything back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub closing: bool,
    /// Owner ids of the installations that the addresses come through: this one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub installations: Vec<String>,
}

/// How full a pool is. Sizes are decimal text, because an IPv6 pool has more addresses than JSON numbers can say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Usage {
    pub size: String,
    pub held: String,
    pub resting: String,
    pub reserved: String,
    pub observed: String,
    pub free: String,
    pub claims: u64,
    pub waiting: u64,
    /// The part that is not free, in hundredths of a percent of the size: 0 to 10000.
    pub used_permyriad: u32,
}

/// The counters of the parts of a block, for a map of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BlocksOutput {
    pub blocks: Vec<BlockOutput>,
}

/// One part of a block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BlockOutput {
    #[schema(format = "cidr")]
    pub block: String,
    /// Counters of what the pool has in it; missing if there is too much in it to count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// Sets a sub-range of a pool aside.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReservationInput {
    #[schema(example = "10.0.3.100-10.0.3.120", format = "range")]
    pub range: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReservationOutput {
    #[schema(format = "identifier")]
    pub pool: String,
    pub key: String,
    pub owner: String,
    #[schema(format = "range")]
    pub range: String,
    #[schema(value_type = String, format = "date-time")]
    pub since: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}
