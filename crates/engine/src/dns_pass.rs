//! The pass of a DNS server: zones, serials, marks, fences, late values.
//!
//! - `zone_cache`, `names_to_read`: reading. `write`: writing. `persist`: the store.
//! - `late_writes`, `fence_catch_up`: writes that arrive late, and fences.
//! - `adopt`, `undo`, `what_if`: what operators ask for. `probe`: reads for the doctor.

mod adopt;
mod fence_catch_up;
mod late_writes;
mod names_to_read;
mod persist;
mod probe;
mod undo;
mod what_if;
mod write;
mod zone_cache;

use std::{
    collections::{BTreeSet, HashSet},
    sync::{Arc, OnceLock},
};

use netstead_model::{Ident, Name, Span, UnitOutcome};
use netstead_plan::{
    Case, Desired, Input, Intent, Owned, Plan, Settings, Step, desired, diff, record_intent, record_outcome,
};
use netstead_store::Write;
use tokio::sync::oneshot;

pub use self::adopt::{AdoptedObject, AdoptedValue, Adoption, AdoptionReport, LeftValue};
use self::{late_writes::RecentlyRemoved, zone_cache::ZoneCache};
pub(crate) use self::{persist::load_owned, what_if::Overrides};
use crate::{
    EngineError, ProviderSetup,
    engine_state::EngineState,
    fenced_store::FencedStore,
    history::Change,
    keys::Class,
    metrics,
    pause::Pause,
    provider_loop::{
        LoopHandle, LoopSetup, Pass, PassReport, Snapshot, Stopped, StoredProvider, Undo, Undoing, Waiting,
        Worker, blocking,
    },
    records::PlanIndex,
    status::ZoneStatus,
};

/// The running loop of a DNS server.
pub(crate) type ProviderHandle = LoopHandle<DnsPass>;
pub(crate) type ProviderSnapshot = Snapshot<DnsPass>;

/// All that the passes of one DNS server remember.
pub(crate) struct DnsPass {
    settings: Arc<Settings>,
    owned: Arc<Owned>,
    desired: Arc<Desired>,
    /// Names whose values in the store are not those here.
    dirty: BTreeSet<Name>,
    zone_cache: ZoneCache,
    recently_removed: RecentlyRemoved,
    /// Zones that took a write of ours since this leader began.
    written: BTreeSet<Name>,
}

/// Readers of a DNS server's loop see this beside what every loop publishes.
#[derive(Debug, Clone, Default)]
pub(crate) struct DnsView {
    pub(crate) owned: Arc<Owned>,
    pub(crate) desired: Arc<Desired>,
    /// Sorted by name.
    pub(crate) zones: Arc<Vec<ZoneStatus>>,
    /// The index of the plan by name: built when first asked for, and again after every change.
    pub(crate) plan_index: Arc<OnceLock<Arc<PlanIndex>>>,
}

/// Requests that only a DNS server's loop answers.
pub(crate) enum DnsRequest {
    /// Asks for the input of a what-if plan.
    WhatIf(Box<Overrides>, oneshot::Sender<Result<Case, String>>),
    Adopt {
        take: Adoption,
        dry: bool,
        by: String,
        done: oneshot::Sender<Result<AdoptionReport, EngineError>>,
    },
    Undo {
        undo: Undo,
        dry: bool,
        done: oneshot::Sender<Result<Undoing, EngineError>>,
    },
}

impl ProviderHandle {
    pub(crate) fn longest_grace(&self) -> Span {
        self.setup.settings.grace.max(self.setup.settings.ended_grace)
    }

    /// Takes values over, or says which, and runs a pass.
    pub(crate) async fn request_adoption(
        &self,
        take: Adoption,
        dry: bool,
        by: &str,
    ) -> Result<AdoptionReport, EngineError> {
        self.ask(|done| DnsRequest::Adopt { take, dry, by: by.to_owned(), done }).await?
    }

    /// Takes something back whatever is paused, or says what that would be.
    pub(crate) async fn undo(&self, undo: Undo, dry: bool) -> Result<Undoing, EngineError> {
        self.ask(|done| DnsRequest::Undo { undo, dry, done }).await?
    }
}

impl Pass for DnsPass {
    const CLASS: Class = Class::Dns;
    type Setup = ProviderSetup;
    type Plan = Plan;
    type View = DnsView;
    type Ask = DnsRequest;
    type Intent = Intent;

    fn describe(setup: &ProviderSetup) -> LoopSetup {
        LoopSetup {
            name: setup.name().clone(),
            group: setup.settings.group.clone(),
            mode: setup.settings.mode,
            interval: setup.interval,
            was: setup.was.clone(),
            kind: setup.provider.kind(),
            server: setup.provider.server(),
        }
    }

    async fn load(
        shared: &Arc<EngineState>,
        setup: &ProviderSetup,
        fenced_store: &FencedStore,
        stored: &mut StoredProvider,
    ) -> Result<Self, EngineError> {
        persist::load(shared, setup, fenced_store, stored).await
    }

    fn publish(&self, view: &mut DnsView) {
        (view.owned, view.desired) = (self.owned.clone(), self.desired.clone());
    }

    fn snapshot_changed(view: &mut DnsView) {
        view.plan_index = Arc::default();
    }

    fn doubtful(&self) -> usize {
        self.zone_cache.doubtful()
    }

    fn rename_source(&mut self, was: &Ident, name: &Ident) {
        if self.owned.workloads().any(|(source, _)| source == was) {
            self.dirty.extend(Arc::make_mut(&mut self.owned).rename_source(was, name));
        }
    }

    fn writes(&self, provider: &Ident) -> Vec<Write> {
        self.store_writes(provider)
    }

    fn persisted(&mut self) {
        self.dirty.clear();
        self.recently_removed.mark_persisted();
    }

    async fn plan(worker: &mut Worker<Self>, report: &mut PassReport) -> Result<Plan, Stopped> {
        let inventory = worker.shared.inventory.borrow().inventory.clone();
        let zones = worker.zone_tops();
        let mut wanted = worker.desired(inventory.clone()).await?;
        let doubted;
        (report.zone_errors, doubted) = match worker.refresh_zones(&wanted).await {
            Ok(read) => read,
            Err(error) => {
                // What should be there is known, and shown, all the same.
                worker.state.desired = Arc::new(wanted);
                return Err(error.into());
            }
        };
        if worker.reclaim_late_values(&doubted).await || worker.zone_tops() != zones {
            wanted = worker.desired(inventory).await?;
        }
        worker.next_end = wanted.next_end();
        let (mut plan, wanted) = worker.diff(wanted).await?;
        worker.leave_out_ignored(&mut plan, report.zone_errors.is_empty()).await;
        worker.state.desired = Arc::new(wanted);
        worker.send_new_drift(&plan);
        Ok(plan)
    }

    fn paused_by(worker: &Worker<Self>, step: &Step) -> Option<Pause> {
        let (shared, about) = (&worker.shared, &worker.about);
        shared.pauses.of_zone(&about.name, about.group.as_ref(), &step.zone, shared.now())
    }

    fn record_intent(worker: &mut Worker<Self>, plan: &Plan) -> Intent {
        let now = worker.shared.now();
        worker.remember_forgotten(plan);
        let owned = Arc::make_mut(&mut worker.state.owned);
        let intent = record_intent(plan, owned, &mut worker.guard, now);
        worker.state.dirty.extend(intent.touched.iter().cloned());
        intent
    }

    async fn write(worker: &mut Worker<Self>, plan: &Plan, report: &mut PassReport) -> Vec<UnitOutcome> {
        worker.write_plan(plan, report).await
    }

    fn record_outcome(worker: &mut Worker<Self>, plan: &Plan, intent: &Intent, outcomes: &[UnitOutcome]) {
        worker.remember_removed(plan, outcomes);
        let now = worker.shared.now();
        let (state, guard) = (&mut worker.state, &mut worker.guard);
        let owned = Arc::make_mut(&mut state.owned);
        state.dirty.extend(record_outcome(plan, intent, outcomes, owned, guard, &state.settings, now));
    }

    fn label(worker: &Worker<Self>, step: &Step) -> String {
        let domains = worker.shared.domains();
        metrics::zone_label(&worker.setup, |zone| write::named(&domains, zone), &step.zone)
    }

    async fn answer(worker: &mut Worker<Self>, ask: DnsRequest, waiting: &mut Waiting) {
        match ask {
            DnsRequest::WhatIf(world, done) => {
                let _ = done.send(worker.assemble_case(*world).await);
            }
            DnsRequest::Adopt { take, dry, by, done } => match worker.adopt_values(&take, dry, &by).await {
                Ok(taken) if !dry => waiting.push(Box::new(|report| {
                    let _ = done.send(Ok(AdoptionReport { report: Some(report.clone()), ..taken }));
                })),
                answer => {
                    let _ = done.send(answer);
                }
            },
            DnsRequest::Undo { undo, dry, done } => match worker.undo(&undo, dry).await {
                Ok(undone) if !dry => waiting.push(Box::new(|_| {
                    let _ = done.send(Ok(undone));
                })),
                answer => {
                    let _ = done.send(answer);
                }
            },
        }
    }

    async fn close(setup: &ProviderSetup) {
        setup.provider.close().await;
    }
}

impl Worker<DnsPass> {
    /// The names that are the top of a zone, as far as the zones are known.
    fn zone_tops(&self) -> BTreeSet<Name> {
        self.state.zone_cache.actual.zone_tops(&self.state.settings)
    }

    pub(super) async fn desired(&self, inventory: Arc<netstead_plan::Inventory>) -> Result<Desired, Stopped> {
        let (settings, domains, zones) =
            (self.state.settings.clone(), self.shared.domains(), self.zone_tops());
        let (owned, now) = (self.state.owned.clone(), self.shared.now());
        let provider = self.setup.provider.clone();
        let work = move || {
            let mut wanted = desired(&inventory, &settings, &domains, &zones, &owned, now);
            let can = provider.capabilities();
            wanted.adjust(|set| provider.adjust(set, &can));
            wanted.refuse(&settings.provider, &owned, |name, data| provider.cannot_hold(name, data));
            wanted
        };
        blocking(work).await
    }

    pub(super) async fn diff(&self, desired: Desired) -> Result<(Plan, Desired), Stopped> {
        let (settings, actual, owned) =
            (self.state.settings.clone(), self.state.zone_cache.actual.clone(), self.state.owned.clone());
        let (guard, now) = (self.guard.clone(), self.shared.now());
        let work = move || {
            let (actual, owned, guard, settings) = (&*actual, &*owned, &guard, &*settings);
            let plan = diff(&Input { desired: &desired, actual, owned, guard, settings, now, clean: false });
            (plan, desired)
        };
        blocking(work).await
    }

    /// Leaves out the drift that a person ignores. What a pass that read everything does not find is ignored no longer.
    async fn leave_out_ignored(&self, plan: &mut Plan, is_complete: bool) {
        let (ignored, name) = (&self.shared.ignored, self.name());
        if is_complete && let Err(error) = ignored.end_missing(name, &plan.drift).await {
            tracing::debug!(provider = %name, %error, "Ignored drift that is over stays in the store for now.");
        }
        plan.drift.retain(|drift| !ignored.covers(name, drift));
    }

    /// Sends the drift that the plan before did not have.
    pub(super) fn send_new_drift(&self, plan: &Plan) {
        let before = self.snapshot.read().plan.clone();
        let known: HashSet<_> =
            before.iter().flat_map(|plan| &plan.drift).map(|one| (one.kind, &one.name, &one.value)).collect();
        let at = self.shared.clock.wall();
        let news = plan.drift.iter().filter(|one| !known.contains(&(one.kind, &one.name, &one.value)));
        self.shared.history.send(news.map(|one| Change::of_drift(self.name(), one, at)).collect());
    }
}
