//! [`EtcdConnection`]: endpoints, credentials and timeouts of an etcd.

use std::time::Duration;

use crate::Tls;

const TIMEOUT: Duration = Duration::from_secs(5);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// How an etcd is reached.
#[derive(Clone)]
pub struct EtcdConnection {
    /// `http://host:2379` or `https://…`; any that answers will do.
    pub endpoints: Vec<String>,
    pub user: Option<(String, String)>,
    /// For endpoints that begin with `https://`.
    pub tls: Tls,
    /// How long one request may take on one endpoint.
    pub timeout: Duration,
    pub connect_timeout: Duration,
}

impl EtcdConnection {
    pub fn new(endpoints: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            endpoints: endpoints.into_iter().map(Into::into).collect(),
            user: None,
            tls: Tls::default(),
            timeout: TIMEOUT,
            connect_timeout: CONNECT_TIMEOUT,
        }
    }
}

// Passwords and keys stay out of logs.
impl std::fmt::Debug for EtcdConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EtcdConnection")
            .field("endpoints", &self.endpoints)
            .field("user", &self.user.as_ref().map(|(name, _)| name))
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
