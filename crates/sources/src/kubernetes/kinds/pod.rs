//! Pod: the address of its machine if it uses the machine's network, and its own address for internal names.

use netstead_model::{Address, Interface};
use serde::Deserialize;

use super::{
    super::{
        annotations::external_dns,
        object::{Object, Stored},
        surroundings::Surroundings,
    },
    asked::{Asked, Points},
    balancer::addresses,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::kubernetes) struct Pod {
    host_network: bool,
    node: String,
    own: Vec<Address>,
    running: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    host_network: bool,
    node_name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    phase: String,
    #[serde(rename = "podIP")]
    pod_ip: String,
    #[serde(rename = "podIPs")]
    pod_ips: Vec<PodIp>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PodIp {
    ip: String,
}

pub(super) fn read(object: &Object) -> Result<Pod, String> {
    let spec: Spec = object.spec()?;
    let status: Status = object.status()?;
    let ips = status.pod_ips.iter().map(|one| one.ip.as_str()).chain([status.pod_ip.as_str()]);
    let running = !matches!(status.phase.as_str(), "Succeeded" | "Failed");
    Ok(Pod { host_network: spec.host_network, node: spec.node_name, own: addresses(ips), running })
}

pub(in crate::kubernetes) fn ask(object: &Stored, pod: &Pod, surroundings: &Surroundings<'_>) -> Asked {
    let mut asked = Asked::default();
    if !pod.running {
        asked.annotated = false;
        return asked;
    }
    if !pod.own.is_empty() {
        let (addresses, name) = (pod.own.clone(), Some("pod".to_owned()));
        asked.interfaces.push(Interface {
            name,
            addresses,
            local: !pod.host_network,
            ..Interface::default()
        });
    }
    if let Some(hosts) = external_dns(object, "internal-hostname") {
        asked.ask_at(hosts, &pod.own, "internal-hostname");
    }
    if !pod.host_network {
        asked.points = Points { addresses: pod.own.clone(), ..Points::default() };
        return asked;
    }
    asked.shared = true;
    match surroundings.node_addresses(&pod.node, external_dns(object, "access")) {
        None => asked.unclear = Some("its node cannot be read now".into()),
        Some(addresses) if addresses.is_empty() => asked.points = Points::none("its node has no address"),
        Some(addresses) => asked.points = Points { addresses, ..Points::default() },
    }
    asked
}
