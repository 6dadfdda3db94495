//! One entry of a list of addresses: a single address, a network or a range.

use std::net::IpAddr;

use netstead_model::{Address, Cidr, Kind};

/// Addresses from one to another, of one family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) kind: Kind,
    pub(super) first: u128,
    pub(super) last: u128,
    /// The length of a network, if it was written as one.
    pub(super) length: Option<u8>,
    /// The network was written with bits of a host in it.
    pub(super) host_bits: bool,
}

impl Entry {
    /// Reads `10.0.0.1`, `10.0.0.0/24` or `10.0.0.1-10.0.0.9`. Bits of a host in a network are masked.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if let Some((first, last)) = text.split_once('-') {
            let (first, last) = (address(first)?, address(last)?);
            if first.kind() != last.kind() {
                return Err(format!("`{first}` and `{last}` are not of one family"));
            }
            if first > last {
                return Err(format!(
                    "it begins at `{first}`, after its end `{last}`; write `{last}-{first}`"
                ));
            }
            return Ok(Self::between(first, last));
        }
        let Some((base, length)) = text.split_once('/') else {
            let address = address(text)?;
            return Ok(Self::between(address, address));
        };
        let base = address(base)?;
        let digits = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
        let length = length.parse::<u8>().ok().filter(|_| digits);
        let length = length.ok_or_else(|| "the length behind `/` is no number from 0 to 128".to_owned())?;
        let block = Cidr::containing(base, length)
            .map_err(|_| format!("the length {length} is over {}", base.kind().bits()))?;
        let host_bits = block.network() != base;
        Ok(Self { length: Some(length), host_bits, ..Self::between(block.first(), block.last()) })
    }

    fn between(first: Address, last: Address) -> Self {
        let (kind, first, last) = (first.kind(), first.number(), last.number());
        Self { kind, first, last, length: None, host_bits: false }
    }
}

/// Reads an IP address as it is written, without a zone.
pub(crate) fn address(text: &str) -> Result<Address, String> {
    let ip: IpAddr = text.parse().map_err(|_| format!("`{text}` is no IP address"))?;
    Ok(Address::from(ip))
}
