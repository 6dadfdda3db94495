//! The names under which addresses stand in the DNS.

use std::{
    fmt::Write,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use crate::Name;

const V4: &str = "in-addr.arpa";
const V6: &str = "ip6.arpa";

/// The owner of an address' PTR: `7.3.0.10.in-addr.arpa`.
pub fn reverse_name(address: IpAddr) -> Name {
    let mut text = String::with_capacity(73);
    // Writing into a String cannot fail.
    let _ = match address {
        IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets();
            write!(text, "{d}.{c}.{b}.{a}.{V4}")
        }
        IpAddr::V6(address) => {
            for octet in address.octets().into_iter().rev() {
                let _ = write!(text, "{:x}.{:x}.", octet & 15, octet >> 4);
            }
            write!(text, "{V6}")
        }
    };
    Name::made(&text)
}

/// The address whose PTR `name` owns; none for any other name, also one that stands for a whole network.
pub fn address_of_reverse(name: &Name) -> Option<IpAddr> {
    let text = name.as_str();
    let address: IpAddr = if let Some(front) = text.strip_suffix(V4) {
        let mut octets = [0u8; 4];
        let mut labels = front.strip_suffix('.')?.split('.');
        for octet in octets.iter_mut().rev() {
            *octet = labels.next()?.parse().ok()?;
        }
        Ipv4Addr::from(octets).into()
    } else {
        let front = text.strip_suffix(V6)?.strip_suffix('.')?;
        let mut bits = 0u128;
        for label in front.rsplit('.') {
            bits = (bits << 4) | u128::from(u8::from_str_radix(label, 16).ok()? & 15);
        }
        Ipv6Addr::from_bits(bits).into()
    };
    // Leading zeros, too many labels and the like: only the one form of an address is its name.
    (reverse_name(address) == *name).then_some(address)
}
