//! The wiring of names: sources, providers and the nameserver, as the configuration has them.

mod calls;
mod lost;
mod nameserver;
mod places;
mod reload;
mod setup;
mod targets;
#[cfg(test)]
mod typos;
mod what_if;

use std::sync::{Arc, PoisonError, RwLock};

use anyhow::Context as _;
use netstead_api::Meter;
use netstead_engine::{Engine, Options};
use netstead_ledger::{Ledger, LedgerSource};
use netstead_model::SystemClock;
use netstead_nameserver::NameServer;
use netstead_store::Store;
use tokio_util::sync::CancellationToken;
use tracing::error;

use self::what_if::Reader;
pub(crate) use self::{nameserver::Answering, reload::Reload};
use self::{setup::Parts, targets::Targets};
use crate::config::Config;

/// Everything that keeps names.
#[derive(Debug)]
pub(crate) struct Names {
    pub(crate) engine: Engine,
    pub(crate) answering: Answering,
    nameserver: Option<NameServer>,
    parts: Parts,
    in_force: Arc<RwLock<Config>>,
    /// Configurations follow one another.
    turn: tokio::sync::Mutex<()>,
}

impl Names {
    /// Starts to keep names; `listen` was asked for on the command line.
    pub(crate) async fn start(
        store: &Arc<dyn Store>,
        ledger: &Ledger,
        config: &Config,
        listen: &[std::net::SocketAddr],
        dry_run: bool,
        meter: &Meter,
    ) -> anyhow::Result<Self> {
        let owner = Engine::owner(&**store).await?;
        let source = LedgerSource::new("ledger".parse()?, ledger.clone());
        let (store_of, meter_of) = (Arc::clone(store), meter.clone());
        let targets = Arc::new(Targets::new(Arc::clone(store)));
        let parts = Parts { store: store_of, owner, ledger: Arc::new(source), meter: meter_of, targets };
        let (nameserver, answering) = nameserver::start(store, &config.nameserver, listen).await?;
        let options = Options {
            dry_run,
            observer: Some(Arc::new(meter.clone())),
            ledger: Some(ledger.clone()),
            ..Options::default()
        };
        let setup = parts.setup(config).await?;
        let engine = Engine::start(Arc::clone(store), SystemClock::shared(), setup, options).await?;
        let in_force = Arc::new(RwLock::new(config.clone()));
        Ok(Self { engine, answering, nameserver, parts, in_force, turn: tokio::sync::Mutex::default() })
    }

    /// Goes on with another configuration, if all of it can be had.
    async fn reconfigure(&self, config: &Config) -> anyhow::Result<()> {
        let _turn = self.turn.lock().await;
        let setup = self.parts.setup(config).await?;
        self.engine.reconfigure(setup).await?;
        *self.in_force.write().unwrap_or_else(PoisonError::into_inner) = config.clone();
        Ok(())
    }

    /// As [`Names::reconfigure`], with `between` done while claims are not looked at: it changes what they are called, and
    /// it must be seen that the file did that. If it fails, all stays as it was.
    async fn reconfigure_around(
        &self,
        config: &Config,
        between: impl AsyncFnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let _turn = self.turn.lock().await;
        let mut setup = self.parts.setup(config).await?;
        setup.sources.retain(|source| source.source.name() != self.parts.ledger.name());
        self.engine.reconfigure(setup).await?;
        let done = between().await;
        if done.is_ok() {
            *self.in_force.write().unwrap_or_else(PoisonError::into_inner) = config.clone();
        }
        let config = self.in_force.read().unwrap_or_else(PoisonError::into_inner).clone();
        let whole = async {
            Ok::<_, anyhow::Error>(self.engine.reconfigure(self.parts.setup(&config).await?).await?)
        };
        whole.await.context("the configuration is only half in force")?;
        done
    }

    /// Follows the targets that move until `stop`.
    pub(crate) async fn follow_targets(&self, stop: &CancellationToken) {
        let moved = async || {
            let _turn = self.turn.lock().await;
            let config = self.in_force.read().unwrap_or_else(PoisonError::into_inner).clone();
            let done = async {
                Ok::<_, anyhow::Error>(self.engine.reconfigure(self.parts.setup(&config).await?).await?)
            };
            if let Err(error) = done.await {
                error!(error = format!("{error:#}"), "The new target cannot be used; the old one stays.");
            }
        };
        self.parts.targets.follow(moved, stop).await;
    }

    /// What is in force, as it changes.
    pub(crate) fn in_force(&self) -> Arc<RwLock<Config>> {
        Arc::clone(&self.in_force)
    }

    /// Says what other configurations would mean.
    pub(crate) fn reader(&self) -> Reader {
        let (owner, targets) = (self.parts.owner.clone(), Arc::clone(&self.parts.targets));
        Reader { owner, in_force: Arc::clone(&self.in_force), targets }
    }

    pub(crate) async fn close(self) {
        self.engine.close().await;
        if let Some(nameserver) = self.nameserver {
            nameserver.shutdown().await;
        }
    }
}
