//! The wiring of names: sources, providers and the nameserver, as the configuration has them.

mod calls;
mod nameserver;
mod reload;
mod setup;

use std::sync::Arc;

use netstead_api::Meter;
use netstead_engine::{Engine, Options};
use netstead_ledger::{Ledger, LedgerSource};
use netstead_model::SystemClock;
use netstead_nameserver::NameServer;
use netstead_store::Store;

use self::setup::Parts;
pub(crate) use self::{nameserver::Answering, reload::Reload};
use crate::config::Config;

/// Everything that keeps names.
#[derive(Debug)]
pub(crate) struct Names {
    pub(crate) engine: Engine,
    pub(crate) answering: Answering,
    nameserver: Option<NameServer>,
    parts: Parts,
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
        let parts = Parts { store: store_of, owner, ledger: Arc::new(source), meter: meter_of };
        let (nameserver, answering) = nameserver::start(store, &config.nameserver, listen).await?;
        let options = Options { dry_run, observer: Some(Arc::new(meter.clone())), ..Options::default() };
        let setup = parts.setup(config).await?;
        let engine = Engine::start(Arc::clone(store), SystemClock::shared(), setup, options).await?;
        Ok(Self { engine, answering, nameserver, parts })
    }

    /// Goes on with another configuration, if all of it can be had.
    async fn reconfigure(&self, config: &Config) -> anyhow::Result<()> {
        let setup = self.parts.setup(config).await?;
        Ok(self.engine.reconfigure(setup).await?)
    }

    pub(crate) async fn close(self) {
        self.engine.close().await;
        if let Some(nameserver) = self.nameserver {
            nameserver.shutdown().await;
        }
    }
}
