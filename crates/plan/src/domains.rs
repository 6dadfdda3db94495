//! Which domain an address belongs to.

use netstead_model::{Address, Cidr, Name, ParseError};
use serde::{Deserialize, Serialize};

use crate::Template;

/// All `[domain."…"]` tables.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Domains(pub Vec<DomainRule>);

/// One `[domain."…"]` table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DomainRule {
    pub domain: Name,
    #[serde(default)]
    pub networks: Vec<Network>,
    /// How workloads with an address in one of the networks are called.
    #[serde(default)]
    pub template: Template,
    /// An IPv6 address outside of all networks is called like the IPv4 address of its interface.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ipv6_inherit: bool,
}

impl DomainRule {
    /// A shared name: one with a dot at its end stands as it is, another lies in the domain.
    pub fn shared_name(&self, text: &str) -> Result<Name, ParseError> {
        match text.strip_suffix('.') {
            Some(whole) => Name::host(whole),
            None => Name::join(text, &self.domain),
        }
    }
}

/// A network whose addresses have names in the domain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    pub cidr: Cidr,
    /// A name that all addresses of the network share: in the domain, or with a dot at its end anywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_name: Option<String>,
}

impl Domains {
    /// The rule with the longest network around `address`; of equals the first domain by name.
    pub fn of(&self, address: Address) -> Option<(&DomainRule, &Network)> {
        let networks =
            self.0.iter().flat_map(|rule| rule.networks.iter().map(move |network| (rule, network)));
        networks
            .filter(|(_, network)| network.cidr.contains(address))
            .min_by_key(|(rule, network)| (u8::MAX - network.cidr.len(), &rule.domain))
    }
}
