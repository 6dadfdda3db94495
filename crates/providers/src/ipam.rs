//! IPAM systems.

pub mod netbox;
pub mod phpipam;
pub mod webhook;

use netstead_model::{IpamCapabilities, IpamProvider};
use netstead_settings::Kind;

pub use self::{netbox::NetBox, phpipam::PhpIpam, webhook::IpamWebhook};

/// A kind of IPAM system.
pub type IpamKind = Kind<dyn IpamProvider, IpamCapabilities>;

/// All kinds of IPAM system. A new one is a file beside this one and a line here.
pub const KINDS: &[&IpamKind] = &[&netbox::KIND, &phpipam::KIND, &webhook::KIND];
