//! The fields of the pool kinds, as the in-cluster provider has them.

use std::fmt;

use serde::Deserialize;

/// `spec` of an `InClusterIPPool` or a `GlobalInClusterIPPool`, v1alpha2.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InClusterSpec {
    /// Single addresses, networks and ranges; together a set.
    pub addresses: Vec<String>,
    /// The length of the network that all addresses are in. It is written on every address.
    pub prefix: i64,
    pub gateway: Option<String>,
    pub excluded_addresses: Vec<String>,
    /// Network and broadcast address are given out too.
    #[serde(rename = "allocateReservedIPAddresses")]
    pub allocate_reserved_ip_addresses: bool,
    /// How long a deleted claim keeps its address.
    pub address_reuse_grace_period_seconds: Option<i64>,
}

/// `spec` of an `InClusterPrefixPool` or a `GlobalInClusterPrefixPool`, v1alpha2.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PrefixSpec {
    /// IPv6 networks that prefixes are cut out of.
    pub prefixes: Vec<String>,
    /// The length of each prefix; 64 if unset.
    pub allocation_prefix_length: Option<i64>,
    pub gateway: Option<String>,
    pub excluded_prefixes: Vec<String>,
}

impl PrefixSpec {
    /// The length of a prefix unless the pool says another.
    pub const DEFAULT_LENGTH: i64 = 64;

    pub fn length(&self) -> i64 {
        self.allocation_prefix_length.unwrap_or(Self::DEFAULT_LENGTH)
    }
}

/// A field with a value that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// `spec.addresses`
    pub field: &'static str,
    pub value: String,
    pub problem: String,
}

impl fmt::Display for FieldError {
    /// As the API server writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: Invalid value: \"{}\": {}", self.field, self.value, self.problem)
    }
}
