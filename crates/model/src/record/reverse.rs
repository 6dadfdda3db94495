//! The names under which addresses stand in the DNS.

use std::{
    fmt::Write,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use crate::{Address, Cidr, Name, Range};

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

/// The addresses whose reverse names are at `name` or below it: `3.0.10.in-addr.arpa` stands for `10.0.3.0/24`. None for a
/// name that is no reverse name of an address or of a network.
pub fn range_of_reverse(name: &Name) -> Option<Range> {
    if let Some(address) = address_of_reverse(name) {
        return Some(Range::single(address.into()));
    }
    let text = name.as_str();
    let (front, zone, radix, bits) = if let Some(front) = text.strip_suffix(V4) {
        (front, V4, 10, 8)
    } else {
        (text.strip_suffix(V6)?, V6, 16, 4)
    };
    let labels: Vec<&str> = match front {
        "" => Vec::new(),
        front => front.strip_suffix('.')?.rsplit('.').collect(),
    };
    let whole: u8 = if zone == V4 { 32 } else { 128 };
    let length = u8::try_from(labels.len()).ok()?.checked_mul(bits).filter(|length| *length < whole)?;
    let mut number = 0u128;
    for label in &labels {
        let part = u8::from_str_radix(label, radix).ok().filter(|part| u32::from(*part) < 1 << bits)?;
        // Leading zeros, signs and the like: only the one form of a network is its name.
        let written = if zone == V4 { part.to_string() } else { format!("{part:x}") };
        if written != *label {
            return None;
        }
        number = (number << bits) | u128::from(part);
    }
    let first = number.checked_shl(u32::from(whole - length)).unwrap_or_default();
    let first: IpAddr = match zone {
        V4 => Ipv4Addr::from(u32::try_from(first).ok()?).into(),
        _ => Ipv6Addr::from_bits(first).into(),
    };
    Cidr::new(Address::from(first), length).ok().map(Range::from)
}
