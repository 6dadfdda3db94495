//! [`Operator`]: reflectors and workers over one cluster.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use netstead_model::{CallObserver, Clock};
use netstead_wire::kubernetes::{Cluster, KubernetesAccess};
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::{
    ExternalPools, PoolKind, WebhookOptions, admission,
    api::Api,
    diagnostics::Diagnostics,
    lease::{Lease, TIMING},
    metrics::Metrics,
    reflector::{self, ReflectorState},
    shared::Shared,
    workers::Worker,
    world::World,
};

/// How long steps that are under way may take to end.
const FAREWELL: Duration = Duration::from_secs(20);
/// How often a port that is taken is tried again.
const LISTEN_AGAIN: Duration = Duration::from_secs(10);
/// The lease of all replicas.
const LEASE: &str = "netstead-operator";

/// How the operator works.
#[derive(Debug, Clone)]
pub struct OperatorOptions {
    pub access: KubernetesAccess,
    /// The kinds of pools that are served.
    pub kinds: Vec<PoolKind>,
    /// The only namespace; all if unset.
    pub namespace: Option<String>,
    /// Only objects with this value of the label `cluster.x-k8s.io/watch-filter`; all if unset.
    pub watch_filter: Option<String>,
    /// The namespace of the lease; without it this replica works without asking others.
    pub lease_namespace: Option<String>,
    /// How many objects are worked on at once.
    pub concurrency: usize,
    pub metrics: Option<SocketAddr>,
    pub health: Option<SocketAddr>,
    /// The webhooks; none without.
    pub webhook: Option<WebhookOptions>,
}

/// Why the operator cannot run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OperatorError {
    #[error("nothing can listen on {address}")]
    Listen { address: SocketAddr, source: io::Error },
}

/// An operator over one cluster. It may run again and again: each run begins with nothing but the counters of its metrics, and
/// learns from the API server what is there.
#[derive(Debug)]
pub struct Operator {
    options: OperatorOptions,
    external: Arc<dyn ExternalPools>,
    observer: Arc<dyn CallObserver>,
    clock: Arc<dyn Clock>,
    metrics: Arc<Metrics>,
}

/// Forgets the gauges of pools with the end of a run, however it ends.
#[derive(Debug)]
struct PoolGauges(Arc<Metrics>);

impl Drop for PoolGauges {
    fn drop(&mut self) {
        self.0.forget_pools();
    }
}

/// Whether all objects that are needed were listed.
#[derive(Debug, Clone)]
pub(crate) struct Readiness(Vec<Arc<ReflectorState>>);

impl Readiness {
    /// The kinds that were not listed yet.
    pub(crate) fn missing(&self) -> Vec<String> {
        let missing = self.0.iter().filter(|state| !state.is_synced());
        missing.map(|state| state.plural.clone()).collect()
    }
}

impl Operator {
    /// `external` opens pools of other systems.
    pub fn new(
        options: OperatorOptions,
        external: Arc<dyn ExternalPools>,
        observer: Arc<dyn CallObserver>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { options, external, observer, clock, metrics: Arc::default() }
    }

    /// The metrics as Prometheus reads them.
    pub fn metrics(&self) -> String {
        self.metrics.text()
    }

    /// All that one run knows. A run that was cancelled leaves steps half done and misses what happens before the next.
    fn begin(&self) -> Arc<Shared> {
        let options = &self.options;
        let cluster =
            Cluster::new(options.access.clone(), Arc::clone(&self.observer), Arc::clone(&self.clock));
        let world = World::new(options.kinds.clone(), options.watch_filter.clone());
        let (clock, external) = (Arc::clone(&self.clock), Arc::clone(&self.external));
        let (namespace, metrics) = (options.namespace.clone(), Arc::clone(&self.metrics));
        Arc::new(Shared::new(Api { cluster }, clock, namespace, world, external, metrics))
    }

    /// Works until it is told to stop, or until the future is dropped.
    pub async fn run(&self, stop: &CancellationToken) -> Result<(), OperatorError> {
        let shared = &self.begin();
        let mut tasks = JoinSet::new();
        let _gauges = PoolGauges(Arc::clone(&self.metrics));
        let readiness = self.start_reflectors(shared, &mut tasks);
        let ending = stop.child_token();
        self.start_diagnostics(&mut tasks, &readiness, &ending).await?;
        if let Some(webhook) = &self.options.webhook {
            // Before all is listed: a list of pools may need the conversion.
            let started =
                admission::start(webhook, &self.options.kinds, shared, &readiness, &mut tasks, &ending);
            started.await.map_err(|source| OperatorError::Listen { address: webhook.listen, source })?;
        }
        let kinds: Vec<&str> = self.options.kinds.iter().map(|kind| kind.as_str()).collect();
        info!(cluster = self.options.access.describe(), ?kinds, "The operator begins.");
        if stop.run_until_cancelled(wait_until_listed(shared, &readiness)).await.is_none() {
            return Ok(());
        }
        info!("All objects were listed.");
        let (leading, leads) = watch::channel(self.options.lease_namespace.is_none());
        let identity = format!("{}_{:016x}", host_name(), rand::random::<u64>());
        if let Some(namespace) = &self.options.lease_namespace {
            let lease = Lease::new(Arc::clone(shared), namespace, LEASE, identity.clone(), TIMING);
            tasks.spawn(lease.run(leading));
        } else {
            // The channel stays open for as long as the workers look at it.
            tasks.spawn(async move {
                leading.closed().await;
            });
        }
        let worker = Worker { shared: Arc::clone(shared), leads: leads.clone(), stop: stop.clone() };
        let mut workers = JoinSet::new();
        for _ in 0..self.options.concurrency.max(1) {
            workers.spawn(worker.clone().run());
        }
        stop.cancelled().await;
        let _ = timeout(FAREWELL, async { while workers.join_next().await.is_some() {} }).await;
        if let Some(namespace) = self.options.lease_namespace.as_ref().filter(|_| *leads.borrow()) {
            tasks.abort_all();
            let _ =
                timeout(Duration::from_secs(5), Lease::give_back(shared, namespace, LEASE, &identity)).await;
        }
        info!("The operator has stopped.");
        Ok(())
    }

    fn start_reflectors(&self, shared: &Arc<Shared>, tasks: &mut JoinSet<()>) -> Readiness {
        let everywhere = self.options.kinds.iter().any(|kind| !kind.is_namespaced());
        let addresses = reflector::addresses(shared, everywhere);
        let (claims, clusters) = (reflector::claims(shared), reflector::clusters(shared));
        let mut states = vec![addresses.state(), claims.state(), clusters.state()];
        tasks.spawn(addresses.run());
        tasks.spawn(claims.run());
        tasks.spawn(clusters.run());
        for kind in &self.options.kinds {
            let pools = reflector::pools(shared, *kind);
            states.push(pools.state());
            tasks.spawn(pools.run());
        }
        Readiness(states)
    }

    async fn start_diagnostics(
        &self,
        tasks: &mut JoinSet<()>,
        readiness: &Readiness,
        stop: &CancellationToken,
    ) -> Result<(), OperatorError> {
        if let Some(address) = self.options.metrics {
            tasks.spawn(serve_metrics(address, Arc::clone(&self.metrics), stop.clone()));
        }
        if let Some(address) = self.options.health {
            let health = Diagnostics::health(address, readiness.clone()).await;
            let health = health.map_err(|source| OperatorError::Listen { address, source })?;
            tasks.spawn(health.serve(stop.clone()));
        }
        Ok(())
    }
}

/// Answers metrics. Claims are served all the same while the port is taken.
async fn serve_metrics(address: SocketAddr, metrics: Arc<Metrics>, stop: CancellationToken) {
    let mut told = false;
    loop {
        match Diagnostics::metrics(address, &metrics).await {
            Ok(diagnostics) => return diagnostics.serve(stop).await,
            Err(error) if !told => {
                told = true;
                warn!(%address, %error, retry_in = ?LISTEN_AGAIN, "Nothing can listen for metrics; the operator works without.");
            }
            Err(_) => {}
        }
        sleep(LISTEN_AGAIN).await;
    }
}

/// Nothing is decided on half of the objects.
async fn wait_until_listed(shared: &Shared, readiness: &Readiness) {
    loop {
        let listed = shared.synced.notified();
        if readiness.missing().is_empty() {
            return;
        }
        let _ = timeout(Duration::from_secs(1), listed).await;
    }
}

fn host_name() -> String {
    std::env::var("HOSTNAME").ok().filter(|name| !name.is_empty()).unwrap_or_else(|| "netstead".to_owned())
}
