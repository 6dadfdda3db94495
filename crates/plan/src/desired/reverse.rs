//! PTR records: one for each address, with the best of its names.

use std::collections::BTreeSet;

use netstead_model::{Name, RecordData, RecordType, reverse_name};

use super::{
    Desired,
    candidate::{self, Candidate},
    conflict,
};
use crate::{Cause, Owned, Settings, inventory::GraceVerdict};

/// The PTR that goes with an A or AAAA, if its name is the address's own.
pub(super) fn pointer<'a>(candidate: &Candidate<'a>, settings: &Settings) -> Option<Candidate<'a>> {
    if !settings.reverse || !settings.holds(RecordType::Ptr) || candidate.rank.is_none() {
        return None;
    }
    let name = reverse_name(candidate.data.to_address()?);
    Some(Candidate {
        name,
        data: RecordData::Ptr(candidate.name.clone()),
        adopt: false,
        share: false,
        proxied: None,
        verdict: candidate.replaced.as_deref().unwrap_or(&candidate.verdict).clone(),
        ..candidate.clone()
    })
}

/// Chooses one PTR for each address: the existing one as long as its name is wanted, else the best. Where a workload asks for
/// a PTR by name there is no other.
pub(super) fn choose_pointers<'a>(
    pointers: Vec<Candidate<'a>>,
    owned: &Owned,
    settings: &Settings,
    gone: &mut Vec<Candidate<'a>>,
    desired: &mut Desired,
) {
    let exact: BTreeSet<Name> =
        desired.sets.iter().filter(|set| set.kind == RecordType::Ptr).map(|set| set.name.clone()).collect();
    let mut rest = candidate::in_order(pointers).peekable();
    while let Some(first) = rest.next() {
        let name = first.name.clone();
        let mut group = vec![first];
        while let Some(next) = rest.next_if(|next| next.name == name) {
            group.push(next);
        }
        let ours = owned.of(&name);
        let best = group.iter().filter(|_| !exact.contains(&name)).min_by_key(|one| {
            let sticks = ours.iter().any(|value| value.data == one.data);
            (one.waits(), !sticks, one.rank, one.first, one.source, one.id, &one.data)
        });
        let data = best.map(|best| best.data.clone());
        let (chosen, others): (Vec<_>, Vec<_>) =
            group.into_iter().partition(|one| Some(&one.data) == data.as_ref());
        desired.sets.extend(conflict::build_set(&chosen, settings, &mut desired.why_not));
        gone.extend(others.into_iter().map(|mut other| {
            other.verdict = GraceVerdict::Gone(Cause::Updated, "another name has the address".into());
            other
        }));
    }
}
