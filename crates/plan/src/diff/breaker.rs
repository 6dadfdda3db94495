//! Decides which guarded changes may happen by themselves and which are parked for a person.

use std::{collections::BTreeMap, sync::Arc};

use super::{Input, NameDiff};
use crate::{Cause, Digest};

/// The verdict of the guards about the changes of one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// They happen, and so many count.
    Pass(u32),
    /// They happen because a person let them.
    Approved(Digest),
    /// They wait for a person; the text says why.
    Park(Digest, Arc<str>),
    /// The same for everything at the name, whatever it is.
    Hold(Digest, Arc<str>),
}

/// One verdict for each name, in order.
pub(super) fn guard_verdicts(
    names: &[NameDiff<'_>],
    owned_in: &BTreeMap<usize, u64>,
    input: &Input<'_>,
) -> Vec<Verdict> {
    let limits = input.settings.breaker;
    let (guard, now) = (input.guard, input.now);
    if guard.recovered {
        let verdict = |name: &NameDiff<'_>| match name.whole_id() {
            id if guard.allows(id, now) => Verdict::Approved(id),
            id => Verdict::Hold(id, "ownership was recovered, and this is the first plan after it".into()),
        };
        return names.iter().map(verdict).collect();
    }
    let mut verdicts = Vec::with_capacity(names.len());
    let mut in_zone: BTreeMap<usize, u64> = BTreeMap::new();
    let (mut absent, mut removed, mut added, mut target) = (0u64, 0u64, 0u64, false);
    for name in names {
        added += name.sets.iter().map(|set| set.adds.len() as u64).sum::<u64>();
        removed += name.removals().count() as u64;
        let Some(cause) = name.guarded_cause() else {
            verdicts.push(Verdict::Pass(0));
            continue;
        };
        let id = name.id();
        if guard.allows(id, now) {
            verdicts.push(Verdict::Approved(id));
            continue;
        }
        if cause.always_parked() {
            let why = match cause {
                Cause::Config => "the configuration changed",
                Cause::Refused => "what asks for them may not have them any more",
                _ => "it is not known why they are ours",
            };
            verdicts.push(Verdict::Park(id, why.into()));
            continue;
        }
        let count = name.removals().filter(|removal| removal.cause.counted()).count();
        absent += name.removals().filter(|removal| removal.cause == Cause::Absent).count() as u64;
        target |= cause == Cause::Target;
        *in_zone.entry(name.index).or_default() += count as u64;
        verdicts.push(Verdict::Pass(u32::try_from(count).unwrap_or(u32::MAX)));
    }
    let before = guard.counted(None, limits.window, now);
    let all = in_zone.values().sum::<u64>() + before + u64::from(target);
    let too_many = all > u64::from(limits.total);
    let owned: u64 = owned_in.values().sum();
    let none_left = absent > 0 && owned + before >= 3 && removed >= owned && added == 0;
    for (name, verdict) in names.iter().zip(&mut verdicts) {
        let Verdict::Pass(count @ 1..) = *verdict else { continue };
        let here = in_zone.get(&name.index).copied().unwrap_or_default();
        let lately = guard.counted(Some(name.zone), limits.window, now);
        let sum = here + lately;
        let part =
            u64::from(limits.percent) * (owned_in.get(&name.index).copied().unwrap_or_default() + lately);
        let is_absent = name.removals().any(|removal| removal.cause == Cause::Absent);
        let id = name.id();
        let window = crate::now::spoken(limits.window);
        let why = if sum > u64::from(limits.changes) && sum * 100 > part {
            format!("{sum} changes of {} within {window}", name.zone)
        } else if too_many {
            format!("{all} changes in all within {window}")
        } else if none_left && is_absent {
            "nothing would be left of what is ours".into()
        } else if guard.holds(id) {
            "parked before".into()
        } else {
            *verdict = Verdict::Pass(count);
            continue;
        };
        *verdict = Verdict::Park(id, why.into());
    }
    verdicts
}
