//! [`IntervalSet`]: a set of numbers kept as intervals, so that a /8 costs as little as one address.

use std::collections::BTreeMap;

/// Numbers as disjoint intervals that do not touch, both ends included.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IntervalSet {
    /// First to last.
    intervals: BTreeMap<u128, u128>,
}

impl IntervalSet {
    pub fn is_empty(&self) -> bool {
        self.intervals.is_empty()
    }

    /// The lowest number.
    pub fn first(&self) -> Option<u128> {
        self.intervals.keys().next().copied()
    }

    pub fn contains(&self, number: u128) -> bool {
        self.contains_all(number, number)
    }

    /// Whether every number of an interval is in the set.
    pub fn contains_all(&self, first: u128, last: u128) -> bool {
        self.intervals.range(..=first).next_back().is_some_and(|(_, end)| *end >= last)
    }

    /// How many numbers there are; the highest number there is if there are more.
    pub fn count(&self) -> u128 {
        let sizes = self.intervals.iter().map(|(first, last)| (last - first).saturating_add(1));
        sizes.fold(0, u128::saturating_add)
    }

    /// The intervals in order.
    pub fn intervals(&self) -> impl Iterator<Item = (u128, u128)> + '_ {
        self.intervals.iter().map(|(first, last)| (*first, *last))
    }

    pub fn insert(&mut self, mut first: u128, mut last: u128) {
        if first > last {
            return;
        }
        // Those that overlap or touch, from the right: each is swallowed.
        let reach = last.saturating_add(1);
        while let Some((from, to)) = self.intervals.range(..=reach).next_back().map(|(a, b)| (*a, *b)) {
            if to.saturating_add(1) < first {
                break;
            }
            self.intervals.remove(&from);
            first = first.min(from);
            last = last.max(to);
        }
        self.intervals.insert(first, last);
    }

    pub fn remove(&mut self, first: u128, last: u128) {
        if first > last {
            return;
        }
        while let Some((from, to)) = self.intervals.range(..=last).next_back().map(|(a, b)| (*a, *b)) {
            if to < first {
                break;
            }
            self.intervals.remove(&from);
            if to > last {
                self.intervals.insert(last + 1, to);
            }
            if from < first {
                self.intervals.insert(from, first - 1);
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_highest_number_can_be_in_it() {
        let mut set = IntervalSet::default();
        set.insert(0, u128::MAX);
        assert_eq!((set.count(), set.first()), (u128::MAX, Some(0)));
        set.remove(0, u128::MAX - 1);
        assert_eq!(set.intervals().collect::<Vec<_>>(), [(u128::MAX, u128::MAX)]);
        set.remove(u128::MAX, u128::MAX);
        assert!(set.is_empty());
    }

    proptest! {
        #[test]
        fn it_is_the_same_as_a_set_of_numbers(steps in prop::collection::vec((any::<bool>(), 0_u128..60, 0_u128..9), 0..60)) {
            let (mut set, mut naive) = (IntervalSet::default(), BTreeSet::new());
            for (add, first, more) in steps {
                let last = first + more;
                if add {
                    set.insert(first, last);
                    naive.extend(first..=last);
                } else {
                    set.remove(first, last);
                    naive.retain(|number| !(first..=last).contains(number));
                }
                prop_assert_eq!(set.count(), naive.len() as u128);
                prop_assert_eq!(set.first(), naive.first().copied());
                let all: Vec<u128> = set.intervals().flat_map(|(first, last)| first..=last).collect();
                prop_assert_eq!(all, naive.iter().copied().collect::<Vec<_>>());
                let apart = set.intervals().zip(set.intervals().skip(1)).all(|(one, next)| one.1 + 1 < next.0);
                prop_assert!(apart, "intervals touch");
                prop_assert_eq!(set.contains_all(first, last), (first..=last).all(|number| naive.contains(&number)));
            }
        }
    }
}
