//! The status of the engine, its sources, its providers and their zones.

use std::{sync::PoisonError, time::Duration};

use jiff::Timestamp;
use netstead_model::{Ident, Key, Name, View, Workload};
use netstead_plan::{Mode, Plan, Presence, Suspicion};

use crate::{dns_pass::ProviderHandle, engine_state::EngineState, pause::Pause, refusals::refusals};

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
    /// What the server will not have: zone, name, reason.
    pub rejected: Vec<(Name, Name, String)>,
    pub paused: Option<Pause>,
    pub error: Option<String>,
    /// Zones that may hold something else than what is known of them; they are read before anything else is planned there.
    pub doubtful: usize,
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
    pub(crate) reasons: Vec<(Ident, Key)>,
}

/// A workload and what is known about it.
#[derive(Debug, Clone)]
pub struct WorkloadView {
    pub workload: std::sync::Arc<Workload>,
    pub first: Timestamp,
    pub last: Timestamp,
    pub presence: Presence,
}

pub(crate) fn status(shared: &EngineState) -> EngineStatus {
    let now = shared.now();
    let handles: Vec<ProviderHandle> = shared.providers().values().cloned().collect();
    EngineStatus {
        epoch: shared.lead.epoch,
        deposed: shared.lead.is_deposed(),
        dry_run: shared.options.dry_run,
        time: now.millis,
        sources: sources(shared),
        providers: handles.iter().map(|handle| provider(shared, handle)).collect(),
        detached: shared.detached.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        pauses: shared.pauses.all(now),
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
        }
    };
    newest.inventory.sources().map(status).collect()
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
        paused: shared.pauses.of(handle.setup.name(), handle.setup.settings.group.as_ref(), now),
        doubtful: handle.doubtful(),
        last: seen.last,
        error: seen.error,
    }
}

pub(crate) fn workloads(shared: &EngineState) -> Vec<WorkloadView> {
    let newest = shared.inventory.borrow().clone();
    let mut refusals = refusals(shared);
    let entries = newest.inventory.sources().flat_map(|(_, state)| state.entries.values());
    entries
        .map(|entry| {
            let mut workload = entry.workload.clone();
            let mut troubles = shared.ledger_sync.troubles(&workload.source, &workload.id);
            if !refusals.is_empty() {
                let at = (workload.source.clone(), workload.id.clone());
                troubles.extend(refusals.remove(&at).into_iter().flatten());
            }
            if !troubles.is_empty() {
                std::sync::Arc::make_mut(&mut workload).why_not.extend(troubles);
            }
            let (first, last, presence) = (entry.first_at, entry.last_at, entry.presence.clone());
            WorkloadView { workload, first, last, presence }
        })
        .collect()
}
