//! Starts the nameserver where the command line, the file or the default says.

use std::{net::SocketAddr, sync::Arc};

use netstead_model::SystemClock;
use netstead_nameserver::{NameServer, Options, StartError};
use netstead_store::Store;
use netstead_wire::{Connections, QueryCounts};
use tracing::warn;

use crate::{config::NameserverConfig, failure::Failure};

/// Whether and where the nameserver listens, for people.
#[derive(Debug)]
pub(crate) enum NameserverState {
    Listening(Vec<SocketAddr>),
    /// The default address was not configured, and another process has it.
    NotListening {
        place: SocketAddr,
        reason: String,
    },
}

impl NameserverState {
    /// Why it does not answer.
    pub(crate) fn why_not_listening(&self) -> Option<String> {
        match self {
            Self::Listening(_) => None,
            Self::NotListening { place, reason } => Some(format!("{place}: {reason}")),
        }
    }

    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        match self {
            Self::Listening(addresses) => addresses,
            Self::NotListening { .. } => &[],
        }
    }
}

/// Starts it where the command line or the file says, which must succeed, or at the usual place if that is free.
pub(super) async fn start(
    store: &Arc<dyn Store>,
    config: &NameserverConfig,
    listen: &[SocketAddr],
    connections: Connections,
    queries: QueryCounts,
) -> anyhow::Result<(Option<NameServer>, NameserverState)> {
    let usual = Options::default();
    let asked = if listen.is_empty() { config.listen.clone() } else { listen.to_vec() };
    let options = Options {
        listen: if asked.is_empty() { usual.listen.clone() } else { asked.clone() },
        hostname: config.hostname.clone(),
        transfer_to: config.transfer_to.clone(),
        notify: config.notify.clone(),
        connections,
        queries,
        ..usual
    };
    match NameServer::start(Arc::clone(store), SystemClock::shared(), options).await {
        Ok(server) => {
            let addresses = server.local_addrs().to_vec();
            Ok((Some(server), NameserverState::Listening(addresses)))
        }
        Err(StartError::Listen { address, source }) if asked.is_empty() => {
            warn!(%address, error = %source, "The nameserver does not run: its usual place is taken.");
            Ok((None, NameserverState::NotListening { place: address, reason: source.to_string() }))
        }
        Err(error @ StartError::Listen { .. }) => {
            let hint = "another server may be there already: choose another place with `--dns-listen`";
            Err(anyhow::Error::from(error).context(Failure::new("names cannot be answered for").hint(hint)))
        }
        Err(error) => Err(error.into()),
    }
}
