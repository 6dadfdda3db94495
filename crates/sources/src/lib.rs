//! Sources: each looks at one platform and reports what runs there as workloads.
//!
//! ```text
//!  Docker API ────────► docker ───────┐ labels   dialects::Reader        ┌──► Report { view, workloads, ended }
//!  Traefik files ─────► traefik ──────┼────────► netstead.*, traefik.*,  │         to the engine, through the
//!  hosts file, TOML ──► hosts ────────┘          caddy, external-dns ... ┘         trait Source
//! ```
//!
//! - [`kubernetes`]: objects of a cluster, each kind a scope of its own.
//! - [`proxmox`]: machines and containers of a Proxmox VE cluster.
//! - [`docker`]: containers and swarm services of one host. [`traefik`]: routers in Traefik's dynamic configuration files.
//!   [`hosts`]: names that a person wrote into a file.
//! - [`dialects`]: turns labels of several tools into the names a workload asks for. What looked like a name and gave none
//!   has a reason.
//! - [`dynamic_target`]: targets that change while Netstead runs, like the public address of a router.
//! - [`contract`]: checks that every source must pass.
//!
//! A source never fails as a call. Its report has a `View`: *complete*, *partial* or *failed*. Only a complete report can lead
//! to the removal of a name.
//!
//! To add a source, read `hosts.rs` first: it is the smallest.

pub mod contract;
pub mod dialects;
#[cfg(feature = "docker")]
pub mod docker;
pub mod dynamic_target;
pub mod hosts;
#[cfg(feature = "kubernetes")]
pub mod kubernetes;
pub mod proxmox;
mod readable_path;
mod settled_file;
mod source_target;
pub mod traefik;

#[cfg(feature = "docker")]
pub use self::docker::Docker;
#[cfg(feature = "kubernetes")]
pub use self::kubernetes::Kubernetes;
pub use self::{hosts::Hosts, proxmox::Proxmox, traefik::TraefikFiles};

use netstead_model::Source;
use netstead_settings::Kind;

/// Properties of every source of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceTraits {
    /// Workloads say by their own labels or files what names they want.
    pub labels: bool,
}

/// A kind of source.
pub type SourceKind = Kind<dyn Source, SourceTraits>;

/// All kinds of source that this build has. A new one is a file beside this one and a line here.
pub const KINDS: &[&SourceKind] = &[
    &hosts::KIND,
    #[cfg(feature = "docker")]
    &docker::KIND,
    #[cfg(feature = "kubernetes")]
    &kubernetes::KIND,
    &traefik::KIND,
    &proxmox::KIND,
];

/// Kinds that this build leaves out.
pub const ABSENT: &[&str] = &[
    #[cfg(not(feature = "docker"))]
    "docker",
    #[cfg(not(feature = "kubernetes"))]
    "kubernetes",
];
