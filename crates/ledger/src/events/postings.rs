//! Sorted numbers, packed.

use std::ops::RangeInclusive;

/// Most entries of one chunk: looking for a place moves half of them at worst.
const CHUNK: usize = 512;

/// A sorted set of small entries in a few large pieces. A tree of the standard library takes half as much again for
/// what it keeps beside each entry, and there are millions.
#[derive(Debug)]
pub(super) struct Postings<T> {
    /// None of them is empty, and each begins above the end of the one before.
    chunks: Vec<Vec<T>>,
}

impl<T> Default for Postings<T> {
    fn default() -> Self {
        Self { chunks: Vec::new() }
    }
}

impl<T: Ord + Copy> Postings<T> {
    pub fn insert(&mut self, entry: T) {
        let place = self.chunk_of(entry);
        let Some(chunk) = self.chunks.get_mut(place) else {
            return self.chunks.push(vec![entry]);
        };
        let Err(at) = chunk.binary_search(&entry) else { return };
        if chunk.len() < CHUNK {
            return chunk.insert(at, entry);
        }
        let mut upper = Vec::with_capacity(CHUNK);
        upper.extend(chunk.drain(CHUNK / 2..));
        if at <= CHUNK / 2 {
            chunk.insert(at, entry);
        } else {
            upper.insert(at - CHUNK / 2, entry);
        }
        self.chunks.insert(place + 1, upper);
    }

    pub fn remove(&mut self, entry: T) {
        let place = self.chunk_of(entry);
        let Some(chunk) = self.chunks.get_mut(place) else { return };
        if let Ok(at) = chunk.binary_search(&entry) {
            chunk.remove(at);
            if chunk.is_empty() {
                self.chunks.remove(place);
            }
        }
    }

    /// The entries of `range`, in order.
    pub fn range(&self, range: RangeInclusive<T>) -> impl DoubleEndedIterator<Item = T> {
        let (from, to) = (*range.start(), *range.end());
        let first = self.chunk_of(from);
        let behind = self.chunks.partition_point(|chunk| chunk.first().is_some_and(|start| *start <= to));
        let chunks = self.chunks.get(first..behind.max(first)).unwrap_or_default();
        chunks.iter().flat_map(move |chunk| {
            let start = chunk.partition_point(|entry| *entry < from);
            let end = chunk.partition_point(|entry| *entry <= to);
            chunk.get(start..end.max(start)).unwrap_or_default().iter().copied()
        })
    }

    /// Takes in many at once, in any order, and leaves no gaps.
    pub fn gather(&mut self, mut entries: Vec<T>) {
        entries.extend(std::mem::take(&mut self.chunks).into_iter().flatten());
        entries.sort_unstable();
        entries.dedup();
        self.chunks = entries.chunks(CHUNK).map(<[T]>::to_vec).collect();
    }

    /// The chunk an entry is in, or belongs into: the last that begins at or below it.
    fn chunk_of(&self, entry: T) -> usize {
        let behind = self.chunks.partition_point(|chunk| chunk.first().is_some_and(|first| *first <= entry));
        behind.saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Step {
        Add(u16),
        Remove(u16),
        /// Enough to split chunks.
        Many(u16, u16),
        Gather(Vec<u16>),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => any::<u16>().prop_map(Step::Add),
            4 => (0u16..3000).prop_map(Step::Remove),
            2 => (0u16..3000, 0u16..1200).prop_map(|(from, count)| Step::Many(from, count)),
            1 => prop::collection::vec(0u16..3000, 0..1200).prop_map(Step::Gather),
        ]
    }

    proptest! {
        #[test]
        fn postings_are_a_sorted_set(steps in prop::collection::vec(step(), 1..30), from: u16, to in 0u16..4000) {
            let (mut postings, mut set) = (Postings::default(), BTreeSet::new());
            for step in steps {
                match step {
                    Step::Add(entry) => {
                        postings.insert(entry);
                        set.insert(entry);
                    }
                    Step::Remove(entry) => {
                        postings.remove(entry);
                        set.remove(&entry);
                    }
                    Step::Many(from, count) => {
                        for number in 0..count {
                            // Not in order, and some twice.
                            let entry = from + number.wrapping_mul(7919) % (count + 1);
                            postings.insert(entry);
                            set.insert(entry);
                        }
                    }
                    Step::Gather(entries) => {
                        set.extend(&entries);
                        postings.gather(entries);
                    }
                }
                prop_assert!(postings.chunks.iter().all(|chunk| (1..=CHUNK).contains(&chunk.len())));
                let all: Vec<u16> = postings.range(0..=u16::MAX).collect();
                prop_assert_eq!(all, set.iter().copied().collect::<Vec<_>>());
                let (low, high) = (from.min(to), from.max(to));
                let some: Vec<u16> = postings.range(low..=high).collect();
                prop_assert_eq!(some, set.range(low..=high).copied().collect::<Vec<_>>());
                prop_assert_eq!(postings.range(low..=high).next_back(), set.range(low..=high).next_back().copied());
            }
        }
    }
}
