//! The JSON types of the API, a typed client for it, and the pool backend `netstead`.
//!
//! ```text
//!  command line, RemotePools ──► Client ──► Transport ──► HTTP ──► api
//!                                  │           retries, deadline, several nodes
//!                                  └── types: the JSON of requests and answers, shared with the crate `api`
//! ```
//!
//! - [`Client`]: one method per call. [`Paged`] reads all pages of a list. [`EventStream`] follows events over broken
//!   connections.
//! - `Transport` (`transport.rs`): one call with its deadline and its retries. A read is repeated. A write is repeated only
//!   if that is safe: it carries a key or an id, so doing it twice gives the same result.
//! - [`ClientError::Unknown`]: a write got no answer and may have been done. `transport/unknown_outcome.rs` keeps a later
//!   refusal of the repeated write from hiding that.
//! - [`RemotePools`]: pools of another Netstead, behind the trait `PoolBackend`.
//!
//! Start with [`types`] for the JSON, and `transport.rs` for the behaviour.

mod backend;
mod client;
mod error;
mod event_stream;
mod options;
mod pagination;
mod query;
mod sse;
mod transport;
pub mod types;

pub use self::{
    backend::{RemotePools, pool_info},
    client::{Change, CheckOutput, CheckProblem, Client, DeletedPool, Tagged},
    error::ClientError,
    event_stream::{EventStream, Streamed, StreamedEvent},
    options::Options,
    pagination::Paged,
    query::{
        AddressQuery, ChangeQuery, ClaimQuery, EventQuery, IgnoredDriftQuery, ObservationQuery, PlanQuery,
        PoolDriftQuery, PoolQuery, ProviderQuery, RecordQuery, ReservationQuery, SourceQuery, WorkloadQuery,
        ZoneQuery,
    },
    transport::canonical_url,
};
