//! Which addresses of a container mean something outside its host.

use std::collections::HashMap;

use netstead_model::{Address, Cidr, Interface, Kind};

use super::types::{Container, Endpoint, Network};

/// The networks of one host, by id.
#[derive(Debug, Clone, Default)]
pub(super) struct Networks(HashMap<String, Reach>);

/// How far the addresses of one network reach.
#[derive(Debug, Clone, Default)]
struct Reach {
    name: String,
    own_v4: bool,
    own_v6: bool,
    /// The container's addresses lie in these, on the host alone.
    local: Vec<Cidr>,
}

impl From<Vec<Network>> for Networks {
    fn from(networks: Vec<Network>) -> Self {
        Self(networks.into_iter().map(|network| (network.id.clone(), reach(network))).collect())
    }
}

fn reach(network: Network) -> Reach {
    // Containers on these have a place of their own in the network around the host.
    let beside = matches!(network.driver.as_str(), "macvlan" | "ipvlan");
    let routed = |family: &str| {
        let key = format!("com.docker.network.bridge.gateway_mode_{family}");
        network.driver == "bridge" && network.options.get(&key).is_some_and(|mode| mode == "routed")
    };
    let subnets = network.ipam.config.iter().filter_map(|config| config.subnet.parse::<Cidr>().ok());
    Reach {
        own_v4: beside || routed("ipv4"),
        own_v6: beside || routed("ipv6"),
        local: if beside { Vec::new() } else { subnets.collect() },
        name: network.name,
    }
}

impl Networks {
    /// Whether an address lies in a network that exists on this host alone.
    pub(super) fn inside(&self, address: Address) -> bool {
        self.0.values().flat_map(|reach| &reach.local).any(|cidr| cidr.contains(address))
    }

    pub(super) fn name<'a>(&'a self, id: &'a str) -> &'a str {
        self.0.get(id).map_or(id, |reach| &reach.name)
    }

    fn is_own(&self, id: &str, address: Address) -> bool {
        self.0.get(id).is_some_and(|reach| match address.kind() {
            Kind::V4 => reach.own_v4,
            Kind::V6 => reach.own_v6,
            Kind::Mac => false,
        })
    }

    /// Whether what is on this network has an address of its own, perhaps not yet.
    pub(super) fn gives_own(&self, id: &str) -> bool {
        self.0.get(id).is_some_and(|reach| reach.own_v4 || reach.own_v6)
    }

    /// The interfaces of a container, in order of network. What reaches further and what does not are kept apart.
    pub(super) fn interfaces(&self, container: &Container) -> Vec<Interface> {
        let mut interfaces = Vec::new();
        for (name, endpoint) in &container.network_settings.networks {
            let mac = Address::parse(Kind::Mac, &endpoint.mac_address).ok();
            interfaces.extend(self.of_network(&endpoint.network_id, name, mac, addresses(endpoint)));
        }
        interfaces
    }

    /// The interfaces on one network: that with its own addresses first.
    pub(super) fn of_network(
        &self,
        id: &str,
        name: &str,
        mac: Option<Address>,
        addresses: Vec<Address>,
    ) -> Vec<Interface> {
        let (own, local): (Vec<_>, Vec<_>) =
            addresses.into_iter().partition(|address| self.is_own(id, *address));
        let interface = |addresses: Vec<Address>, local| Interface {
            name: Some(name.to_owned()),
            mac,
            addresses,
            local,
            ..Interface::default()
        };
        let both = [(own, false), (local, true)];
        both.into_iter()
            .filter(|(some, _)| !some.is_empty())
            .map(|(some, local)| interface(some, local))
            .collect()
    }
}

fn addresses(endpoint: &Endpoint) -> Vec<Address> {
    [&endpoint.ipv4, &endpoint.ipv6].into_iter().filter_map(|text| text.parse().ok()).collect()
}

/// An address that Docker writes with the length of its network behind it.
pub(super) fn without_length(text: &str) -> Option<Address> {
    text.split('/').next()?.parse().ok()
}
