//! Reads record values from messages, where names may be compressed. The model writes them.

use std::net::{Ipv4Addr, Ipv6Addr};

use hickory_proto::{
    rr::Name as WireName,
    serialize::binary::{BinDecodable, BinDecoder},
};
use netstead_model::{Name, RecordData, RecordType, Service};

/// The name in our types, if they can hold it.
pub(super) fn name(name: &WireName) -> Option<Name> {
    name.to_ascii().parse().ok()
}

/// The value that takes up all that is left in `decoder`; none if our types cannot hold it.
pub(super) fn read(kind: RecordType, decoder: &mut BinDecoder<'_>) -> Option<RecordData> {
    let value = match kind {
        RecordType::A => RecordData::A(Ipv4Addr::from(decoder.read_u32().ok()?.unverified())),
        RecordType::Aaaa => {
            let bytes: [u8; 16] = decoder.read_slice(16).ok()?.unverified().try_into().ok()?;
            RecordData::Aaaa(Ipv6Addr::from(bytes))
        }
        RecordType::Cname => RecordData::Cname(read_name(decoder)?),
        RecordType::Ptr => RecordData::Ptr(read_name(decoder)?),
        RecordType::Ns => RecordData::Ns(read_name(decoder)?),
        RecordType::Srv => {
            let [priority, weight, port] = [short(decoder)?, short(decoder)?, short(decoder)?];
            RecordData::Srv { priority, weight, port, target: read_name(decoder)? }
        }
        RecordType::Txt => {
            let mut strings = Vec::new();
            while !decoder.is_empty() {
                strings.push(decoder.read_character_data().ok()?.unverified().to_vec());
            }
            RecordData::Txt(strings)
        }
        RecordType::Mx => {
            let (preference, exchange) = (short(decoder)?, WireName::read(decoder).ok()?);
            let exchange = if exchange.is_root() { None } else { Some(name(&exchange)?) };
            RecordData::Mx { preference, exchange }
        }
        RecordType::Caa => {
            let flags = decoder.read_u8().ok()?.unverified();
            let tag = decoder.read_character_data().ok()?.unverified().to_ascii_lowercase();
            let value = decoder.read_vec(decoder.len()).ok()?.unverified();
            RecordData::Caa { flags, tag: String::from_utf8(tag).ok()?, value }
        }
        RecordType::Https => RecordData::Https(service(decoder)?),
        RecordType::Svcb => RecordData::Svcb(service(decoder)?),
    };
    decoder.is_empty().then_some(value)
}

fn service(decoder: &mut BinDecoder<'_>) -> Option<Service> {
    let priority = short(decoder)?;
    let target = WireName::read(decoder).ok()?;
    let target = if target.is_root() { None } else { Some(name(&target)?) };
    let mut params = Vec::new();
    while !decoder.is_empty() {
        let key = short(decoder)?;
        let length = usize::from(short(decoder)?);
        params.push((key, decoder.read_vec(length).ok()?.unverified()));
    }
    Some(Service { priority, target, params })
}

fn read_name(decoder: &mut BinDecoder<'_>) -> Option<Name> {
    name(&WireName::read(decoder).ok()?)
}

fn short(decoder: &mut BinDecoder<'_>) -> Option<u16> {
    Some(decoder.read_u16().ok()?.unverified())
}

#[cfg(test)]
mod tests;
