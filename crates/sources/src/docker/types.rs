//! The parts of Docker's answers that are looked at. Whatever else is in them, today or later, is passed over.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

/// `GET /version`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Version {
    pub(super) version: String,
    pub(super) api_version: String,
}

/// One of `GET /containers/json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Container {
    pub(super) id: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) names: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) labels: BTreeMap<String, String>,
    pub(super) state: String,
    /// Seconds since 1970.
    #[serde(deserialize_with = "or_default")]
    pub(super) created: i64,
    #[serde(deserialize_with = "or_default")]
    pub(super) network_settings: NetworkSettings,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct NetworkSettings {
    #[serde(deserialize_with = "or_default")]
    pub(super) networks: BTreeMap<String, Endpoint>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Endpoint {
    #[serde(rename = "NetworkID", deserialize_with = "or_default")]
    pub(super) network_id: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) mac_address: String,
    #[serde(rename = "IPAddress", deserialize_with = "or_default")]
    pub(super) ipv4: String,
    #[serde(rename = "GlobalIPv6Address", deserialize_with = "or_default")]
    pub(super) ipv6: String,
}

/// `GET /containers/ID/json`, for the environment alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Inspected {
    #[serde(deserialize_with = "or_default")]
    pub(super) config: InspectedConfig,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct InspectedConfig {
    #[serde(deserialize_with = "or_default")]
    pub(super) env: Vec<String>,
}

/// One of `GET /networks`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Network {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) driver: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) options: BTreeMap<String, String>,
    #[serde(rename = "IPAM", deserialize_with = "or_default")]
    pub(super) ipam: Ipam,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Ipam {
    #[serde(deserialize_with = "or_default")]
    pub(super) config: Vec<IpamConfig>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct IpamConfig {
    #[serde(deserialize_with = "or_default")]
    pub(super) subnet: String,
}

/// `GET /info`, for the part this host has in a swarm.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Info {
    #[serde(deserialize_with = "or_default")]
    pub(super) swarm: Swarm,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Swarm {
    #[serde(deserialize_with = "or_default")]
    pub(super) node_addr: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) local_node_state: String,
    pub(super) control_available: bool,
}

/// One of `GET /services`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Service {
    #[serde(rename = "ID")]
    pub(super) id: String,
    #[serde(rename = "CreatedAt", deserialize_with = "or_default")]
    pub(super) created_at: String,
    #[serde(rename = "Spec", deserialize_with = "or_default")]
    pub(super) spec: ServiceSpec,
    #[serde(rename = "Endpoint", deserialize_with = "or_default")]
    pub(super) endpoint: ServiceEndpoint,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct ServiceSpec {
    pub(super) name: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) task_template: TaskTemplate,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct TaskTemplate {
    #[serde(deserialize_with = "or_default")]
    pub(super) container_spec: InspectedConfig,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct ServiceEndpoint {
    #[serde(rename = "VirtualIPs", deserialize_with = "or_default")]
    pub(super) virtual_ips: Vec<VirtualIp>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct VirtualIp {
    #[serde(rename = "NetworkID", deserialize_with = "or_default")]
    pub(super) network_id: String,
    #[serde(rename = "Addr", deserialize_with = "or_default")]
    pub(super) address: String,
}

/// One of `GET /tasks`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Task {
    #[serde(rename = "ServiceID")]
    pub(super) service_id: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) status: TaskStatus,
    #[serde(deserialize_with = "or_default")]
    pub(super) networks_attachments: Vec<Attachment>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct TaskStatus {
    #[serde(deserialize_with = "or_default")]
    pub(super) state: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Attachment {
    #[serde(deserialize_with = "or_default")]
    pub(super) network: AttachedNetwork,
    #[serde(deserialize_with = "or_default")]
    pub(super) addresses: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct AttachedNetwork {
    #[serde(rename = "ID", deserialize_with = "or_default")]
    pub(super) id: String,
}

/// One line of `GET /events`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Event {
    #[serde(rename = "Type", deserialize_with = "or_default")]
    pub(super) kind: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) action: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) actor: Actor,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Actor {
    #[serde(deserialize_with = "or_default")]
    pub(super) attributes: BTreeMap<String, String>,
}

/// Reads `null` as the default, because Docker writes it for an empty value.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}
