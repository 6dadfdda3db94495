//! [`RawAddress`]: an address as the keyspace has it, as bytes.

use std::{fmt, net::Ipv4Addr};

use netstead_model::{Address, Family, Kind};

/// Bytes before the four of an IPv4 address.
const MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

/// The type of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RangeType {
    Ipv4,
    Mac,
}

impl RangeType {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ipv4 => "ipv4",
            Self::Mac => "mac",
        }
    }

    /// For sentences: `an IPv4 address`.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Ipv4 => "an IPv4 address",
            Self::Mac => "a MAC address",
        }
    }

    pub const fn family(self) -> Family {
        match self {
            Self::Ipv4 => Family::Ipv4,
            Self::Mac => Family::Mac,
        }
    }
}

impl fmt::Display for RangeType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// An address as bytes, in the order of keys: 16 bytes for IPv4 (mapped into IPv6), and 6, 8 or 20 for a MAC.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RawAddress(Vec<u8>);

impl RawAddress {
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    /// Reads what a person wrote.
    ///
    /// # Errors
    ///
    /// The words say what is wrong.
    pub fn parse(of: RangeType, text: &str) -> Result<Self, String> {
        match of {
            RangeType::Ipv4 => text
                .parse::<Ipv4Addr>()
                .map(|ip| Self([MAPPED.as_slice(), &ip.octets()].concat()))
                .map_err(|_| format!("`{text}` is no IPv4 address such as 10.0.3.50")),
            RangeType::Mac => mac(text)
                .map(Self)
                .ok_or_else(|| format!("`{text}` is no MAC address such as 52:54:00:00:00:01")),
        }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next address. After the last one there is comes a longer text that is above every address and is none itself.
    #[must_use]
    pub fn next(&self) -> Self {
        let mut bytes = self.0.clone();
        for byte in bytes.iter_mut().rev() {
            let (more, over) = byte.overflowing_add(1);
            *byte = more;
            if !over {
                return Self(bytes);
            }
        }
        let mut above = self.0.clone();
        above.push(0);
        Self(above)
    }

    /// How many addresses there are from this one to `last`, both included.
    pub fn count_to(&self, last: &Self) -> u128 {
        if self > last { 0 } else { last.number().saturating_sub(self.number()).saturating_add(1) }
    }

    fn number(&self) -> u128 {
        self.0.iter().fold(0_u128, |number, byte| number << 8 | u128::from(*byte))
    }

    /// As Netstead has addresses; `None` for the longer kinds of MAC.
    pub fn address(&self, of: RangeType) -> Option<Address> {
        match (of, self.0.as_slice()) {
            (RangeType::Ipv4, bytes) => {
                let octets: [u8; 4] = ipv4(bytes)?;
                Some(Ipv4Addr::from(octets).into())
            }
            (RangeType::Mac, bytes) if bytes.len() == 6 => Address::new(Kind::Mac, self.number()),
            _ => None,
        }
    }

    /// `None` if a range of this type cannot have it.
    pub fn of(address: Address, of: RangeType) -> Option<Self> {
        match (address.kind(), of) {
            (Kind::V4, RangeType::Ipv4) | (Kind::Mac, RangeType::Mac) => {
                Self::parse(of, &address.to_string()).ok()
            }
            _ => None,
        }
    }

    /// As people write it.
    pub fn text(&self, of: RangeType) -> String {
        match of {
            RangeType::Ipv4 => {
                ipv4(&self.0).map_or_else(|| hex(&self.0), |octets| Ipv4Addr::from(octets).to_string())
            }
            RangeType::Mac => hex(&self.0),
        }
    }
}

impl fmt::Debug for RawAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = if ipv4(&self.0).is_some() { RangeType::Ipv4 } else { RangeType::Mac };
        f.write_str(&self.text(of))
    }
}

fn ipv4(bytes: &[u8]) -> Option<[u8; 4]> {
    bytes.strip_prefix(&MAPPED).unwrap_or(bytes).try_into().ok()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
}

/// Reads 6, 8 or 20 bytes, as `52:54:00:…`, `52-54-00-…` or `5254.00…`.
fn mac(text: &str) -> Option<Vec<u8>> {
    let separator = text.chars().find(|c| matches!(c, ':' | '-' | '.'))?;
    let digits = if separator == '.' { 4 } else { 2 };
    let mut bytes = Vec::new();
    for group in text.split(separator) {
        if group.len() != digits || !group.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        bytes.extend(data_encoding::HEXLOWER_PERMISSIVE.decode(group.as_bytes()).ok()?);
    }
    matches!(bytes.len(), 6 | 8 | 20).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(text: &str) -> RawAddress {
        RawAddress::parse(RangeType::Ipv4, text).unwrap()
    }

    fn mac(text: &str) -> RawAddress {
        RawAddress::parse(RangeType::Mac, text).unwrap()
    }

    #[test]
    fn an_address_is_bytes_and_text() {
        assert_eq!(v4("10.0.3.50").bytes(), [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 3, 50]);
        assert_eq!(v4("10.0.3.50").text(RangeType::Ipv4), "10.0.3.50");
        assert_eq!(RawAddress::new([10, 0, 3, 50]).text(RangeType::Ipv4), "10.0.3.50");
        for same in ["52:54:00:AA:00:01", "52-54-00-aa-00-01", "5254.00aa.0001"] {
            assert_eq!(mac(same).text(RangeType::Mac), "52:54:00:aa:00:01");
        }
        assert_eq!(mac("02:00:5e:10:00:00:00:01").len(), 8);
        for wrong in ["52:54", "", "52:54:00:aa:00:0g", "525400aa0001"] {
            assert!(RawAddress::parse(RangeType::Mac, wrong).is_err(), "{wrong}");
        }
        let own: Address = "52:54:00:aa:00:01".parse().unwrap();
        assert_eq!(mac("52:54:00:aa:00:01").address(RangeType::Mac), Some(own));
        assert_eq!(RawAddress::of(own, RangeType::Ipv4), None);
    }

    #[test]
    fn what_comes_after_the_last_address_is_above_all_and_no_address() {
        assert_eq!(v4("10.0.3.255").next(), v4("10.0.4.0"));
        assert!(v4("255.255.255.255").next() > v4("255.255.255.255"));
        let last = mac("ff:ff:ff:ff:ff:ff");
        let above = last.next();
        assert!(above > last && above.address(RangeType::Mac).is_none() && !above.is_empty());
        assert_eq!(v4("10.0.3.50").count_to(&v4("10.0.3.60")), 11);
        assert_eq!(v4("10.0.3.50").count_to(&v4("10.0.3.49")), 0);
    }
}
