//! Answers of Proxmox VE, as far as they are read.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::lenient;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Version {
    #[serde(deserialize_with = "lenient::text")]
    pub(super) version: Option<String>,
}

/// One element of `/cluster/resources`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Resource {
    /// `qemu`, `lxc`, `node`, `pool`; other kinds are not read.
    #[serde(rename = "type", deserialize_with = "lenient::text")]
    pub(super) kind: Option<String>,
    #[serde(deserialize_with = "lenient::number")]
    pub(super) vmid: Option<u64>,
    #[serde(deserialize_with = "lenient::text")]
    pub(super) node: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    pub(super) name: Option<String>,
    /// `running`, `stopped`, `paused`; `unknown` on a node that is offline.
    #[serde(deserialize_with = "lenient::text")]
    pub(super) status: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    pub(super) tags: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    pub(super) pool: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    pub(super) lock: Option<String>,
    #[serde(deserialize_with = "lenient::flag")]
    pub(super) template: bool,
    #[serde(deserialize_with = "lenient::number")]
    pub(super) uptime: Option<u64>,
}

/// One element of `/cluster/status`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct StatusItem {
    #[serde(rename = "type", deserialize_with = "lenient::text")]
    pub(super) kind: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    pub(super) name: Option<String>,
    #[serde(deserialize_with = "lenient::flag")]
    pub(super) quorate: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Task {
    #[serde(deserialize_with = "lenient::text")]
    pub(super) upid: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    pub(super) id: Option<String>,
    /// None while it runs.
    #[serde(deserialize_with = "lenient::number")]
    pub(super) endtime: Option<u64>,
}

/// An interface inside of a guest, from the agent or a container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct GuestInterface {
    #[serde(deserialize_with = "lenient::text")]
    pub(super) name: Option<String>,
    #[serde(rename = "hardware-address", deserialize_with = "lenient::text")]
    pub(super) hardware_address: Option<String>,
    /// The name of `hardware-address` in older containers.
    #[serde(deserialize_with = "lenient::text")]
    pub(super) hwaddr: Option<String>,
    #[serde(rename = "ip-addresses", deserialize_with = "lenient::list")]
    pub(super) ip_addresses: Vec<GuestAddress>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct GuestAddress {
    #[serde(rename = "ip-address", deserialize_with = "lenient::text")]
    pub(super) ip_address: Option<String>,
}

/// A network interface of a node.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct NodeInterface {
    #[serde(deserialize_with = "lenient::text")]
    pub(super) iface: Option<String>,
    /// `bridge`, `vlan`, `OVSPort` and so on.
    #[serde(rename = "type", deserialize_with = "lenient::text")]
    pub(super) kind: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    pub(super) bridge_ports: Option<String>,
    #[serde(rename = "vlan-id", deserialize_with = "lenient::number")]
    pub(super) vlan_id: Option<u64>,
    #[serde(deserialize_with = "lenient::text")]
    pub(super) ovs_ports: Option<String>,
    #[serde(deserialize_with = "lenient::number")]
    pub(super) ovs_tag: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Vnet {
    #[serde(rename = "vnet", deserialize_with = "lenient::text")]
    pub(super) name: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    pub(super) zone: Option<String>,
    #[serde(deserialize_with = "lenient::number")]
    pub(super) tag: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Zone {
    #[serde(deserialize_with = "lenient::text")]
    pub(super) zone: Option<String>,
    #[serde(rename = "type", deserialize_with = "lenient::text")]
    pub(super) kind: Option<String>,
}

/// A bridge of a node with its ports (9.1 and later).
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Bridge {
    #[serde(deserialize_with = "lenient::list")]
    pub(super) ports: Vec<BridgePort>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct BridgePort {
    #[serde(deserialize_with = "lenient::number")]
    pub(super) vmid: Option<u64>,
    /// `net0`; a bare number in early releases.
    #[serde(deserialize_with = "lenient::text")]
    pub(super) index: Option<String>,
    #[serde(deserialize_with = "lenient::number")]
    pub(super) primary_vlan: Option<u64>,
}

/// An address that EVPN learned.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct LearnedAddress {
    #[serde(deserialize_with = "lenient::text")]
    pub(super) ip: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    pub(super) mac: Option<String>,
}

/// The configuration of a guest: keys and values as they are.
pub(super) type RawConfig = BTreeMap<String, Value>;

/// Privileges by path. Each is 1 if it counts for everything below the path as well.
pub(super) type Permissions = BTreeMap<String, BTreeMap<String, Value>>;

/// Whether these credentials have a privilege on `path`: by itself, or by a path above.
pub(super) fn grants(permissions: &Permissions, privilege: &str, path: &str) -> bool {
    permissions.iter().any(|(own, privileges)| {
        let Some(propagates) = privileges.get(privilege) else { return false };
        let above = own == "/" || path.strip_prefix(own.as_str()).is_some_and(|rest| rest.starts_with('/'));
        own == path || (above && lenient::number_of(propagates) != Some(0))
    })
}
