//! The value of HTTPS and SVCB records (RFC 9460).

use std::{
    fmt,
    net::{Ipv4Addr, Ipv6Addr},
};

use super::{
    parse::{name, short},
    zone_file::{Escaped, Field, from_base64, to_base64},
};
use crate::{Name, ParseError};

const MANDATORY: u16 = 0;
const ALPN: u16 = 1;
const NO_DEFAULT_ALPN: u16 = 2;
const PORT: u16 = 3;
const IPV4HINT: u16 = 4;
const ECH: u16 = 5;
const IPV6HINT: u16 = 6;

const NAMES: [(u16, &str); 7] = [
    (MANDATORY, "mandatory"),
    (ALPN, "alpn"),
    (NO_DEFAULT_ALPN, "no-default-alpn"),
    (PORT, "port"),
    (IPV4HINT, "ipv4hint"),
    (ECH, "ech"),
    (IPV6HINT, "ipv6hint"),
];

/// The value of HTTPS and SVCB: `target` is missing when it is the owner itself (`.`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Service {
    pub priority: u16,
    pub target: Option<Name>,
    /// By parameter number, ascending, in wire form.
    pub params: Vec<(u16, Vec<u8>)>,
}

impl Service {
    pub(super) fn read(
        priority: &Field<'_>,
        target: &Field<'_>,
        params: &[Field<'_>],
    ) -> Result<Self, ParseError> {
        let priority = short(priority, "the priority")?;
        let target = if target.piece.text == "." { None } else { Some(name(target)?) };
        let mut read: Vec<(u16, Vec<u8>)> = Vec::with_capacity(params.len());
        for param in params {
            let split = param.bytes.iter().position(|byte| *byte == b'=').unwrap_or(param.bytes.len());
            let (key, value) = param.bytes.split_at_checked(split).unwrap_or((&param.bytes, &[]));
            let value = value.strip_prefix(b"=").unwrap_or(value);
            let number = number_of(key).ok_or_else(|| {
                let names: Vec<&str> = NAMES.iter().map(|(_, name)| *name).collect();
                let problem = format!("is not known; use {} or key65000", names.join(", "));
                param.piece.blame("the parameter", problem)
            })?;
            let by_number = key.get(..3).is_some_and(|start| start.eq_ignore_ascii_case(b"key"));
            let wire = if by_number { Some(value.to_vec()) } else { to_wire(number, value) };
            let wire = wire
                .filter(|wire| u16::try_from(wire.len()).is_ok())
                .ok_or_else(|| param.piece.blame("the parameter", "has a value that cannot be"))?;
            if read.iter().any(|(known, _)| *known == number) {
                return Err(param.piece.blame("the parameter", "is there twice"));
            }
            read.push((number, wire));
        }
        read.sort();
        Ok(Self { priority, target, params: read })
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.target {
            Some(target) => write!(f, "{} {target}.", self.priority)?,
            None => write!(f, "{} .", self.priority)?,
        }
        for (number, wire) in &self.params {
            let name = NAMES.iter().find(|(known, _)| known == number).map(|(_, name)| *name);
            let (name, value) = match name.zip(to_text(*number, wire)) {
                Some((name, value)) => (name.to_string(), value),
                None => (format!("key{number}"), wire.clone()),
            };
            let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:,/+=".contains(byte);
            let quote = if value.iter().all(plain) { "" } else { "\"" };
            let equals = if value.is_empty() { "" } else { "=" };
            write!(f, " {name}{equals}{quote}{}{quote}", Escaped(&value))?;
        }
        Ok(())
    }
}

fn number_of(key: &[u8]) -> Option<u16> {
    let key = std::str::from_utf8(key).ok()?.to_ascii_lowercase();
    let digits = key.strip_prefix("key").filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    match digits {
        Some(digits) => digits.parse().ok(),
        None => NAMES.iter().find(|(_, name)| *name == key).map(|(number, _)| *number),
    }
}

/// The wire form of a named parameter; none if the text is not one.
fn to_wire(number: u16, value: &[u8]) -> Option<Vec<u8>> {
    let text = || std::str::from_utf8(value).ok();
    let wire: Vec<u8> = match number {
        MANDATORY => {
            let mut keys =
                text()?.split(',').map(|key| number_of(key.as_bytes())).collect::<Option<Vec<u16>>>()?;
            keys.sort_unstable();
            keys.iter().flat_map(|key| key.to_be_bytes()).collect()
        }
        ALPN => alpn_to_wire(value)?,
        NO_DEFAULT_ALPN => return value.is_empty().then(Vec::new),
        PORT => text()?.parse::<u16>().ok()?.to_be_bytes().to_vec(),
        IPV4HINT => {
            let addresses: Vec<Ipv4Addr> =
                text()?.split(',').map(str::parse).collect::<Result<_, _>>().ok()?;
            addresses.iter().flat_map(Ipv4Addr::octets).collect()
        }
        IPV6HINT => {
            let addresses: Vec<Ipv6Addr> =
                text()?.split(',').map(str::parse).collect::<Result<_, _>>().ok()?;
            addresses.iter().flat_map(Ipv6Addr::octets).collect()
        }
        ECH => from_base64(value)?,
        _ => return None,
    };
    // What has no text of its own would not come back.
    to_text(number, &wire).map(|_| wire)
}

/// The text of a named parameter, before quoting; none if the wire form is not one.
fn to_text(number: u16, wire: &[u8]) -> Option<Vec<u8>> {
    match number {
        MANDATORY => {
            let keys = wire.chunks(2).map(|key| key.try_into().ok().map(u16::from_be_bytes));
            let keys: Vec<u16> = keys.collect::<Option<_>>()?;
            let ascending = keys.windows(2).all(|pair| pair.first() < pair.last());
            if keys.is_empty() || keys.contains(&MANDATORY) || !ascending {
                return None;
            }
            let known =
                |key: &u16| NAMES.iter().find(|(number, _)| number == key).map(|(_, name)| (*name).into());
            let names: Vec<String> =
                keys.iter().map(|key| known(key).unwrap_or_else(|| format!("key{key}"))).collect();
            Some(names.join(",").into_bytes())
        }
        ALPN => alpn_to_text(wire),
        NO_DEFAULT_ALPN => wire.is_empty().then(Vec::new),
        PORT => Some(u16::from_be_bytes(wire.try_into().ok()?).to_string().into_bytes()),
        IPV4HINT => joined(wire.chunks(4).map(|octets| octets.try_into().ok().map(<[u8; 4]>::into))),
        IPV6HINT => joined(wire.chunks(16).map(|octets| octets.try_into().ok().map(<[u8; 16]>::into))),
        ECH => (!wire.is_empty()).then(|| to_base64(wire).into_bytes()),
        _ => None,
    }
}

fn joined(addresses: impl Iterator<Item = Option<std::net::IpAddr>>) -> Option<Vec<u8>> {
    let texts = addresses.map(|address| address.map(|address| address.to_string()));
    let texts: Vec<String> = texts.collect::<Option<_>>()?;
    (!texts.is_empty()).then(|| texts.join(",").into_bytes())
}

/// Protocol ids between commas; a comma or backslash inside one has a backslash before it.
fn alpn_to_wire(value: &[u8]) -> Option<Vec<u8>> {
    let mut ids: Vec<Vec<u8>> = vec![Vec::new()];
    let mut bytes = value.iter();
    while let Some(&byte) = bytes.next() {
        match byte {
            b',' => ids.push(Vec::new()),
            b'\\' => ids.last_mut()?.push(*bytes.next()?),
            _ => ids.last_mut()?.push(byte),
        }
    }
    let mut wire = Vec::with_capacity(value.len() + 1);
    for id in ids {
        wire.push(u8::try_from(id.len()).ok()?);
        wire.extend(id);
    }
    Some(wire)
}

fn alpn_to_text(mut wire: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::with_capacity(wire.len());
    while let Some((&length, rest)) = wire.split_first() {
        let (id, after) = rest.split_at_checked(length.into()).filter(|(id, _)| !id.is_empty())?;
        if !text.is_empty() {
            text.push(b',');
        }
        for &byte in id {
            if matches!(byte, b',' | b'\\') {
                text.push(b'\\');
            }
            text.push(byte);
        }
        wire = after;
    }
    (!text.is_empty()).then_some(text)
}
