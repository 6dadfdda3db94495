//! Decides which removals may happen by themselves and which are parked for a person. Workloads count, not objects.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use netstead_model::{Ident, IpamCapabilities, Key, Name, ObjectKey, ObjectRole};

use super::{IpamInput, IpamParked, IpamParkedChange, IpamStep, diff::Removal};
use crate::{Cause, Digest, Guard, Now};

/// The breaker counts in one window for the whole system.
pub(super) fn window() -> Option<Name> {
    "ipam".parse().ok()
}

fn workload(key: &ObjectKey) -> (Ident, Key) {
    (key.source.clone(), key.workload.clone())
}

/// Whether the workload of this removal counts: a machine goes, or an address. Facts never count.
fn counts(removal: &Removal, can: &IpamCapabilities) -> bool {
    let about = can.kinds.iter().find(|one| one.kind == removal.step.unit.key.kind);
    let role = about.map_or(ObjectRole::Other, |about| about.role);
    removal.cause.counted() && matches!(role, ObjectRole::Machine | ObjectRole::Address)
}

fn id_of(step: &IpamStep) -> Digest {
    Digest::of([serde_json::to_string(&step.unit).unwrap_or_default()])
}

/// The removals that happen, and those that wait. `made` is how many objects the plan makes.
pub(super) fn park(
    removals: Vec<Removal>,
    made: usize,
    input: &IpamInput<'_>,
) -> (Vec<IpamStep>, Vec<(ObjectKey, IpamParkedChange)>) {
    let (guard, now, limits) = (input.guard, input.now, input.settings.breaker);
    let counted: BTreeSet<(Ident, Key)> = removals
        .iter()
        .filter(|removal| counts(removal, input.can) && !guard.allows(id_of(&removal.step), now))
        .map(|removal| workload(&removal.step.unit.key))
        .collect();
    let absent = removals.iter().any(|removal| removal.cause == Cause::Absent);
    let owned = input.owned.workloads().len() as u64;
    let lately = guard.counted(None, limits.window, now);
    let sum = counted.len() as u64 + lately;
    let part = u64::from(limits.percent) * (owned + lately);
    let none_left = absent && owned + lately >= 3 && counted.len() as u64 >= owned && made == 0;
    let why = if sum > u64::from(limits.changes) && sum * 100 > part || sum > u64::from(limits.total) {
        Some(format!("{sum} workloads within {}", crate::now::spoken(limits.window)))
    } else if none_left {
        Some("nothing would be left of what is ours".to_owned())
    } else {
        None
    };
    let mut guards: BTreeMap<(Ident, Key), Arc<str>> = BTreeMap::new();
    for removal in removals.iter().filter(|_| !input.clean) {
        let (at, id) = (workload(&removal.step.unit.key), id_of(&removal.step));
        if guard.allows(id, now) {
            continue;
        }
        let reason: Option<Arc<str>> = match removal.cause {
            _ if guard.recovered => {
                Some("ownership was recovered, and this is the first plan after it".into())
            }
            Cause::Config => Some("the configuration changed".into()),
            cause if cause.always_parked() => Some("it is not known why they are ours".into()),
            _ if counted.contains(&at) && why.is_some() => why.as_deref().map(Into::into),
            _ if counted.contains(&at) && guard.holds(id) => Some("parked before".into()),
            _ => None,
        };
        if let Some(reason) = reason {
            guards.entry(at).or_insert(reason);
        }
    }
    let (mut steps, mut parked, mut told) = (Vec::new(), Vec::new(), BTreeSet::new());
    for removal in removals {
        let counts = counts(&removal, input.can);
        let mut step = removal.step;
        let (at, id) = (workload(&step.unit.key), id_of(&step));
        if guard.allows(id, now) {
            step.approved = Some(id);
        } else if let Some(reason) = guards.get(&at) {
            let workload = format!("{}/{}", at.0, at.1.as_str());
            let (key, lines, guard) = (step.unit.key, step.lines, reason.clone());
            parked.push((key.clone(), IpamParkedChange { id, key, workload, lines, guard }));
            continue;
        } else if counts && told.insert(at) {
            step.counted = 1;
        }
        steps.push(step);
    }
    (steps, parked)
}

/// The parked removals, under the hash that approves them.
pub(super) fn offered(
    parked: Vec<(ObjectKey, IpamParkedChange)>,
    guard: &Guard,
    now: Now,
) -> Option<IpamParked> {
    if parked.is_empty() {
        return None;
    }
    let changes: Vec<IpamParkedChange> = parked.into_iter().map(|(_, change)| change).collect();
    let ids: BTreeSet<String> = changes.iter().map(|change| change.id.to_string()).collect();
    let hash = Digest::of(ids);
    Some(IpamParked { hash, since: guard.parked_since(hash, now), changes })
}
