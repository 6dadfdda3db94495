//! [`Meter`]: counts passes, changes and calls to servers for other crates.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicU64},
    time::Duration,
};

use netstead_engine::{Observer, PassReport};
use netstead_model::Ident;
use netstead_wire::{Connections, QueryCounts};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::{Registry, Unit},
};

use super::BUCKETS;

type Count<L> = Family<L, Counter<u64, AtomicU64>>;

/// Counters that outlive every reconfiguration. Cheap to clone; clones count together.
#[derive(Debug, Clone, Default)]
pub struct Meter(Arc<Counters>);

#[derive(Debug)]
struct Counters {
    changes: Count<ChangeLabels>,
    passes: Count<PassLabels>,
    pass_durations: Family<ProviderLabels, Histogram>,
    late: Count<ProviderLabels>,
    calls: Count<CallLabels>,
    call_durations: Family<OperationLabels, Histogram>,
    source_calls: Count<SourceCallLabels>,
    source_call_durations: Family<SourceOperationLabels, Histogram>,
    listeners: Mutex<Vec<(&'static str, Connections)>>,
    queries: QueryCounts,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ChangeLabels {
    provider: String,
    zone: String,
    action: &'static str,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PassLabels {
    provider: String,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ProviderLabels {
    provider: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    provider: String,
    operation: &'static str,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OperationLabels {
    provider: String,
    operation: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SourceCallLabels {
    source: String,
    operation: &'static str,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SourceOperationLabels {
    source: String,
    operation: &'static str,
}

impl Default for Counters {
    fn default() -> Self {
        let histogram = (|| Histogram::new(BUCKETS)) as fn() -> Histogram;
        Self {
            changes: Family::default(),
            passes: Family::default(),
            pass_durations: Family::new_with_constructor(histogram),
            late: Family::default(),
            calls: Family::default(),
            call_durations: Family::new_with_constructor(histogram),
            source_calls: Family::default(),
            source_call_durations: Family::new_with_constructor(histogram),
            listeners: Mutex::default(),
            queries: QueryCounts::default(),
        }
    }
}

impl Meter {
    /// One request to the server of `provider`, when it has ended.
    pub fn called(&self, provider: &str, operation: &'static str, outcome: &'static str, took: Duration) {
        let provider = provider.to_owned();
        let labels = CallLabels { provider: provider.clone(), operation, outcome };
        self.0.calls.get_or_create(&labels).inc();
        let labels = OperationLabels { provider, operation };
        self.0.call_durations.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// One request to the platform that `source` looks at, when it has ended.
    pub fn source_called(
        &self,
        source: &str,
        operation: &'static str,
        outcome: &'static str,
        took: Duration,
    ) {
        let source = source.to_owned();
        let labels = SourceCallLabels { source: source.clone(), operation, outcome };
        self.0.source_calls.get_or_create(&labels).inc();
        let labels = SourceOperationLabels { source, operation };
        self.0.source_call_durations.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// Shows the connections of a listener, `api` or `nameserver`.
    pub fn watch_connections(&self, listener: &'static str, connections: &Connections) {
        self.listeners().push((listener, connections.clone()));
    }

    /// Counts the answers of the nameserver.
    pub fn queries(&self) -> &QueryCounts {
        &self.0.queries
    }

    pub(super) fn listeners(&self) -> MutexGuard<'_, Vec<(&'static str, Connections)>> {
        self.0.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        let counters = &self.0;
        registry.register(
            "changes",
            "Names changed on a server, by what was done and what became of it",
            counters.changes.clone(),
        );
        registry.register("provider_passes", "Looks at a server, by how they ended", counters.passes.clone());
        let help = "How long looks at a server took, with the changes they made";
        registry.register_with_unit("pass_duration", help, Unit::Seconds, counters.pass_durations.clone());
        let help = "Writes that came after another node had taken the lead, sent from here or noticed here";
        registry.register("late_writes", help, counters.late.clone());
        registry.register(
            "provider_calls",
            "Requests to a server, by how they ended",
            counters.calls.clone(),
        );
        let help = "How long requests to a server took";
        registry.register_with_unit("call_duration", help, Unit::Seconds, counters.call_durations.clone());
        let help = "Requests to what a source looks at, by how they ended";
        registry.register("source_calls", help, counters.source_calls.clone());
        let help = "How long requests to what a source looks at took";
        let durations = counters.source_call_durations.clone();
        registry.register_with_unit("source_call_duration", help, Unit::Seconds, durations);
    }
}

impl Observer for Meter {
    fn late(&self, provider: &Ident) {
        self.0.late.get_or_create(&ProviderLabels { provider: provider.to_string() }).inc();
    }

    fn passed(&self, report: &PassReport) {
        let provider = report.provider.to_string();
        for tally in &report.tallies {
            let (provider, zone) = (provider.clone(), tally.zone.clone());
            let labels = ChangeLabels { provider, zone, action: tally.action, outcome: tally.outcome };
            self.0.changes.get_or_create(&labels).inc_by(tally.changes);
        }
        let failed = report.error.is_some() || !report.zone_errors.is_empty();
        let outcome = if failed { "failed" } else { "done" };
        self.0.passes.get_or_create(&PassLabels { provider: provider.clone(), outcome }).inc();
        // Shown from the start: what is missing is not taken for 0.
        let _ = self.0.late.get_or_create(&ProviderLabels { provider: provider.clone() });
        let took = report.took.as_secs_f64();
        self.0.pass_durations.get_or_create(&ProviderLabels { provider }).observe(took);
    }
}
