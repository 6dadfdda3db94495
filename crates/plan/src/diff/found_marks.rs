//! Our own ownership marks, as they were found on the server.

use std::ops::Range;

use netstead_model::{Name, RecordSet};

use crate::{
    OwnerId,
    marks::{is_below, mark_name, mark_prefix_len},
};

/// Marks by name.
#[derive(Debug, Default)]
pub(super) struct FoundMarks<'a> {
    sets: Vec<&'a RecordSet>,
    /// Those right below the name they are for. They have the order of those names.
    below: Range<usize>,
}

impl<'a> FoundMarks<'a> {
    pub(super) fn new(mut sets: Vec<&'a RecordSet>) -> Self {
        if !sets.is_sorted_by(|one, other| one.name <= other.name) {
            sets.sort_by(|one, other| one.name.cmp(&other.name));
        }
        let start = sets.partition_point(|set| set.name.as_str() < "_");
        let end = sets.partition_point(|set| set.name.as_str() < "`");
        Self { sets, below: start..end }
    }

    /// The mark with exactly this name.
    pub(super) fn get(&self, name: &str) -> Option<&'a RecordSet> {
        self.position(name).and_then(|at| self.sets.get(at)).copied()
    }

    fn position(&self, name: &str) -> Option<usize> {
        let at = self.sets.partition_point(|set| set.name.as_str() <= name).checked_sub(1)?;
        self.sets.get(at).is_some_and(|set| set.name == *name).then_some(at)
    }
}

/// Finds the marks of names, asked for in order, and remembers the marks that were never asked for.
pub(super) struct Cursor<'z, 'a> {
    marks: &'z FoundMarks<'a>,
    owner: &'z OwnerId,
    next: usize,
    used: Vec<bool>,
}

impl<'z, 'a> Cursor<'z, 'a> {
    pub(super) fn new(marks: &'z FoundMarks<'a>, owner: &'z OwnerId) -> Self {
        Self { marks, owner, next: marks.below.start, used: vec![false; marks.sets.len()] }
    }

    /// The mark of `name`, unless what is ours there is a delegation. With something of ours there it is no loose one.
    pub(super) fn of(&mut self, name: &Name, zone: &Name, ours: bool) -> Option<&'a RecordSet> {
        let at = if is_below(self.owner, name) {
            self.advance(name)
        } else {
            self.marks.position(&mark_name(self.owner, name, zone, false))
        };
        if ours {
            self.mark_used(at);
            if self.marks.below.len() < self.marks.sets.len() {
                let apart = self.marks.position(&mark_name(self.owner, name, zone, true));
                self.mark_used(apart);
            }
        }
        at.and_then(|at| self.marks.sets.get(at)).copied()
    }

    fn advance(&mut self, name: &Name) -> Option<usize> {
        let front = mark_prefix_len(self.owner);
        let mut found = None;
        while let Some(set) = self.marks.sets.get(self.next).filter(|_| self.next < self.marks.below.end) {
            match set.name.as_str().get(front..).unwrap_or_default().cmp(name.as_str()) {
                std::cmp::Ordering::Less => {}
                std::cmp::Ordering::Equal => found = Some(self.next),
                std::cmp::Ordering::Greater => break,
            }
            self.next += 1;
        }
        found
    }

    fn mark_used(&mut self, at: Option<usize>) {
        if let Some(used) = at.and_then(|at| self.used.get_mut(at)) {
            *used = true;
        }
    }

    /// Marks at names where nothing is ours.
    pub(super) fn loose(&self) -> impl Iterator<Item = &'a RecordSet> {
        self.marks.sets.iter().zip(&self.used).filter(|(_, used)| !**used).map(|(set, _)| *set)
    }
}
