//! The built binary, as a person uses it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "these are tests"
)]

mod backend;
mod bad_input;
mod cluster;
mod configured;
#[cfg(feature = "docker")]
mod docker;
mod doctor;
mod documents;
mod faults;
mod flags;
mod formats;
mod forwarding;
mod full_disk;
mod house;
#[cfg(feature = "docker")]
mod image;
mod import;
mod kill;
mod local;
mod lost_answers;
mod names;
mod notified;
mod numbers;
#[cfg(feature = "docker")]
mod plain_http;
mod racing;
mod reload;
mod resolve;
mod scenarios;
mod servers;
mod shared_store;
mod stopping;
mod targets;
mod tls;
mod tokens;
mod traefik;
mod typing;
mod verbs;
mod walk_through;
mod watching;
mod what_if;
