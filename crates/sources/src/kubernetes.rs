//! Objects of one Kubernetes cluster that ask for names.
//!
//! ```text
//!  API server ── list, watch ──► Reflector: Stored objects of one kind      reflector.rs, object.rs
//!                                    │ those that changed
//!                                    ▼
//!  kinds/*.rs: names and targets + annotations.rs ──► Workload              workload.rs
//!                                    │ those that differ
//!                                    ▼
//!                                Report: changes of each scope              publication.rs
//! ```
//!
//! Each kind is a scope: one that is forbidden, has vanished or cannot be reached keeps what it had and disturbs no other. Some
//! kinds ask for no names but are needed by others: Gateways by routes, EndpointSlices by headless services, nodes by
//! services that are reached at every node. The last two are read only once something needs them.

mod annotations;
mod claims;
mod diagnose;
mod kinds;
mod object;
mod publication;
mod reflector;
mod selector;
mod settings;
mod surroundings;
mod template;
mod workload;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use futures::future::join_all;
use netstead_model::{Diagnosis, Ident, Key, Report, Roster, Scope, ScopeReport, Source, View, Workload};
use netstead_settings::BuildContext;
use netstead_wire::kubernetes::Cluster;
use tokio::{sync::Notify, task::JoinHandle, time::timeout};

pub use self::{
    claims::Claims,
    kinds::ObjectKind,
    selector::AnnotationSelector,
    settings::{KIND, KubernetesSettings},
    template::NameTemplate,
};
use self::{
    kinds::Body,
    object::{ObjectName, Stored},
    publication::Publication,
    reflector::{Keep, Reflector, Shared},
    surroundings::Surroundings,
};
use crate::dialects::{Dialect, Reader};

/// How long a look waits for the first lists.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often it is asked whether the API server answers at all.
const PROBE_EVERY: Duration = Duration::from_secs(20);
const PROBE_PATIENCE: Duration = Duration::from_secs(10);

/// One cluster.
#[derive(Debug)]
pub struct Kubernetes {
    name: Ident,
    settings: KubernetesSettings,
    reader: Reader,
    shared: Arc<Shared>,
    state: Mutex<State>,
    /// One look at a time.
    looking: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    /// Empty until the first look.
    reflectors: Vec<Arc<Reflector>>,
    running: Vec<JoinHandle<()>>,
    published: BTreeMap<Scope, Publication>,
    probe: Probe,
    /// Kinds that others depend on, and that could be seen at the last look.
    available: BTreeSet<ObjectKind>,
    /// Kinds that some object depends on.
    needed: BTreeSet<ObjectKind>,
}

/// The kinds that others depend on.
const HELPERS: [ObjectKind; 3] = [ObjectKind::Gateway, ObjectKind::EndpointSlice, ObjectKind::Node];

/// Whether the API server answers.
#[derive(Debug, Default)]
struct Probe {
    at: Option<Duration>,
    failed: Option<String>,
}

impl Kubernetes {
    fn new(settings: KubernetesSettings, context: &BuildContext) -> Self {
        let cluster =
            Cluster::new(settings.access.clone(), Arc::clone(&context.calls), Arc::clone(&context.clock));
        let filter = settings.annotation_filter.as_ref();
        let mut keep =
            Keep { annotations: filter.map(|filter| filter.keys()).unwrap_or_default(), labels: false };
        if let Some(template) = &settings.template {
            keep.annotations.extend(template.annotations().cloned());
            keep.labels = template.needs_labels();
        }
        let shared = Shared { cluster, clock: Arc::clone(&context.clock), wake: Notify::new(), keep };
        Self {
            name: context.name.clone(),
            settings,
            reader: Reader::new([Dialect::Netstead, Dialect::Dnsweaver, Dialect::ExternalDns]),
            shared: Arc::new(shared),
            state: Mutex::default(),
            looking: tokio::sync::Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reflectors(&self) -> Vec<Arc<Reflector>> {
        self.state().reflectors.clone()
    }

    /// Starts to read the kinds that are wanted, once.
    fn start(&self) {
        if !self.state().reflectors.is_empty() {
            return;
        }
        let kinds = self.settings.wanted_kinds();
        let routes = kinds.iter().any(|kind| kind.is_route());
        for kind in kinds.into_iter().chain(routes.then_some(ObjectKind::Gateway)) {
            self.start_kind(kind);
        }
    }

    /// Starts to read a kind, unless it is read.
    fn start_kind(&self, kind: ObjectKind) {
        let mut state = self.state();
        if state.reflectors.iter().any(|reflector| reflector.kind == kind) {
            return;
        }
        let mut namespaces: BTreeSet<&str> = self.settings.namespaces.iter().map(String::as_str).collect();
        if kind == ObjectKind::Gateway {
            namespaces.extend(self.settings.gateway_namespaces.iter().map(String::as_str));
        }
        let mut places: Vec<Option<&str>> = namespaces.into_iter().map(Some).collect();
        if places.is_empty() || !kind.served().namespaced {
            places = vec![None];
        }
        let helps = self.is_helper(kind);
        for namespace in places {
            // A label is wanted of objects that ask for names, not of those that they need.
            let labels = self.settings.label_selector.clone().filter(|_| !helps);
            let reflector = Arc::new(Reflector::new(kind, namespace, labels, Arc::clone(&self.shared)));
            state.running.push(tokio::spawn(Arc::clone(&reflector).run()));
            state.reflectors.push(reflector);
        }
    }

    /// Whether a kind is read for others only.
    fn is_helper(&self, kind: ObjectKind) -> bool {
        !self.settings.wanted_kinds().contains(&kind)
    }

    /// Starts to read what objects need that came meanwhile. Returns whether there was something.
    fn start_needed(&self) -> bool {
        let (mut endpoints, mut nodes) = (false, false);
        for reflector in self.reflectors() {
            if !matches!(reflector.kind, ObjectKind::Service | ObjectKind::Pod) {
                continue;
            }
            let state = reflector.state();
            for object in state.objects.values() {
                match &object.body {
                    Body::Service(service) => {
                        endpoints |= service.needs_endpoints(object);
                        nodes |= service.needs_nodes(object);
                    }
                    Body::Pod(_) => nodes |= !object.annotations.is_empty(),
                    _ => {}
                }
            }
        }
        let known: BTreeSet<ObjectKind> = self.reflectors().iter().map(|reflector| reflector.kind).collect();
        let needed = [(ObjectKind::EndpointSlice, endpoints), (ObjectKind::Node, nodes)];
        let needed: BTreeSet<ObjectKind> =
            needed.into_iter().filter(|(_, needed)| *needed).map(|(kind, _)| kind).collect();
        let fresh: Vec<ObjectKind> = needed.difference(&known).copied().collect();
        self.state().needed = needed;
        for kind in &fresh {
            self.start_kind(*kind);
        }
        !fresh.is_empty()
    }

    /// Waits until each kind was listed, or cannot be.
    async fn settle(&self) {
        let all = || async {
            let reflectors = self.reflectors();
            join_all(reflectors.iter().map(|reflector| reflector.settled())).await;
        };
        let _ = timeout(PATIENCE, async {
            all().await;
            if self.start_needed() {
                all().await;
            }
        })
        .await;
    }

    /// Asks now and then whether the server answers: a connection may be dead without a sign.
    async fn probe(&self) -> Option<String> {
        let now = self.shared.clock.monotonic();
        let due = self.state().probe.at.is_none_or(|at| now.saturating_sub(at) >= PROBE_EVERY);
        if due {
            let asked = timeout(PROBE_PATIENCE, self.shared.cluster.version()).await;
            let failed = match asked {
                Ok(Ok(_)) => None,
                Ok(Err(error)) => Some(error.to_string()),
                Err(_) => {
                    Some(format!("the API server does not answer within {} s", PROBE_PATIENCE.as_secs()))
                }
            };
            self.state().probe = Probe { at: failed.is_none().then_some(now), failed };
        }
        self.state().probe.failed.clone()
    }

    /// The objects that others depend on, as far as they can be seen.
    fn surroundings(
        &self,
        reflectors: &[Arc<Reflector>],
        available: &BTreeSet<ObjectKind>,
    ) -> Surroundings<'_> {
        let of = |kind: ObjectKind| -> Option<Vec<Arc<Stored>>> {
            let mut objects = Vec::new();
            for one in reflectors.iter().filter(|one| one.kind == kind) {
                objects.extend(one.state().objects.values().cloned());
            }
            available.contains(&kind).then_some(objects)
        };
        let gateways = of(ObjectKind::Gateway)
            .map(|all| all.into_iter().map(|stored| (stored.name.clone(), stored)).collect());
        let nodes = of(ObjectKind::Node)
            .map(|all| all.into_iter().map(|stored| (stored.name.name.clone(), stored)).collect());
        let slices = of(ObjectKind::EndpointSlice).map(|all| {
            let mut by_service: BTreeMap<ObjectName, Vec<Arc<Stored>>> = BTreeMap::new();
            for stored in all {
                by_service.entry(service_of(&stored)).or_default().push(stored);
            }
            by_service
        });
        Surroundings {
            source: &self.name,
            settings: &self.settings,
            reader: &self.reader,
            gateways,
            slices,
            nodes,
        }
    }

    /// Marks the objects whose workload depends on something that changed, or that can be seen again. Returns the kinds that
    /// can be seen.
    fn spread_changes(&self, reflectors: &[Arc<Reflector>]) -> BTreeSet<ObjectKind> {
        let available: BTreeSet<ObjectKind> =
            HELPERS.into_iter().filter(|kind| is_seen(*kind, reflectors)).collect();
        let before = std::mem::replace(&mut self.state().available, available.clone());
        let back = |kind: ObjectKind| available.contains(&kind) && !before.contains(&kind);
        let mut routes = back(ObjectKind::Gateway);
        let mut all_services = back(ObjectKind::Node) || back(ObjectKind::EndpointSlice);
        let mut services = BTreeSet::new();
        for reflector in reflectors {
            let mut state = reflector.state();
            let objects = &state.objects;
            match reflector.kind {
                ObjectKind::Gateway => routes |= !state.dirty.names.is_empty() || state.dirty.all,
                ObjectKind::Node => all_services |= !state.dirty.names.is_empty() || state.dirty.all,
                ObjectKind::EndpointSlice => {
                    all_services |= state.dirty.all;
                    for name in &state.dirty.names {
                        match objects.get(name) {
                            Some(stored) => drop(services.insert(service_of(stored))),
                            // A slice that is gone does not say whose it was.
                            None => all_services = true,
                        }
                    }
                }
                _ => continue,
            }
            if self.is_helper(reflector.kind) {
                state.dirty = reflector::Dirty::default();
                state.ended.clear();
            }
        }
        for reflector in reflectors {
            let mut state = reflector.state();
            match reflector.kind {
                ObjectKind::Service | ObjectKind::Pod if all_services => state.dirty.all = true,
                ObjectKind::Service => {
                    let here: Vec<ObjectName> =
                        services.iter().filter(|name| state.objects.contains_key(*name)).cloned().collect();
                    state.dirty.names.extend(here);
                }
                kind if kind.is_route() && routes => state.dirty.all = true,
                _ => {}
            }
        }
        available
    }

    /// Why the objects of a kind cannot be judged though they are seen: a kind that they depend on is not.
    fn lacking(&self, kind: ObjectKind, reflectors: &[Arc<Reflector>]) -> View {
        let needs: &[ObjectKind] = match kind {
            kind if kind.is_route() => &[ObjectKind::Gateway],
            ObjectKind::Service => &[ObjectKind::EndpointSlice, ObjectKind::Node],
            ObjectKind::Pod => &[ObjectKind::Node],
            _ => &[],
        };
        let needed = self.state().needed.clone();
        let needs = |kind: ObjectKind| {
            needs.contains(&kind) && (kind == ObjectKind::Gateway || needed.contains(&kind))
        };
        let mut broken = reflectors.iter().filter(|one| needs(one.kind)).filter_map(|one| one.view());
        let reason = broken.find_map(|view| view.reason().map(str::to_owned));
        reason.map_or(View::Complete, |reason| View::Partial { reason })
    }

    /// The workloads of one kind that are new or differ, and those that are gone.
    fn changes(reflector: &Reflector, around: &Surroundings<'_>, published: &mut Publication) {
        let mut state = reflector.state();
        let dirty = std::mem::take(&mut state.dirty);
        let names: Vec<ObjectName> = if dirty.all {
            state.objects.keys().cloned().chain(dirty.names).collect()
        } else {
            dirty.names.into_iter().collect()
        };
        let ended = std::mem::take(&mut state.ended);
        let objects: Vec<(ObjectName, Option<Arc<Stored>>)> =
            names.into_iter().map(|name| (name.clone(), state.objects.get(&name).cloned())).collect();
        drop(state);
        for (name, object) in objects {
            let Some(id) = workload::id(reflector.kind, &name) else { continue };
            let fresh: Option<Workload> =
                object.and_then(|object| workload::workload(reflector.kind, &object, around));
            published.set(id, fresh);
        }
        published.end(ended.iter().filter_map(|name| workload::id(reflector.kind, name)));
    }
}

/// Whether everything of a kind can be seen; a kind that the cluster does not have is seen to be empty.
fn is_seen(kind: ObjectKind, reflectors: &[Arc<Reflector>]) -> bool {
    let mut all = reflectors.iter().filter(|one| one.kind == kind).peekable();
    all.peek().is_some() && all.all(|one| one.is_watching() || one.is_absent())
}

/// The service that a slice is of.
fn service_of(slice: &Stored) -> ObjectName {
    let service = match &slice.body {
        Body::EndpointSlice(slice) => slice.service.as_str(),
        _ => "",
    };
    ObjectName::new(slice.name.namespace.as_str(), service)
}

#[async_trait]
impl Source for Kubernetes {
    fn name(&self) -> &Ident {
        &self.name
    }

    fn kind(&self) -> &'static str {
        "kubernetes"
    }

    async fn report(&self) -> Report {
        let _one = self.looking.lock().await;
        let begun = self.shared.clock.wall();
        self.start();
        self.settle().await;
        let unanswered = self.probe().await;
        let reflectors = self.reflectors();
        // Before the objects are looked at: what changes after this is seen by the next look.
        let views: Vec<Option<View>> = reflectors.iter().map(|reflector| reflector.view()).collect();
        let available = self.spread_changes(&reflectors);
        let around = self.surroundings(&reflectors, &available);
        let mut published = std::mem::take(&mut self.state().published);
        let mut scopes: BTreeMap<Scope, ScopeReport> = BTreeMap::new();
        for (reflector, view) in reflectors.iter().zip(views) {
            let Some(mut view) = view.filter(|_| !self.is_helper(reflector.kind)) else { continue };
            view = view.worse(&self.lacking(reflector.kind, &reflectors)).clone();
            if let (View::Complete, Some(reason)) = (&view, &unanswered) {
                view = View::Partial { reason: reason.clone() };
            }
            let publication = published.entry(reflector.scope.clone()).or_default();
            Self::changes(reflector, &around, publication);
            let session = reflector.state().session;
            scopes.insert(reflector.scope.clone(), publication.report(view, session));
        }
        drop(around);
        self.state().published = published;
        if scopes.is_empty() {
            // Not one kind of those that are wanted is there, or nothing has answered yet.
            let reason =
                unanswered.unwrap_or_else(|| "the cluster has none of the kinds that are read".into());
            return Report::failed(self.name.clone(), begun, reason);
        }
        let roster = Roster::Complete(scopes.keys().cloned().collect());
        Report { source: self.name.clone(), begun, roster, scopes }
    }

    /// Shows everything in the next report, and keeps the scope of a kind that has vanished.
    fn remember(&self, reported: Vec<Key>) {
        let kinds: BTreeSet<&str> = reported.iter().filter_map(workload::kind_of).collect();
        if !kinds.is_empty() && tokio::runtime::Handle::try_current().is_ok() {
            self.start();
        }
        for reflector in self.reflectors() {
            if kinds.contains(reflector.kind.as_str()) {
                reflector.expect();
            }
        }
        for publication in self.state().published.values_mut() {
            publication.show_all();
        }
    }

    async fn diagnose(&self) -> Vec<Diagnosis> {
        diagnose::diagnose(&self.shared.cluster, &self.settings).await
    }

    async fn changed(&self) {
        self.shared.wake.notified().await;
    }
}

impl Drop for Kubernetes {
    fn drop(&mut self) {
        for task in &self.state().running {
            task.abort();
        }
    }
}
