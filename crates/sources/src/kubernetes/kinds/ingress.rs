//! Ingress: the hosts of its rules and certificates, at the address of its controller.

use serde::Deserialize;

use super::{
    super::{
        annotations::{INGRESS_CLASS, hostname_source},
        object::{Object, Stored},
        settings::KubernetesSettings,
    },
    asked::Asked,
    balancer,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::kubernetes) struct Ingress {
    class: Option<String>,
    hosts: Vec<String>,
    /// Of its certificates, and not of its rules.
    tls_hosts: Vec<String>,
    balancer: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    ingress_class_name: Option<String>,
    rules: Vec<Rule>,
    tls: Vec<Certificate>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Rule {
    host: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Certificate {
    hosts: Vec<String>,
}

pub(super) fn read(object: &Object) -> Result<Ingress, String> {
    let spec: Spec = object.spec()?;
    let set = |mut hosts: Vec<String>| {
        hosts.retain(|host| !host.is_empty());
        hosts.sort_unstable();
        hosts.dedup();
        hosts
    };
    let hosts = set(spec.rules.into_iter().map(|rule| rule.host).collect());
    let mut tls_hosts = set(spec.tls.into_iter().flat_map(|tls| tls.hosts).collect());
    tls_hosts.retain(|host| !hosts.contains(host));
    Ok(Ingress {
        class: spec.ingress_class_name,
        hosts,
        tls_hosts,
        balancer: balancer::points(object.status()?),
    })
}

/// The class of an Ingress: its field, or the older annotation.
fn class<'a>(object: &'a Stored, ingress: &'a Ingress) -> Option<&'a str> {
    ingress.class.as_deref().or_else(|| object.annotations.get(INGRESS_CLASS).map(String::as_str))
}

/// None if its class is not one of those that are wanted.
pub(in crate::kubernetes) fn ask(
    object: &Stored,
    ingress: &Ingress,
    settings: &KubernetesSettings,
) -> Option<Asked> {
    if !settings.wants_class(class(object, ingress)) {
        return None;
    }
    let mut asked = Asked { shared: true, ..Asked::default() };
    let from = hostname_source(object, "ingress-hostname-source", &mut asked.notes);
    asked.annotated = from.annotation;
    if from.defined {
        for host in &ingress.hosts {
            asked.ask(host, "rules[].host");
        }
        for host in ingress.tls_hosts.iter().filter(|_| settings.ingress_tls_hosts) {
            asked.ask(host, "tls[].hosts");
        }
    }
    asked.points = balancer::read(&ingress.balancer, &mut asked.notes);
    Some(asked)
}
