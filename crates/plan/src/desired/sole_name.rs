//! Names of a workload's own: of several workloads that are called alike, one has the name.
//!
//! Containers behind one name share it on purpose. Machines do not: two that are called alike are a clone and its original, or
//! a mistake, and both addresses under one name would send half of the visitors to the wrong one.

use netstead_model::RecordData;

use super::{
    WhyNot,
    candidate::{Candidate, creation_decides},
};
use crate::{Cause, KeptReason, OwnedValue, inventory::GraceVerdict};

/// Leaves the candidates of one name to the workload that has it as its own already, or else to the one that was created
/// first. The others whose own name it is go to `gone`. A value that is there already stays.
pub(super) fn keep_first<'a>(
    live: Vec<Candidate<'a>>,
    ours: &[OwnedValue],
    gone: &mut Vec<Candidate<'a>>,
    why_not: &mut Vec<WhyNot>,
) -> Vec<Candidate<'a>> {
    let Some(holder) = holder(&live, ours).cloned() else { return live };
    let own: Vec<RecordData> =
        live.iter().filter(|one| one.same_workload(&holder)).map(|one| one.data.clone()).collect();
    let mut stay = Vec::with_capacity(live.len());
    for mut candidate in live {
        let is_rival = candidate.is_sole && !candidate.same_workload(&holder);
        if !is_rival || own.contains(&candidate.data) || candidate.follows(&holder) {
            stay.push(candidate);
            continue;
        }
        let why = format!(
            "`{}` ({}/{}) is called the same and came first; rename one of the two",
            holder.workload.name, holder.source, holder.id
        );
        if ours.iter().any(|value| value.data == candidate.data) {
            candidate.joined = Some(Box::new(KeptReason::from(why)));
            stay.push(candidate);
            continue;
        }
        if !candidate.waits() {
            why_not.push(candidate.why_not(why.clone(), false));
        }
        candidate.verdict = GraceVerdict::Gone(Cause::Conflict, why.into());
        gone.push(candidate);
    }
    stay
}

/// The workload that has the name; none if there is no other whose own name it is. One whose end was seen has it no longer.
fn holder<'c, 'a>(live: &'c [Candidate<'a>], ours: &[OwnedValue]) -> Option<&'c Candidate<'a>> {
    let ended = |one: &Candidate<'_>| matches!(one.verdict, GraceVerdict::Waiting(KeptReason::Ended { .. }));
    let mut own = live.iter().filter(|one| one.is_sole && !ended(one));
    let first = own.next()?;
    if own.all(|one| one.same_workload(first)) {
        return None;
    }
    let rivals: Vec<&Candidate<'a>> = live.iter().filter(|one| one.is_sole && !ended(one)).collect();
    let by_creation = creation_decides(&rivals, ours);
    rivals
        .into_iter()
        .min_by_key(|one| (!one.stands(ours), one.waits(), one.seniority(by_creation), one.source, one.id))
}

impl Candidate<'_> {
    /// Whether it came after the holder was last seen: the successor of a machine that was made anew stands beside it until
    /// its grace is over.
    fn follows(&self, holder: &Self) -> bool {
        match &holder.verdict {
            GraceVerdict::Waiting(KeptReason::Absent { absent_from, .. }) => self.first >= *absent_from,
            _ => false,
        }
    }
}
