//! Lets PTR records follow their addresses: neither changes without the other.

use std::{collections::HashSet, net::IpAddr};

use netstead_model::{Name, RecordData, RecordType, address_of_reverse};

use super::{NameDiff, Notes, breaker::Verdict, build_step::split};
use crate::Kept;

type Addresses = HashSet<(Name, IpAddr)>;

/// An address gets no PTR to a name that does not get the address because foreign values are in the way.
pub(super) fn without_blocked(names: &mut [NameDiff<'_>], notes: &Notes) {
    let wanted = notes.blocked.iter().flat_map(|one| one.wanted.iter().map(move |data| (&one.name, data)));
    let unmade: Addresses =
        wanted.filter_map(|(name, data)| Some((name.clone(), data.to_address()?))).collect();
    if unmade.is_empty() {
        return;
    }
    for name in names.iter_mut() {
        let Some(address) = address_of_reverse(name.name) else { continue };
        for set in name.sets.iter_mut().filter(|set| set.kind == RecordType::Ptr) {
            set.adds.retain(|value| !points_into(&value.data, address, &unmade));
        }
    }
}

/// A change that is parked at a name is parked at its address too: the new PTR is not added and the old one stays.
pub(super) fn without_parked(names: &mut [NameDiff<'_>], verdicts: &mut [Verdict], notes: &mut Notes) {
    let (mut unmade, mut unremoved) = (Addresses::new(), Addresses::new());
    for (name, verdict) in names.iter().zip(verdicts.iter()) {
        if matches!(verdict, Verdict::Park(..)) {
            let at = |data: &RecordData| Some((name.name.clone(), data.to_address()?));
            unmade.extend(name.claimed().filter_map(|value| at(&value.data)));
            for part in split(name).1 {
                unmade.extend(part.adds.iter().filter_map(|value| at(&value.data)));
                unremoved.extend(part.removes.iter().filter_map(|removal| at(removal.data)));
            }
        }
    }
    if unmade.is_empty() && unremoved.is_empty() {
        return;
    }
    for (name, verdict) in names.iter_mut().zip(verdicts) {
        let Verdict::Pass(counted) = verdict else { continue };
        let Some(address) = address_of_reverse(name.name) else { continue };
        for set in name.sets.iter_mut().filter(|set| set.kind == RecordType::Ptr) {
            let waits = set.adds.iter().any(|value| points_into(&value.data, address, &unmade));
            let all = set.removes.len();
            set.removes.retain(|removal| {
                !points_into(removal.data, address, &unremoved) && (!waits || removal.cause.may_empty())
            });
            let held = set.removes.len() < all;
            set.adds.retain(|value| !held && !points_into(&value.data, address, &unmade));
            if held {
                let (name, why) = (name.name.clone(), "the name it points at is parked".into());
                notes.kept.push(Kept { name, value: None, why });
            }
        }
        *counted =
            u32::try_from(name.removals().filter(|one| one.cause.counted()).count()).unwrap_or(u32::MAX);
    }
}

fn points_into(data: &RecordData, address: IpAddr, names: &Addresses) -> bool {
    match data {
        RecordData::Ptr(to) => names.contains(&(to.clone(), address)),
        _ => false,
    }
}
