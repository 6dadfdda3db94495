//! `VIRTUAL_HOST` and `VIRTUAL_HOST_MULTIPORTS` of nginx-proxy, in the environment or as labels.

use std::collections::BTreeSet;

use netstead_model::Name;
use serde::{Deserialize, Deserializer, de};

use super::{
    NameRequest, WorkloadLabels,
    diagnostics::{Diagnostics, excerpt},
    list::parts,
};

/// The variables that are looked at, and nothing else of the environment.
pub(super) const VARIABLES: [&str; 2] = ["VIRTUAL_HOST", "VIRTUAL_HOST_MULTIPORTS"];
const LABELS: [&str; 2] = ["VIRTUAL_HOST", "com.nginx-proxy.virtual_host"];

pub(super) fn reads(label: &str) -> bool {
    VARIABLES.contains(&label) || LABELS.contains(&label)
}

pub(super) fn read(told: &WorkloadLabels<'_>, notes: &mut Diagnostics) -> Vec<NameRequest> {
    let mut asks = Vec::new();
    let [single, several] = VARIABLES;
    let variable =
        |name: &str| told.environment.get(name).map(|text| (format!("{name} (environment)"), text));
    let label = |name: &str| told.labels.get(name).map(|text| (format!("{name} (label)"), text));
    let ports = [variable(several), label(several)];
    for (place, text) in ports.iter().flatten() {
        match hosts_of_ports(text) {
            Ok(hosts) => hosts.iter().for_each(|host| push(&mut asks, host, place, notes)),
            Err(why) => notes.add(format!("{place}: {why}")),
        }
    }
    // nginx-proxy leaves VIRTUAL_HOST aside when the other is there.
    let single = if ports.first().is_some_and(Option::is_some) { None } else { variable(single) };
    for (place, text) in single.into_iter().chain(LABELS.into_iter().filter_map(label)) {
        parts(text).for_each(|host| push(&mut asks, host, &place, notes));
    }
    asks
}

/// YAML: hosts, and what is behind their ports, which is no matter here.
fn hosts_of_ports(text: &str) -> Result<BTreeSet<String>, String> {
    if text.trim().is_empty() {
        return Ok(BTreeSet::new());
    }
    serde_saphyr::from_str(text).map(|Hosts(hosts)| hosts).map_err(|error| {
        let error = error.to_string();
        format!("it is not the YAML of hosts: {}", excerpt(error.lines().next().unwrap_or_default()))
    })
}

/// The keys of a map, whatever their values are.
struct Hosts(BTreeSet<String>);

impl<'de> Deserialize<'de> for Hosts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(KeysOnly)
    }
}

struct KeysOnly;

impl<'de> de::Visitor<'de> for KeysOnly {
    type Value = Hosts;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a map of hosts")
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Hosts, A::Error> {
        let mut hosts = BTreeSet::new();
        while let Some((host, de::IgnoredAny)) = map.next_entry()? {
            hosts.insert(host);
        }
        Ok(Hosts(hosts))
    }
}

fn push(asks: &mut Vec<NameRequest>, host: &str, place: &str, notes: &mut Diagnostics) {
    if host.starts_with('~') {
        return notes
            .add(format!("{place}: `{}` is a regular expression, which names no host", excerpt(host)));
    }
    if host.ends_with(".*") {
        return notes.add(format!(
            "{place}: `{}` has its wildcard at the end, where the DNS has none",
            excerpt(host)
        ));
    }
    match host.parse::<Name>() {
        Ok(name) => asks.push(NameRequest::new(name, place)),
        Err(error) => notes.add(format!("{place}: {error}")),
    }
}
