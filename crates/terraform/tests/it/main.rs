//! The provider as Terraform uses it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "these are tests"
)]

mod backends;
mod docs;
mod ephemeral;
mod examples;
mod forecast;
mod interruptions;
mod lifecycle;
mod lookups;
mod mirror;
mod netaddr;
mod netaddr_moves;
mod netaddr_ranges;
mod server;
mod socket;
