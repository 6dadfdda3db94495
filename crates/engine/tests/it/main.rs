//! The engine's promises, with sources and servers that do what a test wants.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests are tests")]

mod absence;
mod approval;
mod change_history;
mod crash;
mod flow;
mod graces;
mod groups;
mod ipam;
mod isolation;
mod late_writes;
mod ledger_sync;
mod manual_source;
mod name_rules;
mod operator_commands;
mod pauses;
mod read_by_name;
mod record_listing;
mod scopes;
mod server;
mod slow_servers;
mod staleness;
mod world;
