//! The engine's promises, with sources and servers that do what a test wants.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests are tests")]

mod absence;
mod addresses;
mod approval;
mod by_name;
mod changes;
mod crash;
mod flow;
mod isolation;
mod late;
mod listing;
mod manual;
mod pauses;
mod server;
mod staleness;
mod verbs;
mod world;
