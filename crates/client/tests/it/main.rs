//! The client against servers that misbehave in every way a network can.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "these are tests"
)]

mod backend;
mod event_stream;
mod misbehaving_server;
mod repeat;
