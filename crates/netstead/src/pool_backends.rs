//! Pool backends of the configuration: built on every node, and asked by the leader.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
    time::Duration,
};

use netstead_api::cluster::{Cluster, FORMAT_OF_BACKENDS};
use netstead_engine::{Engine, Scope};
use netstead_ledger::{Backends, DrawOptions, DrawWorker, Freshness, Ledger, complete_from};
use netstead_model::{Ident, PoolBackend, PoolSpec};
use netstead_settings::BuildContext;
use netstead_store::Store;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::{config::Config, leadership::sync_completed_pools, state_dir::variable};

/// How often pools of the file are tried whose backend did not describe them yet.
const TRY_INTERVAL: Duration = Duration::from_secs(2);

/// How often the worker hears which backends are paused.
const PAUSES_INTERVAL: Duration = Duration::from_secs(1);

/// Opens the secrets of all backends of the file.
pub(crate) fn build(config: &Config) -> anyhow::Result<BTreeMap<Ident, Arc<dyn PoolBackend>>> {
    let mut backends = BTreeMap::new();
    for backend in &config.backends {
        let context = BuildContext::new(backend.name.clone()).with_variables(Arc::new(variable));
        let path = format!("backend.{}", backend.name);
        let built = backend.table.build(&path, &context).map_err(|problem| anyhow::anyhow!("{problem}"))?;
        backends.insert(backend.name.clone(), built);
    }
    Ok(backends)
}

/// The pools of the file as the ledger can take them: those with a backend only once the backend described them.
pub(crate) async fn complete_pools(ledger: &Ledger, pools: &[PoolSpec]) -> anyhow::Result<Vec<PoolSpec>> {
    if pools.iter().all(|pool| pool.upstream.is_none()) {
        return Ok(pools.to_vec());
    }
    let known = ledger.read(Freshness::Fresh, |book| {
        let known = |pool: &PoolSpec| book.pool(&pool.name).map(|status| status.pool);
        pools.iter().filter_map(|pool| complete_from(pool, known(pool).as_ref())).collect::<Vec<_>>()
    });
    Ok(known.await?.value)
}

/// The leader's part in pool backends.
pub(crate) struct LeaderOfBackends<'a> {
    pub(crate) store: &'a Arc<dyn Store>,
    pub(crate) ledger: &'a Ledger,
    pub(crate) cluster: &'a Cluster,
    pub(crate) backends: &'a Backends,
    pub(crate) engine: &'a Engine,
    pub(crate) epoch: u64,
    pub(crate) dry_run: bool,
}

impl LeaderOfBackends<'_> {
    /// Asks the backends, and makes the pools of the file that draw from them, until `stop`.
    pub(crate) async fn run(&self, pools: impl Fn() -> Vec<PoolSpec>, stop: &CancellationToken) {
        let reason = "this server runs with `--dry-run` and asks no backend";
        self.backends.set_idle(self.dry_run.then(|| reason.to_owned()));
        if self.dry_run {
            return;
        }
        let worker = DrawWorker {
            ledger: self.ledger.clone(),
            epoch: self.epoch,
            backends: self.backends.clone(),
            options: DrawOptions::default(),
        };
        // The worker must not ask a paused backend before it hears of the pause.
        self.set_pauses();
        tokio::join!(worker.run(stop), self.follow_pauses(stop), self.make_pools(&pools, stop));
    }

    async fn follow_pauses(&self, stop: &CancellationToken) {
        while !stop.is_cancelled() {
            stop.run_until_cancelled(sleep(PAUSES_INTERVAL)).await;
            self.set_pauses();
        }
    }

    fn set_pauses(&self) {
        let status = self.engine.status();
        let paused = status.pauses.iter().filter_map(|pause| match &pause.scope {
            Scope::Backend(name) => Some(name.clone()),
            _ => None,
        });
        self.backends.set_paused(paused.collect::<HashSet<_>>());
    }

    /// Makes the pools of the file whose backend was not reached so far.
    async fn make_pools(&self, pools: &impl Fn() -> Vec<PoolSpec>, stop: &CancellationToken) {
        let mut told = String::new();
        while !stop.is_cancelled() {
            if let Err(error) = self.make_missing(&pools()).await {
                let said = format!("{error:#}");
                if said == told {
                    debug!(error = said, "Pools with a backend cannot be made yet.");
                } else {
                    warn!(error = said, "Pools with a backend cannot be made yet.");
                    told = said;
                }
            }
            stop.run_until_cancelled(sleep(TRY_INTERVAL)).await;
        }
    }

    /// Makes what can be made. One pool that cannot be made leaves the others alone.
    async fn make_missing(&self, pools: &[PoolSpec]) -> anyhow::Result<()> {
        let known = complete_pools(self.ledger, pools).await?;
        let missing: Vec<&PoolSpec> =
            pools.iter().filter(|pool| !known.iter().any(|known| known.name == pool.name)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        if self.cluster.format() < FORMAT_OF_BACKENDS {
            return match self.cluster.older_than(FORMAT_OF_BACKENDS) {
                Some(member) => Err(anyhow::anyhow!(
                    "member `{}` runs {} and knows no pools with a backend",
                    member.name,
                    member.version
                )),
                None => Ok(()),
            };
        }
        let owner = Engine::owner(&**self.store).await?;
        let (mut all, mut failed) = (known, Vec::new());
        let before = all.len();
        for pool in missing {
            match self.backends.complete(pool.clone(), None, owner.as_str()).await {
                Ok(made) => all.push(made),
                Err(error) => failed.push(format!("pool.{}: {error}", pool.name)),
            }
        }
        if all.len() > before {
            sync_completed_pools(self.ledger, all).await?;
        }
        if failed.is_empty() { Ok(()) } else { Err(anyhow::anyhow!(failed.join("; "))) }
    }
}
