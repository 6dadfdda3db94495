use netstead_model::{Address, Cidr, Kind, Range, overlapping_pairs};
use proptest::prelude::*;

use crate::strategies::{address, address_of, cidr, range, two_ranges};

fn network(text: &str) -> Cidr {
    text.parse().unwrap()
}

fn read(text: &str) -> Range {
    text.parse().unwrap()
}

#[test]
fn a_network_knows_its_ends_and_its_size() {
    let facts = |text| {
        let cidr = network(text);
        format!("{} {} {}", cidr.first(), cidr.last(), cidr.size())
    };
    assert_eq!(facts("10.0.3.0/24"), "10.0.3.0 10.0.3.255 256");
    assert_eq!(facts("0.0.0.0/0"), "0.0.0.0 255.255.255.255 4294967296");
    assert_eq!(facts("52:54:00:00:00:00/24"), "52:54:00:00:00:00 52:54:00:ff:ff:ff 16777216");
    assert_eq!(facts("fd00::/64"), "fd00:: fd00::ffff:ffff:ffff:ffff 18446744073709551616");
    assert_eq!(facts("::1/128"), "::1 ::1 1");
    assert_eq!(network("::/0").size(), u128::MAX, "one more than that would not fit");
}

#[test]
fn a_range_is_written_in_its_shortest_form() {
    let written = |text| read(text).to_string();
    assert_eq!(written("10.0.3.50-10.0.3.200"), "10.0.3.50-10.0.3.200");
    assert_eq!(written("10.0.3.0-10.0.3.255"), "10.0.3.0/24");
    assert_eq!(written("10.0.3.0 - 10.0.3.1"), "10.0.3.0/31");
    assert_eq!(written("10.0.3.7-10.0.3.7"), "10.0.3.7");
    assert_eq!(written("10.0.3.7/32"), "10.0.3.7");
    assert_eq!(written("::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), "::/0");
    assert_eq!(written("52-54-00-00-00-01-52-54-00-00-00-09"), "52:54:00:00:00:01-52:54:00:00:00:09");
    assert_eq!(written("52-54-00-AA-BB-CC"), "52:54:00:aa:bb:cc");
}

#[test]
fn a_range_falls_into_the_fewest_networks() {
    let blocks = |text| read(text).cidrs().iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    assert_eq!(
        blocks("10.0.3.50-10.0.3.200"),
        "10.0.3.50/31 10.0.3.52/30 10.0.3.56/29 10.0.3.64/26 10.0.3.128/26 10.0.3.192/29 10.0.3.200/32"
    );
    assert_eq!(blocks("0.0.0.0-255.255.255.255"), "0.0.0.0/0");
    assert_eq!(blocks("::/0"), "::/0");
    let longest = read("::1-ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe").cidrs();
    assert_eq!(longest.len(), 254);
}

#[test]
fn kinds_never_meet_in_a_range() {
    let (four, six) = (read("0.0.0.0/0"), read("::/0"));
    assert!(!six.overlaps(four) && !six.contains(four.first()) && six.intersect(four).is_none());
    assert!(!network("::/0").contains_cidr(network("0.0.0.0/0")));
    assert_eq!(six.without(four).collect::<Vec<_>>(), [six]);
}

#[test]
fn a_block_can_be_cut_out_of_the_middle() {
    let left = |hole| read("10.0.3.0/24").without(read(hole)).map(|r| r.to_string()).collect::<Vec<_>>();
    assert_eq!(left("10.0.3.1"), ["10.0.3.0", "10.0.3.2-10.0.3.255"]);
    assert_eq!(left("10.0.2.0-10.0.3.9"), ["10.0.3.10-10.0.3.255"]);
    assert_eq!(left("10.0.0.0/8"), [""; 0]);
    assert_eq!(read("::/0").without(read("::/1")).collect::<Vec<_>>(), [read("8000::/1")]);
}

proptest! {
    #[test]
    fn a_network_reads_back_as_itself(cidr in cidr()) {
        prop_assert_eq!(cidr.to_string().parse(), Ok(cidr));
        let json = serde_json::to_string(&cidr).unwrap();
        prop_assert_eq!(serde_json::from_str::<Cidr>(&json).unwrap(), cidr);
        prop_assert_eq!(Cidr::new(cidr.network(), cidr.len()), Ok(cidr));
    }

    #[test]
    fn a_range_reads_back_as_itself(range in range()) {
        prop_assert_eq!(range.to_string().parse(), Ok(range));
        let long = format!("{}-{}", range.first(), range.last());
        prop_assert_eq!(long.parse(), Ok(range));
        prop_assert_eq!(long.replace(':', if range.kind() == Kind::Mac { "-" } else { ":" }).parse(), Ok(range));
        let json = serde_json::to_string(&range).unwrap();
        prop_assert_eq!(serde_json::from_str::<Range>(&json).unwrap(), range);
    }

    #[test]
    fn a_network_has_the_addresses_whose_first_bits_agree(cidr in cidr(), address in address()) {
        let free = cidr.kind().bits() - cidr.len();
        let front = |address: Address| address.number().checked_shr(free.into()).unwrap_or(0);
        let agrees = address.kind() == cidr.kind() && front(address) == front(cidr.network());
        prop_assert_eq!(cidr.contains(address), agrees);
        prop_assert_eq!(Range::from(cidr).contains(address), agrees);
        prop_assert_eq!(cidr.size(), 1u128.checked_shl(free.into()).unwrap_or(u128::MAX));
        prop_assert_eq!(cidr.size(), Range::from(cidr).len());
        prop_assert_eq!(Range::from(cidr).cidr(), (free > 0).then_some(cidr));
        if agrees {
            prop_assert_eq!(Cidr::containing(address, cidr.len()), Ok(cidr));
        }
    }

    #[test]
    fn the_networks_of_a_range_cover_it_exactly_and_no_two_could_be_one(range in range()) {
        let blocks = range.cidrs();
        let mut next = Some(range.first());
        for block in &blocks {
            prop_assert_eq!(Some(block.first()), next);
            next = block.last().succ();
        }
        prop_assert_eq!(blocks.last().map(Cidr::last), Some(range.last()));
        for pair in blocks.windows(2) {
            let both = Range::new(pair[0].first(), pair[1].last()).unwrap();
            prop_assert_eq!(both.cidr(), None, "{:?} are one block", pair);
        }
        prop_assert!(blocks.len() < 2 * usize::from(range.kind().bits()));
    }

    #[test]
    fn sets_behave_as_sets((one, other) in two_ranges(), back in any::<prop::sample::Index>()) {
        let both = one.intersect(other);
        prop_assert_eq!(both, other.intersect(one));
        prop_assert_eq!(both.is_some(), one.overlaps(other));
        prop_assert_eq!(one.contains_range(other), both == Some(other));
        let left: Vec<_> = one.without(other).collect();
        let ends = [one.first(), one.last(), other.first(), other.last()];
        let near = ends.into_iter().flat_map(|end| [end.pred(), Some(end), end.succ()]).flatten();
        let lucky = one.first().checked_add(back.index(300) as u128);
        for address in near.chain(lucky) {
            let (a, b) = (one.contains(address), other.contains(address));
            prop_assert_eq!(both.is_some_and(|both| both.contains(address)), a && b);
            prop_assert_eq!(left.iter().filter(|piece| piece.contains(address)).count(), usize::from(a && !b));
        }
        let sizes: u128 = left.iter().map(Range::len).fold(0, u128::saturating_add);
        prop_assert_eq!(sizes.saturating_add(both.map_or(0, |both| both.len())), one.len());
        prop_assert!(left.is_sorted());
    }

    #[test]
    fn small_ranges_hold_what_counting_finds(first in address_of(Kind::V4), steps in 0..600u128) {
        let last = first.checked_add(steps).unwrap_or(first);
        let range = Range::new(first, last).unwrap();
        let counted: Vec<_> = std::iter::successors(Some(first), |a| a.succ().filter(|a| *a <= last)).collect();
        prop_assert_eq!(range.len(), counted.len() as u128);
        let of_blocks: Vec<_> = range.cidrs().iter().flat_map(|block| {
            (0..block.size()).map(|step| block.first().checked_add(step).unwrap())
        }).collect();
        prop_assert_eq!(of_blocks, counted);
    }
}

#[test]
fn ranges_that_touch_are_joined_in_order() {
    let joined = |text: &str| {
        let ranges = Range::joined(text.split(' ').map(read).collect());
        ranges.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(joined("10.0.1.0/24 10.0.0.0/24"), "10.0.0.0/23");
    assert_eq!(joined("10.0.0.0/24 10.0.1.1-10.0.1.9"), "10.0.0.0/24 10.0.1.1-10.0.1.9");
    assert_eq!(joined("10.0.0.0/24 10.0.0.7 10.0.0.200-10.0.1.255"), "10.0.0.0/23");
    assert_eq!(joined("255.255.255.0/24 255.255.255.255"), "255.255.255.0/24");
    assert_eq!(joined("255.255.255.255 :: 00:00:00:00:00:00"), "255.255.255.255 :: 00:00:00:00:00:00");
}

fn lists(texts: &[&str]) -> Vec<Vec<Range>> {
    let list = |text: &&str| text.split_whitespace().map(|range| range.parse().unwrap()).collect();
    texts.iter().map(list).collect()
}

fn pairs(lists: &[Vec<Range>], most: usize) -> Vec<(usize, usize)> {
    overlapping_pairs(lists.iter().map(Vec::as_slice), most)
}

#[test]
fn overlapping_lists_are_found_in_pairs() {
    let found = lists(&[
        "10.0.0.0/24 10.0.2.0/24",
        "10.0.1.0/24",
        "10.0.2.7 10.0.1.255",
        "fd00::/64",
        "10.0.0.0-10.0.3.0",
        "52:54:00:00:00:00-52:54:00:00:00:ff",
        "fd00::1 fd00::1",
    ]);
    assert_eq!(pairs(&found, 100), [(0, 2), (0, 4), (1, 2), (1, 4), (2, 4), (3, 6)]);
    assert_eq!(pairs(&found, 2).len(), 2);
    assert_eq!(pairs(&[], 100), []);
}

proptest! {
    #[test]
    fn overlaps_found_by_sorting_are_those_found_by_comparing(
        lists in proptest::collection::vec(proptest::collection::vec((0u8..60, 0u8..6), 0..4), 0..12)
    ) {
        let range = |(first, more): &(u8, u8)| -> Range {
            format!("10.0.0.{first}-10.0.0.{}", first + more).parse().unwrap()
        };
        let lists: Vec<Vec<Range>> = lists.iter().map(|list| list.iter().map(range).collect()).collect();
        let meet = |one: usize, other: usize| {
            lists[one].iter().any(|one| lists[other].iter().any(|other| one.overlaps(*other)))
        };
        let all = (0..lists.len()).flat_map(|one| (one + 1..lists.len()).map(move |other| (one, other)));
        let compared: Vec<(usize, usize)> = all.filter(|(one, other)| meet(*one, *other)).collect();
        prop_assert_eq!(pairs(&lists, usize::MAX), compared);
    }
}
