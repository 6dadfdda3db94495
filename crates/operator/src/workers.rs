//! [`Worker`]: works on objects, key by key, as long as this replica is the one that works.
//!
//! What needs another system is worked on beside, in a lane of its pool: one that hangs takes no worker from other pools.

use std::sync::Arc;

use netstead_wire::kubernetes::KubernetesError;
use tokio::{
    sync::{Semaphore, watch},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::{
    object::PoolKey,
    shared::Shared,
    world::{WorkKey, World},
};

#[derive(Debug, Clone)]
pub(crate) struct Worker {
    pub(crate) shared: Arc<Shared>,
    /// Whether this replica works.
    pub(crate) leads: watch::Receiver<bool>,
    pub(crate) stop: CancellationToken,
}

/// Where a key is worked on.
#[derive(Debug)]
enum Lane {
    /// By the worker that has it.
    Worker,
    /// Beside the workers, when one of the places of its pool is free.
    OfPool(Arc<Semaphore>),
    /// Beside the workers, at once: asking a pool how it stands must not wait for its claims.
    Beside,
}

impl World {
    fn lane(&self, key: &WorkKey) -> Lane {
        let pool: Option<PoolKey> = match key {
            WorkKey::Claim(name) => self.claims.get(name).and_then(|claim| claim.pool()),
            WorkKey::Address(name) => self.addresses.get(name).and_then(|address| address.pool()),
            WorkKey::Pool(key) if key.kind.is_external() => return Lane::Beside,
            WorkKey::Pool(_) => return Lane::Worker,
        };
        let lane = |key: &PoolKey| self.pools.get(key).map(|pool| Arc::clone(&pool.lane.0));
        pool.filter(|key| key.kind.is_external())
            .and_then(|key| lane(&key))
            .map_or(Lane::Worker, Lane::OfPool)
    }
}

impl Worker {
    /// Works until it is told to stop, and then ends what is under way.
    pub(crate) async fn run(mut self) {
        let mut beside = JoinSet::new();
        while let Some(key) = self.next().await {
            while beside.try_join_next().is_some() {}
            let lane = self.shared.world().lane(&key);
            let worker = self.clone();
            match lane {
                Lane::Worker => self.work_on(key).await,
                Lane::Beside => {
                    beside.spawn(async move { worker.work_on(key).await });
                }
                Lane::OfPool(places) => {
                    beside.spawn(async move {
                        if let Some(Ok(_place)) = worker.stop.run_until_cancelled(places.acquire()).await {
                            worker.work_on(key).await;
                        }
                    });
                }
            }
        }
        while beside.join_next().await.is_some() {}
    }

    async fn next(&mut self) -> Option<WorkKey> {
        let (shared, leads) = (&self.shared, &mut self.leads);
        let next = async {
            if leads.wait_for(|leads| *leads).await.is_err() {
                std::future::pending::<()>().await;
            }
            shared.queue.next().await
        };
        self.stop.run_until_cancelled(next).await
    }

    async fn work_on(&self, key: WorkKey) {
        let shared = &self.shared;
        if !*self.leads.borrow() {
            // It comes again when this replica works again.
            shared.queue.done(&key);
            shared.queue.add(key);
            return;
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
                if let (KubernetesError::Rejected { .. }, WorkKey::Claim(name)) = (&error, &key) {
                    // The server will have none of it: claims behind this one go on.
                    let woken = shared.world().leave_line(name);
                    shared.queue.add_all(woken);
                }
                shared.queue.failed(&key);
            }
        }
    }
}
