//! The free prefixes of a pool, as aligned blocks.

use std::collections::BTreeSet;

/// A set of numbers kept as the largest aligned blocks it is made of: two free halves are always one block. So the
/// lowest free prefix of any length is the start of some block, and finding it looks at one block per length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FreePrefixes {
    bits: u8,
    /// By prefix length, the starts of the free blocks.
    by_length: Vec<BTreeSet<u128>>,
    count: u128,
}

impl FreePrefixes {
    pub fn new(bits: u8) -> Self {
        Self { bits, by_length: vec![BTreeSet::new(); usize::from(bits) + 1], count: 0 }
    }

    pub fn count(&self) -> u128 {
        self.count
    }

    /// The lowest free block of `length`.
    pub fn first(&self, length: u8) -> Option<u128> {
        self.up_to(length).filter_map(|(_, starts)| starts.first().copied()).min()
    }

    /// The lowest free block of `length` that starts at `from` or above.
    pub fn first_from(&self, from: u128, length: u8) -> Option<u128> {
        let step = self.last_of(0, length);
        let from = if from & step == 0 { from } else { (from | step).checked_add(1)? };
        if self.contains(from, length) {
            return Some(from);
        }
        self.up_to(length).filter_map(|(_, starts)| starts.range(from..).next().copied()).min()
    }

    /// Whether the whole block is free.
    pub fn contains(&self, start: u128, length: u8) -> bool {
        start & self.last_of(0, length) == 0 && self.block_around(start, length).is_some()
    }

    /// Takes out every number from `first` to `last`.
    pub fn take_region(&mut self, first: u128, last: u128) {
        let mut cut = Vec::new();
        if let Some(around) = self.block_around(first, self.bits) {
            cut.push(around);
        }
        for (length, starts) in self.by_length.iter().enumerate() {
            let length = u8::try_from(length).unwrap_or(self.bits);
            cut.extend(starts.range(first..=last).map(|start| (*start, length)));
        }
        for (start, length) in cut {
            if !self.remove(start, length) {
                continue;
            }
            let end = self.last_of(start, length);
            if start < first {
                self.give_region(start, first - 1);
            }
            if end > last {
                self.give_region(last + 1, end);
            }
        }
    }

    /// Puts in every number from `first` to `last`; none of them may be in already.
    pub fn give_region(&mut self, first: u128, last: u128) {
        let mut start = first;
        loop {
            let length = self.largest_at(start, last);
            let end = self.last_of(start, length);
            self.insert(start, length);
            match end.checked_add(1) {
                Some(next) if next <= last => start = next,
                _ => break,
            }
        }
    }

    /// The shortest length of an aligned block that starts at `start` and does not reach over `last`.
    fn largest_at(&self, start: u128, last: u128) -> u8 {
        (0..=self.bits)
            .find(|length| start & self.last_of(0, *length) == 0 && self.last_of(start, *length) <= last)
            .unwrap_or(self.bits)
    }

    fn insert(&mut self, start: u128, length: u8) {
        let (mut start, mut length) = (start, length);
        self.count = self.count.saturating_add(self.size(length));
        while length > 0 {
            let buddy = start ^ self.size(length);
            let Some(starts) = self.by_length.get_mut(usize::from(length)) else { break };
            if !starts.remove(&buddy) {
                break;
            }
            start = start.min(buddy);
            length -= 1;
        }
        if let Some(starts) = self.by_length.get_mut(usize::from(length)) {
            starts.insert(start);
        }
    }

    fn remove(&mut self, start: u128, length: u8) -> bool {
        let removed = self.by_length.get_mut(usize::from(length)).is_some_and(|starts| starts.remove(&start));
        if removed {
            self.count = self.count.saturating_sub(self.size(length));
        }
        removed
    }

    /// The free block that contains the block of `length` at `start`.
    fn block_around(&self, start: u128, length: u8) -> Option<(u128, u8)> {
        self.up_to(length).find_map(|(length, starts)| {
            let start = start & !self.last_of(0, length);
            starts.contains(&start).then_some((start, length))
        })
    }

    fn up_to(&self, length: u8) -> impl Iterator<Item = (u8, &BTreeSet<u128>)> {
        (0..=length).zip(&self.by_length)
    }

    /// How many numbers a block of `length` has; saturates for the whole of IPv6.
    fn size(&self, length: u8) -> u128 {
        self.last_of(0, length).saturating_add(1)
    }

    fn last_of(&self, start: u128, length: u8) -> u128 {
        let host_bits = u32::from(self.bits - length.min(self.bits));
        start | 1u128.checked_shl(host_bits).map_or(u128::MAX, |size| size - 1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const END: u128 = 32;

    fn region() -> impl Strategy<Value = (bool, u128, u128)> {
        (any::<bool>(), 0..END, 0..END).prop_map(|(give, one, other)| (give, one.min(other), one.max(other)))
    }

    /// Bits, and where the numbers lie: at the lowest or at the highest end of a kind of address.
    fn kind() -> impl Strategy<Value = (u8, u128)> {
        prop_oneof![
            Just((32, 0)),
            Just((32, u128::from(u32::MAX) - (END - 1))),
            Just((128, 0)),
            Just((128, u128::MAX - (END - 1))),
        ]
    }

    proptest! {
        #[test]
        fn blocks_are_the_set_of_their_numbers(
            (bits, base) in kind(),
            steps in prop::collection::vec(region(), 1..24),
        ) {
            let (mut blocks, mut set) = (FreePrefixes::new(bits), BTreeSet::new());
            for (give, first, last) in steps {
                let region = base + first..=base + last;
                // What is given must not be in already.
                blocks.take_region(*region.start(), *region.end());
                set.retain(|number| !region.contains(number));
                if give {
                    blocks.give_region(*region.start(), *region.end());
                    set.extend(region);
                }
                prop_assert_eq!(blocks.count(), set.len() as u128);
                for length in bits - 5..=bits {
                    let size = 1u128 << (bits - length);
                    let starts = (base..=base + (END - 1)).filter(|start| start % size == 0);
                    let free: BTreeSet<u128> =
                        starts.clone().filter(|start| (*start..=start + (size - 1)).all(|n| set.contains(&n))).collect();
                    prop_assert_eq!(blocks.first(length), free.first().copied());
                    for start in starts {
                        prop_assert_eq!(blocks.contains(start, length), free.contains(&start));
                    }
                    for from in base..=base + (END - 1) {
                        prop_assert_eq!(blocks.first_from(from, length), free.range(from..).next().copied());
                    }
                }
            }
        }

        #[test]
        fn two_free_halves_are_one_block(
            (bits, base) in kind(),
            order in Just((0..END).collect::<Vec<_>>()).prop_shuffle(),
        ) {
            let mut blocks = FreePrefixes::new(bits);
            for number in order {
                blocks.give_region(base + number, base + number);
            }
            let kept: usize = blocks.by_length.iter().map(BTreeSet::len).sum();
            prop_assert_eq!((kept, blocks.first(bits - 5)), (1, Some(base)));
        }
    }

    #[test]
    fn all_of_ipv6_is_one_block() {
        let mut all = FreePrefixes::new(128);
        all.give_region(0, u128::MAX);
        assert_eq!((all.first(0), all.count()), (Some(0), u128::MAX));
        all.take_region(0, 0);
        assert_eq!((all.first(0), all.first(1), all.first(128)), (None, Some(1 << 127), Some(1)));
        all.give_region(0, 0);
        assert_eq!((all.first(0), all.count()), (Some(0), u128::MAX));
    }
}
