//! The sources of external-dns.

use super::{Flags, add_if_valid, list};
use crate::import::draft::{Draft, Table};

/// The kind that all sources of external-dns become.
pub(super) const KIND: &str = "kubernetes";
/// Sources with another name here.
const KINDS: [(&str, &[&str]); 8] = [
    ("crd", &["dnsendpoint"]),
    ("gateway-httproute", &["httproute"]),
    ("gateway-grpcroute", &["grpcroute"]),
    ("gateway-tlsroute", &["tlsroute"]),
    ("gateway-tcproute", &["tcproute"]),
    ("gateway-udproute", &["udproute"]),
    ("traefik-proxy", &["ingressroute", "ingressroutetcp"]),
    ("empty", &[]),
];
/// Sources that are read otherwise than external-dns reads them.
const OTHERWISE: [(&str, &str); 3] = [
    (
        "istio-gateway",
        "external-dns looks up the Service of an Istio Gateway for its address, and Netstead does not: set `target` at the \
         provider, `default_targets`, or the annotation `target`",
    ),
    (
        "istio-virtualservice",
        "external-dns looks up the Service of its Gateways for the address, and Netstead does not: set `target` at the provider, \
         `default_targets`, or the annotation `target`",
    ),
    (
        "traefik-proxy",
        "external-dns publishes nothing without the annotation `target`, and Netstead publishes such a name too where the \
         provider has a `target` or `default_targets` are set; IngressRouteUDP and the group traefik.containo.us are not read",
    ),
];
/// The types that external-dns manages unless it is told.
const TYPES: [&str; 3] = ["A", "AAAA", "CNAME"];

pub(super) fn add(draft: &mut Draft, flags: &Flags) {
    let mut table = Table::new("source", KIND, "external-dns");
    table.text("type", KIND);
    if let Some(path) = flags.text("kubeconfig") {
        table.text("kubeconfig", path);
    }
    if let Some(server) = flags.text("server") {
        table.warn(&format!("--server={server}: name a kubeconfig with this address as `kubeconfig`"));
    }
    let kinds = kinds(&mut table, flags);
    if kinds.is_empty() {
        draft.space();
        return draft.warn("--source", "no source that Netstead has is named, so no cluster is read", None);
    }
    table.list("kinds", &kinds);
    selection(&mut table, flags);
    targets(&mut table, flags);
    names(&mut table, flags);
    // external-dns refuses none of these.
    table.raw("wildcard", "true");
    table.raw("apex", "true");
    draft.table(table);
}

fn kinds(table: &mut Table, flags: &Flags) -> Vec<String> {
    let mut kinds: Vec<String> = Vec::new();
    for source in flags.list("source") {
        if let Some((_, how)) = OTHERWISE.iter().find(|(theirs, _)| *theirs == source) {
            table.warn(&format!("--source={source}: {how}"));
        }
        let own = KINDS.iter().find(|(theirs, _)| *theirs == source).map(|(_, ours)| *ours);
        for kind in own.unwrap_or(&[source]) {
            match table.problem_with("kinds", &list(&[kind])) {
                None if kinds.iter().any(|known| known == kind) => {}
                None => kinds.push((*kind).to_owned()),
                Some(_) => table.warn(&format!(
                    "--source={source}: Netstead has no such source, so none of its names is published"
                )),
            }
        }
    }
    kinds
}

fn selection(table: &mut Table, flags: &Flags) {
    if let Some(namespace) = flags.text("namespace") {
        table.list("namespaces", &[namespace]);
    }
    for (flag, key) in [("label-filter", "label_selector"), ("annotation-filter", "annotation_filter")] {
        if let Some(text) = flags.text(flag) {
            add_if_valid(table, flag, key, &super::quoted(text));
        }
    }
    let classes = flags.list("ingress-class");
    if !classes.is_empty() {
        table.list("ingress_classes", &classes);
    }
    if flags.is_on("ignore-ingress-tls-spec") {
        table.raw("ingress_tls_hosts", "false");
    }
    match (flags.text("gateway-name"), flags.text("gateway-namespace")) {
        (None, None) => {}
        (Some(name), None) => table.list("gateways", &[name]),
        (name, Some(namespace)) => {
            table.list("gateways", &[format!("{namespace}/{}", name.unwrap_or("*"))]);
            if flags.text("namespace").is_some_and(|own| own != namespace) {
                table.list("gateway_namespaces", &[namespace]);
            }
        }
    }
    let mut services: Vec<&str> = flags.list("service-type-filter");
    if services.contains(&"ClusterIP") {
        services.push("Headless");
    }
    if !services.is_empty() {
        add_if_valid(table, "service-type-filter", "service_types", &list(&services));
    }
    if flags.is_on("publish-internal-services") {
        table.raw("publish_cluster_ips", "true");
    }
    for (flag, value) in
        [("crd-source-apiversion", "externaldns.k8s.io/v1alpha1"), ("crd-source-kind", "DNSEndpoint")]
    {
        if let Some(other) = flags.text(flag).filter(|other| *other != value) {
            table.warn(&format!("--{flag}={other}: only {value} is read as a list of records"));
        }
    }
}

fn targets(table: &mut Table, flags: &Flags) {
    for (flag, key) in [
        ("default-targets", "default_targets"),
        ("target-net-filter", "target_networks"),
        ("exclude-target-net", "exclude_target_networks"),
    ] {
        let values = flags.list(flag);
        if !values.is_empty() {
            add_if_valid(table, flag, key, &list(&values));
        }
    }
    if flags.is_on("force-default-targets") {
        table.warn("--force-default-targets: addresses of objects come before `default_targets`; `target` of the provider comes before both");
    }
}

fn names(table: &mut Table, flags: &Flags) {
    if let Some(template) = flags.text("fqdn-template") {
        add_if_valid(table, "fqdn-template", "template", &super::quoted(template));
        if flags.is_on("combine-fqdn-annotation") {
            table.warn("--combine-fqdn-annotation: `template` is for objects that ask for no name");
        }
    }
    let managed = flags.list("managed-record-types");
    let excluded = flags.list("exclude-record-types");
    let managed: Vec<&str> = if managed.is_empty() { TYPES.to_vec() } else { managed };
    let is_excluded = |kind: &str| excluded.iter().any(|other| other.eq_ignore_ascii_case(kind));
    let mut types: Vec<String> = Vec::new();
    for kind in managed.into_iter().filter(|kind| !is_excluded(kind)) {
        let kind = kind.to_ascii_uppercase();
        match table.problem_with("types", &list(&[&kind])) {
            None => types.push(kind),
            Some(problem) => table.warn(&format!("--managed-record-types={kind}: {problem}")),
        }
    }
    if types.is_empty() {
        table.refuse("--exclude-record-types leaves no type that could be written".to_owned());
    }
    table.list("types", &types);
}
