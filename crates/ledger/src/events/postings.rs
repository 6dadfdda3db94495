//! Small entries found by a hash, millions of them.

use std::{collections::VecDeque, mem};

/// Entries in a bucket, on the average.
const FILL: usize = 32;

/// By so many entries a bucket grows at least.
const STEP: usize = 8;

/// An entry: some bits of a hash, by which it is found, and the number of an event.
pub(super) trait Posting: Copy + Ord {
    /// The bits of the hash.
    fn tag(self) -> u32;

    fn seq(self) -> u64;
}

/// A set of entries in buckets, each of them sorted by number. A new entry goes to the end of its bucket and a trimmed
/// one leaves from near the front, so both take a moment however many there are; and one bucket at a time is divided as
/// they become more, so no caller ever waits until all were moved.
#[derive(Debug)]
pub(super) struct Postings<T> {
    buckets: Vec<VecDeque<T>>,
    count: usize,
}

impl<T> Default for Postings<T> {
    fn default() -> Self {
        Self { buckets: vec![VecDeque::new()], count: 0 }
    }
}

impl<T: Posting> Postings<T> {
    pub fn insert(&mut self, entry: T) {
        let place = self.bucket_of(entry.tag());
        let Some(bucket) = self.buckets.get_mut(place) else { return };
        if bucket.len() == bucket.capacity() {
            bucket.reserve_exact(STEP.max(bucket.len() / STEP));
        }
        if bucket.back().is_none_or(|last| order(*last) < order(entry)) {
            bucket.push_back(entry);
        } else {
            let Err(at) = bucket.binary_search_by_key(&order(entry), |other| order(*other)) else { return };
            bucket.insert(at, entry);
        }
        self.count += 1;
        if self.count > FILL * self.buckets.len() {
            self.divide_one();
        }
    }

    pub fn remove(&mut self, entry: T) {
        let place = self.bucket_of(entry.tag());
        let Some(bucket) = self.buckets.get_mut(place) else { return };
        let Ok(at) = bucket.binary_search_by_key(&order(entry), |other| order(*other)) else { return };
        bucket.remove(at);
        if bucket.len() < bucket.capacity() / 4 {
            bucket.shrink_to(bucket.len() + STEP);
        }
        self.count -= 1;
    }

    /// The entries of a tag, by number.
    pub fn of(&self, tag: u32) -> impl DoubleEndedIterator<Item = T> {
        let bucket = self.buckets.get(self.bucket_of(tag)).into_iter().flatten();
        bucket.copied().filter(move |entry| entry.tag() == tag)
    }

    /// The entries of a tag with a number below `seq`.
    pub fn before(&self, seq: u64, tag: u32) -> impl Iterator<Item = T> {
        let bucket = self.buckets.get(self.bucket_of(tag)).into_iter().flatten();
        bucket.copied().take_while(move |entry| entry.seq() < seq).filter(move |entry| entry.tag() == tag)
    }

    /// Entries with a number below `seq` that are not the only one of their tag.
    pub fn in_company_before(&self, seq: u64) -> impl Iterator<Item = T> {
        let some =
            self.buckets.iter().filter(move |bucket| bucket.front().is_some_and(|first| first.seq() < seq));
        some.flat_map(move |bucket| {
            let mut entries: Vec<T> = bucket.iter().copied().collect();
            entries.sort_unstable_by_key(|entry| entry.tag());
            let shared =
                entries.chunk_by(|one, other| one.tag() == other.tag()).filter(|entries| entries.len() > 1);
            shared.flatten().copied().filter(|entry| entry.seq() < seq).collect::<Vec<T>>()
        })
    }

    /// Takes in all of `others`, which come before most of its own.
    pub fn follow(&mut self, others: Self) {
        let own = mem::replace(self, others);
        own.buckets.into_iter().flatten().for_each(|entry| self.insert(entry));
    }

    /// Where entries of a tag are: as many low bits of it count as are needed for all buckets, and one less for a bucket
    /// that is not there yet.
    fn bucket_of(&self, tag: u32) -> usize {
        let size = self.buckets.len().next_power_of_two();
        let place = tag as usize & (size - 1);
        if place < self.buckets.len() { place } else { place & (size / 2 - 1) }
    }

    /// Makes one more bucket, with what the one that had it so far must give it.
    fn divide_one(&mut self) {
        let size = self.buckets.len();
        let from = size - (1 << size.ilog2());
        self.buckets.push(VecDeque::new());
        let Some(bucket) = self.buckets.get_mut(from) else { return };
        let entries = mem::take(bucket);
        let (moved, kept): (VecDeque<T>, VecDeque<T>) =
            entries.into_iter().partition(|entry| self.bucket_of(entry.tag()) == size);
        for (place, mut entries) in [(from, kept), (size, moved)] {
            entries.shrink_to_fit();
            if let Some(bucket) = self.buckets.get_mut(place) {
                *bucket = entries;
            }
        }
    }
}

fn order<T: Posting>(entry: T) -> (u64, T) {
    (entry.seq(), entry)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    struct Entry(u32, u64);

    impl Posting for Entry {
        fn tag(self) -> u32 {
            self.0
        }

        fn seq(self) -> u64 {
            self.1
        }
    }

    #[derive(Debug, Clone)]
    enum Step {
        Add(u32, u64),
        Remove(usize),
        /// As events come: one number after the other, enough to divide buckets.
        Many(u64, u64),
        Trim(u64),
        Follow(Vec<(u32, u64)>),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0u32..40, 0u64..3000).prop_map(|(tag, seq)| Step::Add(tag, seq)),
            4 => any::<usize>().prop_map(Step::Remove),
            2 => (0u64..3000, 0u64..400).prop_map(|(from, count)| Step::Many(from, count)),
            1 => (0u64..2000).prop_map(Step::Trim),
            1 => prop::collection::vec((0u32..40, 0u64..500), 0..300).prop_map(Step::Follow),
        ]
    }

    fn tag_of(seq: u64) -> u32 {
        u32::try_from(seq.wrapping_mul(7919) % 97).unwrap()
    }

    proptest! {
        #[test]
        fn postings_are_sets_by_tag(steps in prop::collection::vec(step(), 1..30), limit in 0u64..3000) {
            let (mut postings, mut set) = (Postings::default(), BTreeSet::new());
            for step in steps {
                match step {
                    Step::Add(tag, seq) => {
                        postings.insert(Entry(tag, seq));
                        set.insert(Entry(tag, seq));
                    }
                    Step::Remove(number) => {
                        let entry = set.iter().nth(number % set.len().max(1)).copied().unwrap_or(Entry(1, 1));
                        postings.remove(entry);
                        set.remove(&entry);
                        postings.remove(entry);
                    }
                    Step::Many(from, count) => {
                        for seq in from..from + count {
                            postings.insert(Entry(tag_of(seq), seq));
                            set.insert(Entry(tag_of(seq), seq));
                        }
                    }
                    Step::Trim(below) => {
                        for entry in set.extract_if(.., |entry| entry.seq() < below) {
                            postings.remove(entry);
                        }
                    }
                    Step::Follow(entries) => {
                        let mut others = Postings::default();
                        for (tag, seq) in entries {
                            others.insert(Entry(tag, seq));
                            set.insert(Entry(tag, seq));
                        }
                        postings.follow(others);
                    }
                }
                prop_assert_eq!(postings.count, set.len());
                prop_assert!(set.len() <= FILL * postings.buckets.len());
                let mut company = BTreeSet::new();
                for tag in 0..100 {
                    let model: Vec<Entry> = set.range(Entry(tag, 0)..=Entry(tag, u64::MAX)).copied().collect();
                    prop_assert_eq!(postings.of(tag).collect::<Vec<_>>(), &model[..]);
                    prop_assert_eq!(postings.of(tag).next_back(), model.last().copied());
                    let early: Vec<Entry> = model.iter().copied().filter(|entry| entry.seq() < limit).collect();
                    prop_assert_eq!(postings.before(limit, tag).collect::<Vec<_>>(), &early[..]);
                    company.extend(early.into_iter().filter(|_| model.len() > 1));
                }
                prop_assert_eq!(postings.in_company_before(limit).collect::<BTreeSet<_>>(), company);
            }
        }
    }

    #[test]
    fn buckets_are_divided_evenly_and_shrink() {
        let mut postings = Postings::default();
        let entry =
            |seq: u64| Entry(u32::try_from(seq.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40).unwrap(), seq);
        (0..100_000).for_each(|seq| postings.insert(entry(seq)));
        assert!(postings.buckets.iter().all(|bucket| bucket.len() < 4 * FILL));
        let room: usize = postings.buckets.iter().map(VecDeque::capacity).sum();
        assert!(room < 140_000, "{room}");
        (0..90_000).for_each(|seq| postings.remove(entry(seq)));
        let room: usize = postings.buckets.iter().map(VecDeque::capacity).sum();
        assert!(room < 60_000, "{room}");
    }
}
