//! The free part of a pool: single addresses or prefixes.

use netstead_model::Family;

use super::{free_addresses::FreeAddresses, free_prefixes::FreePrefixes};

/// The free part of one pool: single addresses, or prefixes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FreeSpace {
    Singles(FreeAddresses),
    Blocks(FreePrefixes),
}

impl Default for FreeSpace {
    fn default() -> Self {
        Self::Singles(FreeAddresses::default())
    }
}

impl FreeSpace {
    pub fn new(family: Family, bits: u8) -> Self {
        match family {
            Family::Prefix => Self::Blocks(FreePrefixes::new(bits)),
            Family::Ipv4 | Family::Ipv6 | Family::Mac => Self::Singles(FreeAddresses::default()),
        }
    }

    /// In addresses.
    pub fn count(&self) -> u128 {
        match self {
            Self::Singles(singles) => singles.count(),
            Self::Blocks(blocks) => blocks.count(),
        }
    }

    pub fn contains(&self, start: u128, length: u8) -> bool {
        match self {
            Self::Singles(singles) => singles.contains(start),
            Self::Blocks(blocks) => blocks.contains(start, length),
        }
    }

    pub fn first(&self, length: u8) -> Option<u128> {
        match self {
            Self::Singles(singles) => singles.first(),
            Self::Blocks(blocks) => blocks.first(length),
        }
    }

    /// The lowest at or above `from`, without going round.
    pub fn first_from(&self, from: u128, length: u8) -> Option<u128> {
        match self {
            Self::Singles(singles) => singles.first_from(from),
            Self::Blocks(blocks) => blocks.first_from(from, length),
        }
    }

    /// Puts one address in or takes it out; prefixes have regions only.
    pub fn set_single(&mut self, number: u128, free: bool) {
        match self {
            Self::Singles(singles) if free => singles.insert_number(number),
            Self::Singles(singles) => singles.remove_number(number),
            Self::Blocks(_) => {}
        }
    }

    pub fn take_region(&mut self, first: u128, last: u128) {
        match self {
            Self::Singles(singles) => singles.take_region(first, last),
            Self::Blocks(blocks) => blocks.take_region(first, last),
        }
    }

    /// Puts a region in, none of which may be in already.
    pub fn give_region(&mut self, first: u128, last: u128) {
        match self {
            Self::Singles(singles) => singles.give_region(first, last),
            Self::Blocks(blocks) => blocks.give_region(first, last),
        }
    }
}
