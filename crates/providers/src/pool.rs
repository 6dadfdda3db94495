//! Pool backends: other systems that the addresses of a pool come from.

pub mod netaddr;
pub mod netbox;
pub mod netstead;
pub mod phpipam;

use netstead_model::PoolBackend;
use netstead_settings::Kind;

/// The abilities of a kind of backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackendTraits {
    /// It never has two objects under one key.
    pub one_object_per_key: bool,
    /// It hands out prefixes.
    pub prefixes: bool,
    /// It hands out MAC addresses.
    pub macs: bool,
}

/// A kind of pool backend.
pub type BackendKind = Kind<dyn PoolBackend, BackendTraits>;

/// All kinds of pool backend: `build.rs` makes the list of the modules above.
pub const KINDS: &[&BackendKind] = include!(concat!(env!("OUT_DIR"), "/pool_kinds.rs"));
