//! Options of a node: its directory and addresses, its peers, secrets and timings.

use std::{path::PathBuf, time::Duration};

/// How a node of a cluster is set up.
#[derive(Debug, Clone)]
pub struct RaftOptions {
    /// The directory of this node, which no other process uses.
    pub path: PathBuf,
    /// Where this node listens to the others: `address:port`.
    pub listen: String,
    /// Where others reach it, if that is not `listen`.
    pub advertise: Option<String>,
    /// The other nodes of a new cluster. Looked at by a node that is in no cluster yet; afterwards the cluster itself knows
    /// who is in it.
    pub peers: Vec<String>,
    /// A node of a cluster that this one is to join, if it is in none yet.
    pub join: Option<String>,
    pub security: RaftSecurity,
    /// How long a read or a commit may take, elections included.
    pub timeout: Duration,
    pub timings: RaftTimings,
    /// The name of this node, for people.
    pub name: String,
    /// Where people reach this node's API, if it has one.
    pub api: String,
    /// The newest format of stored values this release can write.
    pub format: u32,
}

/// How nodes know each other. The certificates are PEM texts.
#[derive(Clone)]
pub enum RaftSecurity {
    /// A text all nodes have: authenticated, not encrypted.
    Secret(String),
    /// Certificates that one authority signed for each node's name or address.
    Tls { ca: String, cert: String, key: String },
}

/// When a leader is held to be dead. The defaults suit one site: a new one leads 0.9 s to 1.3 s after the old one died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RaftTimings {
    /// The interval of the leader's heartbeats.
    pub heartbeat: Duration,
    /// For the longer of both a silent leader is trusted; another node stands up to their difference later.
    pub election: (Duration, Duration),
    /// Entries after which the log is cut, and how many stay for nodes that are a little behind.
    pub keep: u64,
}

impl Default for RaftTimings {
    fn default() -> Self {
        Self {
            heartbeat: Duration::from_millis(100),
            election: (Duration::from_millis(400), Duration::from_millis(800)),
            keep: 5000,
        }
    }
}

impl RaftOptions {
    pub fn new(path: impl Into<PathBuf>, listen: impl Into<String>, security: RaftSecurity) -> Self {
        Self {
            path: path.into(),
            listen: listen.into(),
            advertise: None,
            peers: Vec::new(),
            join: None,
            security,
            timeout: Duration::from_secs(5),
            timings: RaftTimings::default(),
            name: String::new(),
            api: String::new(),
            format: 1,
        }
    }

    /// Where others reach this node.
    pub fn address(&self) -> &str {
        self.advertise.as_deref().unwrap_or(&self.listen)
    }
}

// Secrets and keys stay out of logs.
impl std::fmt::Debug for RaftSecurity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Secret(_) => "Secret",
            Self::Tls { .. } => "Tls",
        })
    }
}
