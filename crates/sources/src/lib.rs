//! Looking at what runs: one file per platform, each turns it into workloads.
//!
//! A source never fails as a call. What it could not see is in its report, and only a report that saw everything can
//! ever remove a name.

pub mod contract;
pub mod dialects;
#[cfg(feature = "docker")]
pub mod docker;
pub mod dynamic_target;
pub mod hosts;
mod settled_file;
pub mod traefik;

#[cfg(feature = "docker")]
pub use self::docker::Docker;
pub use self::{hosts::Hosts, traefik::TraefikFiles};
