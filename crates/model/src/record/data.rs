//! The value of one record.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{
    Service,
    zone_file::{Escaped, MOST_OF_STRING},
};
use crate::{Name, ParseError, RecordType};

/// One value; its text is that of a zone file, with absolute names.
///
/// In JSON it is type and text: `"A 192.0.2.1"`. Two values are equal when a server would take them for the same:
/// names and tags are in lower case, parameters in order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordData {
    A(Ipv4Addr),
    Aaaa(Ipv6Addr),
    Cname(Name),
    Ptr(Name),
    Srv {
        priority: u16,
        weight: u16,
        port: u16,
        target: Name,
    },
    /// Character strings of at most 255 bytes each.
    Txt(Vec<Vec<u8>>),
    /// Without an exchange (`0 .`) the name takes no mail.
    Mx {
        preference: u16,
        exchange: Option<Name>,
    },
    /// The tag is in lower case.
    Caa {
        flags: u8,
        tag: String,
        value: Vec<u8>,
    },
    Ns(Name),
    Https(Service),
    Svcb(Service),
}

impl RecordData {
    pub fn kind(&self) -> RecordType {
        match self {
            Self::A(_) => RecordType::A,
            Self::Aaaa(_) => RecordType::Aaaa,
            Self::Cname(_) => RecordType::Cname,
            Self::Ptr(_) => RecordType::Ptr,
            Self::Srv { .. } => RecordType::Srv,
            Self::Txt(_) => RecordType::Txt,
            Self::Mx { .. } => RecordType::Mx,
            Self::Caa { .. } => RecordType::Caa,
            Self::Ns(_) => RecordType::Ns,
            Self::Https(_) => RecordType::Https,
            Self::Svcb(_) => RecordType::Svcb,
        }
    }

    /// The TXT value of some text, in as many strings as it needs.
    pub fn txt(text: impl AsRef<[u8]>) -> Self {
        Self::Txt(split_string(text.as_ref()))
    }

    /// A or AAAA.
    pub fn address(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self::A(address),
            IpAddr::V6(address) => Self::Aaaa(address),
        }
    }

    /// The address of A or AAAA.
    pub fn to_address(&self) -> Option<IpAddr> {
        match self {
            Self::A(address) => Some((*address).into()),
            Self::Aaaa(address) => Some((*address).into()),
            _ => None,
        }
    }
}

/// A text as character strings: all but the last are full.
pub(super) fn split_string(text: &[u8]) -> Vec<Vec<u8>> {
    if text.is_empty() { vec![Vec::new()] } else { text.chunks(MOST_OF_STRING).map(<[u8]>::to_vec).collect() }
}

impl fmt::Display for RecordData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::A(address) => write!(f, "{address}"),
            Self::Aaaa(address) => write!(f, "{address}"),
            Self::Cname(name) | Self::Ptr(name) | Self::Ns(name) => write!(f, "{name}."),
            Self::Srv { priority, weight, port, target } => write!(f, "{priority} {weight} {port} {target}."),
            Self::Txt(strings) if strings.is_empty() => f.write_str("\"\""),
            Self::Txt(strings) => strings.iter().enumerate().try_for_each(|(index, string)| {
                let space = if index == 0 { "" } else { " " };
                write!(f, "{space}\"{}\"", Escaped(string))
            }),
            Self::Mx { preference, exchange } => {
                write!(f, "{preference} {}.", exchange.as_ref().map_or("", Name::as_str))
            }
            Self::Caa { flags, tag, value } => write!(f, "{flags} {tag} \"{}\"", Escaped(value)),
            Self::Https(service) | Self::Svcb(service) => write!(f, "{service}"),
        }
    }
}

impl Serialize for RecordData {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{} {self}", self.kind()))
    }
}

impl<'de> Deserialize<'de> for RecordData {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TypedText)
    }
}

struct TypedText;

impl de::Visitor<'_> for TypedText {
    type Value = RecordData;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a record's type and value such as `A 192.0.2.1`")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<RecordData, E> {
        let (kind, value) = text.split_once(' ').ok_or_else(|| {
            let reason = "write type and value, such as `A 192.0.2.1`";
            E::custom(ParseError::new("record", text, None, reason))
        })?;
        RecordData::parse(kind.parse().map_err(E::custom)?, value).map_err(E::custom)
    }
}
