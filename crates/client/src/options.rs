//! Options of the client.

use std::{path::PathBuf, time::Duration};

/// How long, how often and how trustingly.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long one call may take with all its repetitions. A waiting claim's own wait counts on top.
    pub timeout: Duration,
    /// How long a connection may take to come up.
    pub connect_timeout: Duration,
    /// How often a call that may be repeated is repeated.
    pub retries: u32,
    /// The pause before the first repetition; each further one is twice as long, with some jitter.
    pub backoff: Duration,
    /// Certificates (PEM) to trust instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// Take what the server knows of addresses, however old: it need not ask its store.
    pub stale: bool,
    /// Believe any certificate. For trying things out only.
    pub insecure: bool,
    /// The name of this client in the server's logs.
    pub user_agent: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(5),
            retries: 3,
            backoff: Duration::from_millis(100),
            ca_file: None,
            stale: false,
            insecure: false,
            user_agent: concat!("netstead/", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }
}
