//! The load balancer in the status of an Ingress or a Service.

use netstead_model::Address;
use serde::Deserialize;

use super::asked::Points;
use crate::dialects::diagnostics::Diagnostics;

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Status {
    load_balancer: LoadBalancer,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct LoadBalancer {
    ingress: Vec<Point>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Point {
    ip: String,
    hostname: String,
}

/// Addresses and host names of a load balancer, as its status has them.
pub(super) fn points(status: Status) -> Vec<String> {
    let of = |point: Point| [point.ip, point.hostname];
    status.load_balancer.ingress.into_iter().flat_map(of).filter(|text| !text.is_empty()).collect()
}

pub(super) fn read(points: &[String], notes: &mut Diagnostics) -> Points {
    let found = Points::of_texts(points.iter().map(String::as_str), notes);
    if found.is_empty() { Points::none("its load balancer has no address yet") } else { found }
}

/// Addresses among texts.
pub(super) fn addresses<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<Address> {
    let parsed = texts.into_iter().filter_map(|text| text.trim().parse::<std::net::IpAddr>().ok());
    let mut addresses: Vec<Address> = parsed.map(Address::from).collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}
