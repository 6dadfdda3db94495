//! [`Peers`]: the HTTP client for other nodes.

use std::{path::PathBuf, time::Duration};

use netstead_wire::files;
use reqwest::{Certificate, Client, redirect::Policy};

use crate::http::forward::root_cause;

/// A node that does not take a connection for this long is taken for gone.
const CONNECT: Duration = Duration::from_secs(2);
/// How soon a connection to a machine that lost its power is known to be dead.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// Why no client for the other nodes could be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PeerError {
    #[error("{} of `[api] peer_ca_file` holds no certificate: {reason}", path.display())]
    Certificates { path: PathBuf, reason: String },
    #[error("the client for the other nodes cannot start")]
    Client(#[from] reqwest::Error),
}

/// The client with which requests are sent on. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Peers {
    pub(crate) http: Client,
}

impl Peers {
    /// Trusts those that `ca_file` (PEM) signed, or whom the machine trusts.
    pub fn new(ca_file: Option<PathBuf>) -> Result<Self, PeerError> {
        let mut builder = Client::builder()
            .user_agent(concat!("netstead-node/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT)
            .tcp_keepalive(KEEP_ALIVE)
            .tcp_nodelay(true)
            // A token follows no redirect, and no variable of the environment leads it elsewhere.
            .redirect(Policy::none())
            .no_proxy();
        if let Some(path) = ca_file {
            let wrong = |reason: String| PeerError::Certificates { path: path.clone(), reason };
            let pem = files::read(&path, files::MOST_OF_PEM).map_err(|error| wrong(error.to_string()))?;
            let certificates =
                Certificate::from_pem_bundle(&pem).map_err(|error| wrong(error.to_string()))?;
            if certificates.is_empty() {
                return Err(wrong("there is no `BEGIN CERTIFICATE` in it".into()));
            }
            builder = builder.tls_certs_only(certificates);
        }
        Ok(Self { http: builder.build()? })
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
