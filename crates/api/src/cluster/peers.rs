//! [`Peers`]: the HTTP client for other nodes.
//!
//! The client comes from `wire`, where redirects and TLS are set. Requests are not sent through `wire::http::Http`: they are a
//! caller's own, go once, to whichever node leads, and their answers are passed on while they arrive.

use std::{path::PathBuf, time::Duration};

use netstead_wire::{Tls, http::ClientSettings};
use reqwest::Client;

use crate::http::forward::root_cause;

/// A node that does not take a connection for this long is taken for gone.
const CONNECT: Duration = Duration::from_secs(2);
/// How soon a connection to a machine that lost its power is known to be dead.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// Why no client for the other nodes could be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PeerError {
    #[error("`[api] peer_ca_file`: {reason}")]
    Certificates { reason: String },
    #[error("the client for the other nodes cannot start: {reason}")]
    Client { reason: String },
}

/// The client with which requests are sent on. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Peers {
    pub(crate) http: Client,
}

impl Peers {
    /// Trusts those that `ca_file` (PEM) signed, or whom the machine trusts.
    pub fn new(ca_file: Option<PathBuf>) -> Result<Self, PeerError> {
        let tls = Tls { ca_file, ..Tls::default() };
        let settings = ClientSettings {
            user_agent: concat!("netstead-node/", env!("CARGO_PKG_VERSION")),
            connect_timeout: CONNECT,
            keep_alive: Some(KEEP_ALIVE),
            // No variable of the environment leads a token elsewhere.
            proxy: false,
            socket: None,
            tls: Some(&tls),
        };
        let http = settings.build().map_err(|error| match error.key {
            "ca_file" => PeerError::Certificates { reason: error.problem },
            _ => PeerError::Client { reason: error.problem },
        })?;
        Ok(Self { http })
    }

    /// Whether a node answers at `url`; or why it does not.
    pub(crate) async fn reach(&self, url: &str) -> Result<(), String> {
        let asked =
            self.http.get(format!("{}/healthz", url.trim_end_matches('/'))).timeout(CONNECT).send().await;
        match asked.and_then(reqwest::Response::error_for_status) {
            Ok(_) => Ok(()),
            Err(error) => Err(root_cause(&error.without_url())),
        }
    }
}
