//! [`TemporaryLeader`]: leads a store for one command, with the engine of the configuration and without any listener but the
//! API on a random port of loopback.

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use jiff::Timestamp;
use netstead_api::{Api, Bound, DailyBackups, Meter, ServeOptions, access::Tokens, cluster::Cluster};
use netstead_client::{Client, Options};
use netstead_engine::Engine;
use netstead_ledger::Ledger;
use netstead_model::{Clock as _, SystemClock};
use netstead_store::Store;
use tokio_util::sync::CancellationToken;

use crate::{
    cli::Global,
    config::Config,
    dns_service::{DnsService, Writes},
    failure::Failure,
    leadership::Leadership,
    loaded_config::LoadedConfig,
    local_server::{follow_ledger, token},
    node::Node,
    run::stop_on_signal,
    session,
    store_location::{StoreLocation, with_apply_hint},
};

/// How a command leads, and which store.
#[derive(Debug)]
pub(crate) struct TemporaryLeader {
    config: Config,
    place: StoreLocation,
    writes: Writes,
    /// How long another leader may keep the store.
    patience: Duration,
    options: Options,
}

/// The engine while it runs, and a client of its API.
#[derive(Debug)]
pub(crate) struct Running<'a> {
    pub(crate) client: Client,
    /// Before anything was done.
    pub(crate) since: Timestamp,
    pub(crate) engine: &'a Engine,
}

impl TemporaryLeader {
    /// Leads the store that the configuration names.
    pub(crate) fn of(settings: &LoadedConfig, global: &Global, writes: Writes, patience: Duration) -> Self {
        let (config, place) = (settings.config.clone(), settings.store(global));
        Self { config, place, writes, patience, options: session::options(global) }
    }

    /// Works in memory: looks at what is configured, and nothing of it is stored, written or sent to people.
    pub(crate) fn in_memory(config: Config, global: &Global, patience: Duration) -> Self {
        let config = Config { notify: None, ..config };
        let options = session::options(global);
        Self { config, place: StoreLocation::Memory, writes: Writes::Nothing, patience, options }
    }

    /// Leads, does `work`, and gives everything back.
    pub(crate) async fn run<T>(
        &self,
        work: impl AsyncFnOnce(Running<'_>) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let stop = stop_on_signal()?;
        let store = self.place.open().await.map_err(with_apply_hint)?;
        let done = Box::pin(self.with_store(&store, &stop, work)).await;
        store.close().await;
        done
    }

    async fn with_store<T>(
        &self,
        store: &Arc<dyn Store>,
        stop: &CancellationToken,
        work: impl AsyncFnOnce(Running<'_>) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let options = ServeOptions { linger: Duration::ZERO, ..ServeOptions::new("127.0.0.1:0") };
        let bound = netstead_api::bind(options).await?;
        let node = Node::of(&self.place, &**store);
        let cluster = node.join(store, format!("http://{}", bound.address())).await?;
        let ledger = follow_ledger(store, &self.config.ledger, !self.place.is_shared()).await?;
        let done = self.with_ledger(store, &ledger, &cluster, bound, stop, work).await;
        ledger.close().await;
        done
    }

    async fn with_ledger<T>(
        &self,
        store: &Arc<dyn Store>,
        ledger: &Ledger,
        cluster: &Cluster,
        bound: Bound,
        stop: &CancellationToken,
        work: impl AsyncFnOnce(Running<'_>) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let meter = Meter::default();
        let names = DnsService::start(store, ledger, &self.config, None, &meter).await?;
        let leadership = Leadership {
            store,
            ledger,
            names: &names,
            cluster,
            shared: self.place.is_shared(),
            writes: self.writes,
            backups: &DailyBackups::default(),
            stop,
            // It works as long as a server does.
            #[cfg(feature = "kubernetes")]
            operator: None,
        };
        let done = Box::pin(self.lead(&leadership, bound, work)).await;
        names.close().await;
        done
    }

    async fn lead<T>(
        &self,
        leadership: &Leadership<'_>,
        bound: Bound,
        work: impl AsyncFnOnce(Running<'_>) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let Leadership { store, ledger, names, stop, .. } = *leadership;
        let since = SystemClock.wall();
        let led = stop.run_until_cancelled(tokio::time::timeout(self.patience, leadership.acquire())).await;
        let (epoch, engine) = led.context(STOPPED)?.map_err(|_| self.led_by_another())??;
        let tokens = Tokens::open(Arc::clone(store), SystemClock::shared()).await?;
        let (token, made) = token(&tokens).await?;
        let api = Api::new(ledger.clone(), tokens.clone(), SystemClock::shared(), &self.place.to_string())
            .with_engine_slot(names.engine_slot())
            .with_backends(names.backends());
        let url = format!("http://{}", bound.address());
        let ending = CancellationToken::new();
        let server = bound.serve(&api, ending.clone());
        let client = Client::new(&url, Some(&token), self.options.clone())?;
        let done = tokio::select! {
            done = work(Running { client, since, engine: &engine }) => done,
            () = leadership.lead_until_deposed(epoch, &engine) => Err(self.led_by_another().into()),
            () = stop.cancelled() => Err(anyhow::anyhow!(STOPPED)),
        };
        ending.cancel();
        server.ended().await?;
        if let Some(id) = made {
            tokens.revoke(&id).await?;
        }
        done
    }

    fn led_by_another(&self) -> Failure {
        let hint = "talk to that one: `netstead apply` has it look and act now";
        Failure::new(format!("a server leads the store ({})", self.place)).hint(hint)
    }
}

const STOPPED: &str = "stopped by a signal";
