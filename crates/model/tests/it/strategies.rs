//! Random values of our types, with the edges more often than chance would bring them.

use netstead_model::{Address, Cidr, Kind, Range};
use proptest::prelude::*;

pub(crate) fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![Just(Kind::V4), Just(Kind::V6), Just(Kind::Mac)]
}

/// Any address of `kind`; often one of the first, of the last, or right after a round number.
pub(crate) fn address_of(kind: Kind) -> impl Strategy<Value = Address> {
    let max = kind.max();
    let round =
        (0..kind.bits(), any::<u8>()).prop_map(move |(bit, few)| (max >> bit).wrapping_add(few.into()) & max);
    let number = prop_oneof![0..=max, round, 0..16u128, (0..16u128).prop_map(move |back| max - back)];
    number.prop_map(move |number| Address::new(kind, number).unwrap())
}

pub(crate) fn address() -> impl Strategy<Value = Address> {
    kind().prop_flat_map(address_of)
}

pub(crate) fn cidr() -> impl Strategy<Value = Cidr> {
    address().prop_flat_map(|address| {
        (0..=address.kind().bits()).prop_map(move |len| Cidr::containing(address, len).unwrap())
    })
}

pub(crate) fn range_of(kind: Kind) -> impl Strategy<Value = Range> {
    let ends = (address_of(kind), address_of(kind));
    let near =
        (address_of(kind), 0..300u128).prop_map(|(one, steps)| (one, one.checked_add(steps).unwrap_or(one)));
    prop_oneof![ends, near].prop_map(|(one, other)| Range::new(one.min(other), one.max(other)).unwrap())
}

pub(crate) fn range() -> impl Strategy<Value = Range> {
    prop_oneof![kind().prop_flat_map(range_of), cidr().prop_map(Range::from)]
}

/// Two ranges of one kind.
pub(crate) fn two_ranges() -> impl Strategy<Value = (Range, Range)> {
    kind().prop_flat_map(|kind| (range_of(kind), range_of(kind)))
}

/// Text that parsers may meet: near misses of our formats, and anything at all.
pub(crate) fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[0-9a-fA-F:.\\-/%_*ü。٣🦀\u{ad} ]{0,40}",
        "[0-9]{1,4}(\\.[0-9]{1,4}){0,5}(/[0-9]{0,4})?(-[0-9.]{0,15})?",
        "(\\PC|[a-z.]){0,70}",
        "(xn--|XN--)[a-z0-9\\-]{0,20}(\\.\\PC{0,5}){0,3}",
        "[a-z]{60,66}(\\.[a-z]{60,64}){0,4}",
    ]
}
