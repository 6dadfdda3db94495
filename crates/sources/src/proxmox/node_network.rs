//! [`NodeNetworks`]: which VLAN the network card of a guest is in.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{
    api::{Api, ApiError},
    guest_config::Nic,
    lenient::list_of,
    types::{Bridge, NodeInterface, Vnet, Zone},
};

/// The networks of all nodes.
#[derive(Debug, Default)]
pub(super) struct NodeNetworks {
    /// By guest and number of the card, as the bridges of 9.1 and later say.
    ports: HashMap<(u64, u8), u16>,
    /// The tag of each vnet of the SDN.
    vnets: BTreeMap<String, u16>,
    /// Vnets in a zone that learns addresses by EVPN.
    pub(super) learning: BTreeSet<String>,
    /// By node and bridge.
    bridges: BTreeMap<(String, String), u16>,
    /// Why some of it is missing, for people.
    pub(super) missing: Vec<String>,
}

impl NodeNetworks {
    /// Reads the networks of `nodes`. What cannot be read is left out: it costs the number of a VLAN and no name.
    pub(super) async fn read(api: &Api, nodes: &[String]) -> Self {
        let mut found = Self::default();
        let zones = list_of::<Zone>(api.get(&["cluster", "sdn", "zones"]).await.unwrap_or_default());
        let evpn = zones.into_iter().filter(|zone| zone.kind.as_deref() == Some("evpn"));
        let evpn: BTreeSet<String> = evpn.filter_map(|zone| zone.zone).collect();
        for vnet in list_of::<Vnet>(api.get(&["cluster", "sdn", "vnets"]).await.unwrap_or_default()) {
            let Some(name) = vnet.name else { continue };
            if vnet.zone.is_some_and(|zone| evpn.contains(&zone)) {
                found.learning.insert(name.clone());
            }
            if let Some(tag) = vnet.tag.and_then(vlan) {
                found.vnets.insert(name, tag);
            }
        }
        let mut has_ports = true;
        for node in nodes {
            if has_ports {
                match api.get(&["nodes", node, "sdn", "zones", "localnetwork", "bridges"]).await {
                    Ok(value) => found.add_ports(list_of(value)),
                    Err(ApiError::NotImplemented { .. }) => has_ports = false,
                    Err(error) => found.missing.push(error.to_string()),
                }
            }
            match api.get(&["nodes", node, "network"]).await {
                Ok(value) => found.add_bridges(node, &list_of(value)),
                Err(error) => found.missing.push(error.to_string()),
            }
        }
        found
    }

    fn add_ports(&mut self, bridges: Vec<Bridge>) {
        for port in bridges.into_iter().flat_map(|bridge| bridge.ports) {
            let number = port.index.as_deref().map(|index| index.trim_start_matches("net"));
            let (Some(vmid), Some(number)) = (port.vmid, number.and_then(|number| number.parse().ok()))
            else {
                continue;
            };
            // 1 is the bridge's own untagged network.
            if let Some(tag) = port.primary_vlan.and_then(vlan).filter(|tag| *tag != 1) {
                self.ports.insert((vmid, number), tag);
            }
        }
    }

    /// Follows each bridge to its ports: a VLAN interface or a tagged port of Open vSwitch says which VLAN it carries.
    fn add_bridges(&mut self, node: &str, interfaces: &[NodeInterface]) {
        let tag_of = |port: &str| -> Option<u16> {
            let own = interfaces.iter().find(|one| one.iface.as_deref() == Some(port));
            let told = own.and_then(|own| own.vlan_id.or(own.ovs_tag)).and_then(vlan);
            told.or_else(|| port.rsplit_once('.').and_then(|(_, tag)| vlan(tag.parse().ok()?)))
        };
        let mut tags = Vec::new();
        for bridge in interfaces {
            let Some(name) = &bridge.iface else { continue };
            let ports = [&bridge.bridge_ports, &bridge.ovs_ports].into_iter().flatten();
            let found = ports.flat_map(|ports| ports.split_whitespace()).find_map(tag_of);
            tags.extend(found.map(|tag| ((node.to_owned(), name.clone()), tag)));
        }
        self.bridges.extend(tags);
    }

    /// The VLAN of a card: its own tag, else that of its port, its vnet or its bridge.
    pub(super) fn vlan(&self, node: &str, vmid: u64, nic: &Nic) -> Option<u16> {
        let bridge = nic.bridge.as_deref();
        nic.tag
            .or_else(|| self.ports.get(&(vmid, nic.number)).copied())
            .or_else(|| self.vnets.get(bridge?).copied())
            .or_else(|| self.bridges.get(&(node.to_owned(), bridge?.to_owned())).copied())
    }
}

fn vlan(number: u64) -> Option<u16> {
    u16::try_from(number).ok().filter(|number| (1..4095).contains(number))
}
