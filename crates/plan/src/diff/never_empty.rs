//! Keeps the last value of a set until its replacement exists, unless its workload ended.

use netstead_model::RecordType;

use super::{NameDiff, Notes};
use crate::Kept;

/// Takes removals back that would leave nothing where something should be: an update without its new value, a conflict
/// without its winner.
pub(super) fn keep_last_value(name: &mut NameDiff<'_>, notes: &mut Notes) {
    let turns = name.switches_alias();
    let owner = name.name;
    for set in &mut name.sets {
        let left = set.before.map_or(0, |before| before.values.len()) + set.adds.len();
        if left > set.removes.len() || (turns && !set.removes.is_empty()) {
            continue;
        }
        set.removes.retain(|removal| {
            // What is parked anyway waits for a person, who may empty what they like.
            if removal.cause.may_empty() || removal.cause.always_parked() {
                return true;
            }
            let why = "the last value, and nothing takes its place".into();
            notes.kept.push(Kept { name: owner.clone(), value: Some(removal.data.clone()), why });
            false
        });
    }
}

impl NameDiff<'_> {
    /// Whether the name turns from an alias into something else or back: then one cannot come before the other goes.
    pub(super) fn switches_alias(&self) -> bool {
        let gives = |alias: bool| {
            let of = move |kind: RecordType| (kind == RecordType::Cname) == alias;
            (
                self.sets.iter().any(|set| of(set.kind) && !set.removes.is_empty()),
                self.sets.iter().any(|set| of(set.kind) && !set.adds.is_empty()),
            )
        };
        let ((alias_goes, alias_comes), (other_goes, other_comes)) = (gives(true), gives(false));
        (alias_goes && other_comes) || (other_goes && alias_comes)
    }
}
