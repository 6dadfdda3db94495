//! Service: the names in its annotations, at its load balancer, its nodes, its pods or the name it stands for.

use std::collections::BTreeSet;

use netstead_model::{Address, Family, Interface};
use serde::Deserialize;

use super::{
    super::{
        annotations::external_dns,
        object::{Object, Stored},
        surroundings::Surroundings,
    },
    asked::{Asked, Points},
    balancer::{self, addresses},
};
use crate::dialects::list;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::kubernetes) struct Service {
    kind: ServiceType,
    balancer: Vec<String>,
    external: Vec<Address>,
    cluster: Vec<Address>,
    /// Of `ExternalName`.
    stands_for: String,
    /// Ready or not, its pods are published.
    not_ready_too: bool,
    /// Only nodes with a pod of it answer for it.
    local: bool,
    /// Boxed: few Services name a class.
    wish: Option<Box<BalancerWish>>,
}

/// The wishes of a Service of type `LoadBalancer` about its load balancer, if it names a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::kubernetes) struct BalancerWish {
    pub(in crate::kubernetes) class: String,
    pub(in crate::kubernetes) families: Vec<Family>,
    /// `loadBalancerIP`, as it is written.
    pub(in crate::kubernetes) wanted: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServiceType {
    LoadBalancer,
    NodePort,
    ClusterIp,
    Headless,
    ExternalName,
}

impl ServiceType {
    fn word(self) -> &'static str {
        match self {
            Self::LoadBalancer => "LoadBalancer",
            Self::NodePort => "NodePort",
            Self::ClusterIp => "ClusterIP",
            Self::Headless => "Headless",
            Self::ExternalName => "ExternalName",
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    r#type: String,
    #[serde(rename = "clusterIP")]
    cluster_ip: String,
    #[serde(rename = "clusterIPs")]
    cluster_ips: Vec<String>,
    #[serde(rename = "externalIPs")]
    external_ips: Vec<String>,
    external_name: String,
    publish_not_ready_addresses: bool,
    external_traffic_policy: String,
    load_balancer_class: Option<String>,
    #[serde(rename = "loadBalancerIP")]
    load_balancer_ip: String,
    ip_families: Vec<String>,
}

pub(in crate::kubernetes) fn read(object: &Object) -> Result<Service, String> {
    let spec: Spec = object.spec()?;
    let texts = |texts: &[String]| addresses(texts.iter().map(String::as_str));
    let kind = match spec.r#type.as_str() {
        "LoadBalancer" => ServiceType::LoadBalancer,
        "NodePort" => ServiceType::NodePort,
        "ExternalName" => ServiceType::ExternalName,
        _ if spec.cluster_ip == "None" => ServiceType::Headless,
        _ => ServiceType::ClusterIp,
    };
    let cluster = texts(&spec.cluster_ips);
    let wish = spec.load_balancer_class.filter(|_| kind == ServiceType::LoadBalancer).map(|class| {
        let families = families(&spec.ip_families, &cluster);
        Box::new(BalancerWish { class, families, wanted: spec.load_balancer_ip })
    });
    Ok(Service {
        kind,
        balancer: balancer::points(object.status()?),
        external: texts(&spec.external_ips),
        cluster,
        stands_for: spec.external_name,
        not_ready_too: spec.publish_not_ready_addresses,
        local: spec.external_traffic_policy == "Local",
        wish,
    })
}

/// The families of a Service: those that it names, or else those of its addresses inside of the cluster.
fn families(named: &[String], cluster: &[Address]) -> Vec<Family> {
    let mut families: Vec<Family> = named
        .iter()
        .filter_map(|word| match word.as_str() {
            "IPv4" => Some(Family::Ipv4),
            "IPv6" => Some(Family::Ipv6),
            _ => None,
        })
        .collect();
    if families.is_empty() {
        let ips = cluster.iter().filter_map(|address| address.to_ip());
        families = ips.map(|ip| if ip.is_ipv6() { Family::Ipv6 } else { Family::Ipv4 }).collect();
        families.dedup();
    }
    if families.is_empty() { vec![Family::Ipv4] } else { families }
}

impl Service {
    pub(in crate::kubernetes) fn balancer_wish(&self) -> Option<&BalancerWish> {
        self.wish.as_deref()
    }

    /// Whether its status has exactly these addresses.
    pub(in crate::kubernetes) fn shows(&self, addresses: &[String]) -> bool {
        self.balancer == addresses
    }

    /// Whether its names depend on what stands behind it.
    pub(in crate::kubernetes) fn needs_endpoints(&self, object: &Stored) -> bool {
        let of_pods = self.kind == ServiceType::Headless || self.is_local_port();
        of_pods && asks_by_annotation(object)
    }

    /// Whether it is reached at the nodes that have a pod of it, and at no other.
    fn is_local_port(&self) -> bool {
        self.kind == ServiceType::NodePort && self.local
    }

    /// Whether its names depend on the nodes.
    pub(in crate::kubernetes) fn needs_nodes(&self, object: &Stored) -> bool {
        let of_nodes = self.kind == ServiceType::NodePort || external_dns(object, "endpoints-type").is_some();
        of_nodes && asks_by_annotation(object)
    }
}

fn asks_by_annotation(object: &Stored) -> bool {
    !object.annotations.is_empty() || !object.labels.is_empty()
}

/// None if its type is not one of those that are wanted.
pub(in crate::kubernetes) fn ask(
    object: &Stored,
    service: &Service,
    surroundings: &Surroundings<'_>,
) -> Option<Asked> {
    let settings = surroundings.settings;
    if !settings.wants_service(service.kind.word()) {
        return None;
    }
    let mut asked = Asked::default();
    let mut interface = |name: &str, addresses: Vec<Address>, local| {
        if !addresses.is_empty() {
            let name = Some(name.to_owned());
            asked.interfaces.push(Interface { name, addresses, local, ..Interface::default() });
        }
    };
    interface("cluster", service.cluster.clone(), true);
    interface("load balancer", addresses(service.balancer.iter().map(String::as_str)), false);
    interface("external", service.external.clone(), false);
    if let Some(hosts) = external_dns(object, "internal-hostname") {
        if service.cluster.is_empty() {
            asked.notes.add("internal-hostname: it has no address inside of the cluster");
        } else {
            asked.ask_at(hosts, &service.cluster, "internal-hostname");
        }
    }
    match service.kind {
        // Addresses that a person routes to the service stand for its load balancer.
        ServiceType::LoadBalancer | ServiceType::ClusterIp if !service.external.is_empty() => {
            asked.points = Points { addresses: service.external.clone(), ..Points::default() };
        }
        ServiceType::LoadBalancer => asked.points = balancer::read(&service.balancer, &mut asked.notes),
        ServiceType::ExternalName => {
            asked.points = Points::of_texts([service.stands_for.as_str()], &mut asked.notes);
        }
        ServiceType::NodePort => of_nodes(object, service, surroundings, &mut asked),
        ServiceType::Headless => of_endpoints(object, service, surroundings, &mut asked),
        ServiceType::ClusterIp if settings.publish_cluster_ips => {
            asked.points = Points { addresses: service.cluster.clone(), ..Points::default() };
        }
        ServiceType::ClusterIp => {
            asked.points = Points::none(
                "it is reached inside of the cluster only: set `publish_cluster_ips = true`, or the annotation \
                 `netstead.io/target`",
            );
        }
    }
    Some(asked)
}

/// Every node that is ready answers for a service of type `NodePort`; with the policy `Local` those alone that have a pod of it.
fn of_nodes(object: &Stored, service: &Service, surroundings: &Surroundings<'_>, asked: &mut Asked) {
    asked.shared = true;
    let mut local: Option<BTreeSet<&str>> = None;
    if service.is_local_port() {
        let Some(endpoints) = surroundings.endpoints(&object.name) else {
            asked.unclear = Some("its endpoints cannot be read now".into());
            return;
        };
        let ready = endpoints.iter().filter(|endpoint| endpoint.ready || service.not_ready_too);
        local = Some(ready.filter_map(|endpoint| endpoint.node.as_deref()).collect());
    }
    let chosen = |node: &str| local.as_ref().is_none_or(|local| local.contains(node));
    match surroundings.addresses_of_nodes(external_dns(object, "access"), chosen) {
        None => asked.unclear = Some("nodes cannot be read now".into()),
        Some(addresses) if addresses.is_empty() && service.is_local_port() => {
            asked.points = Points::none("no node with a pod of it has such an address yet");
        }
        Some(addresses) if addresses.is_empty() => asked.points = Points::none("no node has such an address"),
        Some(addresses) => asked.points = Points { addresses, ..Points::default() },
    }
}

/// The pods of a headless service, and a name for each pod that has a host name.
fn of_endpoints(object: &Stored, service: &Service, surroundings: &Surroundings<'_>, asked: &mut Asked) {
    if !service.needs_endpoints(object) {
        return;
    }
    let Some(endpoints) = surroundings.endpoints(&object.name) else {
        asked.unclear = Some("its endpoints cannot be read now".into());
        return;
    };
    let place = external_dns(object, "endpoints-type");
    let access = match place {
        Some("NodeExternalIP") => Some("public"),
        Some("HostIP") => Some("private"),
        _ => None,
    };
    let mut all: Vec<Address> = Vec::new();
    let hosts = external_dns(object, "hostname").unwrap_or_default();
    for endpoint in endpoints.iter().filter(|endpoint| endpoint.ready || service.not_ready_too) {
        let addresses = if access.is_some() {
            let node = endpoint.node.as_deref().unwrap_or_default();
            let Some(addresses) = surroundings.node_addresses(node, access) else {
                asked.unclear = Some("nodes cannot be read now".into());
                return;
            };
            addresses
        } else {
            endpoint.addresses.clone()
        };
        if let Some(own) = &endpoint.hostname {
            for host in list::words(hosts) {
                asked.ask_at(&format!("{own}.{host}"), &addresses, "hostname of a pod");
            }
        }
        all.extend(addresses);
    }
    all.sort_unstable();
    all.dedup();
    asked.points = if all.is_empty() {
        Points::none("no pod behind it is ready yet")
    } else {
        Points { addresses: all, ..Points::default() }
    };
}
