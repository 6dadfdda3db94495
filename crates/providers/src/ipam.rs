//! IPAM systems.

pub mod netbox;
pub mod phpipam;
pub mod webhook;

use netstead_model::{IpamCapabilities, IpamProvider};
use netstead_settings::Kind;

pub use self::{netbox::NetBox, phpipam::PhpIpam, webhook::IpamWebhook};

/// A kind of IPAM system.
pub type IpamKind = Kind<dyn IpamProvider, IpamCapabilities>;

/// All kinds of IPAM system: `build.rs` makes the list of the modules above.
pub const KINDS: &[&IpamKind] = include!(concat!(env!("OUT_DIR"), "/ipam_kinds.rs"));
