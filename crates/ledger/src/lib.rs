//! The ledger: pools, claims, and which claim holds which address.
//!
//! ```text
//!  Ledger::submit ─► queue ─► Writer ─► Book ─► one commit ─► Store
//!  (a Command)                 │  ▲     pure:    effects + head  │
//!                              │  └──── command in,              │ durable
//!  answer ◄────────────────────┴─────── effects out ◄────────────┘
//!
//!  Ledger::read ───► Book (in memory; kept up to date by the Writer, or by the Follower on other nodes)
//! ```
//!
//! - [`Book`]: everything about pools and claims in memory, and every decision. It does no I/O, reads no clock and draws no
//!   random number, so tests run a naive model beside it.
//! - `Writer` (`writer.rs`): the one task that changes the ledger. It groups waiting requests, lets the Book decide them,
//!   commits their effects together and answers when they are durable.
//! - `Head` (`record.rs`): the key `ledger/head`. Every commit replaces it on condition that it is unchanged, which makes a
//!   second writer harmless.
//! - `Follower` (`follower.rs`): feeds the Book from the store's watch while another node leads. `leadership.rs` switches
//!   between the two.
//! - [`Command`], [`Reply`], [`Refusal`]: what can be asked, what is answered, and why not.
//! - [`record`]: keys and values in the store. [`check`], [`backup`], [`migrate`]: tools on them.
//!
//! Start with [`Ledger`] in `ledger.rs`, then `writer.rs`, then `book.rs`.

mod backend;
pub mod backup;
pub mod book;
mod bulk_load;
pub mod check;
pub mod command;
#[cfg(feature = "testing")]
pub mod contract;
pub mod damage;
mod draw_worker;
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
        ClaimView, DrawJob, DrawTask, Moment, OwnedObject,
    },
    command::{
        Caller, Command, DrawReply, DrawStep, MOST_ENTRIES, Outcome, OwedPlace, Reply, Report, Sighting,
    },
    draw_worker::{
        BackendHealth, Backends, Described, DrawOptions, DrawStatus, DrawWorker, Drift, DriftKind,
        RestoreError, UpstreamError, complete_from,
    },
    events::{EventPage, EventQuery},
    ledger::{Done, Freshness, Ledger, ReadAnswer, Role},
    options::{Counters, Health, Options},
    randomness::Randomness,
    refusal::{LedgerError, Refusal},
    sabotage::Sabotage,
    source::LedgerSource,
};
