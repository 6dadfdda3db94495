//! Connections to other programs, and limits for everything that comes from outside.
//!
//! Every byte that another program or person decides about is read through this crate, so there is one place that
//! says how much is taken. Secrets of ours that a server echoes are removed here as well.
//!
//! - [`http`]: a server's HTTP API, with retries, limits, redaction and call metrics. [`Tls`]: its TLS settings.
//! - [`connect_tcp`], [`connect_unix`]: other connections. [`ssh`]: commands on another machine.
//! - [`etcd`]: requests to an etcd. [`kubernetes`]: the API server of a cluster: lists, watches, credentials.
//! - [`external_dns`]: the JSON of external-dns's webhook protocol, for both sides.
//! - [`Acceptor`], [`Connections`]: listeners, and how many connections they have.
//! - [`read_body`], [`files`]: bodies and files, up to a limit. [`Redactor`]: removes secrets from text. [`LogLimit`].

mod accept;
mod body;
mod connections;
#[cfg(feature = "etcd")]
pub mod etcd;
#[cfg(feature = "external-dns")]
pub mod external_dns;
pub mod files;
mod host_port;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "kubernetes")]
pub mod kubernetes;
mod log_limit;
mod query_counts;
mod redact;
pub mod ssh;
#[cfg(feature = "tls")]
mod stream;
#[cfg(feature = "tls")]
mod tls;

pub use self::{
    accept::Acceptor,
    body::{BodyError, MOST_OF_ANSWER, read_body},
    connections::{
        ActiveConnection, ConnectionCounts, ConnectionLimits, Connections, Refused, RequestInProgress,
    },
    host_port::{split_host_port, write_host_port},
    log_limit::LogLimit,
    query_counts::{QueryCounter, QueryCounts},
    redact::Redactor,
};
#[cfg(feature = "tls")]
pub use self::{
    stream::{ConnectError, Stream, connect_tcp, connect_unix},
    tls::{ALPN_HTTP, Tls, TlsClient, TlsVersion},
};
