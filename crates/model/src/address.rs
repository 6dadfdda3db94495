//! One address of any kind that a pool can hold.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

use crate::{
    ParseError, mac,
    parse::{Piece, serde_as_text},
};

mod parse_error;

/// The kind of an address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    V4,
    V6,
    Mac,
}

impl Kind {
    /// How many bits such an address has.
    pub const fn bits(self) -> u8 {
        match self {
            Self::V4 => 32,
            Self::V6 => 128,
            Self::Mac => 48,
        }
    }

    /// The number of the highest such address.
    pub const fn max(self) -> u128 {
        u128::MAX >> (128 - self.bits())
    }

    /// For sentences: `IPv4 address`.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::V4 => "IPv4 address",
            Self::V6 => "IPv6 address",
            Self::Mac => "MAC address",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::V4 => "ipv4",
            Self::V6 => "ipv6",
            Self::Mac => "mac",
        })
    }
}

impl FromStr for Kind {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "ipv4" => Ok(Self::V4),
            "ipv6" => Ok(Self::V6),
            "mac" => Ok(Self::Mac),
            _ => Err(ParseError::new("kind of address", text, None, "it is `ipv4`, `ipv6` or `mac`")),
        }
    }
}

serde_as_text!(Kind, "`ipv4`, `ipv6` or `mac`");

/// An IPv4, IPv6 or MAC address: a kind and a number, ordered by both.
///
/// An IPv4 address written inside IPv6 (`::ffff:192.0.2.1`) stays IPv6. Zones (`fe80::1%eth0`) are refused: they
/// mean something on one machine only.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    kind: Kind,
    /// The number, highest byte first. As bytes it takes 17 of them and not 32, and there may be millions.
    bytes: [u8; 16],
}

impl Address {
    /// The address with this number, if the kind has so many.
    pub const fn new(kind: Kind, number: u128) -> Option<Self> {
        if number <= kind.max() { Some(Self { kind, bytes: number.to_be_bytes() }) } else { None }
    }

    pub const fn kind(self) -> Kind {
        self.kind
    }

    pub const fn number(self) -> u128 {
        u128::from_be_bytes(self.bytes)
    }

    /// Reads an address that must be of this kind.
    pub fn parse(kind: Kind, text: &str) -> Result<Self, ParseError> {
        Self::read(kind, Piece::new(kind.noun(), text))
    }

    /// The same as the standard library has it; none for a MAC address.
    pub fn to_ip(self) -> Option<IpAddr> {
        match self.kind {
            Kind::V4 => u32::try_from(self.number()).ok().map(|bits| Ipv4Addr::from(bits).into()),
            Kind::V6 => Some(Ipv6Addr::from(self.bytes).into()),
            Kind::Mac => None,
        }
    }

    /// The address `steps` further on, unless the kind ends before.
    pub const fn checked_add(self, steps: u128) -> Option<Self> {
        match self.number().checked_add(steps) {
            Some(bits) => Self::new(self.kind, bits),
            None => None,
        }
    }

    /// The address `steps` back, unless the kind begins after.
    pub const fn checked_sub(self, steps: u128) -> Option<Self> {
        match self.number().checked_sub(steps) {
            Some(bits) => Self::new(self.kind, bits),
            None => None,
        }
    }

    /// The next address; none after the last.
    pub const fn succ(self) -> Option<Self> {
        self.checked_add(1)
    }

    /// The address before; none before the first.
    pub const fn pred(self) -> Option<Self> {
        self.checked_sub(1)
    }

    /// How many steps lie between two addresses of one kind, in either direction; none if the kinds differ.
    pub fn distance(self, other: Self) -> Option<u128> {
        (self.kind == other.kind).then(|| self.number().abs_diff(other.number()))
    }

    pub(crate) fn read(kind: Kind, piece: Piece<'_>) -> Result<Self, ParseError> {
        match kind {
            Kind::V4 => piece.text.parse().map(|ip: Ipv4Addr| ip.into()).map_err(|_| parse_error::v4(piece)),
            Kind::V6 => piece.text.parse().map(|ip: Ipv6Addr| ip.into()).map_err(|_| parse_error::v6(piece)),
            Kind::Mac => mac::read(piece),
        }
    }

    pub(crate) fn read_any(piece: Piece<'_>) -> Result<Self, ParseError> {
        match guess(piece.text) {
            Some(kind) => Self::read(kind, piece),
            None => Err(parse_error::unknown(piece)),
        }
    }
}

/// The kind that `text` is, or was meant to be.
fn guess(text: &str) -> Option<Kind> {
    let two_digits = |group: &str| group.len() == 2 && group.bytes().all(|byte| byte.is_ascii_hexdigit());
    if mac::has_shape(text) {
        Some(Kind::Mac)
    } else if text.contains(':') {
        let groups = text.split(':').count();
        let nearly_mac = (5..8).contains(&groups) && text.split(':').all(two_digits);
        Some(if nearly_mac { Kind::Mac } else { Kind::V6 })
    } else if text.contains('.') {
        Some(Kind::V4)
    } else {
        text.split('-').all(two_digits).then_some(Kind::Mac)
    }
}

impl FromStr for Address {
    type Err = ParseError;

    /// Reads an address of the kind it looks like.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        match guess(text) {
            Some(kind) => Self::parse(kind, text),
            None => Err(parse_error::unknown(Piece::new("address", text))),
        }
    }
}

impl fmt::Display for Address {
    /// The canonical form: RFC 5952 for IPv6, lower case with colons for MAC.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(ip) = self.to_ip() {
            return ip.fmt(f);
        }
        let [.., b1, b2, b3, b4, b5, b6] = self.bytes;
        f.pad(&format!("{b1:02x}:{b2:02x}:{b3:02x}:{b4:02x}:{b5:02x}:{b6:02x}"))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

impl From<Ipv4Addr> for Address {
    fn from(ip: Ipv4Addr) -> Self {
        Self { kind: Kind::V4, bytes: u128::from(ip.to_bits()).to_be_bytes() }
    }
}

impl From<Ipv6Addr> for Address {
    fn from(ip: Ipv6Addr) -> Self {
        Self { kind: Kind::V6, bytes: ip.octets() }
    }
}

impl From<IpAddr> for Address {
    fn from(ip: IpAddr) -> Self {
        match ip {
            IpAddr::V4(ip) => ip.into(),
            IpAddr::V6(ip) => ip.into(),
        }
    }
}

serde_as_text!(Address, "an IPv4, IPv6 or MAC address");
