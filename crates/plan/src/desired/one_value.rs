//! Servers that hold one value of each type at a name: of several workloads one gets the name.

use netstead_model::RecordData;

use super::{
    WhyNot,
    candidate::{Candidate, creation_decides},
};
use crate::{Cause, OwnedValue, inventory::GraceVerdict};

/// Leaves one value of each type, the one that stands already or else the one that came first. The others go to `gone`.
/// `live` are candidates of one name in the order of their types.
pub(super) fn keep_one_value<'a>(
    live: Vec<Candidate<'a>>,
    ours: &[OwnedValue],
    gone: &mut Vec<Candidate<'a>>,
    why_not: &mut Vec<WhyNot>,
) -> Vec<Candidate<'a>> {
    let incumbent = |data: &RecordData| ours.iter().any(|value| value.data == *data);
    let mut stay = Vec::with_capacity(live.len());
    let mut rest = live.into_iter().peekable();
    while let Some(first) = rest.next() {
        let kind = first.data.kind();
        let mut group = vec![first];
        while let Some(next) = rest.next_if(|next| next.data.kind() == kind) {
            group.push(next);
        }
        let by_creation = creation_decides(&group, ours);
        let winner = group
            .iter()
            .min_by_key(|one| {
                (one.waits(), !incumbent(&one.data), one.seniority(by_creation), one.source, one.id)
            })
            .cloned();
        let Some(winner) = winner else { continue };
        let (kept, lost): (Vec<_>, Vec<_>) = group.into_iter().partition(|one| one.data == winner.data);
        stay.extend(kept);
        for mut candidate in lost {
            let (source, id, data) = (winner.source, winner.id, &winner.data);
            let why = format!("the server holds one {kind} at a name, and {source}/{id} has it with {data}");
            if !candidate.waits() {
                why_not.push(candidate.why_not(why.clone(), false));
            }
            candidate.verdict = if candidate.same_workload(&winner) {
                GraceVerdict::Gone(Cause::Updated, "replaced by its workload".into())
            } else {
                GraceVerdict::Gone(Cause::Conflict, why.into())
            };
            gone.push(candidate);
        }
    }
    stay
}
