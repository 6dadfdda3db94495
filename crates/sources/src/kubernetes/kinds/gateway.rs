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
#[serde(rename_all = "camelCase")]
pub(super) struct Listener {
    pub(super) name: String,
    pub(super) hostname: String,
    pub(super) port: u32,
    pub(super) protocol: String,
    allowed_routes: AllowedRoutes,
}

/// The routes that a listener takes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct AllowedRoutes {
    namespaces: RouteNamespaces,
    kinds: Vec<RouteKind>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct RouteNamespaces {
    from: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct RouteKind {
    kind: String,
}

impl Listener {
    /// Whether it takes routes of this kind and namespace. Labels of namespaces are not read, so a selector of them is believed to
    /// select: the Gateway has accepted the route.
    pub(super) fn allows(&self, kind: &str, route: &str, gateway: &str) -> bool {
        let namespace = match self.allowed_routes.namespaces.from.as_deref() {
            None | Some("Same") => route == gateway,
            Some("None") => false,
            Some(_) => true,
        };
        let kinds = &self.allowed_routes.kinds;
        namespace && (kinds.is_empty() || kinds.iter().any(|allowed| allowed.kind == kind))
    }
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
