//! [`ClientSettings`]: the one place where an HTTP client is made.

use std::{path::PathBuf, time::Duration};

use netstead_settings::SettingsError;

use crate::{Tls, tls::ALPN_HTTP};

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(5);

/// Properties in which our HTTP clients differ. All of them follow no redirect, because a secret must not.
#[derive(Debug, Clone)]
pub struct ClientSettings<'a> {
    pub user_agent: &'a str,
    /// How long a connection may take.
    pub connect_timeout: Duration,
    /// How often an idle connection is probed, so that one to a dead machine is noticed.
    pub keep_alive: Option<Duration>,
    /// Whether the proxy that the environment names is used.
    pub proxy: bool,
    /// A socket of this machine instead of a TCP connection.
    pub socket: Option<PathBuf>,
    /// None: the client speaks plain HTTP only, and a machine without any root certificate will do.
    pub tls: Option<&'a Tls>,
}

impl Default for ClientSettings<'_> {
    fn default() -> Self {
        Self {
            user_agent: concat!("netstead/", env!("CARGO_PKG_VERSION")),
            connect_timeout: CONNECT,
            keep_alive: None,
            proxy: true,
            socket: None,
            tls: None,
        }
    }
}

impl ClientSettings<'_> {
    /// Reads the files of `tls`. Nothing is connected yet.
    pub fn build(self) -> Result<reqwest::Client, SettingsError> {
        let mut builder = reqwest::Client::builder()
            .user_agent(self.user_agent)
            .connect_timeout(self.connect_timeout)
            .tcp_keepalive(self.keep_alive)
            .tcp_nodelay(true)
            .redirect(reqwest::redirect::Policy::none());
        if !self.proxy {
            builder = builder.no_proxy();
        }
        if let Some(socket) = self.socket {
            builder = builder.unix_socket(socket);
        }
        builder = match self.tls {
            Some(tls) => builder.tls_backend_preconfigured(tls.client_config(ALPN_HTTP)?),
            None => builder.tls_certs_only([]),
        };
        builder
            .build()
            .map_err(|error| SettingsError::new("url", format!("the HTTP client cannot start: {error}")))
    }
}
