//! [`DnsService`]: sources, providers, the nameserver and the engine, built from the configuration.
//!
//! The nameserver answers on every node. The engine runs on the leader. On the other nodes the sources are polled, so that a
//! takeover is quick.
//!
//! - `setup`: builds sources and providers. `reload`: applies a changed file. `what_if`: reads a file without applying it.
//! - `target_follower`, `source_target_resolver`, `provider_without_target`: targets that are found out at run time.
//! - `nameserver`: starts the nameserver. `call_metrics`: counts calls to servers.

mod call_metrics;
#[cfg(test)]
mod config_typo_tests;
mod nameserver;
mod provider_without_target;
mod reload;
mod setup;
mod source_target_resolver;
mod target_follower;
mod what_if;

use std::sync::{Arc, PoisonError, RwLock};

use anyhow::Context as _;
use netstead_api::{Meter, cluster::EngineSlot};
use netstead_engine::{Engine, Options, SourceSetup, poll_on_standby};
use netstead_ledger::{Backends, Ledger, LedgerSource};
use netstead_model::{PoolSpec, SystemClock};
use netstead_nameserver::NameServer;
use netstead_store::Store;
use netstead_wire::Connections;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use self::what_if::WhatIfReader;
pub(crate) use self::{
    nameserver::NameserverState,
    reload::{RefusedConfig, Reload},
};
use self::{setup::Parts, target_follower::TargetFollower};
use crate::{config::Config, pool_backends};

/// The changes that an engine writes to servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writes {
    All,
    /// Only what a person commands.
    Commands,
    Nothing,
}

impl Writes {
    pub(crate) fn unless_dry(dry: bool) -> Self {
        if dry { Self::Nothing } else { Self::All }
    }
}

/// The nameserver, the sources, the providers and the engine of this node.
#[derive(Debug)]
pub(crate) struct DnsService {
    pub(crate) answering: NameserverState,
    /// The engine, while this node leads.
    stage: EngineSlot,
    nameserver: Option<NameServer>,
    /// The pool backends of the configuration in force.
    backends: Backends,
    parts: Arc<Parts>,
    in_force: Arc<RwLock<Config>>,
    /// Counts how often another configuration came into force.
    news: watch::Sender<u64>,
    /// Configurations, and changes of the lead, follow one another.
    turn: tokio::sync::Mutex<()>,
}

impl DnsService {
    /// Starts the nameserver; `listen` comes from the command line, and without it there is none.
    pub(crate) async fn start(
        store: &Arc<dyn Store>,
        ledger: &Ledger,
        config: &Config,
        listen: Option<(&[std::net::SocketAddr], Connections)>,
        meter: &Meter,
    ) -> anyhow::Result<Self> {
        let source = LedgerSource::new("ledger".parse()?, ledger.clone());
        let targets = Arc::new(TargetFollower::new(Arc::clone(store)));
        let parts = Parts::new(Arc::clone(store), Arc::new(source), meter.clone(), targets);
        let _ = parts.claims.set(ledger.clone());
        // Errors of a source are reported at the start, on every node.
        parts.sources(config)?;
        let backends = Backends::default();
        backends.configure(pool_backends::build(config)?);
        let (nameserver, answering) = match listen {
            Some((listen, connections)) => {
                let queries = meter.queries().clone();
                nameserver::start(store, &config.nameserver, listen, connections, queries).await?
            }
            None => (None, NameserverState::Listening(Vec::new())),
        };
        let in_force = Arc::new(RwLock::new(config.clone()));
        Ok(Self {
            answering,
            stage: EngineSlot::default(),
            nameserver,
            backends,
            parts: Arc::new(parts),
            in_force,
            news: watch::Sender::default(),
            turn: tokio::sync::Mutex::default(),
        })
    }

    /// Starts the engine: this node leads in `epoch`.
    pub(crate) async fn start_leading(
        &self,
        ledger: &Ledger,
        epoch: u64,
        writes: Writes,
    ) -> anyhow::Result<Engine> {
        let _turn = self.turn.lock().await;
        let Parts { store, owner, targets, meter, .. } = &*self.parts;
        let drawn = Engine::owner(&**store).await?;
        let _ = owner.set(drawn);
        targets.set_leading(true);
        let options = Options {
            dry_run: writes == Writes::Nothing,
            only_by_hand: writes == Writes::Commands,
            observer: Some(Arc::new(meter.clone())),
            ledger: Some(ledger.clone()),
            epoch: Some(epoch),
            ..Options::default()
        };
        let config = self.config();
        let setup = self.parts.setup(&config).await?;
        let engine = Engine::start(Arc::clone(store), SystemClock::shared(), setup, options).await?;
        self.stage.install(engine.clone());
        Ok(engine)
    }

    /// Stops the engine because another node leads. Writes that are on their way to a server end by themselves.
    pub(crate) async fn stop_leading(&self) {
        let engine = self.stage.uninstall();
        let _turn = self.turn.lock().await;
        self.parts.targets.set_leading(false);
        if let Some(engine) = engine {
            engine.stop_leading().await;
        }
    }

    /// Polls the sources while another node leads, until `stop`, so that a takeover finds them ready.
    pub(crate) async fn poll_sources_on_standby(&self, stop: &CancellationToken) {
        let mut news = self.news.subscribe();
        while !stop.is_cancelled() {
            news.mark_unchanged();
            let sources = self.parts.sources(&self.config());
            let sources: Vec<SourceSetup> = sources.unwrap_or_else(|error| {
                warn!(
                    error = format!("{error:#}"),
                    "The sources cannot be looked at while another node leads."
                );
                Vec::new()
            });
            tokio::select! {
                () = poll_on_standby(&sources, stop) => {}
                _ = news.changed() => {}
            }
        }
    }

    fn config(&self) -> Config {
        self.in_force.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The pools that the file has.
    pub(crate) fn pools(&self) -> Vec<PoolSpec> {
        self.config().pools
    }

    fn put_in_force(&self, config: &Config) {
        *self.in_force.write().unwrap_or_else(PoisonError::into_inner) = config.clone();
        self.news.send_modify(|times| *times += 1);
    }

    /// Applies another configuration, all of it or nothing. While another node leads, only the sources are built.
    async fn reconfigure(&self, config: &Config) -> anyhow::Result<()> {
        let _turn = self.turn.lock().await;
        self.backends.configure(pool_backends::build(config)?);
        match self.stage.engine() {
            Some(engine) => engine.reconfigure(self.parts.setup(config).await?).await?,
            None => drop(self.parts.sources(config)?),
        }
        self.put_in_force(config);
        Ok(())
    }

    /// As [`DnsService::reconfigure`], with `between` run while the engine does not look at claims: it changes their names,
    /// and the engine must see that the file did that. If it fails, everything stays as it was.
    async fn reconfigure_around(
        &self,
        config: &Config,
        between: impl AsyncFnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let turn = self.turn.lock().await;
        let Some(engine) = self.stage.engine() else {
            drop(turn);
            // The leader brings the file's pools into the ledger.
            return self.reconfigure(config).await;
        };
        self.backends.configure(pool_backends::build(config)?);
        let mut setup = self.parts.setup(config).await?;
        setup.sources.retain(|source| source.source.name() != self.parts.ledger.name());
        engine.reconfigure(setup).await?;
        let done = between().await;
        if done.is_ok() {
            self.put_in_force(config);
        }
        let config = self.config();
        let whole =
            async { Ok::<_, anyhow::Error>(engine.reconfigure(self.parts.setup(&config).await?).await?) };
        whole.await.context("the configuration is only half in force")?;
        done
    }

    /// Follows dynamic targets until `stop`.
    pub(crate) async fn follow_targets(&self, stop: &CancellationToken) {
        let moved = async || {
            let _turn = self.turn.lock().await;
            let Some(engine) = self.stage.engine() else { return };
            let config = self.config();
            let done =
                async { Ok::<_, anyhow::Error>(engine.reconfigure(self.parts.setup(&config).await?).await?) };
            if let Err(error) = done.await {
                error!(error = format!("{error:#}"), "The new target cannot be used; the old one stays.");
            }
        };
        self.parts.targets.follow(moved, stop).await;
    }

    /// The pool backends of the configuration in force.
    pub(crate) fn backends(&self) -> &Backends {
        &self.backends
    }

    /// The configuration in force.
    pub(crate) fn in_force(&self) -> Arc<RwLock<Config>> {
        Arc::clone(&self.in_force)
    }

    /// The slot that has the engine while this node leads.
    pub(crate) fn engine_slot(&self) -> &EngineSlot {
        &self.stage
    }

    /// A reader of other configurations, for what-if plans.
    pub(crate) fn reader(&self) -> WhatIfReader {
        WhatIfReader { parts: Arc::clone(&self.parts), in_force: Arc::clone(&self.in_force) }
    }

    pub(crate) async fn close(self) {
        if let Some(engine) = self.stage.uninstall() {
            engine.close().await;
        }
        if let Some(nameserver) = self.nameserver {
            nameserver.shutdown().await;
        }
    }
}
