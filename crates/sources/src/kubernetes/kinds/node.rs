//! Node: its addresses, for names of nodes and for services that are reached at every node.

use netstead_model::{Address, Interface};
use serde::Deserialize;

use super::{
    super::{
        annotations::external_dns,
        object::{Object, Stored},
    },
    asked::{Asked, Points},
    balancer::addresses,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::kubernetes) struct Node {
    pub(super) external: Vec<Address>,
    pub(super) internal: Vec<Address>,
    pub(in crate::kubernetes) ready: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    addresses: Vec<NodeAddress>,
    conditions: Vec<Condition>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NodeAddress {
    r#type: String,
    address: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Condition {
    r#type: String,
    status: String,
}

pub(in crate::kubernetes) fn read(object: &Object) -> Result<Node, String> {
    let status: Status = object.status()?;
    let of = |kind: &str| {
        addresses(status.addresses.iter().filter(|one| one.r#type == kind).map(|one| one.address.as_str()))
    };
    let ready = status.conditions.iter().all(|one| one.r#type != "Ready" || one.status == "True");
    Ok(Node { external: of("ExternalIP"), internal: of("InternalIP"), ready })
}

impl Node {
    /// The addresses that the annotation `access` asks for: by itself the external ones, or else the internal.
    pub(in crate::kubernetes) fn addresses(&self, access: Option<&str>) -> &[Address] {
        match access {
            Some("private") => &self.internal,
            Some("public") => &self.external,
            _ if self.external.is_empty() => &self.internal,
            _ => &self.external,
        }
    }
}

pub(in crate::kubernetes) fn ask(object: &Stored, node: &Node) -> Asked {
    let mut asked = Asked::default();
    let addresses = node.addresses(external_dns(object, "access")).to_vec();
    for (name, addresses) in [("internal", &node.internal), ("external", &node.external)] {
        if !addresses.is_empty() {
            let (name, addresses) = (Some(name.to_owned()), addresses.clone());
            asked.interfaces.push(Interface { name, addresses, ..Interface::default() });
        }
    }
    asked.points = Points { addresses, ..Points::default() };
    if asked.points.is_empty() {
        asked.points.why = Some("it has no such address".into());
    }
    asked
}
