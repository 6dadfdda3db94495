//! The operator against a real API server.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod admission;
mod burst;
mod claims;
mod deletion;
mod external;
mod fault_proxy;
mod garbage;
mod lead;
mod moved;
mod naming;
mod packaging;
mod pauses;
mod pools;
mod rest;
mod rivals;
mod system;
mod world;
