//! [`Surroundings`]: everything beside an object that its workload is made of.

use std::{collections::BTreeMap, sync::Arc};

use netstead_model::{Address, Ident};

use super::{
    kinds::{Body, endpoint_slice::Endpoint, node::Node},
    object::{ObjectName, Stored},
    settings::KubernetesSettings,
};
use crate::dialects::Reader;

/// Settings, and the objects that others depend on. What is none cannot be seen now.
#[derive(Debug)]
pub(super) struct Surroundings<'a> {
    pub(super) source: &'a Ident,
    pub(super) settings: &'a KubernetesSettings,
    pub(super) reader: &'a Reader,
    pub(super) gateways: Option<BTreeMap<ObjectName, Arc<Stored>>>,
    /// By the service they are of.
    pub(super) slices: Option<BTreeMap<ObjectName, Vec<Arc<Stored>>>>,
    pub(super) nodes: Option<BTreeMap<String, Arc<Stored>>>,
}

impl Surroundings<'_> {
    pub(super) fn gateways(&self) -> Option<&BTreeMap<ObjectName, Arc<Stored>>> {
        self.gateways.as_ref()
    }

    /// The pods behind a service.
    pub(super) fn endpoints(&self, service: &ObjectName) -> Option<Vec<&Endpoint>> {
        let slices = self.slices.as_ref()?.get(service).map(Vec::as_slice).unwrap_or_default();
        Some(slices.iter().flat_map(|stored| endpoints(stored)).collect())
    }

    /// The addresses of one node.
    pub(super) fn node_addresses(&self, node: &str, access: Option<&str>) -> Option<Vec<Address>> {
        let node = self.nodes.as_ref()?.get(node).and_then(as_node);
        Some(node.map(|node| node.addresses(access).to_vec()).unwrap_or_default())
    }

    /// The addresses of all nodes that are ready, or of those of them that are `chosen`. External and internal ones are not
    /// mixed: without `access` the internal ones count only if no node has an external one, as at external-dns.
    pub(super) fn addresses_of_nodes(
        &self,
        access: Option<&str>,
        chosen: impl Fn(&str) -> bool,
    ) -> Option<Vec<Address>> {
        let nodes = self.nodes.as_ref()?.iter().filter(|(name, _)| chosen(name));
        let nodes: Vec<&Node> =
            nodes.filter_map(|(_, stored)| as_node(stored)).filter(|node| node.ready).collect();
        let external = nodes.iter().any(|node| !node.addresses(Some("public")).is_empty());
        let access = match access {
            Some(access @ ("public" | "private")) => access,
            _ if external => "public",
            _ => "private",
        };
        let mut addresses: Vec<Address> =
            nodes.iter().flat_map(|node| node.addresses(Some(access))).copied().collect();
        addresses.sort_unstable();
        addresses.dedup();
        Some(addresses)
    }
}

fn endpoints(stored: &Stored) -> &[Endpoint] {
    match &stored.body {
        Body::EndpointSlice(slice) => &slice.endpoints,
        _ => &[],
    }
}

fn as_node(stored: &Arc<Stored>) -> Option<&Node> {
    match &stored.body {
        Body::Node(node) => Some(node),
        _ => None,
    }
}
