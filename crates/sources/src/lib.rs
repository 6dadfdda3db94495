//! Looking at what runs: one file per platform, each turns it into workloads.
//!
//! A source never fails as a call. What it could not see is in its report, and only a report that saw everything can
//! ever remove a name.

pub mod contract;
pub mod dialects;
pub mod hosts;
pub mod target;
pub mod traefik;

pub use self::{hosts::Hosts, traefik::TraefikFiles};
