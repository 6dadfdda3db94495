//! [`IpamContents`]: networks, ranges and addresses as an IPAM system has them, for an import into the ledger.

use netstead_model::{Address, Cidr, Range};

/// Everything of an IPAM system that an import looks at. Nothing is left out or judged yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IpamContents {
    pub networks: Vec<IpamNetwork>,
    pub ranges: Vec<IpamRange>,
    pub addresses: Vec<IpamRow>,
}

/// A VRF of the system.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct IpamVrf {
    pub id: u64,
    pub name: String,
}

/// The use of a network or a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkUse {
    /// Addresses are handed out of it.
    Active,
    /// It holds networks alone.
    Container,
    /// Nothing may be handed out of it, with the system's own word for that.
    Closed(&'static str),
}

/// A prefix or a subnet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IpamNetwork {
    pub id: u64,
    pub vrf: Option<IpamVrf>,
    pub network: Cidr,
    pub usage: NetworkUse,
    /// Network and broadcast address are handed out, too.
    pub is_pool: bool,
    pub description: String,
    /// It has a mark of Netstead.
    pub ours: bool,
}

/// A range of addresses that is an object of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IpamRange {
    pub id: u64,
    pub vrf: Option<IpamVrf>,
    pub range: Range,
    /// The network that its mask says.
    pub network: Option<Cidr>,
    pub usage: NetworkUse,
    pub description: String,
    pub ours: bool,
}

/// The use of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressUse {
    Held,
    Reserved,
    Gateway,
}

/// An address object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IpamRow {
    pub id: u64,
    pub vrf: Option<IpamVrf>,
    pub address: Address,
    /// The id of the network that it belongs to, where the system says so itself.
    pub network: Option<u64>,
    /// The name in DNS.
    pub name: Option<String>,
    pub usage: AddressUse,
    pub description: String,
    /// It has a mark of Netstead.
    pub ours: bool,
}
