//! Pools and claims: who holds which address.
//!
//! The pure [`Book`] decides; one writer runs the waiting requests through it and makes all they did durable with one
//! commit. `design.md` calls what comes of it the ledger's promises.

mod backend;
pub mod backup;
pub mod book;
mod bulk_load;
pub mod check;
pub mod command;
pub mod damage;
mod events;
mod fencing;
mod follower;
mod leadership;
mod ledger;
mod ledger_time;
mod load;
pub mod migrate;
mod options;
mod randomness;
pub mod record;
pub mod refusal;
mod sabotage;
mod shared_state;
mod source;
mod writer;

pub use self::{
    backend::LedgerBackend,
    book::{
        AddressCursor, AddressFilter, AddressState, AddressView, BlockView, Book, ClaimCursor, ClaimFilter,
        ClaimView, Moment,
    },
    command::{Caller, Command, MOST_ENTRIES, Outcome, Reply, Report, Sighting},
    events::{EventPage, EventQuery},
    ledger::{Done, Freshness, Ledger, ReadAnswer, Role},
    options::{Counters, Health, Options},
    randomness::Randomness,
    refusal::{LedgerError, Refusal},
    sabotage::Sabotage,
    source::LedgerSource,
};
