//! Routes of the Gateway API: their hosts where a listener of their Gateway serves them, at that Gateway's addresses.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::{
    super::{
        annotations::{external_dns, hostname_source},
        object::{Object, ObjectName, Stored},
        surroundings::Surroundings,
    },
    Body, ObjectKind,
    asked::{Asked, Points},
    definition::Definition,
    gateway::Listener,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::kubernetes) struct Route {
    hostnames: Vec<String>,
    /// The Gateways that accepted it, as it names them.
    parents: Vec<ParentRef>,
    /// Gateways that it names.
    wanted: usize,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ParentRef {
    group: Option<String>,
    kind: Option<String>,
    namespace: Option<String>,
    name: String,
    section_name: Option<String>,
    port: Option<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    hostnames: Vec<String>,
    parent_refs: Vec<ParentRef>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    parents: Vec<ParentStatus>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ParentStatus {
    parent_ref: ParentRef,
    conditions: Vec<Condition>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Condition {
    r#type: String,
    status: String,
}

impl ParentRef {
    fn is_gateway(&self) -> bool {
        self.kind.as_deref().is_none_or(|kind| kind == "Gateway")
            && self.group.as_deref().is_none_or(|group| group == "gateway.networking.k8s.io")
    }

    fn gateway(&self, route: &ObjectName) -> ObjectName {
        ObjectName::new(self.namespace.as_deref().unwrap_or(&route.namespace), self.name.as_str())
    }

    fn means(&self, other: &Self, namespace: &str) -> bool {
        let place = |parent: &Self| parent.namespace.clone().unwrap_or_else(|| namespace.to_owned());
        self.name == other.name
            && place(self) == place(other)
            && self.section_name == other.section_name
            && self.port == other.port
    }
}

pub(super) fn read(object: &Object) -> Result<Route, String> {
    let spec: Spec = object.spec()?;
    let status: Status = object.status()?;
    let namespace = &object.metadata.namespace;
    let accepted =
        |parent: &ParentRef| {
            status.parents.iter().filter(|state| state.parent_ref.means(parent, namespace)).any(|state| {
                state.conditions.iter().any(|one| one.r#type == "Accepted" && one.status == "True")
            })
        };
    let gateways: Vec<ParentRef> = spec.parent_refs.into_iter().filter(ParentRef::is_gateway).collect();
    let wanted = gateways.len();
    Ok(Route { hostnames: spec.hostnames, parents: gateways.into_iter().filter(accepted).collect(), wanted })
}

pub(in crate::kubernetes) fn ask(
    kind: ObjectKind,
    object: &Stored,
    route: &Route,
    surroundings: &Surroundings<'_>,
) -> Asked {
    let mut asked = Asked { shared: true, ..Asked::default() };
    let from = hostname_source(object, "gateway-hostname-source", &mut asked.notes);
    asked.annotated = from.annotation;
    let Some(gateways) = surroundings.gateways() else {
        asked.unclear = Some("its Gateways cannot be read now".into());
        return asked;
    };
    if route.parents.is_empty() {
        asked.points = Points::none(if route.wanted == 0 {
            "it names no Gateway"
        } else {
            "no Gateway that it names has accepted it"
        });
        asked.annotated = false;
        let why = asked.points.why.clone().unwrap_or_default();
        asked.notes.add(format!("it gives no name: {why}"));
        return asked;
    }
    let kind_name = Definition::of(kind).name;
    let mut refused = false;
    let mut hosts: BTreeSet<String> = BTreeSet::new();
    let mut targets: BTreeSet<String> = BTreeSet::new();
    for parent in &route.parents {
        let name = parent.gateway(&object.name);
        if !surroundings.settings.wants_gateway(&name) {
            asked.notes.add(format!("the Gateway {name} is not among `gateways`"));
            continue;
        }
        let Some(Stored { body: Body::Gateway(gateway), .. }) = gateways.get(&name).map(|stored| &**stored)
        else {
            asked.notes.add(format!("there is no Gateway {name}"));
            continue;
        };
        let here = |listener: &&Listener| {
            serves(kind, parent, listener)
                && listener.allows(&kind_name, &object.name.namespace, &name.namespace)
        };
        if !gateway.listeners.iter().any(|listener| here(&listener)) {
            asked.notes.add(format!("no listener of the Gateway {name} takes it"));
            refused = true;
            continue;
        }
        let found = served_hosts(route, gateway.listeners.iter().filter(here));
        if found.is_empty() && from.defined && !route.hostnames.is_empty() {
            asked.notes.add(format!("no listener of the Gateway {name} serves a host of it"));
            continue;
        }
        hosts.extend(found);
        let own = gateways.get(&name).and_then(|stored| external_dns(stored, "target"));
        match own {
            Some(target) => targets.extend(target.split(',').map(|text| text.trim().to_owned())),
            None => targets.extend(gateway.addresses.iter().cloned()),
        }
    }
    // Without a listener that takes it, it is reached under no name, whatever its annotations say.
    asked.annotated &= !(refused && hosts.is_empty() && targets.is_empty());
    if from.defined {
        for host in &hosts {
            asked.ask(host, "hostnames");
        }
    }
    asked.points = Points::of_texts(targets.iter().map(String::as_str), &mut asked.notes);
    if asked.points.is_empty() {
        asked.points.why = Some("its Gateway has no address yet".into());
    }
    asked
}

/// The hosts of a route that these listeners serve.
fn served_hosts<'a>(route: &Route, listeners: impl Iterator<Item = &'a Listener>) -> BTreeSet<String> {
    let mut hosts = BTreeSet::new();
    for listener in listeners {
        if route.hostnames.is_empty() {
            hosts.extend(Some(listener.hostname.clone()).filter(|host| !host.is_empty()));
        }
        for host in &route.hostnames {
            hosts.extend(narrower(host, &listener.hostname));
        }
    }
    hosts
}

fn serves(kind: ObjectKind, parent: &ParentRef, listener: &Listener) -> bool {
    let protocols: &[&str] = match kind {
        ObjectKind::TlsRoute => &["TLS", "HTTPS"],
        ObjectKind::TcpRoute => &["TCP", "TLS"],
        ObjectKind::UdpRoute => &["UDP"],
        _ => &["HTTP", "HTTPS"],
    };
    // Protocols of an implementation's own have a domain in front, and may serve anything.
    let protocol = listener.protocol.as_str();
    (protocol.is_empty() || protocol.contains('/') || protocols.contains(&protocol))
        && parent.section_name.as_ref().is_none_or(|name| *name == listener.name)
        && parent.port.is_none_or(|port| port == listener.port)
}

/// The host that both patterns mean, if there is one: `*.example.com` is every name below.
fn narrower(route: &str, listener: &str) -> Option<String> {
    let (route, listener) = (route.to_ascii_lowercase(), listener.to_ascii_lowercase());
    if listener.is_empty() || route == listener {
        return Some(route);
    }
    let below = |name: &str, pattern: &str| {
        pattern.strip_prefix('*').is_some_and(|suffix| name.len() > suffix.len() && name.ends_with(suffix))
    };
    if below(&route, &listener) {
        return Some(route);
    }
    below(&listener, &route).then_some(listener)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_served_where_route_and_listener_agree() {
        let cases = [
            ("web.example.com", "", Some("web.example.com")),
            ("web.example.com", "web.example.com", Some("web.example.com")),
            ("web.example.com", "*.example.com", Some("web.example.com")),
            ("*.example.com", "web.example.com", Some("web.example.com")),
            ("*.example.com", "*.example.com", Some("*.example.com")),
            ("*.a.example.com", "*.example.com", Some("*.a.example.com")),
            ("example.com", "*.example.com", None),
            ("web.example.com", "api.example.com", None),
            ("web.badexample.com", "*.example.com", None),
        ];
        for (route, listener, host) in cases {
            assert_eq!(narrower(route, listener).as_deref(), host, "{route} at {listener}");
        }
    }
}
