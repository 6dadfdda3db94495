//! Service parameters of SVCB and HTTPS, as the server writes them.

use std::net::{Ipv4Addr, Ipv6Addr};

use data_encoding::{BASE64, HEXUPPER, HEXUPPER_PERMISSIVE};
use netstead_model::{Name, Service};
use serde_json::Value;

/// The names by number; the server knows all others by their number alone.
const NAMES: [&str; 8] =
    ["mandatory", "alpn", "no-default-alpn", "port", "ipv4hint", "ech", "ipv6hint", "dohpath"];

/// `alpn|h2,h3|port|8443`, or `false` for none.
pub(super) fn to_parameter(service: &Service) -> Result<String, String> {
    if service.params.is_empty() {
        return Ok("false".to_owned());
    }
    let mut parts = Vec::with_capacity(service.params.len());
    for (number, wire) in &service.params {
        let text = to_text(*number, wire).filter(|text| !text.contains('|'));
        let text =
            text.ok_or_else(|| format!("Technitium cannot hold this value of `{}`", name_of(*number)))?;
        parts.push(format!("{}|{text}", name_of(*number)));
    }
    Ok(parts.join("|"))
}

/// The service in the JSON of an answer.
pub(super) fn read(rdata: &Value) -> Option<Service> {
    let priority = u16::try_from(rdata.get("svcPriority")?.as_u64()?).ok()?;
    let target = match rdata.get("svcTargetName")?.as_str()? {
        "" | "." => None,
        name => Some(name.parse::<Name>().ok()?),
    };
    let mut params = Vec::new();
    for (key, value) in rdata.get("svcParams")?.as_object()? {
        let number = number_of(key)?;
        params.push((number, to_wire(number, value.as_str()?)?));
    }
    params.sort();
    Some(Service { priority, target, params })
}

fn name_of(number: u16) -> String {
    NAMES.get(usize::from(number)).map_or_else(|| number.to_string(), |name| (*name).to_owned())
}

fn number_of(name: &str) -> Option<u16> {
    let known = NAMES.iter().position(|known| known.eq_ignore_ascii_case(name));
    known.and_then(|number| u16::try_from(number).ok()).or_else(|| name.parse().ok())
}

fn to_text(number: u16, wire: &[u8]) -> Option<String> {
    let joined = |texts: Option<Vec<String>>| texts.map(|texts| texts.join(","));
    match number {
        0 => joined(
            wire.chunks(2).map(|key| Some(name_of(u16::from_be_bytes(key.try_into().ok()?)))).collect(),
        ),
        1 => joined(protocols(wire)),
        2 => Some(String::new()),
        3 => Some(u16::from_be_bytes(wire.try_into().ok()?).to_string()),
        4 => joined(
            wire.chunks(4)
                .map(|one| Some(Ipv4Addr::from(<[u8; 4]>::try_from(one).ok()?).to_string()))
                .collect(),
        ),
        6 => joined(
            wire.chunks(16)
                .map(|one| Some(Ipv6Addr::from(<[u8; 16]>::try_from(one).ok()?).to_string()))
                .collect(),
        ),
        7 => String::from_utf8(wire.to_vec()).ok(),
        _ => Some(colons(&HEXUPPER.encode(wire))),
    }
}

fn to_wire(number: u16, text: &str) -> Option<Vec<u8>> {
    let parts = || text.split(',').map(str::trim);
    match number {
        0 => {
            let mut keys: Vec<u16> = parts().map(number_of).collect::<Option<_>>()?;
            keys.sort_unstable();
            Some(keys.iter().flat_map(|key| key.to_be_bytes()).collect())
        }
        1 => {
            let mut wire = Vec::new();
            for protocol in parts() {
                wire.push(u8::try_from(protocol.len()).ok()?);
                wire.extend(protocol.as_bytes());
            }
            Some(wire)
        }
        2 => Some(Vec::new()),
        3 => Some(text.parse::<u16>().ok()?.to_be_bytes().to_vec()),
        4 => {
            let hints: Vec<Ipv4Addr> = parts().map(|one| one.parse().ok()).collect::<Option<_>>()?;
            Some(hints.iter().flat_map(Ipv4Addr::octets).collect())
        }
        6 => {
            let hints: Vec<Ipv6Addr> = parts().map(|one| one.parse().ok()).collect::<Option<_>>()?;
            Some(hints.iter().flat_map(Ipv6Addr::octets).collect())
        }
        7 => Some(text.as_bytes().to_vec()),
        _ => {
            let hex = HEXUPPER_PERMISSIVE.decode(text.replace(':', "").as_bytes()).ok();
            hex.or_else(|| BASE64.decode(text.as_bytes()).ok())
        }
    }
}

/// The protocols of `alpn`; none if one of them has a comma, which the server would take for the end of it.
fn protocols(mut wire: &[u8]) -> Option<Vec<String>> {
    let mut protocols = Vec::new();
    while let Some((&length, rest)) = wire.split_first() {
        let (protocol, after) = rest.split_at_checked(length.into())?;
        let protocol = std::str::from_utf8(protocol).ok()?;
        if protocol.is_empty() || protocol.contains(',') {
            return None;
        }
        protocols.push(protocol.to_owned());
        wire = after;
    }
    Some(protocols)
}

/// A colon between every two digits.
fn colons(hex: &str) -> String {
    let pairs: Vec<String> =
        hex.as_bytes().chunks(2).map(|pair| String::from_utf8_lossy(pair).into_owned()).collect();
    pairs.join(":")
}
