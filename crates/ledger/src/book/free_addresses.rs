//! The free single addresses of a pool, as intervals.

use std::collections::BTreeMap;

/// A set of numbers kept as disjoint, never touching intervals, so that every question costs the logarithm of the
/// number of gaps, whatever the size of the pool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FreeAddresses {
    /// Last to first, both inclusive. Most pools hand out their lowest address, and that changes the first of a run:
    /// under its last the run stays where it is.
    runs: BTreeMap<u128, u128>,
    count: u128,
}

impl FreeAddresses {
    pub fn count(&self) -> u128 {
        self.count
    }

    pub fn contains(&self, number: u128) -> bool {
        self.run_from(number).is_some_and(|(first, _)| first <= number)
    }

    pub fn first(&self) -> Option<u128> {
        self.runs.first_key_value().map(|(_, first)| *first)
    }

    /// The lowest number that is at least `from`.
    pub fn first_from(&self, from: u128) -> Option<u128> {
        self.run_from(from).map(|(first, _)| first.max(from))
    }

    /// Takes one number out; it was in, or nothing changes.
    pub fn remove_number(&mut self, number: u128) {
        let Some((last, start)) = self.runs.range_mut(number..).next() else { return };
        let (last, first) = (*last, *start);
        if first > number {
            return;
        }
        self.count = self.count.saturating_sub(1);
        if number == last {
            self.runs.remove(&last);
        } else {
            *start = number + 1;
        }
        if first < number {
            self.runs.insert(number - 1, first);
        }
    }

    /// Puts one number in; it was out, or nothing changes.
    pub fn insert_number(&mut self, number: u128) {
        let behind = self.runs.range_mut(number..).next();
        if behind.as_ref().is_some_and(|(_, first)| **first <= number) {
            return;
        }
        self.count = self.count.saturating_add(1);
        let before = number.checked_sub(1);
        if let Some((_, start)) = behind.filter(|(_, first)| number.checked_add(1) == Some(**first)) {
            *start = number;
            // It may have filled the gap between two runs.
            if let Some(first) = before.and_then(|before| self.runs.remove(&before))
                && let Some((_, start)) = self.runs.range_mut(number..).next()
            {
                *start = first;
            }
        } else {
            let first = before.and_then(|before| self.runs.remove(&before)).unwrap_or(number);
            self.runs.insert(number, first);
        }
    }

    /// Takes out every number from `first` to `last`.
    pub fn take_region(&mut self, first: u128, last: u128) {
        while let Some((run_first, run_last)) = self.run_from(first).filter(|(start, _)| *start <= last) {
            self.runs.remove(&run_last);
            self.count = self.count.saturating_sub(size(run_first, run_last));
            if run_first < first {
                self.insert_apart(run_first, first - 1);
            }
            if run_last > last {
                self.insert_apart(last + 1, run_last);
            }
        }
    }

    /// Puts in every number from `first` to `last`, whether or not some are in already.
    pub fn give_region(&mut self, first: u128, last: u128) {
        let (mut first, mut last) = (first, last);
        // What it touches on either side becomes one run with it.
        let reach_first = first.saturating_sub(1);
        let reach_last = last.saturating_add(1);
        while let Some((run_first, run_last)) =
            self.run_from(reach_first).filter(|(start, _)| *start <= reach_last)
        {
            self.runs.remove(&run_last);
            self.count = self.count.saturating_sub(size(run_first, run_last));
            first = first.min(run_first);
            last = last.max(run_last);
        }
        self.insert_apart(first, last);
    }

    /// First and last of each interval, in order.
    pub fn runs(&self) -> impl Iterator<Item = (u128, u128)> {
        self.runs.iter().map(|(last, first)| (*first, *last))
    }

    fn insert_apart(&mut self, first: u128, last: u128) {
        self.runs.insert(last, first);
        self.count = self.count.saturating_add(size(first, last));
    }

    /// The run `number` lies in, or the next above it.
    fn run_from(&self, number: u128) -> Option<(u128, u128)> {
        self.runs.range(number..).next().map(|(last, first)| (*first, *last))
    }
}

fn size(first: u128, last: u128) -> u128 {
    (last - first).saturating_add(1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const END: u128 = 40;

    #[derive(Debug, Clone)]
    enum Step {
        Take(u128),
        Give(u128),
        TakeRegion(u128, u128),
        GiveRegion(u128, u128),
    }

    fn region() -> impl Strategy<Value = (u128, u128)> {
        (0..END, 0..END).prop_map(|(one, other)| (one.min(other), one.max(other)))
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..END).prop_map(Step::Take),
            (0..END).prop_map(Step::Give),
            region().prop_map(|(first, last)| Step::TakeRegion(first, last)),
            region().prop_map(|(first, last)| Step::GiveRegion(first, last)),
        ]
    }

    /// Counted from the lowest number, and so that the last is the highest there is.
    fn at_either_end() -> impl Strategy<Value = u128> {
        prop_oneof![Just(0), Just(u128::MAX - (END - 1))]
    }

    proptest! {
        #[test]
        fn intervals_are_the_set_of_their_numbers(
            base in at_either_end(),
            steps in prop::collection::vec(step(), 1..60),
        ) {
            let (mut singles, mut set) = (FreeAddresses::default(), BTreeSet::new());
            for step in steps {
                match step {
                    Step::Take(number) => {
                        singles.remove_number(base + number);
                        set.remove(&(base + number));
                    }
                    Step::Give(number) => {
                        singles.insert_number(base + number);
                        set.insert(base + number);
                    }
                    Step::TakeRegion(first, last) => {
                        singles.take_region(base + first, base + last);
                        set.retain(|number| !(base + first..=base + last).contains(number));
                    }
                    Step::GiveRegion(first, last) => {
                        singles.give_region(base + first, base + last);
                        set.extend(base + first..=base + last);
                    }
                }
                prop_assert_eq!(singles.count(), set.len() as u128);
                prop_assert_eq!(singles.first(), set.first().copied());
                for number in base..=base + (END - 1) {
                    prop_assert_eq!(singles.contains(number), set.contains(&number));
                    prop_assert_eq!(singles.first_from(number), set.range(number..).next().copied());
                }
                let touching = singles.runs.iter().zip(singles.runs.iter().skip(1));
                prop_assert!(touching.into_iter().all(|((last, _), (_, first))| *last + 1 < *first));
                prop_assert!(singles.runs.iter().all(|(last, first)| first <= last));
            }
        }
    }

    #[test]
    fn all_of_ipv6_is_one_interval() {
        let mut all = FreeAddresses::default();
        all.give_region(0, u128::MAX);
        assert_eq!((all.runs.len(), all.count()), (1, u128::MAX));
        all.remove_number(7);
        assert_eq!((all.first_from(7), all.contains(u128::MAX)), (Some(8), true));
        all.give_region(7, 7);
        assert_eq!((all.runs.len(), all.count()), (1, u128::MAX));
    }
}
