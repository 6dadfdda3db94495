//! The stores from outside: the contract, a naive model, and what disks and kills do to files.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "all of this is tests, helpers too"
)]

mod background;
mod child;
mod contract_suite;
mod damage;
mod disk_full;
mod etcd;
mod etcd_access;
mod etcd_examined;
mod first_start;
mod kill;
mod lock;
mod model;
#[cfg(feature = "raft")]
mod raft;
mod rates;
mod simulated;
mod support;
