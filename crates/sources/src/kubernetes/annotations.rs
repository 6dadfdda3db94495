//! Annotations of three tools, as the labels that the dialects read.

use std::collections::BTreeMap;

use netstead_model::Span;

use super::{kinds::Body, object::Stored};
use crate::dialects::{boolean, diagnostics::Diagnostics};

/// Our own annotations.
const NETSTEAD: &str = "netstead.io/";
/// Asks for an address and for no name.
const LOAD_BALANCER_IP: &str = "load-balancer-ip";
const DNSWEAVER: &str = "dnsweaver.dev/";
/// The newer first: it wins where both are written.
const EXTERNAL_DNS: [&str; 2] = ["external-dns.kubernetes.io/", "external-dns.alpha.kubernetes.io/"];
pub(super) const INGRESS_CLASS: &str = "kubernetes.io/ingress.class";
/// The value that the annotation `controller` must have, if it is there.
const CONTROLLER: &str = "dns-controller";
/// Longer values are not kept: no name is that long.
const LONGEST: usize = 8192;

/// Whether an annotation is kept.
pub(super) fn is_read(key: &str, value: &str) -> bool {
    let known = [NETSTEAD, DNSWEAVER, EXTERNAL_DNS[0], EXTERNAL_DNS[1]];
    value.len() <= LONGEST && (key == INGRESS_CLASS || known.iter().any(|prefix| key.starts_with(prefix)))
}

/// Whether a label is kept.
pub(super) fn is_label_read(key: &str) -> bool {
    key.starts_with("netstead.") || key.starts_with("dnsweaver.")
}

/// An annotation of external-dns, with either prefix.
pub(super) fn external_dns<'a>(object: &'a Stored, field: &str) -> Option<&'a str> {
    let value = |prefix: &&str| object.annotations.get(&format!("{prefix}{field}")).map(String::as_str);
    EXTERNAL_DNS.iter().find_map(value).map(str::trim).filter(|value| !value.is_empty())
}

/// Whether its owner wants nothing of it published here: nothing need be said to them.
pub(super) fn is_silenced(object: &Stored) -> bool {
    let off = |map: &BTreeMap<String, String>, key: &str| {
        map.get(key).and_then(|text| boolean::read(text).ok()) == Some(false)
    };
    ["netstead.io/enabled", "dnsweaver.dev/enabled"].iter().any(|key| off(&object.annotations, key))
        || ["netstead.enabled", "dnsweaver.enabled"].iter().any(|key| off(&object.labels, key))
        || external_dns(object, "controller").is_some_and(|value| value != CONTROLLER)
}

/// Why nothing of this object is published, if its annotations say so.
pub(super) fn refused(object: &Stored) -> Option<String> {
    let enabled = object.annotations.get("netstead.io/enabled").and_then(|text| boolean::read(text).ok());
    if enabled == Some(true) {
        return None;
    }
    if let Some(controller) = external_dns(object, "controller").filter(|value| *value != CONTROLLER) {
        let controller = crate::dialects::diagnostics::excerpt(controller);
        return Some(format!(
            "its annotation `controller` is `{controller}` and not `{CONTROLLER}`, so another tool shall read it"
        ));
    }
    if external_dns(object, "set-identifier").is_some() {
        return Some(
            "its annotation `set-identifier` asks for weighted or regional records, which Netstead has none of: remove it"
                .into(),
        );
    }
    None
}

/// Whether the names that an object has by its kind count, and whether those of external-dns' annotation do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HostnameSource {
    pub(super) defined: bool,
    pub(super) annotation: bool,
}

/// Reads `ingress-hostname-source` or `gateway-hostname-source`.
pub(super) fn hostname_source(object: &Stored, field: &str, notes: &mut Diagnostics) -> HostnameSource {
    let both = HostnameSource { defined: true, annotation: true };
    match external_dns(object, field) {
        None => both,
        Some("annotation-only") => HostnameSource { defined: false, ..both },
        Some("defined-hosts-only") => HostnameSource { annotation: false, ..both },
        Some(other) => {
            let other = crate::dialects::diagnostics::excerpt(other);
            notes.add(format!("{field}: `{other}` is neither `annotation-only` nor `defined-hosts-only`"));
            both
        }
    }
}

/// The annotations and labels of an object in the words of the dialects. Everything that counts for all names of an object,
/// wherever they come from, becomes a default of ours: a target, a type, a time to live, whether a proxy stands in front.
pub(super) fn labels(
    object: &Stored,
    annotated_names: bool,
    notes: &mut Diagnostics,
) -> BTreeMap<String, String> {
    let mut labels: BTreeMap<String, String> = BTreeMap::new();
    for (key, value) in &object.annotations {
        if let Some(field) = key.strip_prefix(NETSTEAD).filter(|field| *field != LOAD_BALANCER_IP) {
            labels.insert(format!("netstead.{field}"), value.clone());
        } else if let Some(field) = key.strip_prefix(DNSWEAVER)
            && !matches!(field, "target" | "record-type" | "ttl" | "proxied")
        {
            labels.insert(format!("dnsweaver.{field}"), value.clone());
        }
    }
    if annotated_names && let Some(names) = external_dns(object, "hostname") {
        labels.insert(format!("{}hostname", EXTERNAL_DNS[0]), names.to_owned());
    }
    // Labels come before annotations, as at dnsweaver.
    labels.extend(object.labels.clone());
    let dnsweaver = |field: &str| object.annotations.get(&format!("{DNSWEAVER}{field}")).cloned();
    let external = |field: &str| external_dns(object, field).map(str::to_owned);
    // As at external-dns: where a route points is said on its Gateway.
    let of_gateway = matches!(object.body, Body::Route(_));
    if of_gateway && external("target").is_some() {
        notes.add("target: external-dns reads this annotation on the Gateway of a route, so on the route it is left out");
    }
    for (ours, theirs) in [
        ("target", dnsweaver("target").or_else(|| external("target").filter(|_| !of_gateway))),
        ("type", dnsweaver("record-type").or_else(|| external("record-type"))),
        ("ttl", dnsweaver("ttl").or_else(|| external("ttl")).map(|text| seconds(&text, notes))),
        ("proxied", dnsweaver("proxied").or_else(|| external("cloudflare-proxied"))),
    ] {
        if let Some(value) = theirs {
            labels.entry(format!("netstead.{ours}")).or_insert(value);
        }
    }
    labels
}

/// A time to live as seconds: external-dns takes `5m` too.
fn seconds(text: &str, notes: &mut Diagnostics) -> String {
    if text.trim().parse::<u32>().is_ok() {
        return text.to_owned();
    }
    if let Ok(span) = text.trim().parse::<Span>() {
        return (span.as_millis() / 1000).to_string();
    }
    notes.add(format!("ttl: `{}` is no time to live", crate::dialects::diagnostics::excerpt(text)));
    String::new()
}
