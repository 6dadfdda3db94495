//! The connections of each listener, and the answers of the nameserver.

use std::sync::atomic::AtomicU64;

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

use super::{Meter, scrape::Numbers, scrape::approximately};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ListenerLabels {
    listener: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ClosedLabels {
    listener: &'static str,
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QueryLabels {
    transport: &'static str,
    rcode: &'static str,
}

/// Answers of the nameserver. A response code appears with its first answer.
pub(super) fn of_queries(registry: &mut Registry, meter: &Meter) {
    let queries = Family::<QueryLabels, Counter<u64, AtomicU64>>::default();
    for (transport, rcode, number) in meter.queries().all().into_iter().filter(|(_, _, number)| *number > 0) {
        queries.get_or_create(&QueryLabels { transport, rcode }).inc_by(number);
    }
    let help = "Queries that the nameserver answered, by transport and response code";
    registry.register("dns_queries", help, queries);
}

pub(super) fn of_listeners(registry: &mut Registry, meter: &Meter) {
    let (open, most) = (Numbers::default(), Numbers::default());
    let closed = Family::<ClosedLabels, Counter<u64, AtomicU64>>::default();
    for (listener, connections) in meter.listeners().iter() {
        let (listener, counts, limits) = (*listener, connections.counts(), connections.limits());
        open.get_or_create(&ListenerLabels { listener }).set(approximately(counts.open as u128));
        most.get_or_create(&ListenerLabels { listener }).set(approximately(limits.in_all as u128));
        let reasons =
            [("displaced", counts.displaced), ("refused", counts.refused), ("silent", counts.silent)];
        for (reason, number) in reasons {
            closed.get_or_create(&ClosedLabels { listener, reason }).inc_by(number);
        }
    }
    registry.register("connections", "Connections that are open, by listener", open);
    registry.register("connections_limit", "The most connections a listener may have", most);
    let help = "Connections that were closed because of a limit, by listener and limit";
    registry.register("connections_closed", help, closed);
}
