//! Gauges that are computed when Prometheus asks.

use std::sync::atomic::AtomicU64;

use jiff::Timestamp;
use netstead_engine::EngineStatus;
use netstead_ledger::Health;
use netstead_model::PoolStatus;
use prometheus_client::{
    encoding::{
        EncodeLabelSet,
        text::{encode_eof, encode_registry},
    },
    metrics::{
        counter::ConstCounter,
        family::Family,
        gauge::{ConstGauge, Gauge},
        info::Info,
    },
    registry::{Registry, Unit},
};

use super::{Metrics, Node, connections, engine_gauges};
use crate::BackupState;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PoolLabels {
    pool: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    pool: String,
    state: &'static str,
}

pub(super) type Numbers<L> = Family<L, Gauge<f64, AtomicU64>>;

/// Present state that one scrape shows.
#[derive(Debug)]
pub(crate) struct Seen<'a> {
    pub(crate) health: &'a Health,
    pub(crate) store_ready: bool,
    pub(crate) pools: &'a [PoolStatus],
    pub(crate) engine: Option<&'a EngineStatus>,
    pub(crate) node: Option<&'a Node>,
    pub(crate) backups: Option<&'a BackupState>,
    pub(crate) now: Timestamp,
}

/// Everything as text.
pub(crate) fn scrape(metrics: &Metrics, seen: &Seen<'_>) -> Result<String, std::fmt::Error> {
    let Seen { health, store_ready, pools, engine, node, backups, now } = *seen;
    let mut registry = Registry::with_prefix("netstead");
    let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
    registry.register("build", "What runs here", build);
    ledger(&mut registry, health);
    registry.register(
        "store_ready",
        "Whether the store can be written to",
        ConstGauge::new(i64::from(store_ready)),
    );
    let help = "Parts of the store that were found to be damaged";
    let damaged = i64::try_from(health.damage.len()).unwrap_or(i64::MAX);
    registry.register("store_damaged", help, ConstGauge::new(damaged));
    if let Some(backups) = backups {
        of_backups(&mut registry, backups, now);
    }
    of_pools(&mut registry, pools);
    connections::of_listeners(&mut registry, &metrics.meter);
    connections::of_queries(&mut registry, &metrics.meter);
    if let Some(node) = node {
        node.register(&mut registry);
    }
    if let Some(status) = engine {
        engine_gauges::of_engine(&mut registry, status, now);
    }
    let mut text = String::new();
    encode_registry(&mut text, &metrics.registry)?;
    encode_registry(&mut text, &registry)?;
    encode_eof(&mut text)?;
    Ok(text)
}

fn ledger(registry: &mut Registry, health: &Health) {
    let gauge = |number: u64| ConstGauge::new(i64::try_from(number).unwrap_or(i64::MAX));
    registry.register("ledger_ready", "Whether the ledger answers", gauge(health.ready.into()));
    registry.register(
        "ledger_paused",
        "Whether it was restored and not resumed",
        gauge(health.paused.into()),
    );
    registry.register("ledger_seq", "The sequence number of the last change", gauge(health.seq));
    registry.register("ledger_epoch", "How often leadership was taken", gauge(health.epoch));
    let waiting = u64::try_from(health.waiting_requests).unwrap_or(u64::MAX);
    registry.register("ledger_queue", "Requests that wait for the writer", gauge(waiting));
    registry.register("ledger_events", "Events that are kept", gauge(health.events));
    let counters = &health.counters;
    registry.register(
        "ledger_requests",
        "Requests answered by commits",
        ConstCounter::new(counters.requests),
    );
    registry.register("ledger_commits", "Commits made durable", ConstCounter::new(counters.commits));
    let help = "Commits of which it was not known whether they landed";
    registry.register("ledger_unknown_commits", help, ConstCounter::new(counters.unknown_commits));
    let help = "Commits refused because the head had moved";
    registry.register("ledger_refused_commits", help, ConstCounter::new(counters.refused_commits));
    registry.register(
        "ledger_rebuilds",
        "How often the Book was built anew",
        ConstCounter::new(counters.rebuilds),
    );
}

fn of_backups(registry: &mut Registry, backups: &BackupState, now: Timestamp) {
    let failing = ConstGauge::new(i64::from(backups.failure.is_some()));
    registry.register("backup_failing", "Whether the daily backup cannot be written", failing);
    if let Some(last) = backups.last {
        let age = ConstGauge::new(now.duration_since(last).as_secs_f64().max(0.0));
        let help = "How long ago the newest daily backup was written";
        registry.register_with_unit("backup_age", help, Unit::Seconds, age);
    }
}

fn of_pools(registry: &mut Registry, pools: &[PoolStatus]) {
    let (addresses, sizes, waiting) = (Numbers::default(), Numbers::default(), Numbers::default());
    for status in pools {
        let (pool, usage) = (status.pool.name().to_string(), &status.usage);
        let states = [
            ("held", usage.held),
            ("resting", usage.resting),
            ("reserved", usage.reserved),
            ("observed", usage.observed),
            ("free", usage.free),
        ];
        for (state, count) in states {
            addresses.get_or_create(&StateLabels { pool: pool.clone(), state }).set(approximately(count));
        }
        sizes.get_or_create(&PoolLabels { pool: pool.clone() }).set(approximately(usage.size));
        waiting.get_or_create(&PoolLabels { pool }).set(approximately(usage.waiting.into()));
    }
    registry.register("pool_addresses", "Addresses of a pool, by what they are", addresses);
    registry.register("pool_size", "Addresses a pool can hand out in all", sizes);
    registry.register("pool_waiting", "Claims that wait for an address of a pool", waiting);
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a gauge is a float, and nobody counts an IPv6 network by ones"
)]
pub(super) fn approximately(count: u128) -> f64 {
    count as f64
}
