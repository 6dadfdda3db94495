//! The sources against the real thing, and against their contract.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod dialects;
#[cfg(feature = "docker")]
mod docker;
mod dynamic_target;
mod hosts;
#[cfg(feature = "kubernetes")]
mod kubernetes;
mod proxmox;
mod traefik;
