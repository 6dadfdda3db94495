//! Sources, providers, records and workloads.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use netstead_client::types::{
    self, BudgetOutput, InterfaceOutput, ManualOutput, ParkedOutput, PassOutput, PauseOutput, ProviderOutput,
    RecordOutput, RejectionOutput, ScopeOutput, ScopeStanding, SourceKind, SourceOutput, SourceView,
    WorkloadOutput,
};
use netstead_engine::{
    DetachedStatus, EngineStatus, HeldBy, ManualRecord, PassReport, Pause, ProviderPlan, ProviderStatus,
    RecordState, RecordView, Scope, ScopeStatus, SourceStatus, WaitingSource, WorkloadView,
};
use netstead_model::{Content, Facts, Interface, Name, RequestBudget, Span, View};
use netstead_plan::{Mode, Presence, RetiredBy, Standing, Suspicion};

/// So many rejections are told one by one.
const MOST_REJECTIONS: usize = 10;

/// A count as JSON has it.
pub(crate) fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

pub(crate) fn mode(mode: Mode) -> types::Mode {
    match mode {
        Mode::Managed => types::Mode::Managed,
        Mode::Additive => types::Mode::Additive,
        Mode::CreateOnly => types::Mode::CreateOnly,
        Mode::Authoritative => types::Mode::Authoritative,
        Mode::Observe => types::Mode::Observe,
    }
}

pub(crate) fn source(status: &SourceStatus) -> SourceOutput {
    let (view, reason) = match &status.view {
        _ if status.begun.is_none() => (SourceView::None, None),
        View::Complete => (SourceView::Complete, None),
        View::Partial { reason } => (SourceView::Partial, Some(reason.clone())),
        View::Failed { reason } => (SourceView::Failed, Some(reason.clone())),
    };
    let suspect = status.suspect.map(suspect);
    let scopes = status.scopes.iter().map(scope).collect();
    SourceOutput {
        scopes,
        name: status.name.to_string(),
        kind: status.kind.map_or_else(SourceKind::detached, SourceKind::from),
        view,
        reason,
        begun: status.begun,
        workloads: count(status.workloads),
        suspect,
        waiting: status.waiting.map(waiting),
        detached: status.detached,
    }
}

fn suspect(suspicion: Suspicion) -> String {
    format!(
        "{} of {} vanished at once; it is believed once it says so again",
        suspicion.missing, suspicion.of
    )
}

fn scope(status: &ScopeStatus) -> ScopeOutput {
    let view = match &status.view {
        _ if status.begun.is_none() => SourceView::None,
        View::Complete => SourceView::Complete,
        View::Partial { .. } => SourceView::Partial,
        View::Failed { .. } => SourceView::Failed,
    };
    let standing = match status.standing {
        Standing::Listed => ScopeStanding::Listed,
        Standing::Unassigned => ScopeStanding::Unassigned,
        Standing::Retired { by: RetiredBy::Configuration, .. } => ScopeStanding::RetiredByConfiguration,
        Standing::Retired { by: RetiredBy::Platform, .. } => ScopeStanding::RetiredByPlatform,
    };
    ScopeOutput {
        name: status.name.to_string(),
        view,
        reason: status.view.reason().filter(|_| status.begun.is_some()).map(str::to_owned),
        begun: status.begun,
        workloads: count(status.workloads),
        absent: count(status.absent),
        standing,
        suspect: status.suspect.map(suspect),
    }
}

/// The state of a source's graces: one sentence without its full stop.
fn waiting(waiting: WaitingSource) -> String {
    let workloads = if waiting.workloads == 1 { "workload is" } else { "workloads are" };
    // As people count: in whole seconds, never too few.
    let next = Span::from_secs(waiting.next.as_millis().div_ceil(1000).try_into().unwrap_or(u64::MAX));
    let first = if waiting.workloads == 1 { "its names go" } else { "the first names go" };
    format!("{} {workloads} no longer there; {first} in {next} unless they come back", waiting.workloads)
}

/// All providers, those that are no longer configured last.
pub(crate) fn providers(status: &EngineStatus, now: Timestamp) -> Vec<ProviderOutput> {
    let configured = status.providers.iter().map(|one| provider(status, one, now));
    configured.chain(status.detached.iter().map(detached)).collect()
}

pub(crate) fn provider(status: &EngineStatus, one: &ProviderStatus, now: Timestamp) -> ProviderOutput {
    let of_it = |pause: &&Pause| match &pause.scope {
        Scope::All => true,
        Scope::Backend(_) => false,
        Scope::Provider(name) | Scope::Zone(name, _) => *name == one.name || one.group.as_ref() == Some(name),
    };
    let paused = status.pauses.iter().filter(of_it).map(|pause| self::pause(pause, status.time, now));
    ProviderOutput {
        name: one.name.to_string(),
        group: one.group.as_ref().map(ToString::to_string),
        kind: one.kind.into(),
        server: one.server.clone(),
        mode: if status.dry_run { types::Mode::Observe } else { mode(one.mode) },
        zones: one.zones.iter().map(|zone| zone.name.to_string()).collect(),
        owned: count(one.owned),
        generation: one.generation,
        pass: last_pass(one),
        in_sync: one.in_sync,
        pending: count(one.pending),
        parked: one.parked.as_ref().map(|parked| ParkedOutput {
            changes: count(parked.count),
            hash: parked.hash.clone(),
            since: now.checked_sub(parked.age).ok(),
        }),
        blocked: count(one.blocked),
        rejected: count(one.rejected.len() + one.rejected_objects.len()),
        rejections: rejections(one),
        rejected_objects: super::ipam::rejected(one),
        drift: count(one.drift),
        paused: paused.collect(),
        error: one.error.clone(),
        budget: one.budget.map(budget),
        detached: false,
        ipam: one.ipam,
    }
}

fn budget(one: RequestBudget) -> BudgetOutput {
    BudgetOutput {
        made: count(one.made),
        limit: count(one.limit),
        window_seconds: one.window.as_secs(),
        // Never less than it is.
        wait_seconds: one.wait.map(|wait| wait.as_millis().div_ceil(1000).try_into().unwrap_or(u64::MAX)),
    }
}

fn rejections(one: &ProviderStatus) -> Vec<RejectionOutput> {
    let rejection = |(zone, name, reason): &(Name, Name, String)| RejectionOutput {
        zone: zone.to_string(),
        name: name.to_string(),
        reason: reason.clone(),
    };
    one.rejected.iter().take(MOST_REJECTIONS).map(rejection).collect()
}

/// The newest pass of a provider.
pub(crate) fn last_pass(one: &ProviderStatus) -> Option<PassOutput> {
    one.last.as_ref().map(|last| PassOutput {
        provider: one.name.to_string(),
        at: last.at,
        took_ms: millis(last.took),
        outcome: last.outcome.clone(),
        ok: one.error.is_none(),
        paused: one.paused.is_some() && one.pending > 0,
    })
}

fn detached(one: &DetachedStatus) -> ProviderOutput {
    ProviderOutput {
        name: one.name.to_string(),
        group: None,
        kind: one.kind.as_str().into(),
        server: one.server.clone(),
        mode: types::Mode::Observe,
        zones: Vec::new(),
        owned: count(one.owned),
        generation: 0,
        pass: None,
        in_sync: true,
        pending: 0,
        parked: None,
        blocked: 0,
        rejected: 0,
        rejections: Vec::new(),
        rejected_objects: Vec::new(),
        drift: 0,
        paused: Vec::new(),
        error: None,
        budget: None,
        detached: true,
        ipam: one.ipam,
    }
}

/// The result of a pass that a caller asked for.
pub(crate) fn pass(report: &PassReport, at: Timestamp) -> PassOutput {
    let counts = [
        (report.applied, "changed"),
        (report.changed, "found otherwise than expected"),
        (report.rejected, "rejected"),
        (report.unknown, "not known whether changed"),
    ];
    let mut said: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if report.held > 0 {
        let why = report.held_by.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        said.push(format!("{} held back{why}", report.held));
    }
    said.extend(report.zone_errors.iter().map(|(zone, error)| format!("{zone} left out: {error}")));
    said.extend(
        report
            .plan
            .iter()
            .filter_map(ProviderPlan::parked)
            .map(|(hash, changes)| format!("{changes} parked, until `netstead apply {hash}`")),
    );
    let outcome = match &report.error {
        Some(error) => format!("failed: {error}"),
        None if said.is_empty() => "nothing to change".to_owned(),
        None => said.join(", "),
    };
    let ok = report.error.is_none() && report.zone_errors.is_empty() && report.rejected + report.unknown == 0;
    let paused = matches!(report.held_by, Some(HeldBy::Pause(_)));
    let provider = report.provider.to_string();
    PassOutput { provider, at, took_ms: millis(report.took), outcome, ok, paused }
}

fn millis(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

/// `time` is the engine's at `now`.
pub(crate) fn pause(pause: &Pause, time: u64, now: Timestamp) -> PauseOutput {
    let (provider, zone) = match &pause.scope {
        Scope::All | Scope::Backend(_) => (None, None),
        Scope::Provider(provider) => (Some(provider), None),
        Scope::Zone(provider, zone) => (Some(provider), Some(zone)),
    };
    let left = pause.until.map(|until| Duration::from_millis(until.saturating_sub(time)));
    PauseOutput {
        provider: provider.map(ToString::to_string),
        zone: zone.map(ToString::to_string),
        backend: match &pause.scope {
            Scope::Backend(backend) => Some(backend.to_string()),
            _ => None,
        },
        until: left.map(|left| super::ending(now, left)),
        reason: pause.reason.clone(),
        by: Some(pause.by.clone()),
    }
}

pub(crate) fn record(view: &RecordView) -> RecordOutput {
    RecordOutput {
        provider: view.provider.to_string(),
        zone: view.zone.as_ref().map(ToString::to_string).unwrap_or_default(),
        name: view.name.to_string(),
        kind: view.kind.into(),
        ttl: view.ttl.unwrap_or_default(),
        value: view.value.to_string(),
        state: record_state(view.state),
        reasons: view.reasons.clone(),
    }
}

fn record_state(state: RecordState) -> types::RecordState {
    match state {
        RecordState::Ok => types::RecordState::Ok,
        RecordState::Pending => types::RecordState::Pending,
        RecordState::Parked => types::RecordState::Parked,
        RecordState::Blocked => types::RecordState::Blocked,
        RecordState::Drift => types::RecordState::Drift,
        RecordState::Foreign => types::RecordState::Foreign,
        RecordState::Unknown => types::RecordState::Unread,
    }
}

pub(crate) fn workload(view: &WorkloadView) -> WorkloadOutput {
    let workload = &*view.workload;
    let seen = format!("last seen {:.0}", view.last);
    let state = match &view.presence {
        Presence::Present => "present".to_owned(),
        Presence::Absent(_) => format!("absent, {seen}"),
        Presence::Ended { .. } => format!("ended, {seen}"),
        Presence::Asked => "released".to_owned(),
    };
    let own = workload.interfaces.iter().flat_map(|interface| interface.addresses.iter().copied());
    let wished = workload.wishes.iter().flat_map(|wish| match &wish.content {
        Content::Addresses(addresses) => addresses.clone(),
        Content::Records { .. } => Vec::new(),
    });
    let mut addresses: Vec<_> = own.chain(wished).collect();
    addresses.sort_unstable();
    addresses.dedup();
    WorkloadOutput {
        source: workload.source.to_string(),
        id: workload.id.to_string(),
        kind: workload.kind.as_str().into(),
        name: workload.name.clone(),
        state,
        addresses: addresses.iter().map(ToString::to_string).collect(),
        names: view.names.iter().map(ToString::to_string).collect(),
        why_not: workload.why_not.clone(),
        problems: view.problems.clone(),
        scope: Some(view.scope.to_string()).filter(|scope| !scope.is_empty()),
        namespace: workload.namespace.clone(),
        created: workload.created,
        facts: facts(workload.facts()),
        hostname: workload.hostname.as_ref().map(ToString::to_string),
        tags: workload.tags.clone(),
        interfaces: workload.interfaces.iter().map(interface).collect(),
    }
}

fn interface(interface: &Interface) -> InterfaceOutput {
    let Interface { name, mac, vlan, addresses, .. } = interface;
    InterfaceOutput {
        name: name.clone(),
        mac: mac.map(|mac| mac.to_string()),
        vlan: *vlan,
        addresses: addresses.iter().map(ToString::to_string).collect(),
    }
}

fn facts(facts: &Facts) -> BTreeMap<String, String> {
    let Facts { node, cluster, cpus, memory, disk, status, comments } = facts;
    let number = |number: Option<u64>| number.map(|number| number.to_string());
    let all = [
        ("node", node.clone()),
        ("cluster", cluster.clone()),
        ("cpus", number(cpus.map(u64::from))),
        ("memory", number(*memory)),
        ("disk", number(*disk)),
        ("status", status.clone()),
        ("comments", comments.clone()),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

pub(crate) fn manual(record: &ManualRecord) -> ManualOutput {
    ManualOutput {
        name: record.name.to_string(),
        kind: record.kind.into(),
        values: record.values.iter().map(ToString::to_string).collect(),
        ttl: record.ttl,
        warnings: Vec::new(),
    }
}
