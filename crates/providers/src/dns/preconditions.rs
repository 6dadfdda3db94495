//! Compares a unit with the server's records: as expected, already done, or changed by others.

use std::collections::{BTreeMap, BTreeSet};

use netstead_model::{Name, RecordData, RecordSet, RecordType, SetChange, Unit, UnitOutcome, Values};

use super::tidy;

/// The records at some names right now.
#[derive(Debug, Clone, Default)]
pub(super) struct ServerRecords {
    pub(super) sets: BTreeMap<(Name, RecordType), RecordSet>,
    /// Sets with a value that our types cannot hold: they must not be replaced.
    pub(super) opaque: BTreeSet<(Name, RecordType)>,
    /// Names with data of types we do not know.
    pub(super) others: BTreeSet<Name>,
}

impl ServerRecords {
    /// Adds one value; the set takes the shortest time to live of its values.
    pub(super) fn add(&mut self, name: Name, kind: RecordType, ttl: u32, value: RecordData) {
        let set = self.sets.entry((name.clone(), kind)).or_insert_with(|| RecordSet {
            name,
            kind,
            ttl,
            values: Values::default(),
            proxied: None,
        });
        set.ttl = set.ttl.min(ttl);
        set.values.insert(value);
    }

    /// The sets that are wholly understood.
    pub(super) fn into_sets(mut self) -> Vec<RecordSet> {
        for key in &self.opaque {
            self.sets.remove(key);
        }
        self.sets.into_values().collect()
    }

    /// The outcome of `unit` if it needs no write; none if it must be written.
    pub(super) fn outcome(&self, unit: &Unit) -> Option<UnitOutcome> {
        if let Some(change) = unit.changes.iter().find(|change| self.is_opaque(change)) {
            let (name, kind) = key(change)?;
            let reason = format!("the {kind} set of `{name}` holds a value that Netstead cannot read");
            return Some(UnitOutcome::Rejected { reason });
        }
        let verdicts: Vec<Verdict> = unit.changes.iter().map(|change| self.verdict(change)).collect();
        if verdicts.iter().all(|verdict| *verdict == Verdict::Done) {
            Some(UnitOutcome::Applied)
        } else if verdicts.iter().all(|verdict| *verdict == Verdict::Expected) {
            None
        } else {
            Some(UnitOutcome::Changed)
        }
    }

    /// Why `unit` would break the rule that a CNAME stands alone.
    pub(super) fn cname_conflict(&self, unit: &Unit) -> Option<String> {
        let of = |kind: RecordType| unit.own_changes().find(move |change| kind_of(change) == Some(kind));
        let added = unit.own_changes().filter_map(|change| wanted(change)).map(|set| set.kind);
        let stays = |kind: RecordType| {
            self.sets.contains_key(&(unit.name.clone(), kind))
                && of(kind).is_none_or(|change| wanted(change).is_some())
        };
        let added: Vec<RecordType> = added.collect();
        if added.iter().any(|kind| *kind != RecordType::Cname) && stays(RecordType::Cname) {
            return Some(format!("a CNAME is at `{}`, and no other record can be beside it", unit.name));
        }
        // Nearly no unit adds one, and only then all types are looked for.
        if !added.contains(&RecordType::Cname) {
            return None;
        }
        let other = RecordType::ALL.into_iter().find(|kind| *kind != RecordType::Cname && stays(*kind));
        if other.is_some() || self.others.contains(&unit.name) {
            return Some(format!("a CNAME cannot stand at `{}` beside other records", unit.name));
        }
        None
    }

    /// Whether an alias of `name` for `target` would lead back to `name`. dnsmasq does not start with such a loop.
    pub(super) fn would_loop(&self, name: &Name, target: &Name) -> bool {
        let mut seen = BTreeSet::from([name.clone()]);
        let mut next = Some(target.clone());
        while let Some(at) = next {
            if !seen.insert(at.clone()) {
                return true;
            }
            let set = self.sets.get(&(at, RecordType::Cname));
            next = set.and_then(|set| set.values.first()).and_then(|data| match data {
                RecordData::Cname(target) => Some(target.clone()),
                _ => None,
            });
        }
        false
    }

    fn is_opaque(&self, change: &SetChange) -> bool {
        key(change).is_some_and(|key| self.opaque.contains(&key))
    }

    fn verdict(&self, change: &SetChange) -> Verdict {
        let Some(key) = key(change) else { return Verdict::Done };
        let current = self.sets.get(&key);
        let same = |set: Option<&RecordSet>, with_ttl: bool| match (set, current) {
            (None, None) => true,
            (Some(set), Some(current)) => {
                let set = tidy(set.clone());
                let proxied = set.proxied.is_none_or(|proxied| current.proxied == Some(proxied));
                set.values == current.values && (!with_ttl || set.ttl == current.ttl && proxied)
            }
            _ => false,
        };
        if same(wanted(change), true) {
            Verdict::Done
        } else if same(expected(change), false) {
            Verdict::Expected
        } else {
            Verdict::Other
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Done,
    Expected,
    Other,
}

/// The set that shall be there, if any.
pub(super) fn wanted(change: &SetChange) -> Option<&RecordSet> {
    change.after.as_ref().filter(|set| !set.values.is_empty())
}

/// The set that is expected to be there, if any.
pub(super) fn expected(change: &SetChange) -> Option<&RecordSet> {
    change.before.as_ref().filter(|set| !set.values.is_empty())
}

pub(super) fn kind_of(change: &SetChange) -> Option<RecordType> {
    change.after.as_ref().or(change.before.as_ref()).map(|set| set.kind)
}

fn key(change: &SetChange) -> Option<(Name, RecordType)> {
    change.after.as_ref().or(change.before.as_ref()).map(|set| (set.name.clone(), set.kind))
}

/// Two halves that do not cut a unit; the second is empty for fewer than two.
pub(super) fn halves(units: &[usize]) -> (&[usize], &[usize]) {
    units.split_at_checked(units.len() / 2).unwrap_or((units, &[]))
}

/// The changes of `unit` in an order in which no CNAME meets other data.
pub(super) fn removals_first(unit: &Unit) -> impl Iterator<Item = &SetChange> {
    let removals = unit.changes.iter().filter(|change| wanted(change).is_none());
    removals.chain(unit.changes.iter().filter(|change| wanted(change).is_some()))
}
