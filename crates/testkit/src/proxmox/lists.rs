//! Lists of the whole cluster: resources, status, nodes, tasks, networks.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{PveCluster, PveGuest, PveRights, PveTask, PveVersion};

impl PveCluster {
    /// `/cluster/resources` without a filter. Guests and pools that the caller may not audit are left out silently.
    pub(super) fn resources(&self, rights: &PveRights) -> Value {
        let nodes = self.nodes.iter().map(|(node, online)| {
            let status = if *online { "online" } else { "offline" };
            json!({ "id": format!("node/{node}"), "type": "node", "node": node, "status": status, "level": "" })
        });
        let seen = self.guests.values().filter(|guest| rights.allow_guest(guest, "VM.Audit"));
        let guests = seen.map(|guest| self.resource(guest, rights));
        let storage = json!({
            "id": "storage/pve1/local", "type": "storage", "node": "pve1", "storage": "local", "status": "available",
        });
        let pools: BTreeSet<&String> =
            self.guests.values().filter_map(|guest| guest.pool.as_ref()).chain(&self.empty_pools).collect();
        let pools = pools.into_iter().filter(|pool| rights.allows(&format!("/pool/{pool}"), "Pool.Audit"));
        let pools = pools.map(|pool| json!({ "id": format!("/pool/{pool}"), "type": "pool", "pool": pool }));
        let mut all: Vec<Value> = pools.chain(guests).chain(nodes).chain([storage]).collect();
        if self.version == PveVersion::Nine {
            for node in self.nodes.keys() {
                all.push(json!({
                    "id": format!("network/{node}/zone/localnetwork"), "type": "network", "node": node,
                    "network": "localnetwork", "network-type": "zone", "status": "ok",
                }));
            }
        }
        all.into()
    }

    fn resource(&self, guest: &PveGuest, rights: &PveRights) -> Value {
        let kind = guest.kind.word();
        let mut shown = Map::new();
        shown.insert("id".into(), json!(format!("{kind}/{}", guest.vmid)));
        shown.insert("type".into(), json!(kind));
        // Text in one release, a number in the other.
        shown.insert(
            "vmid".into(),
            match self.version {
                PveVersion::Eight => json!(guest.vmid.to_string()),
                PveVersion::Nine => json!(guest.vmid),
            },
        );
        shown.insert("node".into(), json!(guest.node));
        if self.nodes.get(&guest.node) != Some(&true) {
            shown.insert("status".into(), json!("unknown"));
            return shown.into();
        }
        shown.insert("name".into(), json!(guest.name));
        shown.insert("status".into(), json!(guest.status));
        shown.insert(
            "template".into(),
            match self.version {
                PveVersion::Eight => json!(if guest.template { "1" } else { "" }),
                PveVersion::Nine => json!(u8::from(guest.template)),
            },
        );
        shown.insert("maxcpu".into(), json!(2));
        shown.insert("maxmem".into(), json!(4_294_967_296_u64));
        shown.insert("maxdisk".into(), json!(34_359_738_368_u64));
        shown.insert(
            "uptime".into(),
            match self.version {
                PveVersion::Eight => json!(guest.uptime.to_string()),
                PveVersion::Nine => json!(guest.uptime),
            },
        );
        if let Some(tags) = guest.tags() {
            shown.insert("tags".into(), tags.clone());
        }
        if let Some(lock) = &guest.lock {
            shown.insert("lock".into(), json!(lock));
        }
        if let Some(pool) = &guest.pool
            && rights.allows(&format!("/pool/{pool}"), "Pool.Audit")
        {
            shown.insert("pool".into(), json!(pool));
        }
        shown.into()
    }

    pub(super) fn status(&self) -> Value {
        let mut all = Vec::new();
        if let Some(name) = &self.name {
            all.push(json!({
                "type": "cluster", "id": "cluster", "name": name, "nodes": self.nodes.len(),
                "quorate": u8::from(self.quorate), "version": 3,
            }));
        }
        for (number, (node, online)) in self.nodes.iter().enumerate() {
            all.push(json!({
                "type": "node", "id": format!("node/{node}"), "name": node, "nodeid": number + 1,
                "online": u8::from(*online), "local": u8::from(number == 0), "ip": format!("10.0.0.{}", number + 1),
            }));
        }
        all.into()
    }

    pub(super) fn node_list(&self) -> Value {
        let node = |(node, online): (&String, &bool)| {
            let status = if *online { "online" } else { "offline" };
            json!({ "node": node, "type": "node", "id": format!("node/{node}"), "status": status, "level": "" })
        };
        self.nodes.iter().map(node).collect()
    }

    pub(super) fn task_list(&self) -> Value {
        self.tasks.iter().map(PveTask::shown).collect()
    }

    /// The ports of all plain bridges of a node, with the VLAN of each.
    pub(super) fn bridge_ports(&self, node: &str) -> Value {
        let mut bridges: std::collections::BTreeMap<String, Vec<Value>> = std::collections::BTreeMap::new();
        for guest in self.guests.values().filter(|guest| guest.node == node && guest.is_running()) {
            for (key, value) in &guest.config {
                let Some(number) = key.strip_prefix("net").filter(|_| value.is_string()) else { continue };
                let text = value.as_str().unwrap_or_default();
                let of =
                    |name: &str| text.split(',').find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
                let Some(bridge) = of("bridge") else { continue };
                let vlan: Option<u16> = of("tag").and_then(|tag| tag.parse().ok());
                let mut port = json!({
                    "name": format!("tap{}i{number}", guest.vmid), "vmid": guest.vmid.to_string(),
                    "index": format!("net{number}"),
                });
                if let (Some(vlan), Some(port)) = (vlan, port.as_object_mut()) {
                    port.insert("primary_vlan".into(), json!(vlan));
                }
                bridges.entry(bridge.to_owned()).or_default().push(port);
            }
        }
        let shown = bridges
            .into_iter()
            .map(|(name, ports)| json!({ "name": name, "vlan_filtering": "1", "ports": ports }));
        shown.collect()
    }
}

/// One bridge on a NIC, one on a VLAN of that NIC, one of Open vSwitch on a tagged port, and one with an interface of the node.
pub(super) fn plain_network() -> Vec<Value> {
    vec![
        json!({ "iface": "eno1", "type": "eth", "method": "manual", "active": 1, "exists": 1 }),
        json!({ "iface": "eno1.100", "type": "vlan", "vlan-id": "100", "vlan-raw-device": "eno1", "active": 1 }),
        json!({ "iface": "vmbr0", "type": "bridge", "bridge_ports": "eno1", "bridge_vlan_aware": 1, "active": 1 }),
        json!({ "iface": "vmbr100", "type": "bridge", "bridge_ports": "eno1.100", "active": 1 }),
        json!({ "iface": "ovs1", "type": "OVSBridge", "ovs_ports": "ovsport", "active": 1 }),
        json!({ "iface": "ovsport", "type": "OVSPort", "ovs_bridge": "ovs1", "ovs_tag": "300", "active": 1 }),
        json!({ "iface": "ovs2", "type": "OVSBridge", "ovs_ports": "host50 eno2", "active": 1 }),
        json!({ "iface": "host50", "type": "OVSIntPort", "ovs_bridge": "ovs2", "ovs_tag": 50, "active": 1 }),
    ]
}
