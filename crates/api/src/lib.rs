//! The REST API: every door to the ledger that is not Rust.
//!
//! A request passes the frame (its id, its errors), the door (is it meant for us), authentication, and then a handler
//! that turns JSON into a command or a look into the Book. `/api/v1/openapi.json` describes all of it.

pub mod access;
mod app;
pub mod cluster;
mod convert;
mod event_feed;
mod http;
mod metrics;
mod openapi;
mod ports;
mod problem;
mod routes;
mod serve;

use std::{net::SocketAddr, sync::Arc};

use jiff::Timestamp;
use netstead_engine::Engine;
use netstead_ledger::Ledger;
use netstead_model::Clock;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

pub use self::serve::{Bound, ServeError, ServeOptions, Server, TlsFiles, bind, serve};
use self::{
    access::Tokens,
    app::App,
    cluster::{Cluster, EngineSlot, Peers},
    http::host_check::HostCheck,
    metrics::Metrics,
};
pub use self::{
    metrics::Meter,
    ports::{ConfigReader, HostDoctor, ParsedConfig},
};

/// What the API is made of. Cheap to clone; several listeners may share one.
#[derive(Debug, Clone)]
pub struct Api {
    ledger: Ledger,
    engine_slot: EngineSlot,
    cluster: Option<(Cluster, Peers)>,
    nameserver: Arc<[String]>,
    reader: Option<Arc<dyn ConfigReader>>,
    what_if_turn: Arc<Semaphore>,
    examiner: Option<Arc<dyn HostDoctor>>,
    tokens: Tokens,
    clock: Arc<dyn Clock>,
    store: Arc<str>,
    metrics: Arc<Metrics>,
    started: Timestamp,
}

impl Api {
    /// `store` says for people what kind of store it is: `local at /var/lib/netstead`.
    pub fn new(ledger: Ledger, tokens: Tokens, clock: Arc<dyn Clock>, store: &str) -> Self {
        let (metrics, started) = (Arc::new(Metrics::default()), clock.wall());
        let (engine_slot, cluster) = (EngineSlot::default(), None);
        let (nameserver, reader, examiner) = (Arc::from([]), None, None);
        Self {
            ledger,
            engine_slot,
            cluster,
            nameserver,
            reader,
            what_if_turn: Arc::new(Semaphore::new(1)),
            examiner,
            tokens,
            clock,
            store: store.into(),
            metrics,
            started,
        }
    }

    /// With names. Without this, whatever concerns them is answered with 503.
    #[must_use]
    pub fn with_engine(self, engine: Engine) -> Self {
        self.engine_slot.install(engine);
        self
    }

    /// With a place where the engine comes and goes.
    #[must_use]
    pub fn with_engine_slot(mut self, engine_slot: &EngineSlot) -> Self {
        self.engine_slot = engine_slot.clone();
        self
    }

    /// As one node among others: what only their leader can answer is sent to it.
    #[must_use]
    pub fn with_cluster(mut self, cluster: &Cluster, peers: &Peers) -> Self {
        self.cluster = Some((cluster.clone(), peers.clone()));
        self
    }

    /// With somebody who understands configuration files, to answer what one would change.
    #[must_use]
    pub fn with_config_reader(mut self, reader: Arc<dyn ConfigReader>) -> Self {
        self.reader = Some(reader);
        self
    }

    /// With somebody who looks at what is around the house, for `/doctor`.
    #[must_use]
    pub fn with_host_doctor(mut self, examiner: Arc<dyn HostDoctor>) -> Self {
        self.examiner = Some(examiner);
        self
    }

    /// With what others count. Calls to servers and passes are missing in `/metrics` without it.
    #[must_use]
    pub fn with_meter(mut self, meter: &Meter) -> Self {
        self.metrics = Arc::new(Metrics::new(meter));
        self
    }

    /// Tells where the nameserver answers.
    #[must_use]
    pub fn with_nameserver(mut self, addresses: &[SocketAddr]) -> Self {
        self.nameserver = addresses.iter().map(ToString::to_string).collect();
        self
    }

    /// All routes as one listener sees them. Once `stopping` is cancelled `/readyz` fails and streams end.
    fn router(&self, host_check: HostCheck, max_body: usize, stopping: CancellationToken) -> axum::Router {
        routes::router(&self.app(host_check, max_body, stopping))
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
            tokens: self.tokens.clone(),
            clock: Arc::clone(&self.clock),
            metrics: Arc::clone(&self.metrics),
            started: self.started,
            store: Arc::clone(&self.store),
            host_check,
            max_body,
            stopping,
        })
    }
}
