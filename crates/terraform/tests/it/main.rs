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
mod lifecycle;
mod mirror;
mod netaddr;
mod server;
mod socket;
