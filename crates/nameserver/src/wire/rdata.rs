//! Encodes record values in wire form.

use netstead_model::{Name, RecordData, Service};

use super::{IN, kind, number_of, to_wire};

/// A record without its owner: type, class, time to live, length and data. None if the data is too long for a record.
///
/// Names inside are not compressed: the newer types forbid it, and the older do not need it.
pub(crate) fn body(value: &RecordData, ttl: u32) -> Option<Box<[u8]>> {
    framed(number_of(value.kind()), ttl, &data(value)?)
}

/// The SOA of a zone.
pub(crate) fn soa_body(host: &Name, serial: u32, ttl: u32, negative: u32) -> Box<[u8]> {
    let host = to_wire(host);
    let mut data = host.clone();
    data.extend_from_slice(b"\x0ahostmaster");
    data.extend_from_slice(&host);
    // Serial; refresh, retry, expire; how long a denial may be kept.
    for number in [serial, 3600, 600, 1_209_600, negative] {
        data.extend_from_slice(&number.to_be_bytes());
    }
    framed(kind::SOA, ttl, &data).unwrap_or_default()
}

fn framed(kind: u16, ttl: u32, data: &[u8]) -> Option<Box<[u8]>> {
    let length = u16::try_from(data.len()).ok()?;
    let mut body = Vec::with_capacity(10 + data.len());
    body.extend_from_slice(&kind.to_be_bytes());
    body.extend_from_slice(&IN.to_be_bytes());
    body.extend_from_slice(&ttl.to_be_bytes());
    body.extend_from_slice(&length.to_be_bytes());
    body.extend_from_slice(data);
    Some(body.into())
}

fn data(value: &RecordData) -> Option<Vec<u8>> {
    Some(match value {
        RecordData::A(address) => address.octets().to_vec(),
        RecordData::Aaaa(address) => address.octets().to_vec(),
        RecordData::Cname(name) | RecordData::Ptr(name) | RecordData::Ns(name) => to_wire(name),
        RecordData::Srv { priority, weight, port, target } => [priority, weight, port]
            .iter()
            .flat_map(|number| number.to_be_bytes())
            .chain(to_wire(target))
            .collect(),
        RecordData::Mx { preference, exchange } => {
            preference.to_be_bytes().into_iter().chain(to_target(exchange.as_ref())).collect()
        }
        RecordData::Txt(strings) if strings.is_empty() => vec![0],
        RecordData::Txt(strings) => {
            let mut data = Vec::new();
            for string in strings {
                data.push(u8::try_from(string.len()).ok()?);
                data.extend_from_slice(string);
            }
            data
        }
        RecordData::Caa { flags, tag, value } => {
            let mut data = vec![*flags, u8::try_from(tag.len()).ok()?];
            data.extend_from_slice(tag.as_bytes());
            data.extend_from_slice(value);
            data
        }
        RecordData::Https(service) | RecordData::Svcb(service) => service_data(service)?,
    })
}

/// A name, or the root where there is none.
fn to_target(target: Option<&Name>) -> Vec<u8> {
    target.map_or_else(|| vec![0], to_wire)
}

fn service_data(service: &Service) -> Option<Vec<u8>> {
    let mut data = service.priority.to_be_bytes().to_vec();
    data.extend(to_target(service.target.as_ref()));
    for (key, value) in &service.params {
        data.extend_from_slice(&key.to_be_bytes());
        data.extend_from_slice(&u16::try_from(value.len()).ok()?.to_be_bytes());
        data.extend_from_slice(value);
    }
    Some(data)
}
