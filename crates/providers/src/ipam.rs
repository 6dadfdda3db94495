//! IPAM systems.

pub mod phpipam;
pub mod webhook;

use netstead_model::{IpamCapabilities, IpamProvider};
use netstead_settings::Kind;

pub use self::{phpipam::PhpIpam, webhook::IpamWebhook};

/// A kind of IPAM system.
pub type IpamKind = Kind<dyn IpamProvider, IpamCapabilities>;

/// All kinds of IPAM system. A new one is a file beside this one and a line here.
pub const KINDS: &[&IpamKind] = &[&phpipam::KIND, &webhook::KIND];
