//! [`Metrics`] of the operator, for Prometheus.

use std::sync::atomic::{AtomicI64, AtomicU64};

use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};

use crate::{object::PoolKey, pool_index::Counts};

/// Seconds from the creation of a claim, which the server writes in whole seconds.
const BUCKETS: [f64; 9] = [1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 7200.0];

/// The states of addresses.
const STATES: [&str; 5] = ["total", "used", "free", "out-of-range", "cooling"];

#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    addresses: Family<AddressLabels, Gauge<i64, AtomicI64>>,
    waiting: Family<PoolLabels, Gauge<i64, AtomicI64>>,
    allocations: Family<OutcomeLabels, Counter<u64, AtomicU64>>,
    seconds: Histogram,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PoolLabels {
    kind: &'static str,
    namespace: String,
    pool: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AddressLabels {
    kind: &'static str,
    namespace: String,
    pool: String,
    state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: &'static str,
}

/// How an attempt to give a claim its address ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AllocationOutcome {
    Allocated,
    Exhausted,
    /// The pool is not ready, or the wanted address cannot be had.
    Refused,
    /// Another claim has had the address first.
    GaveWay,
}

impl AllocationOutcome {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Allocated => "allocated",
            Self::Exhausted => "exhausted",
            Self::Refused => "refused",
            Self::GaveWay => "gave-way",
        }
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("netstead_operator");
        let addresses = Family::default();
        let help = "Addresses of a pool of Cluster API, by their state";
        registry.register("pool_addresses", help, addresses.clone());
        let waiting = Family::default();
        registry.register("claims_waiting", "Claims that wait for an address of the pool", waiting.clone());
        let allocations = Family::default();
        registry.register("allocations", "Attempts to give a claim its address", allocations.clone());
        let seconds = Histogram::new(BUCKETS);
        let help = "From the creation of a claim until its owner was told the address";
        registry.register_with_unit("allocation", help, Unit::Seconds, seconds.clone());
        Self { registry, addresses, waiting, allocations, seconds }
    }
}

impl Metrics {
    /// The text that Prometheus reads.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }

    pub(crate) fn allocation(&self, outcome: AllocationOutcome) {
        self.allocations.get_or_create(&OutcomeLabels { outcome: outcome.as_str() }).inc();
    }

    pub(crate) fn allocated(&self, seconds: f64) {
        self.allocation(AllocationOutcome::Allocated);
        self.seconds.observe(seconds);
    }

    /// Forgets the gauges of all pools: another node looks after them now.
    pub(crate) fn forget_pools(&self) {
        self.addresses.clear();
        self.waiting.clear();
    }

    /// Sets the gauges of a pool; removes them if it is gone.
    pub(crate) fn pool(&self, key: &PoolKey, counts: Option<Counts>) {
        let (kind, namespace, pool) = (key.kind.as_str(), key.name.namespace.clone(), key.name.name.clone());
        let waiting = PoolLabels { kind, namespace: namespace.clone(), pool: pool.clone() };
        let labels = |state| AddressLabels { kind, namespace: namespace.clone(), pool: pool.clone(), state };
        let Some(Counts { total, used, free, out_of_range, cooling, waiting: claims }) = counts else {
            for state in STATES {
                self.addresses.remove(&labels(state));
            }
            self.waiting.remove(&waiting);
            return;
        };
        let number = |count: u128| i64::try_from(count).unwrap_or(i64::MAX);
        for (state, count) in STATES.into_iter().zip([total, used, free, out_of_range, cooling]) {
            self.addresses.get_or_create(&labels(state)).set(number(count));
        }
        self.waiting.get_or_create(&waiting).set(number(claims));
    }
}
