//! The nameserver as its clients see it: real packets, other people's tools.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests are tests")]

mod aliases;
mod answers;
mod connections;
mod contract;
mod denials;
mod garbage;
mod house;
mod provider;
mod racing;
mod restart;
mod swaps;
mod tools;
mod transfers;
