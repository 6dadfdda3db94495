//! Record values in wire form.

use std::net::{Ipv4Addr, Ipv6Addr};

use hickory_proto::{
    rr::Name as WireName,
    serialize::binary::{BinDecodable, BinDecoder},
};
use netstead_model::{Name, RecordData, RecordType, Service};

const NUMBERS: [(RecordType, u16); 11] = [
    (RecordType::A, 1),
    (RecordType::Ns, 2),
    (RecordType::Cname, 5),
    (RecordType::Ptr, 12),
    (RecordType::Mx, 15),
    (RecordType::Txt, 16),
    (RecordType::Aaaa, 28),
    (RecordType::Srv, 33),
    (RecordType::Svcb, 64),
    (RecordType::Https, 65),
    (RecordType::Caa, 257),
];

pub(super) fn number(kind: RecordType) -> u16 {
    NUMBERS.iter().find(|(known, _)| *known == kind).map_or(0, |(_, number)| *number)
}

pub(super) fn kind(number: u16) -> Option<RecordType> {
    NUMBERS.iter().find(|(_, known)| *known == number).map(|(kind, _)| *kind)
}

/// The name in our types, if they can hold it.
pub(super) fn name(name: &WireName) -> Option<Name> {
    name.to_ascii().parse().ok()
}

/// A name in wire form.
pub(super) fn put_name(name: &Name, bytes: &mut Vec<u8>) {
    for label in name.labels() {
        put_string(label.as_bytes(), bytes);
    }
    bytes.push(0);
}

fn put_string(string: &[u8], bytes: &mut Vec<u8>) {
    // What is longer than 255 bytes our types do not make.
    bytes.push(u8::try_from(string.len()).unwrap_or(u8::MAX));
    bytes.extend(string.iter().take(255));
}

pub(super) fn write(value: &RecordData) -> Vec<u8> {
    let mut bytes = Vec::new();
    match value {
        RecordData::A(address) => bytes.extend(address.octets()),
        RecordData::Aaaa(address) => bytes.extend(address.octets()),
        RecordData::Cname(name) | RecordData::Ptr(name) | RecordData::Ns(name) => put_name(name, &mut bytes),
        RecordData::Srv { priority, weight, port, target } => {
            for number in [priority, weight, port] {
                bytes.extend(number.to_be_bytes());
            }
            put_name(target, &mut bytes);
        }
        RecordData::Txt(strings) => {
            for string in strings {
                put_string(string, &mut bytes);
            }
            if strings.is_empty() {
                bytes.push(0);
            }
        }
        RecordData::Mx { preference, exchange } => {
            bytes.extend(preference.to_be_bytes());
            put_target(exchange.as_ref(), &mut bytes);
        }
        RecordData::Caa { flags, tag, value } => {
            bytes.push(*flags);
            put_string(tag.as_bytes(), &mut bytes);
            bytes.extend_from_slice(value);
        }
        RecordData::Https(service) | RecordData::Svcb(service) => {
            bytes.extend(service.priority.to_be_bytes());
            put_target(service.target.as_ref(), &mut bytes);
            for (key, value) in &service.params {
                bytes.extend(key.to_be_bytes());
                bytes.extend(u16::try_from(value.len()).unwrap_or(u16::MAX).to_be_bytes());
                bytes.extend_from_slice(value);
            }
        }
    }
    bytes
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

/// A name, or the root where there is none.
fn put_target(target: Option<&Name>, bytes: &mut Vec<u8>) {
    match target {
        Some(target) => put_name(target, bytes),
        None => bytes.push(0),
    }
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
mod tests {
    use super::*;

    #[test]
    fn every_type_comes_back_as_it_went() {
        for (kind, text) in [
            (RecordType::A, "192.0.2.1"),
            (RecordType::Aaaa, "2001:db8::1"),
            (RecordType::Cname, "a.example.net."),
            (RecordType::Ptr, "a.example.net."),
            (RecordType::Ns, "ns1.example.net."),
            (RecordType::Srv, "1 2 443 a.example.net."),
            (RecordType::Txt, r#""one" "two \"quoted\"" """#),
            (RecordType::Mx, "10 mail.example.net."),
            (RecordType::Mx, "0 ."),
            (RecordType::Caa, r#"0 issue "ca.example.net""#),
            (RecordType::Https, "1 . alpn=h2,h3 port=8443"),
            (RecordType::Svcb, "0 pool.example.net."),
        ] {
            let value = RecordData::parse(kind, text).unwrap();
            let bytes = write(&value);
            assert_eq!(read(kind, &mut BinDecoder::new(&bytes)), Some(value), "{kind} {text}");
            assert_eq!(super::kind(number(kind)), Some(kind));
        }
    }
}
