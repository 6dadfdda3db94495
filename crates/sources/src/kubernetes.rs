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
//!
//!  engine, on the leader ── news of names ──► status and Events of objects  reporting.rs
//!                                    └──────► addresses of load balancers   load_balancer.rs
//! ```
//!
//! Each kind is a scope: one that is forbidden, has vanished or cannot be reached keeps what it had and disturbs no other. Some
//! kinds ask for no names but are needed by others: Gateways by routes, EndpointSlices by headless services, nodes by
//! services that are reached at every node. The last two are read only once something needs them (`dependencies.rs`).

mod annotations;
mod claims;
mod definitions;
mod dependencies;
mod diagnose;
mod discovery;
mod kinds;
mod load_balancer;
mod object;
mod publication;
mod reflector;
mod reporting;
mod selector;
mod settings;
mod subjects;
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
use netstead_model::{
    Diagnosis, Ident, Key, Report, Roster, Scope, ScopeReport, Source, SourceFlags, View, Workload,
    WorkloadNames,
};
use netstead_settings::BuildContext;
use netstead_wire::kubernetes::Cluster;
use tokio::{sync::Notify, task::JoinHandle, time::timeout};

pub use self::{
    claims::Claims,
    definitions::DEFINITIONS,
    kinds::{
        ObjectKind,
        custom::{CustomKind, FieldPath, KindName},
    },
    load_balancer::{LoadBalancerPool, LoadBalancerPools},
    selector::AnnotationSelector,
    settings::{KIND, KubernetesSettings},
    template::NameTemplate,
};
use self::{
    kinds::{Body, definition::Definition},
    load_balancer::LoadBalancers,
    object::{ObjectName, Stored},
    publication::Publication,
    reflector::{Keep, Reflector, Shared},
    reporting::Reporting,
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
        let reporting = Reporting::new(settings.status, settings.events, context.clock.wall());
        let load_balancers = context
            .part::<LoadBalancerPools>()
            .filter(|pools| !pools.pools.is_empty())
            .map(|pools| LoadBalancers::new(context.name.clone(), pools));
        let shared = Shared {
            cluster,
            clock: Arc::clone(&context.clock),
            wake: Notify::new(),
            keep,
            reporting,
            load_balancers,
        };
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
        let kinds = self.settings.definitions();
        let routes = kinds.iter().any(|of| of.kind.is_route());
        let services = self.shared.load_balancers.is_some() && self.is_helper(ObjectKind::Service);
        let helpers = [(ObjectKind::Gateway, routes), (ObjectKind::Service, services)];
        let helpers = helpers.into_iter().filter(|(_, needed)| *needed).map(|(kind, _)| Definition::of(kind));
        for definition in kinds.into_iter().chain(helpers) {
            self.start_kind(&definition);
        }
    }

    /// Starts to read a kind, unless it is read.
    fn start_kind(&self, definition: &Definition) {
        let kind = definition.kind;
        let mut state = self.state();
        if state.reflectors.iter().any(|reflector| reflector.definition == *definition) {
            return;
        }
        let mut namespaces: BTreeSet<&str> = self.settings.namespaces.iter().map(String::as_str).collect();
        if kind == ObjectKind::Gateway {
            namespaces.extend(self.settings.gateway_namespaces.iter().map(String::as_str));
        }
        let mut places: Vec<Option<&str>> = namespaces.into_iter().map(Some).collect();
        if places.is_empty() || !definition.namespaced {
            places = vec![None];
        }
        let helps = self.is_helper(kind);
        for namespace in places {
            // A label is wanted of objects that ask for names, not of those that they need.
            let labels = self.settings.label_selector.clone().filter(|_| !helps);
            let reflector =
                Arc::new(Reflector::new(definition.clone(), namespace, labels, Arc::clone(&self.shared)));
            state.running.push(tokio::spawn(Arc::clone(&reflector).run()));
            state.reflectors.push(reflector);
        }
    }

    /// Whether a kind is read for others only.
    fn is_helper(&self, kind: ObjectKind) -> bool {
        kind != ObjectKind::Custom && !self.settings.wanted_kinds().contains(&kind)
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
            self.start_kind(&Definition::of(*kind));
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
            let Some(id) = workload::id(&reflector.definition, &name) else { continue };
            let fresh: Option<Workload> =
                object.and_then(|object| workload::workload(&reflector.definition, &object, around));
            published.set(id, fresh);
        }
        published.end(ended.iter().filter_map(|name| workload::id(&reflector.definition, name)));
    }
}
#[async_trait]
impl Source for Kubernetes {
    fn name(&self) -> &Ident {
        &self.name
    }

    fn kind(&self) -> &'static str {
        "kubernetes"
    }

    fn flags(&self) -> SourceFlags {
        let hears_names = self.shared.reporting.is_wanted() || self.shared.load_balancers.is_some();
        SourceFlags { hears_names, ..SourceFlags::default() }
    }

    async fn hear_names(&self, names: Vec<WorkloadNames>) {
        self.shared.reporting.hear(names, self, self.shared.clock.monotonic());
        if let Some(balancers) = &self.shared.load_balancers
            && balancers.is_due(self.shared.clock.monotonic())
        {
            balancers.work(&self.seen_services(), &self.shared).await;
        }
        self.shared.reporting.write_due(self, &self.shared).await;
    }

    fn has_unwritten(&self) -> bool {
        let now = self.shared.clock.monotonic();
        self.shared.reporting.is_due(now)
            || self.shared.load_balancers.as_ref().is_some_and(|balancers| balancers.is_due(now))
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
            if kinds.contains(reflector.definition.word.as_str()) {
                reflector.expect();
            }
        }
        for publication in self.state().published.values_mut() {
            publication.show_all();
        }
    }

    async fn diagnose(&self) -> Vec<Diagnosis> {
        let balances = self.shared.load_balancers.is_some();
        diagnose::diagnose(&self.shared.cluster, &self.settings, balances).await
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
