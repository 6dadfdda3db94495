//! The REST API: everything that is not Rust reaches the ledger and the engine through it.
//!
//! ```text
//!  request ─► envelope ─► host_check ─► auth ─► forward ─► routes ─► convert ─► Ledger, Engine
//!             id, errors  Host, Origin  token   to the     handler   JSON to
//!             as problem                role    leader if            commands
//!             details                   scope   needed
//! ```
//!
//! - [`Api`]: what the API serves, built by the binary; [`bind`] and [`serve`](fn@serve) listen.
//! - `http`: the layers around every handler, in the order of the picture. `routes.rs` has the table of routes, `routes/` one
//!   file per part of the API.
//! - `convert`: between the JSON types of `netstead_client` and the types of the ledger and the engine.
//! - `problem`: every error as problem details (RFC 9457) with a stable kind.
//! - [`access`]: tokens, roles and scopes.
//! - [`cluster`]: the nodes that share a store, the current leader, and the format that all of them understand.
//! - `ports.rs`: traits that the binary implements: [`ConfigReader`], [`HostDoctor`].
//! - `external_dns.rs`: a listener that external-dns writes to.
//! - `usage_history`: how full pools were, and how much changed per day: [`UsageRecorder`] writes it.
//! - `pages.rs`: [`Pages`], which the web page is built on.
//! - `metrics`: Prometheus. `event_feed.rs`: events for streams. `openapi.rs`: the document, made from the handlers.
//!
//! Start with `routes.rs`, then follow one handler: `routes/claiming.rs`.

pub mod access;
mod app;
pub mod cluster;
mod convert;
mod daily_backups;
mod event_feed;
mod external_dns;
mod http;
mod metrics;
mod openapi;
mod pages;
mod ports;
mod problem;
mod routes;
mod serve;
mod usage_history;

use std::{net::SocketAddr, sync::Arc};

use jiff::Timestamp;
use netstead_engine::Engine;
use netstead_ledger::{Backends, Ledger};
use netstead_model::Clock;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

pub use self::serve::{Bound, CONNECTIONS, ServeError, ServeOptions, Server, TlsFiles, bind, serve};
use self::{
    access::Tokens,
    app::App,
    cluster::{Cluster, EngineSlot, Peers},
    http::host_check::HostCheck,
    metrics::Metrics,
    usage_history::UsageCache,
};
pub use self::{
    daily_backups::{BackupFailure, BackupState, DailyBackups},
    external_dns::{ExternalDns, ExternalDnsOptions},
    metrics::Meter,
    pages::{PageListener, Pages, PeerAddress},
    ports::{ConfigReader, HostDoctor, KindNames, ParsedConfig},
    usage_history::{RecordError, UsageRecorder},
};

/// Everything the API serves. Cheap to clone; several listeners may share one.
#[derive(Debug, Clone)]
pub struct Api {
    ledger: Ledger,
    engine_slot: EngineSlot,
    cluster: Option<(Cluster, Peers)>,
    nameserver: Arc<[String]>,
    kinds: Arc<KindNames>,
    reader: Option<Arc<dyn ConfigReader>>,
    what_if_turn: Arc<Semaphore>,
    examiner: Option<Arc<dyn HostDoctor>>,
    daily_backups: Option<DailyBackups>,
    external_dns: Option<ExternalDns>,
    pages: Option<Arc<dyn Pages>>,
    backends: Backends,
    tokens: Tokens,
    clock: Arc<dyn Clock>,
    store: Arc<str>,
    metrics: Arc<Metrics>,
    started: Timestamp,
    usage: Arc<UsageCache>,
}

impl Api {
    /// `store` describes the store for people: `local at /var/lib/netstead`.
    pub fn new(ledger: Ledger, tokens: Tokens, clock: Arc<dyn Clock>, store: &str) -> Self {
        let (metrics, started) = (Arc::new(Metrics::default()), clock.wall());
        let (engine_slot, cluster) = (EngineSlot::default(), None);
        let (nameserver, reader, examiner) = (Arc::from([]), None, None);
        Self {
            ledger,
            engine_slot,
            cluster,
            nameserver,
            kinds: Arc::default(),
            reader,
            what_if_turn: Arc::new(Semaphore::new(1)),
            examiner,
            daily_backups: None,
            external_dns: None,
            pages: None,
            backends: Backends::default(),
            tokens,
            clock,
            store: store.into(),
            metrics,
            started,
            usage: Arc::default(),
        }
    }

    /// Adds an engine. Without one, requests about names are answered with 503.
    #[must_use]
    pub fn with_engine(self, engine: Engine) -> Self {
        self.engine_slot.install(engine);
        self
    }

    /// Adds a slot that has the engine while this node leads.
    #[must_use]
    pub fn with_engine_slot(mut self, engine_slot: &EngineSlot) -> Self {
        self.engine_slot = engine_slot.clone();
        self
    }

    /// Makes this one of several nodes: requests that only the leader can answer are forwarded to it.
    #[must_use]
    pub fn with_cluster(mut self, cluster: &Cluster, peers: &Peers) -> Self {
        self.cluster = Some((cluster.clone(), peers.clone()));
        self
    }

    /// Names the kinds of sources and providers in the `OpenAPI` document. Without it they are any text there.
    #[must_use]
    pub fn with_kinds(mut self, kinds: KindNames) -> Self {
        self.kinds = Arc::new(kinds);
        self
    }

    /// Adds a reader of configuration files, for what-if plans.
    #[must_use]
    pub fn with_config_reader(mut self, reader: Arc<dyn ConfigReader>) -> Self {
        self.reader = Some(reader);
        self
    }

    /// Adds host checks (file, nameserver, resolvers) to `/doctor`.
    #[must_use]
    pub fn with_host_doctor(mut self, examiner: Arc<dyn HostDoctor>) -> Self {
        self.examiner = Some(examiner);
        self
    }

    /// Takes calls of external-dns that other nodes send to this one.
    #[must_use]
    pub fn with_external_dns(mut self, tables: &ExternalDns) -> Self {
        self.external_dns = Some(tables.clone());
        self
    }

    /// Puts pages around the API, on each of its listeners.
    #[must_use]
    pub fn with_pages(mut self, pages: Arc<dyn Pages>) -> Self {
        self.pages = Some(pages);
        self
    }

    /// With the state of the backups that are written every day.
    #[must_use]
    pub fn with_daily_backups(mut self, backups: &DailyBackups) -> Self {
        self.daily_backups = Some(backups.clone());
        self
    }

    /// Adds the backends that pools may draw from.
    #[must_use]
    pub fn with_backends(mut self, backends: &Backends) -> Self {
        self.backends = backends.clone();
        self
    }

    /// Adds the counters of other crates. Without it `/metrics` has no passes and no calls to servers.
    #[must_use]
    pub fn with_meter(mut self, meter: &Meter) -> Self {
        self.metrics = Arc::new(Metrics::new(meter));
        self
    }

    /// Sets the addresses at which the nameserver answers.
    #[must_use]
    pub fn with_nameserver(mut self, addresses: &[SocketAddr]) -> Self {
        self.nameserver = addresses.iter().map(ToString::to_string).collect();
        self
    }

    /// All routes as one listener sees them. Once `stopping` is cancelled `/readyz` fails and streams end.
    fn router(&self, host_check: HostCheck, max_body: usize, stopping: CancellationToken) -> axum::Router {
        let app = self.app(host_check, max_body, stopping);
        let router = routes::router(&app, &self.kinds);
        let router = match &self.external_dns {
            // Its answers are those of external-dns, so nothing else is put around them.
            Some(tables) => router.merge(routes::behind_host_check(tables.forwarded_routes(), &app)),
            None => router,
        };
        match &self.pages {
            Some(pages) => pages::around(&**pages, router, &app),
            None => router,
        }
    }

    /// The few routes of a listener for probes.
    fn probes(&self, host_check: HostCheck, stopping: CancellationToken) -> axum::Router {
        routes::probes::router(&self.app(host_check, 0, stopping))
    }

    fn app(&self, host_check: HostCheck, max_body: usize, stopping: CancellationToken) -> app::AppState {
        Arc::new(App {
            ledger: self.ledger.clone(),
            engine_slot: self.engine_slot.clone(),
            cluster: self.cluster.clone(),
            nameserver: Arc::clone(&self.nameserver),
            reader: self.reader.clone(),
            what_if_turn: Arc::clone(&self.what_if_turn),
            examiner: self.examiner.clone(),
            daily_backups: self.daily_backups.clone(),
            pages: self.pages.clone(),
            backends: self.backends.clone(),
            tokens: self.tokens.clone(),
            clock: Arc::clone(&self.clock),
            metrics: Arc::clone(&self.metrics),
            started: self.started,
            usage: Arc::clone(&self.usage),
            store: Arc::clone(&self.store),
            host_check,
            failed: http::failed_requests::FailedRequests::default(),
            max_body,
            stopping,
        })
    }
}
