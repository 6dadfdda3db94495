//! The nameserver as its clients see it: real packets, other people's tools.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests are tests")]

mod aliases;
mod answers;
mod connections;
mod contract;
mod denials;
mod dig_bind_knot;
mod fixture;
mod malformed_packets;
mod provider;
mod racing;
mod restart;
mod transfers;
mod updates_under_load;
