//! `[api]`: where the REST API is served.

use std::path::PathBuf;

use netstead_settings::{Number, Parsed, Section, Settings as _, table};
use serde::Serialize;

use super::Listen;

table! {
    pub(super) struct ApiKeys {
        /// address or name, and port; `--listen` goes before it
        listen: Parsed<Listen>, default "127.0.0.1:5301";
        /// further names that clients may call the server by; requests with another `Host` are turned away
        hosts: Vec<String>, unset "none";
        /// certificate chain, PEM; read again when it changes
        tls_cert: Option<PathBuf>, unset "no TLS";
        /// the key of `tls_cert`, PEM; read again when it changes
        tls_key: Option<PathBuf>, unset "no TLS";
        /// most bytes of a request's body, from 65536 on; requests that need no more take at most 1 MiB anyway
        max_body: Option<Number<65_536, 1_073_741_824>>, unset "`8388608`";
        /// connections at one time, with those of `probes`; when there are more, the one that has been idle longest is closed,
        /// and one with a request in progress never is. Lowered if the process may not open so many files
        max_connections: Option<Number<1, 1_000_000>>, unset "`4096`";
        /// the same for one address; a reverse proxy in front of the API is one address, so give it as many as
        /// `max_connections` if nothing else comes in
        max_connections_per_peer: Option<Number<1, 1_000_000>>, unset "a quarter of `max_connections`";
        /// address and port where `/health`, `/ready` and `/metrics` are answered as by dnsweaver; the API's own are
        /// `/healthz` and `/readyz`
        probes: Option<Parsed<Listen>>, unset "none";
        /// the URL under which [other nodes](../guide/cluster.md) on the same store reach this one: `http://10.0.0.1:5301`
        advertise: Option<String>, unset "where it listens";
        /// PEM of the authority that signed the certificates of the other nodes
        peer_ca_file: Option<PathBuf>, unset "the roots of the machine";
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct ApiConfig {
    pub(crate) listen: Listen,
    /// Further names the server is called by in URLs.
    pub(crate) hosts: Vec<String>,
    pub(crate) tls: Option<TlsConfig>,
    /// Most bytes of a request's body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_body: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_connections: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_connections_per_peer: Option<usize>,
    /// Where probes are answered as by dnsweaver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) probes: Option<Listen>,
    /// Where other nodes on the same store find this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) advertise: Option<String>,
    /// Authority of their certificates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) peer_ca_file: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct TlsConfig {
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
}

impl TlsConfig {
    /// Of `tls_cert` and `tls_key`, which belong together.
    pub(super) fn of(
        cert: Option<PathBuf>,
        key: Option<PathBuf>,
        section: &mut Section<'_, '_>,
    ) -> Option<Self> {
        match (cert, key) {
            (Some(cert), Some(key)) => return Some(Self { cert, key }),
            (Some(_), None) => {
                section.wrong("tls_cert", "a certificate without its key", Some("set `tls_key` too"));
            }
            (None, Some(_)) => {
                section.wrong("tls_key", "a key without its certificate", Some("set `tls_cert` too"));
            }
            (None, None) => {}
        }
        None
    }
}

pub(super) fn read(mut section: Section<'_, '_>) -> ApiConfig {
    let Some(keys) = ApiKeys::read(&mut section) else { return ApiConfig::default() };
    let tls = TlsConfig::of(keys.tls_cert, keys.tls_key, &mut section);
    let (max_connections, max_connections_per_peer) =
        super::connection_limits(&mut section, keys.max_connections, keys.max_connections_per_peer);
    let advertise = keys.advertise.map(|url| url.trim_end_matches('/').to_owned());
    if let Some(url) = &advertise
        && let Err(reason) = advertised(url)
    {
        section.wrong("advertise", &reason, Some("write `advertise = \"http://10.0.0.1:5301\"`"));
    }
    ApiConfig {
        listen: keys.listen.0,
        hosts: keys.hosts,
        tls,
        max_body: keys.max_body.map(Number::get),
        max_connections,
        max_connections_per_peer,
        probes: keys.probes.map(|probes| probes.0),
        advertise,
        peer_ca_file: keys.peer_ca_file,
    }
}

/// A URL that other machines can use.
fn advertised(text: &str) -> Result<(), String> {
    let url = reqwest::Url::parse(text).map_err(|error| format!("`{text}` is no URL: {error}"))?;
    let host = url.host_str().unwrap_or_default();
    let plain = url.path() == "/" && url.query().is_none() && url.username().is_empty();
    match url.scheme() {
        "http" | "https" if host == "0.0.0.0" || host == "[::]" => {
            Err(format!("no node finds this one at `{host}`: name one of its addresses"))
        }
        "http" | "https" if plain && !host.is_empty() => Ok(()),
        _ => Err(format!("`{text}` is not the URL of a server: its scheme, host and port, and nothing else")),
    }
}
