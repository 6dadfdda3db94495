//! The pass of an IPAM system: objects with marks, ownership per field.
//!
//! A pass takes inventory and Book as one snapshot, reads all objects, plans, and writes in waves: a unit is sent once the
//! units it needs were applied.

mod adopt;
mod read;
mod undo;
mod write;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use netstead_model::{Ident, IpamCapabilities, IpamObject, ObjectKey, Span, UnitOutcome};
use netstead_plan::{
    Inventory,
    ipam::{
        IpamDesired, IpamInput, IpamPlan, IpamSettings, IpamStep, IpamWorld, ObjectIntent, OwnedObject,
        OwnedObjects, ipam_desired, ipam_diff, record_object_intent, record_object_outcome,
    },
};
use netstead_store::Write;
use tokio::sync::oneshot;

pub(crate) use self::adopt::ObjectAdoption;
use crate::{
    AdoptionReport, EngineError, IpamSetup,
    engine_state::EngineState,
    fenced_store::FencedStore,
    keys::{self, Class},
    pause::Pause,
    provider_loop::{
        LoopHandle, LoopSetup, Pass, PassReport, Stopped, StoredProvider, Undo, Undoing, Waiting, Worker,
        blocking,
    },
};

/// The place of a late write: the whole system is read in every pass.
const PLACE: &str = "objects";

/// The running loop of an IPAM system.
pub(crate) type IpamHandle = LoopHandle<IpamPass>;

/// All that the passes of one IPAM system remember.
pub(crate) struct IpamPass {
    /// With the owner id that its marks carry.
    settings: Arc<IpamSettings>,
    can: Arc<IpamCapabilities>,
    owned: Arc<OwnedObjects>,
    /// Objects whose ownership in the store is not that here.
    dirty: BTreeSet<ObjectKey>,
    actual: Arc<Vec<IpamObject>>,
}

/// Readers of an IPAM loop see this beside what every loop publishes.
#[derive(Debug, Clone, Default)]
pub(crate) struct IpamView {
    pub(crate) owned: Arc<OwnedObjects>,
}

/// Requests that only an IPAM loop answers.
pub(crate) enum IpamRequest {
    Adopt {
        take: ObjectAdoption,
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

impl IpamHandle {
    pub(crate) fn longest_grace(&self) -> Span {
        self.setup.settings.grace.max(self.setup.settings.ended_grace)
    }

    /// Takes objects or fields over, or says which, and runs a pass.
    pub(crate) async fn request_adoption(
        &self,
        take: ObjectAdoption,
        dry: bool,
        by: &str,
    ) -> Result<AdoptionReport, EngineError> {
        self.ask(|done| IpamRequest::Adopt { take, dry, by: by.to_owned(), done }).await?
    }

    /// Takes something back whatever is paused, or says what that would be.
    pub(crate) async fn undo(&self, undo: Undo, dry: bool) -> Result<Undoing, EngineError> {
        self.ask(|done| IpamRequest::Undo { undo, dry, done }).await?
    }
}

/// Our objects on a provider, as the store has them.
pub(crate) async fn load_owned_objects(
    fenced_store: &FencedStore,
    provider: &Ident,
) -> Result<OwnedObjects, EngineError> {
    let prefix = Class::Ipam.key(keys::OWNED, &format!("{provider}/"));
    let mut owned = BTreeMap::new();
    for (key, object) in fenced_store.all::<OwnedObject>(&prefix).await? {
        let damaged = |error: netstead_model::ParseError| EngineError::Damaged {
            key: format!("{prefix}{key}"),
            reason: error.to_string(),
        };
        owned.insert(key.parse().map_err(damaged)?, object);
    }
    Ok(OwnedObjects(owned))
}

impl Pass for IpamPass {
    const CLASS: Class = Class::Ipam;
    type Setup = IpamSetup;
    type Plan = IpamPlan;
    type View = IpamView;
    type Ask = IpamRequest;
    type Intent = ObjectIntent;

    fn describe(setup: &IpamSetup) -> LoopSetup {
        LoopSetup {
            name: setup.name().clone(),
            group: None,
            mode: setup.settings.mode,
            interval: setup.interval,
            was: setup.was.clone(),
            kind: setup.provider.kind(),
            server: setup.provider.server(),
        }
    }

    async fn load(
        _shared: &Arc<EngineState>,
        setup: &IpamSetup,
        fenced_store: &FencedStore,
        stored: &mut StoredProvider,
    ) -> Result<Self, EngineError> {
        let owned = Arc::new(load_owned_objects(fenced_store, setup.name()).await?);
        let mut settings = setup.settings.clone();
        if !setup.fixed_owner {
            // The id its marks carry; a new provider has that of the installation, as it is by now.
            let owner = match stored.owner.take() {
                None => fenced_store.get(keys::OWNER).await?,
                owner => owner,
            };
            settings.owner = owner.unwrap_or(settings.owner);
        }
        stored.owner = Some(settings.owner.clone());
        let (settings, can) = (Arc::new(settings), Arc::new(setup.provider.capabilities()));
        Ok(Self { settings, can, owned, dirty: BTreeSet::new(), actual: Arc::default() })
    }

    fn publish(&self, view: &mut IpamView) {
        view.owned = self.owned.clone();
    }

    fn doubtful(&self) -> usize {
        0
    }

    /// The key of an object has the name of its source. Marks on the server keep the former name and are read as the new one.
    fn rename_source(&mut self, was: &Ident, name: &Ident) {
        let owned = Arc::make_mut(&mut self.owned);
        let old: Vec<ObjectKey> = owned.0.keys().filter(|key| key.source == *was).cloned().collect();
        for key in old {
            let Some(object) = owned.0.remove(&key) else { continue };
            let new = ObjectKey { source: name.clone(), ..key.clone() };
            owned.0.entry(new.clone()).or_insert(object);
            self.dirty.extend([key, new]);
        }
    }

    fn writes(&self, provider: &Ident) -> Vec<Write> {
        let write = |key: &ObjectKey| {
            let at = Class::Ipam.key(keys::OWNED, &format!("{provider}/{key}")).into_bytes();
            match self.owned.0.get(key) {
                Some(object) => Write::Put(at, keys::encode(object)),
                None => Write::Delete(at),
            }
        };
        self.dirty.iter().map(write).collect()
    }

    fn persisted(&mut self) {
        self.dirty.clear();
    }

    async fn plan(worker: &mut Worker<Self>, _report: &mut PassReport) -> Result<IpamPlan, Stopped> {
        // The system is read first: the form of objects may depend on what it holds.
        worker.read_objects().await?;
        let desired = worker.desired_objects(None).await?;
        worker.next_end = desired.next_end;
        worker.diff_objects(desired, false).await
    }

    fn paused_by(_worker: &Worker<Self>, _step: &IpamStep) -> Option<Pause> {
        None
    }

    fn record_intent(worker: &mut Worker<Self>, plan: &IpamPlan) -> Self::Intent {
        let now = worker.shared.now();
        let owned = Arc::make_mut(&mut worker.state.owned);
        let intent = record_object_intent(plan, owned, &mut worker.guard, now);
        worker.state.dirty.extend(intent.touched.iter().cloned());
        intent
    }

    async fn write(worker: &mut Worker<Self>, plan: &IpamPlan, report: &mut PassReport) -> Vec<UnitOutcome> {
        worker.write_objects(plan, report).await
    }

    fn record_outcome(
        worker: &mut Worker<Self>,
        plan: &IpamPlan,
        intent: &Self::Intent,
        outcomes: &[UnitOutcome],
    ) {
        let now = worker.shared.now();
        let (owned, guard) = (Arc::make_mut(&mut worker.state.owned), &mut worker.guard);
        let settings = &worker.state.settings;
        let touched = record_object_outcome(plan, intent, outcomes, owned, guard, settings, now);
        worker.state.dirty.extend(touched);
    }

    fn label(_worker: &Worker<Self>, step: &IpamStep) -> String {
        step.unit.key.kind.to_string()
    }

    async fn answer(worker: &mut Worker<Self>, ask: IpamRequest, waiting: &mut Waiting) {
        match ask {
            IpamRequest::Adopt { take, dry, by, done } => match worker.adopt_objects(&take, dry, &by).await {
                Ok(taken) if !dry => waiting.push(Box::new(|report| {
                    let _ = done.send(Ok(AdoptionReport { report: Some(report.clone()), ..taken }));
                })),
                answer => {
                    let _ = done.send(answer);
                }
            },
            IpamRequest::Undo { undo, dry, done } => match worker.undo(&undo, dry).await {
                Ok(undone) if !dry => waiting.push(Box::new(|_| {
                    let _ = done.send(Ok(undone));
                })),
                answer => {
                    let _ = done.send(answer);
                }
            },
        }
    }

    async fn close(setup: &IpamSetup) {
        setup.provider.close().await;
    }
}

impl Worker<IpamPass> {
    /// The objects that should exist: inventory and Book are read at one moment. Another inventory may be given.
    async fn desired_objects(&self, inventory: Option<Arc<Inventory>>) -> Result<IpamDesired, Stopped> {
        let claims = self.read_claims().await?;
        let inventory = inventory.unwrap_or_else(|| self.shared.inventory.borrow().inventory.clone());
        let (settings, owned, can) =
            (self.state.settings.clone(), self.state.owned.clone(), self.state.can.clone());
        let (now, provider, domains) =
            (self.shared.now(), self.setup.provider.clone(), self.shared.domains());
        blocking(move || {
            let shape = |subject: &_| provider.objects(subject);
            let (claims, can) = (claims.as_deref(), &*can);
            let world = IpamWorld { inventory: &inventory, claims, domains: &domains, can, shape: &shape };
            ipam_desired(&world, &settings, &owned, now)
        })
        .await
    }

    async fn diff_objects(&self, desired: IpamDesired, clean: bool) -> Result<IpamPlan, Stopped> {
        let (actual, owned, can) =
            (self.state.actual.clone(), self.state.owned.clone(), self.state.can.clone());
        let (guard, settings, now) = (self.guard.clone(), self.state.settings.clone(), self.shared.now());
        blocking(move || {
            let (desired, actual, owned, can) = (&desired, actual.as_slice(), &*owned, &*can);
            let (guard, settings) = (&guard, &*settings);
            ipam_diff(&IpamInput { desired, actual, can, owned, guard, settings, now, clean })
        })
        .await
    }
}
