//! [`Operator`]: reflectors and workers over one cluster.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use netstead_model::{CallObserver, Clock};
use netstead_wire::kubernetes::{Cluster, KubernetesAccess, KubernetesError};
use tokio::{sync::watch, task::JoinSet, time::timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::{
    ExternalPools, PoolKind,
    api::Api,
    diagnostics::Diagnostics,
    lease::Lease,
    reflector::{self, ReflectorState},
    shared::Shared,
    world::{WorkKey, World},
};

/// How long steps that are under way may take to end.
const FAREWELL: Duration = Duration::from_secs(20);
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
}

/// Why the operator cannot run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OperatorError {
    #[error("nothing can listen on {address}")]
    Listen { address: SocketAddr, source: io::Error },
}

/// A running operator.
#[derive(Debug)]
pub struct Operator {
    shared: Arc<Shared>,
    options: OperatorOptions,
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
        let cluster = Cluster::new(options.access.clone(), observer, Arc::clone(&clock));
        let world = World::new(options.kinds.clone(), options.watch_filter.clone());
        let shared = Shared::new(Api { cluster }, clock, options.namespace.clone(), world, external);
        Self { shared: Arc::new(shared), options }
    }

    /// The metrics as Prometheus reads them.
    pub fn metrics(&self) -> String {
        self.shared.metrics.text()
    }

    /// Works until it is told to stop.
    pub async fn run(&self, stop: &CancellationToken) -> Result<(), OperatorError> {
        let shared = &self.shared;
        let mut tasks = JoinSet::new();
        let readiness = self.start_reflectors(&mut tasks);
        let ending = stop.child_token();
        self.start_diagnostics(&mut tasks, &readiness, &ending).await?;
        let kinds: Vec<&str> = self.options.kinds.iter().map(|kind| kind.as_str()).collect();
        info!(cluster = self.options.access.describe(), ?kinds, "The operator begins.");
        if stop.run_until_cancelled(self.wait_until_listed(&readiness)).await.is_none() {
            return Ok(());
        }
        info!("All objects were listed.");
        let (leading, leads) = watch::channel(self.options.lease_namespace.is_none());
        let identity = format!("{}_{:016x}", host_name(), rand::random::<u64>());
        if let Some(namespace) = &self.options.lease_namespace {
            let lease = Lease::new(Arc::clone(shared), namespace, LEASE, identity.clone());
            tasks.spawn(lease.run(leading));
        } else {
            // The channel stays open for as long as the workers look at it.
            tasks.spawn(async move {
                leading.closed().await;
            });
        }
        let mut workers = JoinSet::new();
        for _ in 0..self.options.concurrency.max(1) {
            workers.spawn(work(Arc::clone(shared), leads.clone(), stop.clone()));
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

    fn start_reflectors(&self, tasks: &mut JoinSet<()>) -> Readiness {
        let shared = &self.shared;
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
        let failed = |address| move |source| OperatorError::Listen { address, source };
        if let Some(address) = self.options.metrics {
            let metrics = Diagnostics::metrics(address, &self.shared).await.map_err(failed(address))?;
            tasks.spawn(metrics.serve(stop.clone()));
        }
        if let Some(address) = self.options.health {
            let health = Diagnostics::health(address, readiness.clone()).await.map_err(failed(address))?;
            tasks.spawn(health.serve(stop.clone()));
        }
        Ok(())
    }

    /// Nothing is decided on half of the objects.
    async fn wait_until_listed(&self, readiness: &Readiness) {
        loop {
            let listed = self.shared.synced.notified();
            if readiness.missing().is_empty() {
                return;
            }
            let _ = timeout(Duration::from_secs(1), listed).await;
        }
    }
}

/// One worker: key by key, as long as this replica is the one that works.
async fn work(shared: Arc<Shared>, mut leads: watch::Receiver<bool>, stop: CancellationToken) {
    loop {
        let next = async {
            if leads.wait_for(|leads| *leads).await.is_err() {
                std::future::pending::<()>().await;
            }
            shared.queue.next().await
        };
        let Some(key) = stop.run_until_cancelled(next).await else { return };
        if !*leads.borrow() {
            // It comes again when this replica works again.
            shared.queue.done(&key);
            shared.queue.add(key);
            continue;
        }
        let done = match &key {
            WorkKey::Claim(name) => shared.reconcile_claim(name).await,
            WorkKey::Address(name) => shared.reconcile_orphan(name).await,
            WorkKey::Pool(pool) => shared.reconcile_pool(pool).await,
        };
        match done {
            Ok(again) => {
                shared.queue.done(&key);
                if let Some(pause) = again {
                    shared.queue.add_after(key, pause);
                }
            }
            // It is gone, and its watch says so.
            Err(KubernetesError::NotFound(_)) => shared.queue.done(&key),
            Err(error) => {
                match &error {
                    KubernetesError::Conflict(_) => debug!(?key, %error, "An object changed meanwhile."),
                    error => warn!(?key, %error, "A step failed; it is tried again."),
                }
                shared.queue.failed(&key);
            }
        }
    }
}

fn host_name() -> String {
    std::env::var("HOSTNAME").ok().filter(|name| !name.is_empty()).unwrap_or_else(|| "netstead".to_owned())
}
