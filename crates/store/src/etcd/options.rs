//! Options: endpoints, prefix, credentials and timeouts of an etcd.

use std::time::Duration;

/// How an etcd is reached.
#[derive(Clone)]
pub struct EtcdOptions {
    /// `http://host:2379` or `https://…`; any that answers will do.
    pub endpoints: Vec<String>,
    /// All our keys start with this; nothing else is touched.
    pub prefix: String,
    pub user: Option<(String, String)>,
    pub tls: EtcdTls,
    /// How long one request may take on one endpoint.
    pub timeout: Duration,
    /// How long the lead outlives its holder. etcd itself allows no less than 2 s with its default timings.
    pub lease: Duration,
}

/// PEM texts. With none of them the roots of the machine are trusted and no certificate is shown.
#[derive(Clone, Default)]
pub struct EtcdTls {
    pub ca: Option<String>,
    /// Certificate and key.
    pub identity: Option<(String, String)>,
    /// The name the server's certificate must have, if it is not the endpoint's host.
    pub server_name: Option<String>,
}

impl EtcdOptions {
    pub fn new(endpoints: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            endpoints: endpoints.into_iter().map(Into::into).collect(),
            prefix: "/netstead/".into(),
            user: None,
            tls: EtcdTls::default(),
            timeout: Duration::from_secs(5),
            lease: Duration::from_secs(2),
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

impl std::fmt::Debug for EtcdTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EtcdTls").field("server_name", &self.server_name).finish_non_exhaustive()
    }
}
