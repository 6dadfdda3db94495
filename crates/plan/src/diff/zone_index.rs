//! The zones of a server, indexed for one diff.

use std::collections::{HashMap, HashSet};

use netstead_model::{Name, RecordSet, RecordType};

use super::found_marks::FoundMarks;
use crate::{Actual, ActualZone, Owned, OwnerId, marks::is_mark};

#[derive(Debug)]
pub(super) struct ZoneIndex<'a> {
    all: &'a [ActualZone],
    by_name: HashMap<&'a str, usize>,
    /// The length of the longest name of a zone.
    longest: usize,
    /// All sets but marks that stay, with the number of their zone, by name and type.
    pub(super) sets: Vec<(usize, &'a RecordSet)>,
    /// Our own marks by name.
    pub(super) marks: FoundMarks<'a>,
    /// Names that marks of other installations stand for, with their owner.
    pub(super) others: HashMap<&'a str, &'a str>,
    /// Where a zone hands over to another server.
    cuts: HashSet<(usize, &'a str)>,
}

impl<'a> ZoneIndex<'a> {
    pub(super) fn new(actual: &'a Actual, owner: &OwnerId, owned: &Owned) -> Self {
        // With marks, every second set is one.
        let half = actual.zones.iter().filter_map(|zone| zone.sets.as_ref()).map(Vec::len).sum::<usize>() / 2;
        let mut this = Self {
            all: &actual.zones,
            by_name: actual
                .zones
                .iter()
                .enumerate()
                .map(|(index, zone)| (zone.name.as_str(), index))
                .collect(),
            sets: Vec::with_capacity(half),
            longest: actual.zones.iter().map(|zone| zone.name.as_str().len()).max().unwrap_or_default(),
            marks: FoundMarks::default(),
            others: HashMap::new(),
            cuts: HashSet::new(),
        };
        let mut marks = Vec::with_capacity(half);
        for (index, zone) in actual.zones.iter().enumerate() {
            for set in zone.sets.iter().flatten().filter(|set| !set.values.is_empty()) {
                let name = set.name.as_str();
                match Some(name).filter(|_| set.kind == RecordType::Txt).and_then(is_mark) {
                    Some(other) if other == owner.as_str() => {
                        marks.push(set);
                        // Written for a workload, before marks were refused: it is on its way out.
                        if !owned.of(&set.name).is_empty() {
                            this.sets.push((index, set));
                        }
                    }
                    // A mark of an id that was ours before is on its way out, as any value of ours.
                    Some(_) if !owned.of(&set.name).is_empty() => this.sets.push((index, set)),
                    Some(other) => {
                        let marked = name.split_once('.').map_or("", |(_, rest)| rest);
                        this.others.insert(marked, other);
                    }
                    None => this.sets.push((index, set)),
                }
                if set.kind == RecordType::Ns && set.name != zone.name {
                    this.cuts.insert((index, name));
                }
            }
        }
        this.marks = FoundMarks::new(marks);
        if !this.sets.is_sorted_by(|(_, one), (_, other)| one.name <= other.name) {
            this.sets.sort_by(|(_, one), (_, other)| one.name.cmp(&other.name));
        }
        this
    }

    pub(super) fn get(&self, index: usize) -> Option<&'a ActualZone> {
        self.all.get(index)
    }

    /// The zone that `name` belongs to: the longest that is at or above it.
    pub(super) fn of(&self, name: &Name) -> Option<usize> {
        let mut rest = name.as_str();
        loop {
            if rest.len() <= self.longest
                && let Some(index) = self.by_name.get(rest)
            {
                return Some(*index);
            }
            rest = rest.split_once('.')?.1;
        }
    }

    /// Whether another server answers for `name`, because the zone hands over a name above it.
    pub(super) fn is_below_cut(&self, name: &Name, zone: usize) -> bool {
        if self.cuts.is_empty() {
            return false;
        }
        let mut rest = name.as_str();
        while let Some((_, parent)) = rest.split_once('.') {
            if self.cuts.contains(&(zone, parent)) {
                return true;
            }
            rest = parent;
        }
        false
    }
}
