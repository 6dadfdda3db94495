//! Gateway: the listeners and addresses that routes are reached by.

use serde::Deserialize;

use super::super::object::Object;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::kubernetes) struct Gateway {
    pub(super) listeners: Vec<Listener>,
    pub(super) addresses: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Listener {
    pub(super) name: String,
    pub(super) hostname: String,
    pub(super) port: u32,
    pub(super) protocol: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    listeners: Vec<Listener>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    addresses: Vec<StatusAddress>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StatusAddress {
    value: String,
}

pub(super) fn read(object: &Object) -> Result<Gateway, String> {
    let spec: Spec = object.spec()?;
    let status: Status = object.status()?;
    Ok(Gateway {
        listeners: spec.listeners,
        addresses: status.addresses.into_iter().map(|address| address.value).collect(),
    })
}
