//! Parses a query.

use super::{HEADER, MOST_OF_NAME, kind, long, short};

/// A question, understood.
#[derive(Debug, Clone)]
pub(crate) struct Query<'a> {
    pub(crate) id: u16,
    /// As they came.
    pub(crate) flags: u16,
    /// Name, type and class as they came, to be repeated in the answer.
    pub(crate) question: &'a [u8],
    name: [u8; MOST_OF_NAME],
    length: usize,
    pub(crate) kind: u16,
    pub(crate) class: u16,
    pub(crate) edns: Option<Edns>,
    /// The serial an IXFR starts from.
    pub(crate) serial: Option<u32>,
    /// It carries a signature (TSIG).
    pub(crate) signed: bool,
}

/// The content of the OPT record of a query.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Edns {
    pub(crate) size: u16,
    pub(crate) version: u8,
    pub(crate) dnssec: bool,
}

/// Why there is no query in a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// Not even a header, or an answer: nothing may be sent back.
    Silent,
    /// It can be told so.
    Answerable { id: u16, flags: u16 },
}

impl<'a> Query<'a> {
    pub(crate) fn parse(packet: &'a [u8]) -> Result<Self, Malformed> {
        let (id, flags) = short(packet, 0).zip(short(packet, 2)).ok_or(Malformed::Silent)?;
        if packet.len() < HEADER || flags & 0x8000 != 0 {
            return Err(Malformed::Silent);
        }
        Self::read(packet, id, flags).ok_or(Malformed::Answerable { id, flags })
    }

    fn read(packet: &'a [u8], id: u16, flags: u16) -> Option<Self> {
        if short(packet, 4)? != 1 {
            return None;
        }
        let mut name = [0; MOST_OF_NAME];
        let mut at = HEADER;
        loop {
            let length = usize::from(*packet.get(at)?);
            if length > 63 {
                return None;
            }
            let label = packet.get(at..=at + length)?;
            let place = name.get_mut(at - HEADER..=at - HEADER + length)?;
            place.copy_from_slice(label);
            at += length + 1;
            if length == 0 {
                break;
            }
            // The byte of the length is below the letters.
            place.make_ascii_lowercase();
        }
        let mut query = Self {
            id,
            flags,
            question: packet.get(HEADER..at + 4)?,
            name,
            length: at - HEADER,
            kind: short(packet, at)?,
            class: short(packet, at + 2)?,
            edns: None,
            serial: None,
            signed: false,
        };
        let records = [short(packet, 6)?, short(packet, 8)?, short(packet, 10)?];
        if records != [0, 0, 0] {
            query.read_records(packet, at + 4, records)?;
        }
        Some(query)
    }

    /// Looks through what follows the question for the three things that matter.
    fn read_records(
        &mut self,
        packet: &[u8],
        mut at: usize,
        [answers, authority, additional]: [u16; 3],
    ) -> Option<()> {
        for section in [(answers, 0), (authority, 1), (additional, 2)] {
            for _ in 0..section.0 {
                let root = packet.get(at) == Some(&0);
                at = skip_name(packet, at)?;
                let (kind, class, ttl) = (short(packet, at)?, short(packet, at + 2)?, long(packet, at + 4)?);
                let data = at + 10;
                at = data + usize::from(short(packet, at + 8)?);
                packet.get(data..at)?;
                match (kind, section.1) {
                    (kind::OPT, 2) if root && self.edns.is_none() => {
                        let [_, version, flags, _] = ttl.to_be_bytes();
                        self.edns = Some(Edns { size: class, version, dnssec: flags & 0x80 != 0 });
                    }
                    (kind::OPT, _) => return None,
                    (kind::TSIG, 2) => self.signed = true,
                    (kind::SOA, 1) => {
                        let names = skip_name(packet, skip_name(packet, data)?)?;
                        self.serial = Some(long(packet, names)?);
                    }
                    _ => {}
                }
            }
        }
        Some(())
    }

    /// The name asked for, in lower case.
    pub(crate) fn name(&self) -> &[u8] {
        self.name.get(..self.length).unwrap_or_default()
    }

    pub(crate) fn opcode(&self) -> u16 {
        (self.flags >> 11) & 15
    }
}

/// Where a name that may end in a pointer ends.
fn skip_name(packet: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match *packet.get(at)? {
            0 => return Some(at + 1),
            length @ 1..=63 => at += usize::from(length) + 1,
            192.. => return Some(at + 2),
            _ => return None,
        }
    }
}
