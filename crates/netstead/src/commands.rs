//! One module per command.

pub(crate) mod address_drift;
pub(crate) mod adopt_and_rollback;
pub(crate) mod changes;
pub(crate) mod claim;
pub(crate) mod claim_file;
pub(crate) mod cluster;
pub(crate) mod complete_values;
pub(crate) mod completions_and_man;
pub(crate) mod config;
pub(crate) mod describe;
pub(crate) mod dns;
pub(crate) mod doctor;
pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod get;
pub(crate) mod import;
pub(crate) mod import_ipam;
pub(crate) mod import_netaddr;
pub(crate) mod migrate;
pub(crate) mod once;
#[cfg(feature = "kubernetes")]
pub(crate) mod operator;
pub(crate) mod plan;
pub(crate) mod pool;
pub(crate) mod release;
pub(crate) mod reserve;
pub(crate) mod status;
pub(crate) mod store;
pub(crate) mod token;
pub(crate) mod watch;
pub(crate) mod web;
pub(crate) mod without_server;
pub(crate) mod workload_list;

use std::sync::Arc;

use jiff::Timestamp;
use netstead_client::Client;
use netstead_model::Clock;

use crate::cli::Format;

/// The parts that commands with a server share.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) format: Option<Format>,
}

impl Context {
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.wall()
    }
}

/// Says something to the person at the terminal.
macro_rules! say {
    ($($words:tt)*) => {
        anstream::eprintln!("{}", crate::output::plain(&format!($($words)*)))
    };
}
pub(crate) use say;

/// So many of them: `1 claim`, `2 claims`.
pub(crate) fn many(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
