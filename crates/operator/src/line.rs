//! [`Line`]: claims that wait for any address, in the order in which they are served.

use std::collections::BTreeSet;

/// Places in order. The first of them, as many as there is room for, are *admitted*: each of these may have an address. Every
/// change moves at most one place for each that entered, left or was made room for, so none looks at the whole line.
#[derive(Debug)]
pub(crate) struct Line<P> {
    admitted: BTreeSet<P>,
    others: BTreeSet<P>,
    room: usize,
}

impl<P> Default for Line<P> {
    fn default() -> Self {
        Self { admitted: BTreeSet::new(), others: BTreeSet::new(), room: 0 }
    }
}

impl<P: Ord + Clone> Line<P> {
    pub(crate) fn len(&self) -> usize {
        self.admitted.len() + self.others.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.admitted.is_empty() && self.others.is_empty()
    }

    pub(crate) fn is_admitted(&self, place: &P) -> bool {
        self.admitted.contains(place)
    }

    /// All places in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &P> {
        self.admitted.iter().chain(&self.others)
    }

    /// Puts a place where it belongs. A later one may lose its admission.
    pub(crate) fn enter(&mut self, place: P) {
        if self.admitted.contains(&place) || self.others.contains(&place) {
            return;
        }
        let goes_before = self.admitted.last().is_some_and(|last| place < *last);
        if goes_before || self.admitted.len() < self.room {
            // Where there is room left, there are no others.
            self.admitted.insert(place);
            self.shrink();
        } else {
            self.others.insert(place);
        }
    }

    /// Takes a place out. Returns the place that is admitted instead.
    pub(crate) fn leave(&mut self, place: &P) -> Option<P> {
        if self.others.remove(place) || !self.admitted.remove(place) {
            return None;
        }
        self.grow()
    }

    /// Takes out an admitted place whose claim gets an address: there is room for one less.
    pub(crate) fn serve(&mut self, place: &P) {
        if self.admitted.remove(place) {
            self.room = self.room.saturating_sub(1);
        } else {
            self.others.remove(place);
        }
    }

    /// How many addresses there are for the line. Returns the places that are admitted by it.
    pub(crate) fn set_room(&mut self, room: usize) -> Vec<P> {
        self.room = room;
        self.shrink();
        std::iter::from_fn(|| self.grow()).collect()
    }

    fn shrink(&mut self) {
        while self.admitted.len() > self.room
            && let Some(last) = self.admitted.pop_last()
        {
            self.others.insert(last);
        }
    }

    fn grow(&mut self) -> Option<P> {
        if self.admitted.len() >= self.room {
            return None;
        }
        let next = self.others.pop_first()?;
        self.admitted.insert(next.clone());
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, cmp::Ordering};

    use proptest::prelude::*;

    use super::*;

    thread_local! {
        static COMPARED: Cell<usize> = const { Cell::new(0) };
    }

    /// A number that counts how often it is compared.
    #[derive(Debug, Clone, PartialEq, Eq)]
    struct Counted(u32);

    impl PartialOrd for Counted {
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }

    impl Ord for Counted {
        fn cmp(&self, other: &Self) -> Ordering {
            COMPARED.set(COMPARED.get() + 1);
            self.0.cmp(&other.0)
        }
    }

    /// The most comparisons of one change of a line of this length, where places enter, are served and are made room for.
    fn most_compared(length: u32) -> usize {
        let mut line = Line::default();
        for number in 0..length {
            // Not in order.
            line.enter(Counted(number.wrapping_mul(2_654_435_761) % (length * 4)));
        }
        line.set_room(line.len() / 2);
        let mut most = 0;
        for number in 0..200 {
            let mut measured = |step: &mut dyn FnMut()| {
                COMPARED.set(0);
                step();
                most = most.max(COMPARED.get());
            };
            let next = line.iter().next().cloned().unwrap();
            let room = line.len() / 2;
            measured(&mut || line.serve(&next));
            measured(&mut || {
                line.set_room(room);
            });
            measured(&mut || line.enter(Counted(number * 7)));
            measured(&mut || {
                line.leave(&Counted(number * 7));
            });
        }
        most
    }

    #[test]
    fn no_change_looks_at_the_whole_line() {
        let (short, long) = (most_compared(1000), most_compared(64_000));
        // A tree of 64 times as many is a few levels deeper.
        assert!(long <= short * 2 + 100, "{short} comparisons among 1,000, {long} among 64,000");
    }

    #[derive(Debug, Clone)]
    enum Change {
        Enter(u8),
        Leave(u8),
        Serve(u8),
        Room(usize),
    }

    fn change() -> impl Strategy<Value = Change> {
        prop_oneof![
            (0_u8..40).prop_map(Change::Enter),
            (0_u8..40).prop_map(Change::Leave),
            (0_u8..40).prop_map(Change::Serve),
            (0_usize..20).prop_map(Change::Room),
        ]
    }

    proptest! {
        #[test]
        fn the_admitted_are_always_the_first(changes in prop::collection::vec(change(), 0..80)) {
            let (mut line, mut naive, mut room) = (Line::default(), BTreeSet::new(), 0_usize);
            for change in changes {
                let before: BTreeSet<u8> = naive.iter().take(room).copied().collect();
                let mut told = Vec::new();
                match change {
                    Change::Enter(place) => {
                        line.enter(place);
                        naive.insert(place);
                    }
                    Change::Leave(place) => {
                        told.extend(line.leave(&place));
                        naive.remove(&place);
                    }
                    Change::Serve(place) => {
                        if naive.iter().take(room).any(|one| *one == place) {
                            room -= 1;
                        }
                        line.serve(&place);
                        naive.remove(&place);
                    }
                    Change::Room(new) => {
                        told = line.set_room(new);
                        room = new;
                    }
                }
                prop_assert_eq!(line.iter().copied().collect::<Vec<_>>(), naive.iter().copied().collect::<Vec<_>>());
                let admitted: BTreeSet<u8> = naive.iter().take(room).copied().collect();
                for place in &naive {
                    prop_assert_eq!(line.is_admitted(place), admitted.contains(place));
                }
                // Each that is newly admitted is told of, but for the one that enters, which is looked at anyway.
                let new: BTreeSet<u8> = admitted.difference(&before).copied().collect();
                if !matches!(change, Change::Enter(_)) {
                    prop_assert_eq!(told.into_iter().collect::<BTreeSet<u8>>(), new);
                }
            }
        }
    }
}
