//! Views of the engine for a token that covers some names, and not all.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use netstead_client::types::PassOutput;
use netstead_engine::{
    AdoptionReport, Engine, EngineStatus, ParkedStatus, ProviderStatus, Scope, SourceStatus, WorkloadView,
};
use netstead_model::{Ident, Key, Name, NameSet, ObjectKey, View};
use netstead_plan::{Plan, Presence, ipam::IpamPlan};

use crate::{http::name_scope::NameScope, problem::Failure};

/// Replaces the text of an error that may name something out of scope.
const UNTOLD: &str = "a token without scopes is told why";

/// How things stand, as far as it is about names that the token covers. Sources and providers that have nothing to do with
/// them are left out, and so are texts that may name something else.
pub(super) fn status(engine: &Engine, scope: &NameScope) -> EngineStatus {
    let mut status = engine.status();
    let Some(names) = scope.names() else { return status };
    let owned = engine.count_owned(names);
    let plans: BTreeMap<Ident, Plan> = engine
        .plans()
        .into_iter()
        .map(|(name, plan)| (name, Arc::unwrap_or_clone(plan).only(|name| names.contains(name))))
        .collect();
    status.sources = sources(engine, &status.sources, names);
    status.pauses.retain(|pause| match &pause.scope {
        Scope::All | Scope::Provider(_) => true,
        Scope::Backend(_) => false,
        Scope::Zone(_, zone) => names.meets(zone),
    });
    status.detached.clear();
    status.problems = 0;
    let (systems, servers): (Vec<_>, Vec<_>) = status.providers.into_iter().partition(|one| one.ipam);
    let system_plans: BTreeMap<Ident, Arc<IpamPlan>> = if systems.iter().any(|one| one.parked.is_some()) {
        engine.ipam_plans().into_iter().collect()
    } else {
        BTreeMap::new()
    };
    let systems: Vec<ProviderStatus> = if system_plans.is_empty() {
        Vec::new()
    } else {
        let covered = CoveredWorkloads::of(engine, |name| names.contains(name));
        systems
            .into_iter()
            .filter_map(|one| system_plans.get(&one.name).and_then(|plan| system(one, plan, &covered)))
            .collect()
    };
    status.providers = servers
        .into_iter()
        .map(|one| {
            let (owned, plan) = (owned.get(&one.name).copied().unwrap_or_default(), plans.get(&one.name));
            provider(one, names, owned, plan)
        })
        .filter(|one| !one.zones.is_empty() || one.owned > 0)
        .collect();
    status.providers.extend(systems);
    status
}

/// An IPAM system on which the token may approve what is parked, as if it held nothing else. Any other one is not shown: its
/// objects are those of workloads, and they show more than names.
fn system(one: ProviderStatus, plan: &IpamPlan, covered: &CoveredWorkloads) -> Option<ProviderStatus> {
    let parked = plan.parked.as_ref()?;
    if one.parked.is_none() || !parked.changes.iter().all(|change| covered.has(&change.key)) {
        return None;
    }
    Some(ProviderStatus {
        in_sync: false,
        zones: Vec::new(),
        owned: parked.changes.len(),
        pending: 0,
        blocked: 0,
        drift: 0,
        rejected: Vec::new(),
        rejected_objects: Vec::new(),
        error: one.error.map(|_| UNTOLD.to_owned()),
        last: None,
        ..one
    })
}

/// Workloads of which the token covers every name that they ask for.
struct CoveredWorkloads(HashSet<(Ident, Key)>);

impl CoveredWorkloads {
    fn of(engine: &Engine, covers: impl Fn(&Name) -> bool) -> Self {
        let covered = |view: &WorkloadView| {
            let wishes = &view.workload.wishes;
            !wishes.is_empty() && wishes.iter().all(|wish| covers(&wish.name))
        };
        let covered = engine.workloads().into_iter().filter(covered);
        Self(covered.map(|view| (view.workload.source.clone(), view.workload.id.clone())).collect())
    }

    /// Whether the object is that of such a workload.
    fn has(&self, key: &ObjectKey) -> bool {
        self.0.contains(&(key.source.clone(), key.workload.clone()))
    }
}

/// The newest plan of each provider that is shown, without what is out of scope.
pub(super) fn plans(engine: &Engine, status: &EngineStatus, scope: &NameScope) -> Vec<(Ident, Plan)> {
    let shown = |name: &Ident| status.providers.iter().any(|one| one.name == *name);
    let plans = engine.plans().into_iter().filter(|(name, _)| shown(name));
    plans.map(|(name, plan)| (name, Arc::unwrap_or_clone(plan).only(|name| scope.covers(name)))).collect()
}

/// The same of each IPAM system that is shown.
pub(super) fn ipam_plans(
    engine: &Engine,
    status: &EngineStatus,
    scope: &NameScope,
) -> Vec<(Ident, IpamPlan)> {
    let shown = |name: &Ident| status.providers.iter().any(|one| one.name == *name);
    let plans = engine.ipam_plans().into_iter().filter(|(name, _)| shown(name));
    let plans = plans.map(|(name, plan)| (name, Arc::unwrap_or_clone(plan)));
    if scope.names().is_none() {
        return plans.collect();
    }
    let covered = CoveredWorkloads::of(engine, |name| scope.covers(name));
    plans.map(|(name, plan)| (name, plan.only(|key| covered.has(key)))).collect()
}

/// Refuses a provider that holds none of the names that the token covers. Whether there is one is not said.
pub(super) fn check_provider(engine: &Engine, scope: &NameScope, name: &Ident) -> Result<(), Failure> {
    let shown = || status(engine, scope).providers.iter().any(|one| one.name == *name);
    if scope.names().is_none() || shown() {
        return Ok(());
    }
    Err(scope.refuse(&format!("the provider `{name}`")))
}

/// Refuses parked changes of which some are out of scope.
pub(super) fn check_parked(engine: &Engine, scope: &NameScope, hash: &str) -> Result<(), Failure> {
    if scope.names().is_none() {
        return Ok(());
    }
    let (plans, systems) = (engine.plans(), engine.ipam_plans());
    let mut parked = plans
        .iter()
        .filter_map(|(_, plan)| plan.parked.as_ref().filter(|parked| parked.hash.to_string() == hash))
        .flat_map(|parked| &parked.changes)
        .peekable();
    let mut objects = systems
        .iter()
        .filter_map(|(_, plan)| plan.parked.as_ref().filter(|parked| parked.hash.to_string() == hash))
        .flat_map(|parked| &parked.changes)
        .peekable();
    let any = parked.peek().is_some() || objects.peek().is_some();
    // Objects are those of a workload, so the token must cover all names that the workload asks for. The engine keeps a workload that
    // is gone as long as an object of it is ours. Where it is not known nevertheless, as after `recover`, its names are not known either,
    // and only a token that covers every name may say that the objects go.
    let covered = objects.peek().is_some().then(|| CoveredWorkloads::of(engine, |name| scope.covers(name)));
    let covers = |key: &ObjectKey| covered.as_ref().is_some_and(|covered| covered.has(key));
    if any && parked.all(|change| scope.covers(&change.name)) && objects.all(|change| covers(&change.key)) {
        return Ok(());
    }
    Err(scope.refuse(&format!("all of what is parked as `{hash}`, if that is anything")))
}

/// Adopted values of the token's names, without the pass that followed: that pass is about all names of the provider.
pub(super) fn adopted(mut taken: Vec<AdoptionReport>, names: &NameSet) -> Vec<AdoptionReport> {
    for one in &mut taken {
        one.values.retain(|value| names.contains(&value.name));
        one.left.retain(|left| names.meets(&left.name));
        one.report = None;
        let only = |plan: Arc<Plan>| Arc::unwrap_or_clone(plan).only(|name| names.contains(name));
        one.plan = one.plan.take().map(|plan| Arc::new(only(plan)));
        one.error = one.error.take().map(|_| UNTOLD.to_owned());
    }
    taken
}

/// A pass as it is told: what it says of an error may name something out of scope.
pub(super) fn pass(pass: PassOutput) -> PassOutput {
    let outcome = if pass.ok { pass.outcome } else { format!("failed: {UNTOLD}") };
    PassOutput { outcome, ..pass }
}

/// Status of a provider as if it had these names alone.
fn provider(one: ProviderStatus, names: &NameSet, owned: usize, plan: Option<&Plan>) -> ProviderStatus {
    let met: Vec<_> = one.zones.iter().filter(|zone| names.meets(&zone.name)).cloned().collect();
    let rejected: Vec<(Name, Name, String)> =
        one.rejected.into_iter().filter(|(_, name, _)| names.contains(name)).collect();
    let parked = plan.and_then(|plan| plan.parked.as_ref()).map(|parked| parked.changes.len());
    let parked = one.parked.zip(parked).map(|(all, count)| ParkedStatus { count, ..all });
    let pending = if one.pending == 0 { 0 } else { plan.map_or(0, |plan| plan.steps.len()) };
    let error = met.iter().find_map(|zone| zone.error.clone());
    let error = error.or_else(|| one.error.map(|_| UNTOLD.to_owned()));
    let clean = error.is_none() && rejected.is_empty() && parked.is_none() && pending == 0;
    ProviderStatus {
        in_sync: one.in_sync || (clean && one.last.is_some()),
        zones: met,
        owned,
        pending,
        parked,
        blocked: plan.map_or(0, |plan| plan.blocked.len()),
        drift: plan.map_or(0, |plan| plan.drift.len()),
        rejected,
        error,
        last: None,
        ..one
    }
}

/// The sources that ask for names of the set, with how many workloads of theirs do.
fn sources(engine: &Engine, sources: &[SourceStatus], names: &NameSet) -> Vec<SourceStatus> {
    let mut counts: BTreeMap<Ident, (usize, usize)> = BTreeMap::new();
    for view in engine.workloads() {
        if view.workload.wishes.iter().any(|wish| names.contains(&wish.name)) {
            let slot = counts.entry(view.workload.source.clone()).or_default();
            if view.presence == Presence::Present { slot.0 += 1 } else { slot.1 += 1 }
        }
    }
    let shown = sources.iter().filter_map(|one| Some((one, counts.get(&one.name)?)));
    shown
        .map(|(one, (workloads, absent))| SourceStatus {
            workloads: *workloads,
            absent: *absent,
            suspect: None,
            scopes: Vec::new(),
            view: match &one.view {
                View::Complete => View::Complete,
                View::Partial { .. } => View::Partial { reason: UNTOLD.to_owned() },
                View::Failed { .. } => View::Failed { reason: UNTOLD.to_owned() },
            },
            ..one.clone()
        })
        .collect()
}
