//! Parses a server's answer without trusting it.
//!
//! Records of types we do not write are skipped by their length: an unknown record must not hide a zone.

use hickory_proto::{
    rr::Name as WireName,
    serialize::binary::{BinDecodable, BinDecoder, DecodeError},
};
use netstead_model::{Name, RecordData, RecordType};

use super::{rdata, tsig::canonical};

const SOA: u16 = 6;
const OPT: u16 = 41;
const TSIG: u16 = 250;
/// Record types that DNSSEC adds by itself. DS is not one of them: people write it.
const SIGNING: [u16; 6] = [46, 47, 48, 50, 51, 65534];

#[derive(Debug)]
pub(super) struct Answer {
    /// Bytes of the message.
    pub(super) length: usize,
    pub(super) id: u16,
    pub(super) response: bool,
    pub(super) code: u16,
    pub(super) authoritative: bool,
    pub(super) truncated: bool,
    pub(super) records: Vec<Entry>,
    pub(super) authority: Vec<Entry>,
    pub(super) signature: Option<Signature>,
}

#[derive(Debug)]
pub(super) struct Entry {
    /// None if our types cannot hold it.
    pub(super) name: Option<Name>,
    pub(super) ttl: u32,
    pub(super) data: Data,
}

#[derive(Debug)]
pub(super) enum Data {
    Known(RecordData),
    /// Of a type we write, with a value we cannot hold.
    Opaque(RecordType),
    Soa {
        serial: u32,
    },
    /// Belongs to DNSSEC, and takes care of itself.
    Signing,
    Other,
}

#[derive(Debug)]
pub(super) struct Signature {
    /// Where it begins in the message.
    pub(super) start: usize,
    pub(super) name: Vec<u8>,
    pub(super) algorithm: Vec<u8>,
    pub(super) time: u64,
    pub(super) fudge: u16,
    pub(super) mac: Vec<u8>,
    pub(super) id: u16,
    pub(super) error: u16,
    pub(super) other: Vec<u8>,
}

impl Answer {
    pub(super) fn read(message: &[u8]) -> Result<Self, String> {
        parse(message).map_err(|error| format!("its message cannot be read: {error}"))
    }
}

fn parse(message: &[u8]) -> Result<Answer, DecodeError> {
    let mut decoder = BinDecoder::new(message);
    let id = short(&mut decoder)?;
    let flags = short(&mut decoder)?;
    let counts = [short(&mut decoder)?, short(&mut decoder)?, short(&mut decoder)?, short(&mut decoder)?];
    let [questions, answers, authorities, additionals] = counts;
    for _ in 0..questions {
        WireName::read(&mut decoder)?;
        decoder.read_u32()?;
    }
    let mut answer = Answer {
        length: message.len(),
        id,
        response: flags & 0x8000 != 0,
        code: flags & 0x000f,
        authoritative: flags & 0x0400 != 0,
        truncated: flags & 0x0200 != 0,
        records: Vec::new(),
        authority: Vec::new(),
        signature: None,
    };
    for _ in 0..answers {
        answer.records.extend(entry(message, &mut decoder)?.0);
    }
    for _ in 0..authorities {
        answer.authority.extend(entry(message, &mut decoder)?.0);
    }
    for _ in 0..additionals {
        // A signature is the last record; what follows one would not be covered by it.
        if answer.signature.is_some() {
            return Err(DecodeError::RecordAfterSig);
        }
        answer.signature = entry(message, &mut decoder)?.1;
    }
    if !decoder.is_empty() {
        return Err(DecodeError::InsufficientBytes);
    }
    Ok(answer)
}

type Either = (Option<Entry>, Option<Signature>);

fn entry(message: &[u8], decoder: &mut BinDecoder<'_>) -> Result<Either, DecodeError> {
    let start = decoder.index();
    let name = WireName::read(decoder)?;
    let kind = short(decoder)?;
    let _class = short(decoder)?;
    let ttl = decoder.read_u32()?.unverified();
    let length = usize::from(short(decoder)?);
    let from = decoder.index();
    decoder.read_slice(length)?;
    let here = message.get(..decoder.index()).ok_or(DecodeError::InsufficientBytes)?;
    let at = u16::try_from(from).map_err(|_| DecodeError::InsufficientBytes)?;
    // Pointers lead backwards only, so the message up to the end of this record is all it can need.
    let mut inner = BinDecoder::new(here).clone(at);
    if kind == TSIG {
        return Ok((None, Some(signature(start, &name, &mut inner)?)));
    }
    let data = match kind {
        OPT => return Ok((None, None)),
        SOA => soa(&mut inner).map(|serial| Data::Soa { serial })?,
        kind if SIGNING.contains(&kind) => Data::Signing,
        kind => match RecordType::from_number(kind) {
            None => Data::Other,
            Some(kind) => rdata::read(kind, &mut inner).map_or(Data::Opaque(kind), Data::Known),
        },
    };
    Ok((Some(Entry { name: rdata::name(&name), ttl, data }), None))
}

fn soa(decoder: &mut BinDecoder<'_>) -> Result<u32, DecodeError> {
    WireName::read(decoder)?;
    WireName::read(decoder)?;
    Ok(decoder.read_u32()?.unverified())
}

fn signature(start: usize, name: &WireName, decoder: &mut BinDecoder<'_>) -> Result<Signature, DecodeError> {
    let algorithm = canonical(&WireName::read(decoder)?);
    let high = u64::from(short(decoder)?);
    let time = (high << 32) | u64::from(decoder.read_u32()?.unverified());
    let fudge = short(decoder)?;
    let mac = bytes(decoder)?;
    let id = short(decoder)?;
    let error = short(decoder)?;
    let other = bytes(decoder)?;
    Ok(Signature { start, name: canonical(name), algorithm, time, fudge, mac, id, error, other })
}

fn bytes(decoder: &mut BinDecoder<'_>) -> Result<Vec<u8>, DecodeError> {
    let length = usize::from(short(decoder)?);
    Ok(decoder.read_vec(length)?.unverified())
}

fn short(decoder: &mut BinDecoder<'_>) -> Result<u16, DecodeError> {
    Ok(decoder.read_u16()?.unverified())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn garbage_is_an_error_and_nothing_worse() {
        for seed in 0..2_000_u32 {
            let length = seed % 97;
            let garbage: Vec<u8> = (0..length)
                .map(|n| n.wrapping_mul(seed).wrapping_mul(2_654_435_761).to_be_bytes()[1])
                .collect();
            let _ = Answer::read(&garbage);
        }
        assert!(Answer::read(&[0xff; 12]).is_err());
    }
}
