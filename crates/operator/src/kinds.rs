//! [`PoolKind`]: the kinds of pools, and how the API server calls them.

use std::{fmt, str::FromStr};

use netstead_wire::kubernetes::Resource;

/// The group of Cluster API's address management.
pub const GROUP: &str = "ipam.cluster.x-k8s.io";
/// The group of the kinds that are Netstead's own.
const OWN_GROUP: &str = "ipam.netstead.io";

/// A kind of pool that claims may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PoolKind {
    InClusterIpPool,
    GlobalInClusterIpPool,
    InClusterPrefixPool,
    GlobalInClusterPrefixPool,
    PhpIpamPool,
    NetBoxPool,
    GlobalNetBoxPool,
    NetsteadPool,
    GlobalNetsteadPool,
}

impl PoolKind {
    pub const ALL: [Self; 9] = [
        Self::InClusterIpPool,
        Self::GlobalInClusterIpPool,
        Self::InClusterPrefixPool,
        Self::GlobalInClusterPrefixPool,
        Self::PhpIpamPool,
        Self::NetBoxPool,
        Self::GlobalNetBoxPool,
        Self::NetsteadPool,
        Self::GlobalNetsteadPool,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InClusterIpPool => "InClusterIPPool",
            Self::GlobalInClusterIpPool => "GlobalInClusterIPPool",
            Self::InClusterPrefixPool => "InClusterPrefixPool",
            Self::GlobalInClusterPrefixPool => "GlobalInClusterPrefixPool",
            Self::PhpIpamPool => "PHPIPAMIPPool",
            Self::NetBoxPool => "NetBoxIPPool",
            Self::GlobalNetBoxPool => "GlobalNetBoxIPPool",
            Self::NetsteadPool => "NetsteadIPPool",
            Self::GlobalNetsteadPool => "GlobalNetsteadIPPool",
        }
    }

    pub const fn plural(self) -> &'static str {
        match self {
            Self::InClusterIpPool => "inclusterippools",
            Self::GlobalInClusterIpPool => "globalinclusterippools",
            Self::InClusterPrefixPool => "inclusterprefixpools",
            Self::GlobalInClusterPrefixPool => "globalinclusterprefixpools",
            Self::PhpIpamPool => "phpipamippools",
            Self::NetBoxPool => "netboxippools",
            Self::GlobalNetBoxPool => "globalnetboxippools",
            Self::NetsteadPool => "netsteadippools",
            Self::GlobalNetsteadPool => "globalnetsteadippools",
        }
    }

    /// The group of its definition.
    pub const fn group(self) -> &'static str {
        if self.gives_names() { OWN_GROUP } else { GROUP }
    }

    /// Whether its pools are in a namespace and serve claims of that namespace only.
    pub const fn is_namespaced(self) -> bool {
        matches!(
            self,
            Self::InClusterIpPool | Self::InClusterPrefixPool | Self::NetBoxPool | Self::NetsteadPool
        )
    }

    /// Whether its claims get prefixes.
    pub const fn is_of_prefixes(self) -> bool {
        matches!(self, Self::InClusterPrefixPool | Self::GlobalInClusterPrefixPool)
    }

    /// Whether its addresses are kept in another system.
    pub const fn is_external(self) -> bool {
        matches!(self, Self::PhpIpamPool) || self.gives_names()
    }

    /// Whether its pools are subnets of one network, whose gateway and length are in the status.
    pub(crate) const fn has_one_network(self) -> bool {
        matches!(self, Self::PhpIpamPool | Self::NetsteadPool | Self::GlobalNetsteadPool)
    }

    /// Whether its addresses get the names of their machines.
    pub const fn gives_names(self) -> bool {
        matches!(
            self,
            Self::NetBoxPool | Self::GlobalNetBoxPool | Self::NetsteadPool | Self::GlobalNetsteadPool
        )
    }

    /// The version of its definition.
    pub(crate) const fn version(self) -> &'static str {
        if self.is_external() { "v1alpha1" } else { "v1alpha2" }
    }

    /// The kind that a reference means. A reference without a group means none of ours.
    pub fn of_reference(group: &str, kind: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| group == one.group() && one.as_str() == kind)
    }

    pub(crate) fn resource(self) -> Resource {
        resource(self.group(), self.version(), self.plural(), self.as_str(), self.is_namespaced())
    }
}

impl fmt::Display for PoolKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A word that is no kind of pool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnknownKind(String);

impl FromStr for PoolKind {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, UnknownKind> {
        if let Some(kind) = Self::ALL.into_iter().find(|kind| kind.as_str() == text) {
            return Ok(kind);
        }
        let names = Self::ALL.map(Self::as_str);
        let near = |name: &&str| strsim::damerau_levenshtein(&name.to_lowercase(), &text.to_lowercase());
        Err(UnknownKind(match names.iter().min_by_key(|name| near(name)).filter(|name| near(name) <= 4) {
            Some(name) => format!("`{text}` is no kind of pool; do you mean `{name}`?"),
            None => format!("`{text}` is no kind of pool; there are {}", names.join(", ")),
        }))
    }
}

pub(crate) fn resource(group: &str, version: &str, plural: &str, kind: &str, namespaced: bool) -> Resource {
    Resource {
        group: group.to_owned(),
        version: version.to_owned(),
        plural: plural.to_owned(),
        kind: kind.to_owned(),
        namespaced,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_needs_group_and_kind() {
        let meant = |group, kind| PoolKind::of_reference(group, kind);
        assert_eq!(meant(GROUP, "InClusterIPPool"), Some(PoolKind::InClusterIpPool));
        assert_eq!(meant(GROUP, "GlobalInClusterIPPool"), Some(PoolKind::GlobalInClusterIpPool));
        assert_eq!(meant("", "InClusterIPPool"), None);
        assert_eq!(meant("example.net", "InClusterIPPool"), None);
        assert_eq!(meant(GROUP, "IPPool"), None);
        assert_eq!(meant("ipam.netstead.io", "NetBoxIPPool"), Some(PoolKind::NetBoxPool));
        assert_eq!(meant(GROUP, "NetBoxIPPool"), None);
        assert_eq!(meant("ipam.netstead.io", "InClusterIPPool"), None);
    }

    #[test]
    fn a_word_that_is_no_kind_is_refused_by_name() {
        let said = |text: &str| text.parse::<PoolKind>().map_err(|error| error.to_string());
        assert_eq!(said("InClusterPrefixPool"), Ok(PoolKind::InClusterPrefixPool));
        assert_eq!(
            said("inclusterippool").unwrap_err(),
            "`inclusterippool` is no kind of pool; do you mean `InClusterIPPool`?"
        );
        assert_eq!(said("GlobalNetBoxIPPool"), Ok(PoolKind::GlobalNetBoxPool));
        assert_eq!(
            said("NetboxIPPool").unwrap_err(),
            "`NetboxIPPool` is no kind of pool; do you mean `NetBoxIPPool`?"
        );
        assert!(said("x").unwrap_err().starts_with("`x` is no kind of pool; there are InClusterIPPool,"));
    }
}
