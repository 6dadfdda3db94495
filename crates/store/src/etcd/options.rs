//! Options: endpoints, prefix, credentials and timeouts of an etcd.

use std::time::Duration;

use netstead_wire::{Tls, etcd::EtcdConnection};

/// How an etcd is reached.
#[derive(Clone)]
pub struct EtcdOptions {
    /// `http://host:2379` or `https://…`; any that answers will do.
    pub endpoints: Vec<String>,
    /// All our keys start with this; nothing else is touched.
    pub prefix: String,
    pub user: Option<(String, String)>,
    /// For endpoints that begin with `https://`.
    pub tls: Tls,
    /// How long one request may take on one endpoint.
    pub timeout: Duration,
    /// How long the lead outlives its holder. etcd itself allows no less than 2 s with its default timings.
    pub lease: Duration,
}

impl EtcdOptions {
    pub fn new(endpoints: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            endpoints: endpoints.into_iter().map(Into::into).collect(),
            prefix: "/netstead/".into(),
            user: None,
            tls: Tls::default(),
            timeout: Duration::from_secs(5),
            lease: Duration::from_secs(2),
        }
    }

    pub(super) fn connection(&self) -> EtcdConnection {
        EtcdConnection {
            user: self.user.clone(),
            tls: self.tls.clone(),
            timeout: self.timeout,
            ..EtcdConnection::new(self.endpoints.clone())
        }
    }
}

// Passwords and keys stay out of logs.
impl std::fmt::Debug for EtcdOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EtcdOptions")
            .field("endpoints", &self.endpoints)
            .field("prefix", &self.prefix)
            .field("user", &self.user.as_ref().map(|(name, _)| name))
            .field("timeout", &self.timeout)
            .field("lease", &self.lease)
            .finish_non_exhaustive()
    }
}
