//! [`NodeNetworks`]: which VLAN the network card of a guest is in.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use serde_json::Value;
use tokio::{sync::Semaphore, task::JoinSet};

use super::{
    Shared,
    api::{Api, ApiError},
    guest_config::Nic,
    lenient::list_of,
    types::{Bridge, NodeInterface, Vnet, Zone},
};

/// The longest that one call about networks may take: a look waits for it.
const CALL: Duration = Duration::from_secs(5);
/// Nodes that are read at once.
const AT_ONCE: usize = 8;

/// The networks of all nodes.
#[derive(Debug, Clone, Default)]
pub(super) struct NodeNetworks {
    /// The tag of each vnet of the SDN.
    vnets: BTreeMap<String, u16>,
    /// Vnets in a zone that learns addresses by EVPN.
    pub(super) learning: BTreeSet<String>,
    nodes: BTreeMap<String, Arc<NodeNetwork>>,
    /// Everything was read that can be read with these credentials.
    pub(super) is_complete: bool,
}

/// The networks of one node.
#[derive(Debug, Clone, Default)]
struct NodeNetwork {
    /// By guest and number of the card, as the bridges of 9.1 and later say.
    ports: HashMap<(u64, u8), u16>,
    /// By bridge.
    bridges: BTreeMap<String, u16>,
}

impl NodeNetworks {
    /// Reads the networks of `nodes`. What cannot be read now stays as it was `before`: a VLAN that comes and goes would be
    /// written into IPAM systems each time. What these credentials may not read is left out, which costs no name.
    pub(super) async fn read(shared: &Arc<Shared>, nodes: &[String], before: &Self) -> Self {
        let mut found = Self { is_complete: true, ..before.clone() };
        let zones = lasting(&shared.api, &["cluster", "sdn", "zones"]).await;
        let vnets = lasting(&shared.api, &["cluster", "sdn", "vnets"]).await;
        if let (Some(zones), Some(vnets)) = (zones, vnets) {
            found.set_vnets(list_of(zones), list_of(vnets));
        } else {
            found.is_complete = false;
        }
        let places = Arc::new(Semaphore::new(AT_ONCE));
        let mut reads = JoinSet::new();
        for node in nodes {
            let (shared, places, node) = (Arc::clone(shared), Arc::clone(&places), node.clone());
            let known = before.nodes.get(&node).cloned().unwrap_or_default();
            reads.spawn(async move {
                let _place = places.acquire().await;
                let read = NodeNetwork::read(&shared.api, &node, &known).await;
                (node, read)
            });
        }
        while let Some(read) = reads.join_next().await {
            let Ok((node, (network, whole))) = read else { continue };
            found.is_complete &= whole;
            found.nodes.insert(node, Arc::new(network));
        }
        found
    }

    fn set_vnets(&mut self, zones: Vec<Zone>, vnets: Vec<Vnet>) {
        let evpn = zones.into_iter().filter(|zone| zone.kind.as_deref() == Some("evpn"));
        let evpn: BTreeSet<String> = evpn.filter_map(|zone| zone.zone).collect();
        self.vnets.clear();
        self.learning.clear();
        for vnet in vnets {
            let Some(name) = vnet.name else { continue };
            if vnet.zone.is_some_and(|zone| evpn.contains(&zone)) {
                self.learning.insert(name.clone());
            }
            if let Some(tag) = vnet.tag.and_then(vlan) {
                self.vnets.insert(name, tag);
            }
        }
    }

    /// The VLAN of a card: its own tag, else that of its port, its vnet or its bridge.
    pub(super) fn vlan(&self, node: &str, vmid: u64, nic: &Nic) -> Option<u16> {
        let bridge = nic.bridge.as_deref();
        // A guest that moved a moment ago is still known at its old node.
        let own = self.nodes.get(node).into_iter();
        let mut all = own.clone().chain(self.nodes.values());
        nic.tag
            .or_else(|| all.find_map(|network| network.ports.get(&(vmid, nic.number)).copied()))
            .or_else(|| self.vnets.get(bridge?).copied())
            .or_else(|| own.clone().find_map(|network| network.bridges.get(bridge?).copied()))
    }
}

/// An answer that counts: a call that is refused or unknown here is one without elements. None if another try may help.
async fn lasting(api: &Api, path: &[&str]) -> Option<Value> {
    match api.get_within(path, CALL).await {
        Ok(value) => Some(value),
        Err(ApiError::NotImplemented { .. } | ApiError::Forbidden { .. }) => Some(Value::Null),
        Err(_) => None,
    }
}

impl NodeNetwork {
    /// Reads one node, and says whether all of it could be read. The rest stays as `known`.
    async fn read(api: &Api, node: &str, known: &Self) -> (Self, bool) {
        let bridges = lasting(api, &["nodes", node, "network"]).await;
        let ports = match &bridges {
            Some(_) => lasting(api, &["nodes", node, "sdn", "zones", "localnetwork", "bridges"]).await,
            None => None,
        };
        let (mut network, whole) = (known.clone(), ports.is_some() && bridges.is_some());
        if let Some(ports) = ports {
            network.ports.clear();
            network.add_ports(list_of(ports));
        }
        if let Some(bridges) = bridges {
            network.bridges.clear();
            network.add_bridges(&list_of(bridges));
        }
        (network, whole)
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

    /// Follows each bridge to its ports: a VLAN interface or a tagged port of Open vSwitch says which VLAN it carries. An
    /// internal port is an interface of the node itself: its tag is not that of the guests beside it.
    fn add_bridges(&mut self, interfaces: &[NodeInterface]) {
        let tag_of = |port: &str| -> Option<u16> {
            let own = interfaces.iter().find(|one| one.iface.as_deref() == Some(port));
            if own.is_some_and(|own| own.kind.as_deref() == Some("OVSIntPort")) {
                return None;
            }
            let told = own.and_then(|own| own.vlan_id.or(own.ovs_tag)).and_then(vlan);
            told.or_else(|| port.rsplit_once('.').and_then(|(_, tag)| vlan(tag.parse().ok()?)))
        };
        for bridge in interfaces {
            let Some(name) = &bridge.iface else { continue };
            let ports = [&bridge.bridge_ports, &bridge.ovs_ports].into_iter().flatten();
            let found = ports.flat_map(|ports| ports.split_whitespace()).find_map(tag_of);
            self.bridges.extend(found.map(|tag| (name.clone(), tag)));
        }
    }
}

fn vlan(number: u64) -> Option<u16> {
    u16::try_from(number).ok().filter(|number| (1..4095).contains(number))
}
