//! [`App`]: the state that every handler gets.

use std::sync::Arc;

use jiff::Timestamp;
use netstead_ledger::{Backends, Ledger};
use netstead_model::Clock;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::{
    ConfigReader, DailyBackups, HostDoctor, Pages,
    access::Tokens,
    cluster::{Cluster, EngineSlot, Peers},
    http::{failed_requests::FailedRequests, host_check::HostCheck},
    metrics::Metrics,
    usage_history::UsageCache,
};

pub(crate) type AppState = Arc<App>;

/// The API behind one listener.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) ledger: Ledger,
    /// The engine; empty when only the ledger is open, and while another node leads.
    pub(crate) engine_slot: EngineSlot,
    /// The other nodes; none when only the ledger is open.
    pub(crate) cluster: Option<(Cluster, Peers)>,
    /// Where the nameserver of this process answers.
    pub(crate) nameserver: Arc<[String]>,
    /// The reader of configuration files.
    pub(crate) reader: Option<Arc<dyn ConfigReader>>,
    /// Lets one request at a time plan a configuration: a plan may need much time and memory.
    pub(crate) what_if_turn: Arc<Semaphore>,
    pub(crate) examiner: Option<Arc<dyn HostDoctor>>,
    /// The pages around the API, if there are some.
    pub(crate) pages: Option<Arc<dyn Pages>>,
    /// How the daily backups stand, where some are written.
    pub(crate) daily_backups: Option<DailyBackups>,
    /// The backends that pools may draw from.
    pub(crate) backends: Backends,
    pub(crate) tokens: Tokens,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) started: Timestamp,
    /// The history of pools as it was read last.
    pub(crate) usage: Arc<UsageCache>,
    /// The store, for people: `local at /var/lib/netstead`.
    pub(crate) store: Arc<str>,
    pub(crate) host_check: HostCheck,
    /// Requests that were logged as failed.
    pub(crate) failed: FailedRequests,
    /// Most bytes of a body.
    pub(crate) max_body: usize,
    /// The server is about to end: `/readyz` says so, streams end, waiting claims answer.
    pub(crate) stopping: CancellationToken,
}
