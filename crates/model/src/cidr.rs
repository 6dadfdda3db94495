//! A network: all addresses that begin with the same bits.

use std::{fmt, str::FromStr};

use crate::{
    Address, Kind, ParseError,
    parse::{Piece, serde_as_text},
};

/// An aligned block of addresses, written `10.0.3.0/24`. Blocks of MAC addresses, `52:54:00:00:00:00/24`, work the
/// same way. Ordered by base, then the larger block first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cidr {
    base: Address,
    len: u8,
}

impl Cidr {
    /// The block of `len` fixed bits that begins at `base`; an error if none begins there.
    pub fn new(base: Address, len: u8) -> Result<Self, ParseError> {
        let block = Self::containing(base, len)?;
        if block.base == base {
            return Ok(block);
        }
        Err(ParseError::new("network", &format!("{base}/{len}"), None, host_bits(base, block)))
    }

    /// The block of `len` fixed bits that `address` is in; an error if the kind does not have so many bits.
    pub fn containing(address: Address, len: u8) -> Result<Self, ParseError> {
        let kind = address.kind();
        let base = Address::new(kind, address.number() & !host_mask(kind, len));
        match base {
            Some(base) if len <= kind.bits() => Ok(Self { base, len }),
            _ => Err(ParseError::new("network", &format!("{address}/{len}"), None, over(len, kind))),
        }
    }

    pub const fn kind(&self) -> Kind {
        self.base.kind()
    }

    /// The lowest address, which gives the network its name.
    pub const fn network(&self) -> Address {
        self.base
    }

    /// How many leading bits are fixed, the number after the `/`.
    #[expect(clippy::len_without_is_empty, reason = "a network is never empty")]
    pub const fn len(&self) -> u8 {
        self.len
    }

    pub const fn first(&self) -> Address {
        self.base
    }

    pub fn last(&self) -> Address {
        let bits = self.base.number() | host_mask(self.kind(), self.len);
        Address::new(self.kind(), bits).unwrap_or(self.base)
    }

    /// How many addresses are in it. All of IPv6, `::/0`, has one more than a `u128` can say and answers with the
    /// highest number there is.
    pub fn size(&self) -> u128 {
        host_mask(self.kind(), self.len).saturating_add(1)
    }

    pub fn contains(&self, address: Address) -> bool {
        address.kind() == self.kind() && self.first() <= address && address <= self.last()
    }

    /// Whether all of `other` is in this block; a block contains itself.
    pub fn contains_cidr(&self, other: Self) -> bool {
        self.len <= other.len && self.contains(other.base)
    }

    pub(crate) fn read(piece: Piece<'_>) -> Result<Self, ParseError> {
        let Some((address, length)) = piece.text.split_once('/') else {
            return Err(no_length(piece));
        };
        let (address, length) = (Address::read_any(piece.cut(address))?, piece.cut(length));
        let digits = length.text.bytes().all(|byte| byte.is_ascii_digit());
        if length.text.is_empty() {
            return Err(length.blame("the length", "is missing"));
        } else if !digits || (length.text.len() > 1 && length.text.starts_with('0')) {
            let most = address.kind().bits();
            return Err(length.blame("the length", format!("is not a plain number from 0 to {most}")));
        }
        let len = length.text.parse().unwrap_or(u8::MAX);
        let Ok(block) = Self::containing(address, len) else {
            return Err(length.blame("the length", over_most(address.kind())));
        };
        if block.base == address { Ok(block) } else { Err(piece.refuse(host_bits(address, block))) }
    }
}

/// The bits that differ inside a block.
fn host_mask(kind: Kind, len: u8) -> u128 {
    match kind.bits().saturating_sub(len) {
        0 => 0,
        free => u128::MAX >> (128 - free),
    }
}

fn host_bits(address: Address, block: Cidr) -> String {
    format!(
        "`{address}` is an address inside of `{block}`; write that, or `{address}/{}`",
        address.kind().bits()
    )
}

fn over(len: u8, kind: Kind) -> String {
    format!("the length {len} {}", over_most(kind))
}

fn over_most(kind: Kind) -> String {
    format!("is over {}, all bits of an {}", kind.bits(), kind.noun()).replace("an MAC", "a MAC")
}

fn no_length(piece: Piece<'_>) -> ParseError {
    match Address::read_any(piece) {
        Ok(address) => {
            let bits = address.kind().bits();
            piece.refuse(format!("the length is missing; the address alone would be `{address}/{bits}`"))
        }
        Err(error) => error,
    }
}

impl FromStr for Cidr {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::read(Piece::new("network", text))
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}/{}", self.base, self.len))
    }
}

impl fmt::Debug for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cidr({self})")
    }
}

impl From<Address> for Cidr {
    /// The block of one address.
    fn from(base: Address) -> Self {
        Self { base, len: base.kind().bits() }
    }
}

serde_as_text!(Cidr, "a network such as 10.0.3.0/24");
