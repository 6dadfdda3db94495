//! [`Actual`]: the zones of a server as they were read.

use std::collections::BTreeSet;

use netstead_model::{ChangeSign, Name, RecordSet, RecordType, SetChange};
use serde::{Deserialize, Serialize};

use crate::Settings;

/// All zones of a server that matter here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Actual {
    pub zones: Vec<ActualZone>,
}

/// One zone as it was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActualZone {
    pub name: Name,
    #[serde(default, rename = "serial", skip_serializing_if = "Option::is_none")]
    pub sign: Option<ChangeSign>,
    /// Missing when the zone could not be read: nothing is planned for it, nor for its parent in its place.
    pub sets: Option<Vec<RecordSet>>,
}

impl Actual {
    /// The names that are the top of a zone. Zones of one name each are none.
    pub fn zone_tops(&self, settings: &Settings) -> BTreeSet<Name> {
        let zones = self.zones.iter().filter(|_| !settings.lone_zones);
        zones.map(|zone| zone.name.clone()).collect()
    }
}

impl ActualZone {
    /// The zone with these sets, in order of name and type.
    pub fn new(name: Name, sign: Option<ChangeSign>, sets: Option<Vec<RecordSet>>) -> Self {
        let mut sets = sets;
        if let Some(sets) = sets.as_mut().filter(|sets| !sets.is_sorted_by_key(set_key)) {
            sets.sort_by(|one, other| set_key(one).cmp(&set_key(other)));
        }
        Self { name, sign, sets }
    }

    /// Takes over changes that the server confirmed. One walk, however many there are.
    pub fn apply_changes<'a>(&mut self, changes: impl IntoIterator<Item = &'a SetChange>) {
        let Some(sets) = &mut self.sets else { return };
        let changed = |change: &'a SetChange| {
            let some = change.after.as_ref().or(change.before.as_ref())?;
            Some((set_key(some), change.after.as_ref()))
        };
        let mut changes: Vec<(SetKey<'a>, Option<&RecordSet>)> =
            changes.into_iter().filter_map(changed).collect();
        changes.sort_by_key(|(place, _)| *place);
        let mut changes = changes.into_iter().peekable();
        let old = std::mem::take(sets);
        sets.reserve(old.len() + changes.len());
        for set in old {
            while let Some((_, after)) = changes.next_if(|(at, _)| *at < set_key(&set)) {
                sets.extend(after.cloned());
            }
            match changes.next_if(|(at, _)| *at == set_key(&set)) {
                Some((_, after)) => sets.extend(after.cloned()),
                None => sets.push(set),
            }
        }
        sets.extend(changes.filter_map(|(_, after)| after.cloned()));
    }
}

type SetKey<'a> = (&'a Name, RecordType);

fn set_key(set: &RecordSet) -> SetKey<'_> {
    (&set.name, set.kind)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn set(name: u8, kind: bool, value: u8) -> RecordSet {
        let (kind, text) = if kind {
            (RecordType::A, format!("192.0.2.{value}"))
        } else {
            (RecordType::Aaaa, format!("2001:db8::{value:x}"))
        };
        let value = netstead_model::RecordData::parse(kind, &text).unwrap();
        RecordSet::new(format!("w{name}.example.com").parse().unwrap(), kind, 300, [value])
    }

    proptest! {
        #[test]
        fn a_zone_that_follows_changes_holds_what_a_map_would(
            before in proptest::collection::btree_map((0u8..20, any::<bool>()), 0u8..3, 0..20),
            changes in proptest::collection::btree_map((0u8..20, any::<bool>()), proptest::option::of(0u8..3), 0..20),
        ) {
            let held: Vec<RecordSet> = before.iter().rev().map(|((name, kind), value)| set(*name, *kind, *value)).collect();
            let mut zone = ActualZone::new("example.com".parse().unwrap(), None, Some(held));
            let units: Vec<SetChange> = changes
                .iter()
                .map(|((name, kind), value)| SetChange {
                    before: before.get(&(*name, *kind)).map(|value| set(*name, *kind, *value)),
                    after: value.map(|value| set(*name, *kind, value)),
                })
                .collect();
            zone.apply_changes(&units);
            let mut expected: BTreeMap<_, _> = before;
            for (place, value) in changes {
                match value {
                    Some(value) => expected.insert(place, value),
                    None => expected.remove(&place),
                };
            }
            let expected: Vec<RecordSet> =
                expected.iter().map(|((name, kind), value)| set(*name, *kind, *value)).collect();
            prop_assert_eq!(zone, ActualZone::new("example.com".parse().unwrap(), None, Some(expected)));
        }
    }
}
