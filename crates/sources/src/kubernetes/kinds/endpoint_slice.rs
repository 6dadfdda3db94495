//! EndpointSlice: the addresses behind a headless service.

use netstead_model::Address;
use serde::Deserialize;

use super::{
    super::object::{Object, part},
    balancer::addresses,
};

/// The label that names the service.
const SERVICE: &str = "kubernetes.io/service-name";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::kubernetes) struct EndpointSlice {
    pub(in crate::kubernetes) service: String,
    pub(in crate::kubernetes) endpoints: Vec<Endpoint>,
}

/// One pod behind a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::kubernetes) struct Endpoint {
    pub(super) addresses: Vec<Address>,
    pub(super) hostname: Option<String>,
    pub(super) node: Option<String>,
    pub(in crate::kubernetes) ready: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Written {
    addresses: Vec<String>,
    hostname: Option<String>,
    node_name: Option<String>,
    conditions: Conditions,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Conditions {
    ready: Option<bool>,
}

pub(in crate::kubernetes) fn read(object: &Object) -> Result<EndpointSlice, String> {
    let written: Vec<Written> = part("endpoints", &object.endpoints)?;
    let endpoint = |one: Written| Endpoint {
        addresses: addresses(one.addresses.iter().map(String::as_str)),
        hostname: one.hostname.filter(|name| !name.is_empty()),
        node: one.node_name,
        ready: one.conditions.ready.unwrap_or(true),
    };
    let service = object.metadata.labels.get(SERVICE).cloned().unwrap_or_default();
    // A slice of names has no address.
    let endpoints = if object.address_type == "FQDN" { Vec::new() } else { written };
    Ok(EndpointSlice { service, endpoints: endpoints.into_iter().map(endpoint).collect() })
}
