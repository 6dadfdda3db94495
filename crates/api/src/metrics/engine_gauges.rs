//! Gauges of the engine, by provider and source.

use std::time::Duration;

use jiff::Timestamp;
use netstead_engine::EngineStatus;
use prometheus_client::{
    encoding::EncodeLabelSet,
    registry::{Registry, Unit},
};

use super::scrape::{Numbers, approximately};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ProviderLabels {
    provider: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SourceLabels {
    source: String,
}

pub(super) fn of_engine(registry: &mut Registry, status: &EngineStatus, now: Timestamp) {
    of_providers(registry, status, now);
    of_sources(registry, status);
}

fn of_providers(registry: &mut Registry, status: &EngineStatus, now: Timestamp) {
    let [in_sync, owned, pending, parked, blocked, drift, paused, generation, doubtful] =
        std::array::from_fn(|_| Numbers::<ProviderLabels>::default());
    let [parked_age, pass_age, pass_took, success_age] =
        std::array::from_fn(|_| Numbers::<ProviderLabels>::default());
    for one in &status.providers {
        let labels = ProviderLabels { provider: one.name.to_string() };
        let set = |family: &Numbers<ProviderLabels>, number: usize| {
            family.get_or_create(&labels).set(approximately(number as u128));
        };
        set(&in_sync, one.in_sync.into());
        set(&owned, one.owned);
        set(&pending, one.pending);
        set(&parked, one.parked.as_ref().map_or(0, |parked| parked.count));
        set(&blocked, one.blocked + one.rejected.len());
        set(&drift, one.drift);
        set(&doubtful, one.doubtful);
        set(&paused, one.paused.is_some().into());
        generation.get_or_create(&labels).set(approximately(one.generation.into()));
        let age = one.parked.as_ref().map_or(Duration::ZERO, |parked| parked.age);
        parked_age.get_or_create(&labels).set(age.as_secs_f64());
        success_age.get_or_create(&labels).set(one.success_age.as_secs_f64());
        if let Some(last) = &one.last {
            pass_took.get_or_create(&labels).set(last.took.as_secs_f64());
            pass_age.get_or_create(&labels).set(now.duration_since(last.at).as_secs_f64().max(0.0));
        }
    }
    registry.register("provider_in_sync", "Whether what should be there is there", in_sync);
    registry.register("provider_owned", "Values on a server that are ours", owned);
    registry.register("provider_pending", "Names that shall change and have not", pending);
    registry.register("provider_parked", "Changes that a guard holds back", parked);
    let help = "How long changes have been held back";
    registry.register_with_unit("provider_parked_age", help, Unit::Seconds, parked_age);
    registry.register(
        "provider_blocked",
        "Names with a foreign value in the way, or that the server rejects",
        blocked,
    );
    registry.register("provider_drift", "Values that are not as we left them", drift);
    let help = "Zones that may hold something else than what is known of them";
    registry.register("provider_doubtful_zones", help, doubtful);
    registry.register("provider_paused", "Whether a person paused it", paused);
    registry.register("provider_generation", "The number of its newest plan", generation);
    registry.register_with_unit(
        "provider_pass_age",
        "How long ago it was looked at",
        Unit::Seconds,
        pass_age,
    );
    let help = "How long ago looking last succeeded, or was begun";
    registry.register_with_unit("provider_success_age", help, Unit::Seconds, success_age);
    registry.register_with_unit(
        "provider_pass_duration",
        "How long that took, the last time",
        Unit::Seconds,
        pass_took,
    );
}

fn of_sources(registry: &mut Registry, status: &EngineStatus) {
    let [workloads, absent, suspect, complete] = std::array::from_fn(|_| Numbers::<SourceLabels>::default());
    for one in &status.sources {
        let labels = SourceLabels { source: one.name.to_string() };
        workloads.get_or_create(&labels).set(approximately(one.workloads as u128));
        absent.get_or_create(&labels).set(approximately(one.absent as u128));
        suspect.get_or_create(&labels).set(f64::from(u8::from(one.suspect.is_some())));
        if let Some(age) = one.complete_age {
            complete.get_or_create(&labels).set(age.as_secs_f64());
        }
    }
    registry.register("source_workloads", "What a source sees", workloads);
    registry.register("source_absent", "What it saw and sees no longer", absent);
    registry.register("source_suspect", "Whether too much vanished at once to be believed", suspect);
    let help = "How long ago it last saw everything";
    registry.register_with_unit("source_complete_age", help, Unit::Seconds, complete);
}
