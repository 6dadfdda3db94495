//! Pools and claims: who holds which address.
//!
//! The pure [`Book`] decides; one writer runs the waiting requests through it and makes all they did durable with one
//! commit. `design.md` calls what comes of it the ledger's promises.

mod backend;
pub mod backup;
pub mod book;
mod chance;
pub mod check;
pub mod command;
mod events;
mod filling;
mod follower;
mod keeper;
mod ledger;
mod load;
pub mod migrate;
mod options;
pub mod record;
pub mod refusal;
mod sabotage;
mod shared;
mod source;
mod take_over;
mod time;
mod writer;

pub use self::{
    backend::LedgerBackend,
    book::{
        AddressCursor, AddressFilter, AddressState, AddressView, BlockView, Book, ClaimCursor, ClaimFilter,
        ClaimView, Moment,
    },
    chance::Chance,
    command::{Caller, Command, MOST_ENTRIES, Outcome, Reply, Report, Sighting},
    events::{EventPage, EventQuery},
    ledger::{Done, Freshness, Ledger, Role, Seen},
    options::{Counters, Health, Options},
    refusal::{LedgerError, Refusal},
    sabotage::Sabotage,
    source::LedgerSource,
};
