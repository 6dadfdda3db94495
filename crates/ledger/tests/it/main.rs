//! The ledger's promises, tried: against a naive model, through the facade, and on a store that misbehaves.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "these are tests"
)]

mod ahead;
mod chance;
mod checking;
mod faults;
mod following;
mod ground;
mod hazards;
mod history;
mod idle;
mod liar;
mod migrate;
mod model;
mod moving;
mod names;
mod pools;
mod promises;
mod properties;
mod queueing;
mod racing;
mod rebuild;
mod repeats;
mod restoring;
mod schedules;
mod simulation;
mod snapshots;
mod source;
mod steps;
mod stores;
mod support;
mod universe;
