//! Names, types and values as they are in DNS messages (RFC 1035, RFC 9460). The nameserver and every provider that writes
//! DNS messages use this one encoder.
//!
//! Names are never compressed: the newer types forbid it, and the older do not need it.

use super::{RecordData, RecordType, Service};
use crate::Name;

impl Name {
    /// Labels with their lengths, up to the root. A name is in lower case already.
    pub fn to_wire(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.as_str().len() + 2);
        self.put_wire(&mut bytes);
        bytes
    }

    /// As [`Name::to_wire`], behind what is in `bytes`.
    pub fn put_wire(&self, bytes: &mut Vec<u8>) {
        for label in self.labels() {
            // A label of a name has at most 63 bytes.
            bytes.push(u8::try_from(label.len()).unwrap_or(0));
            bytes.extend_from_slice(label.as_bytes());
        }
        bytes.push(0);
    }
}

impl RecordType {
    /// The number of the type in messages.
    pub const fn number(self) -> u16 {
        match self {
            Self::A => 1,
            Self::Ns => 2,
            Self::Cname => 5,
            Self::Ptr => 12,
            Self::Mx => 15,
            Self::Txt => 16,
            Self::Aaaa => 28,
            Self::Srv => 33,
            Self::Svcb => 64,
            Self::Https => 65,
            Self::Caa => 257,
        }
    }

    pub fn from_number(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }
}

impl RecordData {
    /// The data of a record, without its length. `None` if the value does not fit into a record: a string of more than 255
    /// bytes, or more than 65,535 bytes in all.
    pub fn to_wire(&self) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        match self {
            Self::A(address) => bytes.extend(address.octets()),
            Self::Aaaa(address) => bytes.extend(address.octets()),
            Self::Cname(name) | Self::Ptr(name) | Self::Ns(name) => name.put_wire(&mut bytes),
            Self::Srv { priority, weight, port, target } => {
                for number in [priority, weight, port] {
                    bytes.extend(number.to_be_bytes());
                }
                target.put_wire(&mut bytes);
            }
            // A TXT record has at least one string.
            Self::Txt(strings) if strings.is_empty() => bytes.push(0),
            Self::Txt(strings) => {
                for string in strings {
                    put_string(string, &mut bytes)?;
                }
            }
            Self::Mx { preference, exchange } => {
                bytes.extend(preference.to_be_bytes());
                put_target(exchange.as_ref(), &mut bytes);
            }
            Self::Caa { flags, tag, value } => {
                bytes.push(*flags);
                put_string(tag.as_bytes(), &mut bytes)?;
                bytes.extend_from_slice(value);
            }
            Self::Https(service) | Self::Svcb(service) => put_service(service, &mut bytes)?,
        }
        u16::try_from(bytes.len()).is_ok().then_some(bytes)
    }
}

/// A character string: its length and its bytes.
fn put_string(string: &[u8], bytes: &mut Vec<u8>) -> Option<()> {
    bytes.push(u8::try_from(string.len()).ok()?);
    bytes.extend_from_slice(string);
    Some(())
}

/// A name, or the root where there is none.
fn put_target(target: Option<&Name>, bytes: &mut Vec<u8>) {
    match target {
        Some(target) => target.put_wire(bytes),
        None => bytes.push(0),
    }
}

fn put_service(service: &Service, bytes: &mut Vec<u8>) -> Option<()> {
    bytes.extend(service.priority.to_be_bytes());
    put_target(service.target.as_ref(), bytes);
    for (key, value) in &service.params {
        bytes.extend(key.to_be_bytes());
        bytes.extend(u16::try_from(value.len()).ok()?.to_be_bytes());
        bytes.extend_from_slice(value);
    }
    Some(())
}
