//! The operator against a real API server.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod burst;
mod claims;
mod deletion;
mod fault_proxy;
mod moved;
mod pauses;
mod pools;
mod world;
