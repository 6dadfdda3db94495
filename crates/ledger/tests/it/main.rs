//! The ledger's promises, tried: against a naive model, through the facade, and on a store that misbehaves.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "these are tests"
)]

mod between_stores;
mod claim_names;
mod commit_pipelining;
mod concurrent_claims;
mod damage;
mod determinism;
mod drawing;
mod every_store;
mod faults;
mod following;
mod hazards;
mod history;
mod idle;
mod lying_store;
mod migrate;
mod model;
mod path_step_keys;
mod pools;
mod promises;
mod properties;
mod queueing;
mod random_commands;
mod random_pools;
mod rebuild;
mod refusal_texts;
mod regressions;
mod restoring;
mod retries;
mod simulation;
mod source;
mod store_check;
mod store_under_test;
mod support;
