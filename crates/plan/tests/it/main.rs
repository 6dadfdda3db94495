//! The engine's promises 1 to 6, 8 and 9, as far as they can be kept without touching a server.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests are tests")]

mod absence;
mod approval;
mod breaker;
mod cases;
mod companion;
mod conflicts;
mod foreign;
mod ipam;
mod marks;
mod modes;
mod mutations;
mod name_holders;
mod name_properties;
mod name_rules;
mod operator_commands;
mod plan_bytes;
mod plan_text;
mod properties;
mod proxied;
mod reverse;
mod scope_properties;
mod scopes;
mod sole_names;
mod world;
