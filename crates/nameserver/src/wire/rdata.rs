//! Records in wire form, behind their owner.

use netstead_model::{Name, RecordData};

use super::{IN, kind};

/// A record without its owner: type, class, time to live, length and data. None if the data is too long for a record.
pub(crate) fn body(value: &RecordData, ttl: u32) -> Option<Box<[u8]>> {
    framed(value.kind().number(), ttl, &value.to_wire()?)
}

/// The SOA of a zone.
pub(crate) fn soa_body(host: &Name, serial: u32, ttl: u32, negative: u32) -> Box<[u8]> {
    let host = host.to_wire();
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
