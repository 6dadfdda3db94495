//! Limits for everything that comes from outside: connections, bodies of HTTP messages, files.
//!
//! Every byte that another program or person decides about is read through this crate, so there is one place that
//! says how much is taken. Secrets of ours that a server echoes are removed here as well.

mod accept;
mod body;
mod connections;
pub mod files;
mod log_limit;
mod query_counts;
mod redact;

pub use self::{
    accept::Acceptor,
    body::{BodyError, MOST_OF_ANSWER, read_body},
    connections::{
        ActiveConnection, ConnectionCounts, ConnectionLimits, Connections, Refused, RequestInProgress,
    },
    log_limit::LogLimit,
    query_counts::{QueryCounter, QueryCounts},
    redact::Redactor,
};
