//! The addresses of a network interface of this machine.

use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv6Addr},
};

use async_trait::async_trait;
use nix::{ifaddrs::getifaddrs, net::if_::InterfaceFlags};

use super::AddressLookup;

/// Linux's list of IPv6 addresses.
const INET6: &str = "/proc/net/if_inet6";
/// Temporary, deprecated, tentative or failed: here today and gone tomorrow.
const FLEETING: u32 = 0x01 | 0x20 | 0x40 | 0x08;

/// All lasting addresses of one interface; link-local ones mean nothing elsewhere and are left out.
#[derive(Debug)]
pub struct InterfaceLookup {
    name: String,
}

impl InterfaceLookup {
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }
}

#[async_trait]
impl AddressLookup for InterfaceLookup {
    async fn locate(&self, _: &[IpAddr]) -> Result<Vec<IpAddr>, String> {
        let all = getifaddrs().map_err(|error| format!("the interfaces cannot be listed: {error}"))?;
        let fleeting = fleeting();
        let (mut there, mut up, mut found) = (false, false, Vec::new());
        for one in all.filter(|one| one.interface_name == self.name) {
            there = true;
            up |= one.flags.contains(InterfaceFlags::IFF_UP);
            let Some(address) = one.address else { continue };
            if let Some(v4) = address.as_sockaddr_in() {
                found.extend(Some(v4.ip()).filter(|ip| !ip.is_link_local()).map(IpAddr::V4));
            } else if let Some(v6) = address.as_sockaddr_in6() {
                let lasting = |ip: &Ipv6Addr| !ip.is_unicast_link_local() && !fleeting.contains(ip);
                found.extend(Some(v6.ip()).filter(lasting).map(IpAddr::V6));
            }
        }
        match (there, up, found.is_empty()) {
            (false, ..) => Err(format!("there is no interface `{}`", self.name)),
            (true, false, _) => Err(format!("the interface `{}` is down", self.name)),
            (true, true, true) => Err(format!("the interface `{}` has no address", self.name)),
            (true, true, false) => Ok(found),
        }
    }
}

/// IPv6 addresses that will not last.
fn fleeting() -> BTreeSet<Ipv6Addr> {
    let text = netstead_wire::files::read_text(std::path::Path::new(INET6), 1 << 20).unwrap_or_default();
    let of_line = |line: &str| {
        let mut words = line.split_whitespace();
        let address = u128::from_str_radix(words.next()?, 16).ok()?;
        let flags = u32::from_str_radix(words.nth(3)?, 16).ok()?;
        (flags & FLEETING != 0).then(|| Ipv6Addr::from_bits(address))
    };
    text.lines().filter_map(of_line).collect()
}
