//! Metrics for Prometheus. Labels are bounded: routes, methods and pools, never hosts, keys or subjects.

mod connections;
mod engine_gauges;
mod meter;
mod node;
mod scrape;

use std::{sync::atomic::AtomicU64, time::Duration};

use axum::http::{Method, StatusCode};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::{Registry, Unit},
};

pub use self::meter::Meter;
pub(crate) use self::{
    node::Node,
    scrape::{Seen, scrape},
};

/// Seconds: a claim takes a flush to disk, a waiting one up to minutes.
const BUCKETS: [f64; 13] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0, 120.0];

/// Counted since the start.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter<u64, AtomicU64>>,
    durations: Family<RouteLabels, Histogram>,
    forwarded: Counter<u64, AtomicU64>,
    meter: Meter,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    route: String,
    method: &'static str,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    route: String,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new(&Meter::default())
    }
}

impl Metrics {
    pub(crate) fn new(meter: &Meter) -> Self {
        let mut registry = Registry::with_prefix("netstead");
        let requests = Family::default();
        let durations = Family::new_with_constructor((|| Histogram::new(BUCKETS)) as fn() -> Histogram);
        registry.register("requests", "Requests answered, by the template of their route", requests.clone());
        let help = "How long requests took, by the template of their route";
        registry.register_with_unit("request_duration", help, Unit::Seconds, durations.clone());
        let forwarded = Counter::default();
        registry.register("forwarded_requests", "Requests that were sent to the leader", forwarded.clone());
        meter.register(&mut registry);
        Self { registry, requests, durations, forwarded, meter: meter.clone() }
    }

    pub(crate) fn forwarded(&self) {
        self.forwarded.inc();
    }

    pub(crate) fn count(&self, route: &str, method: &Method, status: StatusCode, took: Duration) {
        let labels = RequestLabels { route: route.to_owned(), method: name(method), status: status.as_u16() };
        self.requests.get_or_create(&labels).inc();
        self.durations.get_or_create(&RouteLabels { route: route.to_owned() }).observe(took.as_secs_f64());
    }
}

/// Anybody can invent methods; they must not become labels.
fn name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::PUT => "PUT",
        Method::POST => "POST",
        Method::DELETE => "DELETE",
        Method::PATCH => "PATCH",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}
