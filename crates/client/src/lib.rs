//! The API's JSON, a client that speaks it, and the pool backend `netstead`.
//!
//! The client knows which requests may be repeated and repeats those by itself; of any other it says honestly
//! when it cannot know what became of it ([`ClientError::Unknown`]).

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
    backend::RemotePools,
    client::{Change, CheckOutput, CheckProblem, Client, Tagged},
    error::ClientError,
    event_stream::{EventStream, Streamed},
    options::Options,
    pagination::Paged,
    query::{
        AddressQuery, ChangeQuery, ClaimQuery, EventQuery, ObservationQuery, Order, PlanQuery, PoolQuery,
        ProviderQuery, RecordQuery, ReservationQuery, SourceQuery, WorkloadQuery, ZoneQuery,
    },
    transport::canonical_url,
};
