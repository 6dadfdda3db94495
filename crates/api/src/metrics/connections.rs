//! The connections of each listener.

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
