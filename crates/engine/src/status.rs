//! The status of the engine, its sources, its providers and their zones.

use std::{collections::BTreeSet, sync::PoisonError, time::Duration};

use jiff::Timestamp;
use netstead_model::{Ident, Key, Name, ObjectKey, RequestBudget, Scope, View, Workload};
use netstead_plan::{Mode, Plan, Presence, Standing, Suspicion, names_of_workload};

use crate::{
    dns_pass::ProviderHandle, engine_state::EngineState, ipam_pass::IpamHandle, pause::Pause,
    refusals::refusals,
};

/// How everything stands.
#[derive(Debug, Clone)]
pub struct EngineStatus {
    pub epoch: u64,
    /// Another process leads: nothing is written here.
    pub deposed: bool,
    pub dry_run: bool,
    /// Engine time in milliseconds, to which `since` and `until` refer.
    pub time: u64,
    pub sources: Vec<SourceStatus>,
    pub providers: Vec<ProviderStatus>,
    /// Providers that are no longer configured; what is ours there stays.
    pub detached: Vec<DetachedStatus>,
    pub pauses: Vec<Pause>,
    /// How many workloads ask for a name that they do not get.
    pub problems: usize,
}

#[derive(Debug, Clone)]
pub struct SourceStatus {
    pub name: Ident,
    /// None for a source that is no longer configured.
    pub kind: Option<&'static str>,
    pub view: View,
    /// When the newest report was begun; none before the first.
    pub begun: Option<Timestamp>,
    pub age: Option<Duration>,
    /// How long ago the newest Complete report came.
    pub complete_age: Option<Duration>,
    pub workloads: usize,
    /// Workloads that are no longer seen.
    pub absent: usize,
    pub suspect: Option<Suspicion>,
    /// Names of it are kept until a grace has passed.
    pub waiting: Option<WaitingSource>,
    pub detached: bool,
    /// The parts of a source that has parts.
    pub scopes: Vec<ScopeStatus>,
}

/// One part of a source.
#[derive(Debug, Clone)]
pub struct ScopeStatus {
    pub name: Scope,
    pub view: View,
    /// When what it shows was seen; none before the first report.
    pub begun: Option<Timestamp>,
    /// How long ago it was last seen completely.
    pub complete_age: Option<Duration>,
    pub workloads: usize,
    /// Workloads that are no longer seen.
    pub absent: usize,
    pub suspect: Option<Suspicion>,
    pub standing: Standing,
}

/// The workloads of a source that wait for a grace to pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitingSource {
    /// Workloads that are no longer seen, or ended.
    pub workloads: usize,
    /// How long it takes until the first of them may go.
    pub next: Duration,
}

#[derive(Debug, Clone)]
pub struct ProviderStatus {
    pub name: Ident,
    /// The group it belongs to.
    pub group: Option<Ident>,
    pub kind: &'static str,
    pub server: String,
    pub mode: Mode,
    pub zones: Vec<ZoneStatus>,
    /// How many values are ours.
    pub owned: usize,
    pub generation: u64,
    pub last: Option<LastPass>,
    /// How long ago a pass last ended without an error, or the loop began if none has.
    pub success_age: Duration,
    /// For how long the pass that runs now has been running.
    pub passing: Option<Duration>,
    pub in_sync: bool,
    /// Names that shall change and have not.
    pub pending: usize,
    pub parked: Option<ParkedStatus>,
    pub blocked: usize,
    pub drift: usize,
    /// Names that the server rejects: zone, name, reason.
    pub rejected: Vec<(Name, Name, String)>,
    /// Objects that an IPAM system rejects, with the reason.
    pub rejected_objects: Vec<(ObjectKey, String)>,
    /// It is an IPAM system: it has no zones, and its values are objects.
    pub ipam: bool,
    pub paused: Option<Pause>,
    pub error: Option<String>,
    /// The last pass could not read the server: the plan that is known is older than the error.
    pub unread: bool,
    /// Zones that may hold something else than what is known of them; they are read before anything else is planned there.
    pub doubtful: usize,
    /// The requests that may still be made, on a server that limits them.
    pub budget: Option<RequestBudget>,
}

#[derive(Debug, Clone)]
pub struct ZoneStatus {
    pub name: Name,
    pub serial: Option<u32>,
    /// How many record sets it has; none if it was not read.
    pub sets: Option<usize>,
    pub error: Option<String>,
}

#[derive(Debug, Clone)]
pub struct ParkedStatus {
    pub count: usize,
    pub hash: String,
    /// Engine time.
    pub since: u64,
    pub age: Duration,
}

#[derive(Debug, Clone)]
pub struct LastPass {
    pub at: Timestamp,
    pub took: Duration,
    pub outcome: String,
}

#[derive(Debug, Clone)]
pub struct DetachedStatus {
    pub name: Ident,
    pub kind: String,
    pub server: String,
    pub owned: usize,
    /// It is an IPAM system.
    pub ipam: bool,
    pub(crate) reasons: Vec<(Ident, Key)>,
}

/// A workload and what is known about it.
#[derive(Debug, Clone)]
pub struct WorkloadView {
    pub workload: std::sync::Arc<Workload>,
    /// The names that it asks for, and those that `[domain]` tables give its addresses.
    pub names: BTreeSet<Name>,
    /// The part of its source that it belongs to.
    pub scope: Scope,
    pub first: Timestamp,
    pub last: Timestamp,
    pub presence: Presence,
    /// Names that it asks for and does not get, one sentence each without its full stop; as of the last look.
    pub problems: Vec<String>,
}

pub(crate) fn status(shared: &EngineState) -> EngineStatus {
    let now = shared.now();
    let handles: Vec<ProviderHandle> = shared.providers().values().cloned().collect();
    let systems: Vec<IpamHandle> = shared.ipam().values().cloned().collect();
    EngineStatus {
        epoch: shared.lead.epoch,
        deposed: shared.lead.is_deposed(),
        dry_run: shared.options.dry_run,
        time: now.millis,
        sources: sources(shared),
        providers: handles
            .iter()
            .map(|handle| provider(shared, handle))
            .chain(systems.iter().map(|handle| ipam(shared, handle)))
            .collect(),
        detached: shared.detached.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        pauses: shared.pauses.all(now),
        problems: shared.name_problems.newest().len(),
    }
}

fn sources(shared: &EngineState) -> Vec<SourceStatus> {
    let (now, graces) = (shared.now(), shared.graces());
    let newest = shared.inventory.borrow().clone();
    let running = shared.sources();
    let status = |(name, state): (&Ident, &netstead_plan::SourceState)| {
        let present = state.entries.values().filter(|entry| entry.presence == Presence::Present).count();
        let reported = state.begun > Timestamp::MIN;
        SourceStatus {
            name: name.clone(),
            kind: running.get(name).map(|handle| handle.setup.source.kind()),
            view: state.view.clone(),
            begun: reported.then_some(state.begun),
            age: reported.then(|| now.since(state.last).into()),
            complete_age: state.last_complete.map(|at| now.since(at).into()),
            workloads: present,
            absent: state.entries.len() - present,
            suspect: state.suspect,
            waiting: state.waiting(&graces, now).map(|waiting| WaitingSource {
                workloads: waiting.workloads,
                next: Duration::from_millis(waiting.next.saturating_sub(now.millis)),
            }),
            detached: state.detached,
            scopes: scopes(state, now),
        }
    };
    newest.inventory.sources().map(status).collect()
}

/// The scopes of a source; none if it has no parts.
fn scopes(state: &netstead_plan::SourceState, now: netstead_plan::Now) -> Vec<ScopeStatus> {
    if state.scopes.keys().all(Scope::is_whole) {
        return Vec::new();
    }
    let status = |(name, scope): (&Scope, &netstead_plan::ScopeState)| ScopeStatus {
        name: name.clone(),
        view: scope.view.clone(),
        begun: (scope.begun > Timestamp::MIN).then_some(scope.begun),
        complete_age: scope.last_complete.map(|at| now.since(at).into()),
        workloads: scope.present(),
        absent: scope.workloads() - scope.present(),
        suspect: scope.suspect,
        standing: scope.standing,
    };
    state.scopes.iter().map(status).collect()
}

fn provider(shared: &EngineState, handle: &ProviderHandle) -> ProviderStatus {
    let now = shared.now();
    let seen = handle.snapshot.read().clone();
    let plan = seen.plan.as_deref();
    let parked = plan.and_then(|plan| plan.parked.as_ref()).map(|parked| ParkedStatus {
        count: parked.changes.len(),
        hash: parked.hash.to_string(),
        since: parked.since,
        age: now.since(parked.since).into(),
    });
    let count = |count: fn(&Plan) -> usize| plan.map(count).unwrap_or_default();
    let rejected =
        seen.rejected.iter().map(|((zone, name), reason)| (zone.clone(), name.clone(), reason.clone()));
    let clean = seen.error.is_none() && seen.rejected.is_empty() && parked.is_none();
    ProviderStatus {
        name: handle.setup.name().clone(),
        group: handle.setup.settings.group.clone(),
        kind: handle.setup.provider.kind(),
        server: handle.setup.provider.server(),
        mode: handle.setup.settings.mode,
        zones: (*seen.zones).clone(),
        owned: seen.owned.len(),
        generation: seen.guard.generation,
        success_age: shared.clock.monotonic().saturating_sub(seen.succeeded.unwrap_or_default()),
        passing: seen.passing.map(|begun| shared.clock.monotonic().saturating_sub(begun)),
        in_sync: clean && seen.last.is_some() && seen.pending == 0,
        pending: seen.pending,
        parked,
        blocked: count(|plan| plan.blocked.len()),
        drift: count(|plan| plan.drift.len()),
        rejected: rejected.collect(),
        rejected_objects: Vec::new(),
        ipam: false,
        paused: shared.pauses.of(handle.setup.name(), handle.setup.settings.group.as_ref(), now),
        doubtful: handle.doubtful(),
        budget: handle.setup.provider.budget(),
        last: seen.last,
        error: seen.error,
        unread: seen.unread,
    }
}

fn ipam(shared: &EngineState, handle: &IpamHandle) -> ProviderStatus {
    let now = shared.now();
    let seen = handle.snapshot.read().clone();
    let plan = seen.plan.as_deref();
    let parked = plan.and_then(|plan| plan.parked.as_ref()).map(|parked| ParkedStatus {
        count: parked.changes.len(),
        hash: parked.hash.to_string(),
        since: parked.since,
        age: now.since(parked.since).into(),
    });
    let rejected = seen.rejected.iter().map(|(key, reason)| (key.clone(), reason.clone()));
    let clean = seen.error.is_none() && seen.rejected.is_empty() && parked.is_none();
    ProviderStatus {
        name: handle.setup.name().clone(),
        group: None,
        kind: handle.setup.provider.kind(),
        server: handle.setup.provider.server(),
        mode: handle.setup.settings.mode,
        zones: Vec::new(),
        owned: seen.owned.0.len(),
        generation: seen.guard.generation,
        success_age: shared.clock.monotonic().saturating_sub(seen.succeeded.unwrap_or_default()),
        passing: seen.passing.map(|begun| shared.clock.monotonic().saturating_sub(begun)),
        in_sync: clean && seen.last.is_some() && seen.pending == 0,
        pending: seen.pending,
        parked,
        blocked: plan.map_or(0, |plan| plan.blocked.len()),
        drift: plan.map_or(0, |plan| plan.drift.len()),
        rejected: Vec::new(),
        rejected_objects: rejected.collect(),
        ipam: true,
        paused: shared.pauses.of(handle.setup.name(), None, now),
        doubtful: handle.doubtful(),
        budget: None,
        last: seen.last,
        error: seen.error,
        unread: seen.unread,
    }
}

pub(crate) fn workloads(shared: &EngineState) -> Vec<WorkloadView> {
    let (newest, domains) = (shared.inventory.borrow().clone(), shared.domains());
    let (mut refusals, problems) = (refusals(shared), shared.name_problems.newest());
    let sources = newest.inventory.sources();
    let entries = sources.flat_map(|(_, state)| state.entries.values().map(move |entry| (state, entry)));
    entries
        .map(|(state, entry)| {
            let mut workload = entry.workload.clone();
            let mut troubles = shared.ledger_sync.troubles(&workload.source, &workload.id);
            let mut lacks = Vec::new();
            if !refusals.is_empty() || !problems.is_empty() {
                let at = (workload.source.clone(), workload.id.clone());
                lacks = problems.get(&at).cloned().unwrap_or_default();
                troubles.extend(refusals.remove(&at).into_iter().flatten());
            }
            if !troubles.is_empty() {
                std::sync::Arc::make_mut(&mut workload).why_not.extend(troubles);
            }
            let (first, last, presence) = (entry.first_at, state.last_seen(entry), entry.presence.clone());
            let names = names_of_workload(&workload, &domains);
            WorkloadView {
                workload,
                names,
                scope: entry.scope.clone(),
                first,
                last,
                presence,
                problems: lacks,
            }
        })
        .collect()
}
