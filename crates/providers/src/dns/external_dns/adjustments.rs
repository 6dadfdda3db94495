//! [`Adjustments`]: remembers what the provider makes of a set, so that it never shows as drift.

use std::collections::HashMap;

use netstead_model::{Name, RecordSet, RecordType};

use crate::dns::preconditions::ServerRecords;

/// Sets as they were asked for and as the provider holds them, by name and type.
#[derive(Debug, Default)]
pub(super) struct Adjustments(HashMap<(Name, RecordType), Adjustment>);

#[derive(Debug)]
struct Adjustment {
    asked: RecordSet,
    /// As the provider said it would be.
    made: RecordSet,
    /// As the provider listed it.
    held: RecordSet,
    /// It was written and not read since. Some providers say nothing of what they do with a time to live.
    unread: bool,
}

fn key(set: &RecordSet) -> (Name, RecordType) {
    (set.name.clone(), set.kind)
}

impl Adjustments {
    /// The set as the provider holds it, as far as that is known.
    pub(super) fn adjusted(&self, set: RecordSet) -> RecordSet {
        match self.0.get(&key(&set)) {
            Some(known) if known.asked == set => known.held.clone(),
            _ => set,
        }
    }

    /// The set that was asked for, where this is what the provider made of it.
    pub(super) fn asked(&self, set: RecordSet) -> RecordSet {
        match self.0.get(&key(&set)) {
            Some(known) if known.held == set => known.asked.clone(),
            _ => set,
        }
    }

    /// The set as it will be listed, given what the provider says it makes of it.
    pub(super) fn listed(&self, asked: &RecordSet, made: &RecordSet) -> RecordSet {
        match self.0.get(&key(asked)) {
            Some(known) if known.asked == *asked && known.made == *made => known.held.clone(),
            _ => made.clone(),
        }
    }

    /// Remembers a set that stands there, and whether it was written just now.
    pub(super) fn remember(&mut self, asked: &RecordSet, made: &RecordSet, unread: bool) {
        let (asked, held, made) = (asked.clone(), self.listed(asked, made), made.clone());
        self.0.insert(key(&asked), Adjustment { asked, made, held, unread });
    }

    pub(super) fn forget(&mut self, name: &Name, kind: RecordType) {
        self.0.remove(&(name.clone(), kind));
    }

    /// Learns from the first listing after a write: the same values with another time to live are the provider's doing.
    pub(super) fn learn(&mut self, found: &ServerRecords) {
        for (key, known) in self.0.iter_mut().filter(|(_, known)| known.unread) {
            known.unread = false;
            if let Some(set) = found.sets.get(key).filter(|set| set.values == known.held.values) {
                known.held.ttl = set.ttl;
            }
        }
    }
}
