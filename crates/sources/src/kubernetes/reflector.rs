//! [`Reflector`]: the objects of one kind, in one namespace or in all, kept up to date by a list and a watch.
//!
//! 1. Which version of the kind the server has is asked. A kind that is not there is asked for again later.
//! 2. The objects are listed in pages, as of one version of the whole list.
//! 3. Changes after that version are watched. A watch that ends goes on from the last version that was seen.
//! 4. A version that the server has forgotten (410) leads back to step 2, a kind that it does not have (404) to step 1.
//!
//! The view is complete only while a watch is open. In any other state everything that was known stays.

mod watching;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use netstead_model::{Clock, Scope, View};
use netstead_wire::kubernetes::{Cluster, KubernetesError, Listing, Page, Resource, Selection};
use tokio::{
    sync::{Notify, watch},
    time::sleep,
};
use tracing::{debug, info, warn};

use super::{
    discovery::{self, Discovered},
    kinds::{ObjectKind, definition::Definition},
    load_balancer::LoadBalancers,
    object::{Object, ObjectName, Stored},
    reporting::{ObjectStatus, Reporting},
    workload,
};

/// Objects in one page of a list.
const PAGE: u32 = 500;
/// How often a kind that is not there is looked for.
const LOOK_AGAIN: Duration = Duration::from_secs(15);
/// The pause after a failure: it doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The part that all reflectors of a source share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) cluster: Cluster,
    pub(super) clock: Arc<dyn Clock>,
    /// Another look is likely to see something new.
    pub(super) wake: Notify,
    /// Decides which labels and annotations are kept.
    pub(super) keep: Keep,
    /// Hears which objects changed.
    pub(super) reporting: Reporting,
    /// Gives Services addresses.
    pub(super) load_balancers: Option<LoadBalancers>,
}

/// Labels and annotations that are kept beside those of the dialects.
#[derive(Debug, Clone, Default)]
pub(super) struct Keep {
    /// Annotations that the filter looks at.
    pub(super) annotations: BTreeSet<String>,
    /// All labels: a template may look at any.
    pub(super) labels: bool,
}

#[derive(Debug)]
pub(super) struct Reflector {
    pub(super) kind: ObjectKind,
    pub(super) definition: Definition,
    pub(super) scope: Scope,
    selection: Selection,
    shared: Arc<Shared>,
    state: Mutex<State>,
    settled: watch::Sender<bool>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    condition: Condition,
    pub(super) objects: BTreeMap<ObjectName, Arc<Stored>>,
    /// How the server calls the kind, once it is known.
    pub(super) resource: Option<Resource>,
    /// The status of objects whose status is ours to write. A change of it is no change of the object.
    pub(super) statuses: BTreeMap<ObjectName, ObjectStatus>,
    /// The objects were listed once.
    synced: bool,
    /// The engine knows workloads of this kind from before.
    expected: bool,
    pub(super) session: u64,
    /// Objects whose workload may be another now.
    pub(super) dirty: Dirty,
    /// Objects whose end was seen.
    pub(super) ended: BTreeSet<ObjectName>,
    /// Objects that the server says are deleted, perhaps only because their definition is being removed.
    doubtful: BTreeSet<ObjectName>,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Condition {
    #[default]
    Starting,
    /// The cluster does not have the kind.
    Absent,
    Watching,
    /// Why nothing new is seen.
    Broken(String),
}

/// Objects to look at again.
#[derive(Debug, Default)]
pub(super) struct Dirty {
    pub(super) all: bool,
    pub(super) names: BTreeSet<ObjectName>,
}

impl Reflector {
    pub(super) fn new(
        definition: Definition,
        namespace: Option<&str>,
        labels: Option<String>,
        shared: Arc<Shared>,
    ) -> Self {
        let scope = match namespace {
            None => definition.word.clone(),
            Some(namespace) => format!("{} in {namespace}", definition.word),
        };
        Self {
            kind: definition.kind,
            definition,
            scope: scope.parse().unwrap_or_default(),
            selection: Selection { namespace: namespace.map(str::to_owned), labels },
            shared,
            state: Mutex::default(),
            settled: watch::channel(false).0,
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns once it is known whether the kind can be seen.
    pub(super) async fn settled(&self) {
        let _ = self.settled.subscribe().wait_for(|settled| *settled).await;
    }

    /// How much of the kind is seen; none if the cluster does not have it and never had.
    pub(super) fn view(&self) -> Option<View> {
        let state = self.state();
        let plural = self.definition.plural.as_str();
        match &state.condition {
            Condition::Starting => {
                Some(View::Failed { reason: format!("{plural} have not been listed yet") })
            }
            Condition::Absent if state.expected => Some(View::Partial { reason: gone(plural) }),
            Condition::Absent => None,
            Condition::Watching => Some(View::Complete),
            Condition::Broken(reason) if state.synced => Some(View::Partial { reason: reason.clone() }),
            Condition::Broken(reason) => Some(View::Failed { reason: reason.clone() }),
        }
    }

    /// Whether the cluster is known not to have the kind.
    pub(super) fn is_absent(&self) -> bool {
        self.state().condition == Condition::Absent
    }

    pub(super) fn is_watching(&self) -> bool {
        self.state().condition == Condition::Watching
    }

    /// The engine knows workloads of this kind.
    pub(super) fn expect(&self) {
        self.state().expected = true;
    }

    /// Goes on until the source is dropped.
    pub(super) async fn run(self: Arc<Self>) {
        let mut pause = FIRST_PAUSE;
        loop {
            match self.round(&mut pause).await {
                // Nothing is lost: the list begins anew.
                Ok(()) | Err(KubernetesError::Expired) => sleep(FIRST_PAUSE).await,
                Err(error) => {
                    self.fail(&error);
                    sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    /// From asking for the kind until the list must begin anew.
    async fn round(&self, pause: &mut Duration) -> Result<(), KubernetesError> {
        let resource = match self.discover().await? {
            Discovered::Served(resource) => resource,
            Discovered::Vanishing | Discovered::Missing => {
                self.absent();
                sleep(LOOK_AGAIN).await;
                return Ok(());
            }
        };
        self.state().resource = Some(resource.clone());
        let mut version = self.list(&resource).await?;
        self.follow(&resource, &mut version, pause).await
    }

    /// The version of the kind that the server has.
    async fn discover(&self) -> Result<Discovered, KubernetesError> {
        let wanted = &self.definition;
        let resource = |version: &str| Resource {
            group: wanted.group.clone(),
            version: version.to_owned(),
            plural: wanted.plural.clone(),
            kind: wanted.name.clone(),
            namespaced: wanted.namespaced,
        };
        if let (true, Some(version)) = (wanted.is_built_in(), wanted.versions.first()) {
            return Ok(Discovered::Served(resource(version)));
        }
        discovery::discover(&self.shared.cluster, wanted).await
    }

    /// Lists all objects, page by page, and returns the version of the list.
    async fn list(&self, resource: &Resource) -> Result<String, KubernetesError> {
        let mut fresh: BTreeMap<ObjectName, Arc<Stored>> = BTreeMap::new();
        let mut statuses: BTreeMap<ObjectName, ObjectStatus> = BTreeMap::new();
        let mut next: Option<String> = None;
        loop {
            let listing = Listing { limit: PAGE, next: next.as_deref() };
            let page: Page<Object> = self.shared.cluster.list(resource, &self.selection, &listing).await?;
            let state = self.state();
            for object in page.items {
                statuses.extend(self.status_of(&object));
                let stored = self.stored(object);
                // An object that did not change is kept once.
                let known = state.objects.get(&stored.name).filter(|known| ***known == stored);
                let stored = known.cloned().unwrap_or_else(|| Arc::new(stored));
                fresh.insert(stored.name.clone(), stored);
            }
            drop(state);
            if page.metadata.next.is_empty() {
                self.replace(fresh, statuses);
                return Ok(page.metadata.resource_version);
            }
            next = Some(page.metadata.next);
        }
    }

    /// The status of an object, if it is ours to write.
    fn status_of(&self, object: &Object) -> Option<(ObjectName, ObjectStatus)> {
        let balanced = self.kind == ObjectKind::Service
            && self.shared.load_balancers.is_some()
            && object.spec.get("loadBalancerClass").is_some();
        let version = &object.metadata.resource_version;
        (self.kind.is_record() || balanced)
            .then(|| (object.name(), ObjectStatus::of(&object.status, version)))
    }

    /// Takes out of an object the part that is kept.
    fn stored(&self, object: Object) -> Stored {
        let keep = &self.shared.keep;
        let body = self.definition.read(&object);
        let name = object.name();
        let mut metadata = object.metadata;
        metadata
            .annotations
            .retain(|key, value| super::annotations::is_read(key, value) || keep.annotations.contains(key));
        metadata.labels.retain(|key, _| keep.labels || super::annotations::is_label_read(key));
        Stored {
            name,
            uid: metadata.uid,
            generation: metadata.generation.filter(|_| self.kind.is_record()),
            created: metadata.creation_timestamp,
            labels: metadata.labels,
            annotations: metadata.annotations,
            body,
        }
    }

    /// Takes a list as the truth.
    fn replace(
        &self,
        fresh: BTreeMap<ObjectName, Arc<Stored>>,
        statuses: BTreeMap<ObjectName, ObjectStatus>,
    ) {
        let mut state = self.state();
        state.statuses = statuses;
        let State { objects, dirty, .. } = &mut *state;
        for (name, stored) in &fresh {
            if objects.get(name).is_none_or(|known| !Arc::ptr_eq(known, stored)) {
                self.note_generation(objects.get(name), stored);
                dirty.names.insert(name.clone());
            }
        }
        dirty.names.extend(objects.keys().filter(|name| !fresh.contains_key(*name)).cloned());
        state.objects = fresh;
        state.doubtful.clear();
        if state.synced {
            state.session = state.session.wrapping_add(1);
        }
        state.synced = true;
        drop(state);
        self.wake();
    }

    /// Says that another look is likely to see something new.
    fn wake(&self) {
        if let (ObjectKind::Service, Some(balancers)) = (self.kind, &self.shared.load_balancers) {
            balancers.note_change();
        }
        self.shared.wake.notify_one();
    }

    /// Says that an object whose status is ours to write is another now.
    fn note_generation(&self, before: Option<&Arc<Stored>>, now: &Stored) {
        if before.is_some_and(|before| before.generation != now.generation)
            && let Some(id) = workload::id(&self.definition, &now.name)
        {
            self.shared.reporting.changed(id, self.shared.clock.monotonic());
        }
    }

    fn fail(&self, error: &KubernetesError) {
        let plural = self.definition.plural.as_str();
        let reason = match error {
            KubernetesError::Forbidden(said) => {
                format!("{said}; give its role `list` and `watch` on {plural}")
            }
            KubernetesError::NotFound(_) if !self.definition.is_built_in() => gone(plural),
            error => format!("{plural}: {error}"),
        };
        self.set(Condition::Broken(reason));
    }

    fn absent(&self) {
        let plural = self.definition.plural.as_str();
        let known = self.state().synced;
        self.set(if known { Condition::Broken(gone(plural)) } else { Condition::Absent });
    }

    fn set(&self, condition: Condition) {
        let mut state = self.state();
        if state.condition == condition {
            return;
        }
        let was_broken = matches!(state.condition, Condition::Broken(_));
        match &condition {
            Condition::Broken(reason) => warn!(scope = %self.scope, reason, "Objects cannot be seen."),
            Condition::Watching if was_broken => {
                // Every grace starts again: what went on meanwhile is known by one list only.
                state.session = state.session.wrapping_add(1);
                info!(scope = %self.scope, "Objects are seen again.");
            }
            _ => debug!(scope = %self.scope, ?condition, "The state of a kind changed."),
        }
        state.condition = condition;
        drop(state);
        self.settled.send_replace(true);
        self.wake();
    }
}

fn gone(plural: &str) -> String {
    format!(
        "the cluster has no {plural} any more: their names stay until the kind is back, or `netstead clean` removes them"
    )
}
