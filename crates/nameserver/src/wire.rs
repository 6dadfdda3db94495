//! The bytes of DNS messages.

mod query;
mod rdata;
mod reply;

pub(crate) use self::{
    query::{Edns, Malformed, Query},
    rdata::{body, soa_body},
    reply::{Reply, Section},
};

pub(crate) const HEADER: usize = 12;
/// The most a name has in wire form.
pub(crate) const MOST_OF_NAME: usize = 255;

/// Numbers of types that are not among [`netstead_model::RecordType`], and of those the server treats in a special way.
pub(crate) mod kind {
    pub(crate) const NS: u16 = 2;
    pub(crate) const CNAME: u16 = 5;
    pub(crate) const SOA: u16 = 6;
    pub(crate) const A: u16 = 1;
    pub(crate) const AAAA: u16 = 28;
    pub(crate) const OPT: u16 = 41;
    pub(crate) const DS: u16 = 43;
    pub(crate) const TSIG: u16 = 250;
    pub(crate) const IXFR: u16 = 251;
    pub(crate) const AXFR: u16 = 252;
    pub(crate) const ANY: u16 = 255;
}

/// Response codes.
pub(crate) mod code {
    pub(crate) const NOERROR: u16 = 0;
    pub(crate) const FORMERR: u16 = 1;
    pub(crate) const NXDOMAIN: u16 = 3;
    pub(crate) const NOTIMP: u16 = 4;
    pub(crate) const REFUSED: u16 = 5;
    pub(crate) const NOTAUTH: u16 = 9;
    pub(crate) const BADVERS: u16 = 16;
}

/// The class IN, the only one there is.
pub(crate) const IN: u16 = 1;

pub(crate) const OPCODE_NOTIFY: u16 = 4;

/// The name one label up; none for the root.
pub(crate) fn parent(wire: &[u8]) -> Option<&[u8]> {
    let (&length, rest) = wire.split_first()?;
    if length == 0 { None } else { rest.get(usize::from(length)..) }
}

/// `wire` and every name above it, up to the root.
pub(crate) fn suffixes(wire: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::successors(Some(wire), |name| parent(name))
}

pub(crate) fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

pub(crate) fn long(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}
