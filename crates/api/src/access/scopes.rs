//! [`Scopes`]: the pools and zones in which a token may do it.

use netstead_model::{Ident, Name};
use serde::{Deserialize, Serialize};

/// The VRFs, pools and zones a token is for. An empty list means all of its kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scopes {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vrfs: Vec<Ident>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<Ident>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<Name>,
}

impl Scopes {
    /// Whether nothing is out of reach.
    pub fn is_all(&self) -> bool {
        self.vrfs.is_empty() && self.pools.is_empty() && self.zones.is_empty()
    }

    /// Whether there are pools out of reach.
    pub fn limits_pools(&self) -> bool {
        !(self.vrfs.is_empty() && self.pools.is_empty())
    }

    pub fn allows_vrf(&self, vrf: &Ident) -> bool {
        self.vrfs.is_empty() || self.vrfs.contains(vrf)
    }

    /// Whether a name lies in one of the zones.
    pub fn allows_zone(&self, name: &Name) -> bool {
        self.zones.is_empty() || self.zones.iter().any(|zone| name.is_subdomain_of(zone))
    }

    /// Whether the name of a pool is in scope; its VRF is another question.
    pub fn allows_pool_name(&self, pool: &Ident) -> bool {
        self.pools.is_empty() || self.pools.contains(pool)
    }

    pub fn allows_pool(&self, pool: &Ident, vrf: &Ident) -> bool {
        self.allows_pool_name(pool) && self.allows_vrf(vrf)
    }
}
