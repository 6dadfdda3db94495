//! Resolves conflicts: which workload gets a name that not all can have.

use netstead_model::{RecordData, RecordType};

use super::{
    Desired, DesiredSet, DesiredValue, MissingBecause, WhyNot,
    candidate::{Candidate, creation_decides},
    name_holder, sole_name,
};
use crate::{Cause, KeptReason, OwnedValue, Settings, inventory::GraceVerdict};

/// Sorts out the candidates of one name: those left can all stand there together. The others go to `gone`, with the
/// cause that a value of ours would leave for.
pub(super) fn resolve_conflicts<'a>(
    group: Vec<Candidate<'a>>,
    ours: &[OwnedValue],
    settings: &Settings,
    gone: &mut Vec<Candidate<'a>>,
    desired: &mut Desired,
) -> Vec<Candidate<'a>> {
    let (mut live, mut lost): (Vec<_>, Vec<_>) =
        group.into_iter().partition(|candidate| !matches!(candidate.verdict, GraceVerdict::Gone(..)));
    keep_while_refused(&mut lost);
    gone.extend(lost);
    if live.iter().any(|candidate| candidate.version > 0) {
        live = superseded(live, gone);
    }
    let live = name_holder::block_claims(live, ours, settings, gone, desired);
    let why_not = &mut desired.why_not;
    let live = sole_name::keep_first(live, ours, gone, why_not);
    let aliases = live.iter().filter(|candidate| candidate.data.kind() == RecordType::Cname).count();
    let alike = || live.iter().zip(live.iter().skip(1)).all(|(one, other)| one.data == other.data);
    if aliases == 0 || alike() {
        return live;
    }
    let incumbent = |data: &RecordData| ours.iter().any(|value| value.data == *data);
    let by_creation = creation_decides(&live, ours);
    let winner = live
        .iter()
        .min_by_key(|one| {
            (one.waits(), !incumbent(&one.data), one.seniority(by_creation), one.source, one.id, &one.data)
        })
        .cloned();
    let Some(winner) = winner else { return live };
    let fits = |candidate: &Candidate<'_>| match winner.data.kind() {
        RecordType::Cname => candidate.data == winner.data,
        _ => candidate.data.kind() != RecordType::Cname,
    };
    let (stay, lost): (Vec<_>, Vec<_>) = live.into_iter().partition(fits);
    for mut candidate in lost {
        let (kind, source, id) = (winner.data.kind(), winner.source, winner.id);
        let first = if incumbent(&winner.data) { "has it already" } else { "came first" };
        let why = format!("{source}/{id} {first} with {} {}", kind, winner.data);
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
    stay
}

/// A running workload whose wish for the name is refused keeps what its earlier versions had there: the name is still asked
/// for, so nothing of it is merely absent.
fn keep_while_refused(lost: &mut [Candidate<'_>]) {
    let is_refused = |one: &Candidate<'_>| matches!(one.verdict, GraceVerdict::Gone(Cause::Refused, _));
    let refused: Vec<Candidate<'_>> =
        lost.iter().filter(|one| one.version == 0 && is_refused(one)).cloned().collect();
    for candidate in lost.iter_mut().filter(|one| one.version > 0 && !refused.is_empty()) {
        if let Some(newest) = refused.iter().find(|newest| newest.same_workload(candidate)) {
            candidate.verdict = newest.verdict.clone();
        }
    }
}

/// A name that an earlier version of a running workload asked for is replaced, not absent, when the newest version brings a
/// value of that type which the earlier one did not have.
fn superseded<'a>(live: Vec<Candidate<'a>>, gone: &mut Vec<Candidate<'a>>) -> Vec<Candidate<'a>> {
    let replaced: Vec<bool> = live
        .iter()
        .map(|old| {
            let had = |new: &Candidate<'_>| {
                live.iter().any(|other| {
                    other.version == old.version && other.same_workload(old) && other.data == new.data
                })
            };
            let kind = old.data.kind();
            let newest = |new: &&Candidate<'_>| {
                new.version == 0 && !new.waits() && new.same_workload(old) && new.data.kind() == kind
            };
            let still = || live.iter().filter(newest).any(|new| new.data == old.data);
            old.version > 0 && !still() && live.iter().filter(newest).any(|new| !had(new))
        })
        .collect();
    let mut stay = Vec::with_capacity(live.len());
    for (mut candidate, replaced) in live.into_iter().zip(replaced) {
        if replaced {
            let gone_now = if candidate.moves {
                GraceVerdict::Gone(Cause::Target, "the target moved".into())
            } else {
                GraceVerdict::Gone(Cause::Updated, "replaced by its workload".into())
            };
            candidate.replaced = Some(Box::new(std::mem::replace(&mut candidate.verdict, gone_now)));
            gone.push(candidate);
        } else {
            stay.push(candidate);
        }
    }
    stay
}

/// Puts candidates that can stand together into sets.
pub(super) fn group_into_sets(live: Vec<Candidate<'_>>, settings: &Settings, desired: &mut Desired) {
    let mut rest = live.into_iter().peekable();
    while let Some(first) = rest.next() {
        let kind = first.data.kind();
        let mut set = vec![first];
        while let Some(next) = rest.next_if(|next| next.data.kind() == kind) {
            set.push(next);
        }
        desired.sets.extend(build_set(&set, settings, &mut desired.why_not));
    }
}

/// The set of candidates that have name and type in common, sorted by value.
pub(super) fn build_set(
    candidates: &[Candidate<'_>],
    settings: &Settings,
    why_not: &mut Vec<WhyNot>,
) -> Option<DesiredSet> {
    let first = candidates.first()?;
    let (name, kind) = (first.name.clone(), first.data.kind());
    let said = candidates.iter().filter_map(|one| one.ttl.map(|ttl| (one, ttl)));
    let decides = said.clone().min_by_key(|(one, ttl)| (one.waits(), one.first, one.source, one.id, *ttl));
    let ttl = decides.as_ref().map_or(settings.ttl, |(_, ttl)| *ttl);
    for (candidate, other) in said.filter(|(one, other)| *other != ttl && !one.waits()) {
        if let Some((winner, _)) = &decides {
            let (source, id) = (winner.source, winner.id);
            let why = format!("its TTL {other} gives way to {ttl} of {source}/{id}");
            let told = candidate.why_not(why, false);
            why_not.push(WhyNot { absence: Some(MissingBecause::Detail), ..told });
        }
    }
    let mut values: Vec<DesiredValue> = Vec::with_capacity(candidates.len());
    for candidate in candidates {
        let waiting: Option<KeptReason> = match &candidate.verdict {
            GraceVerdict::Waiting(why) => Some(why.clone()),
            _ => None,
        };
        match values.last_mut().filter(|value| value.data == candidate.data) {
            Some(value) => {
                value.reasons.push(candidate.reason());
                value.waiting = value.waiting.take().and(waiting);
                value.claim &= candidate.is_claim();
                value.joined = value.joined.take().and(candidate.joined.clone());
            }
            None => values.push(DesiredValue {
                data: candidate.data.clone(),
                reasons: vec![candidate.reason()],
                waiting,
                claim: candidate.is_claim() && !settings.share,
                joined: candidate.joined.clone(),
            }),
        }
    }
    for value in &mut values {
        value.reasons.sort();
        value.reasons.dedup_by(|one, other| one.source == other.source && one.workload == other.workload);
    }
    let asks = |flag: fn(&Candidate<'_>) -> bool| candidates.iter().any(|one| flag(one) && !one.waits());
    let adopt = settings.adopt || asks(|one| one.adopt);
    let share = settings.share || asks(|one| one.share);
    // Of several that say it, the first that came.
    let proxied = candidates.iter().filter_map(|one| one.proxied.map(|proxied| (one, proxied)));
    let proxied = proxied.min_by_key(|(one, _)| (one.waits(), one.first, one.source, one.id));
    let proxied = proxied.map(|(_, proxied)| proxied);
    Some(DesiredSet { name, kind, ttl, values, adopt, share, proxied })
}
