//! Compares one name: what is desired there, what the server has, and what of it is ours.

mod foreign_values;

use std::{collections::BTreeSet, sync::Arc};

use netstead_model::{Name, RecordData, RecordSet, RecordType};

use super::{Input, Notes, ZoneIndex};
use crate::{
    Cause, DesiredSet, DesiredValue, Digest, Drift, DriftKind, Kept, KeptReason, Mode, Origin, OwnedValue,
    desired::{RemovalDecision, UndesiredValue, is_companion},
};

/// Where a name is.
pub(super) struct NameContext<'a> {
    pub(super) name: &'a Name,
    pub(super) zone: &'a Name,
    pub(super) index: usize,
    pub(super) below_cut: bool,
    /// The mark of this name.
    pub(super) mark: Option<&'a RecordSet>,
}

/// The changes of one name.
#[derive(Debug)]
pub(super) struct NameDiff<'a> {
    pub(super) name: &'a Name,
    pub(super) zone: &'a Name,
    pub(super) index: usize,
    pub(super) sets: Vec<SetDiff<'a>>,
    pub(super) ours: &'a [OwnedValue],
    /// Foreign values that become ours as they are.
    pub(super) adopted: Vec<&'a DesiredValue>,
    /// The mark is not what it should be even if nothing else changes.
    pub(super) mark: bool,
    /// A value that is kept for a workload that no longer asks for it, and why.
    pub(super) kept_for: Option<(RecordData, KeptReason)>,
}

/// The changes of one set.
#[derive(Debug)]
pub(super) struct SetDiff<'a> {
    pub(super) kind: RecordType,
    pub(super) before: Option<&'a RecordSet>,
    /// The time to live of the set; none leaves it as it is.
    pub(super) ttl: u32,
    pub(super) proxied: Option<bool>,
    pub(super) adds: Vec<&'a DesiredValue>,
    pub(super) removes: Vec<Removal<'a>>,
}

/// A value that leaves.
#[derive(Debug)]
pub(super) struct Removal<'a> {
    pub(super) data: &'a RecordData,
    pub(super) cause: Cause,
    pub(super) why: Arc<str>,
    pub(super) reasons: &'a [crate::Reason],
}

impl SetDiff<'_> {
    /// Whether something about the set changes beside its values.
    pub(super) fn retimes(&self) -> bool {
        self.before.is_some_and(|before| before.ttl != self.ttl || before.proxied != self.proxied)
    }

    /// Keeps the attributes of the set beside its values.
    pub(super) fn keep_as(&mut self, before: &RecordSet) {
        (self.ttl, self.proxied) = (before.ttl, before.proxied);
    }
}

impl<'a> NameDiff<'a> {
    pub(super) fn removals(&self) -> impl Iterator<Item = &Removal<'a>> {
        self.sets.iter().flat_map(|set| &set.removes)
    }

    pub(super) fn changes_something(&self) -> bool {
        let set = |set: &SetDiff<'_>| !set.adds.is_empty() || !set.removes.is_empty() || set.retimes();
        self.mark || !self.adopted.is_empty() || self.sets.iter().any(set)
    }

    /// Whether something leaves that a guard may hold back.
    pub(super) fn is_guarded(&self) -> bool {
        self.removals().any(|removal| !removal.is_free())
    }

    /// Values that only claims ask for: they are not added while something at the name is parked.
    pub(super) fn claimed(&self) -> impl Iterator<Item = &'a DesiredValue> {
        let guarded = self.is_guarded();
        let adds = self.sets.iter().flat_map(|set| &set.adds).copied();
        adds.filter(move |value| guarded && value.claim)
    }

    /// The most careful cause of those removals that are not free.
    pub(super) fn guarded_cause(&self) -> Option<Cause> {
        self.removals().filter(|removal| !removal.is_free()).map(|removal| removal.cause).max()
    }

    /// Names everything that changes here, for when all of it waits.
    pub(super) fn whole_id(&self) -> Digest {
        let mut parts = vec![self.zone.to_string(), self.name.to_string()];
        for set in &self.sets {
            parts.push(format!("{} {}", set.kind, set.ttl));
            parts.extend(set.proxied.map(|proxied| format!("proxied {proxied}")));
            parts.extend(set.before.iter().flat_map(|set| &set.values).map(|value| format!(" {value}")));
            parts.extend(set.removes.iter().map(|removal| format!("-{}", removal.data)));
            parts.extend(set.adds.iter().map(|value| format!("+{}", value.data)));
        }
        parts.extend(self.adopted.iter().map(|value| format!("={} {}", value.data.kind(), value.data)));
        Digest::of(parts)
    }

    /// Names the guarded change: what goes, what comes in its place, and what is expected there once everything that
    /// may happen by itself has happened.
    pub(super) fn id(&self) -> Digest {
        let mut parts = vec![self.zone.to_string(), self.name.to_string()];
        let (free, held) = super::build_step::split(self);
        for (free, held) in free.iter().zip(&held) {
            if held.removes.is_empty() && held.adds.is_empty() {
                continue;
            }
            parts.push(held.set.kind.to_string());
            let expected = free.after(self.name);
            parts.extend(expected.iter().flat_map(|set| &set.values).map(|value| format!(" {value}")));
            parts.extend(held.removes.iter().map(|removal| format!("-{}", removal.data)));
            parts.extend(held.adds.iter().map(|value| format!("+{}", value.data)));
        }
        Digest::of(parts)
    }
}

/// Compares one name; none when everything is as it should be.
pub(super) fn compare<'a>(
    input: &Input<'a>,
    place: &NameContext<'a>,
    sets: &'a [DesiredSet],
    ours: &'a [OwnedValue],
    found: &[&'a RecordSet],
    zones: &ZoneIndex<'a>,
    notes: &mut Notes,
) -> Option<NameDiff<'a>> {
    if is_settled(sets, ours, found)
        && (!input.settings.marks || super::build_step::mark_is_right(place, ours, input, zones))
    {
        return None;
    }
    let kinds: BTreeSet<RecordType> =
        sets.iter().map(|set| set.kind).chain(ours.iter().map(|value| value.data.kind())).collect();
    let leaving = input.desired.undesired.get(place.name).map_or(&[][..], Vec::as_slice);
    let mut name = NameDiff {
        name: place.name,
        zone: place.zone,
        index: place.index,
        sets: Vec::with_capacity(kinds.len()),
        ours,
        adopted: Vec::new(),
        mark: false,
        kept_for: None,
    };
    let mut equal = Vec::new();
    for kind in kinds {
        let wanted = sets.iter().find(|set| set.kind == kind);
        let before = found.iter().copied().find(|set| set.kind == kind);
        let ttl = wanted.map(|set| set.ttl).or(before.map(|set| set.ttl)).unwrap_or(input.settings.ttl);
        let proxied = wanted.and_then(|set| set.proxied).or(before.and_then(|set| set.proxied));
        let mut set = SetDiff { kind, before, ttl, proxied, adds: Vec::new(), removes: Vec::new() };
        for value in wanted.into_iter().flat_map(|set| &set.values) {
            let there = before.is_some_and(|before| before.values.contains(&value.data));
            let own = ours.binary_search_by(|own| own.data.cmp(&value.data)).ok().and_then(|at| ours.get(at));
            let adopts = wanted.is_some_and(|set| set.adopt) || input.settings.mode == Mode::Authoritative;
            if gives_way(input, value, ours, before, adopts) {
                continue;
            }
            compare_wanted(&mut name, &mut set, adopts, value, own, there, &mut equal, notes);
        }
        for own in ours.iter().filter(|own| own.data.kind() == kind) {
            if wanted.is_none_or(|set| !set.has(&own.data)) {
                let kept = compare_unwanted(input, place.name, &mut set, own, leaving, notes);
                name.kept_for = name.kept_for.take().or(kept);
            }
        }
        name.sets.push(set);
    }
    foreign_values::block_claims_beside_kept(&mut name, notes);
    foreign_values::block_foreign(input, place, &mut name, sets, found, &equal, zones, notes);
    if !input.clean {
        by_mode(input.settings.mode, &mut name, notes);
    }
    name.mark = input.settings.marks && super::build_step::mark_differs(&name, input, zones);
    Some(name).filter(NameDiff::changes_something)
}

/// Whether exactly what is desired stands there, and all of it is ours: the case of nearly every name in every pass.
fn is_settled(sets: &[DesiredSet], ours: &[OwnedValue], found: &[&RecordSet]) -> bool {
    if sets.len() != found.len() || sets.iter().map(|set| set.values.len()).sum::<usize>() != ours.len() {
        return false;
    }
    let wanted = sets.iter().flat_map(|set| &set.values);
    let is_ours = |(value, own): (&DesiredValue, &OwnedValue)| {
        let quiet = value.waiting.is_none() && value.joined.is_none();
        value.data == own.data && quiet && !own.pending && value.reasons == own.reasons
    };
    let is_there = |(set, found): (&DesiredSet, &&RecordSet)| {
        set.kind == found.kind
            && set.ttl == found.ttl
            && (set.proxied.is_none() || set.proxied == found.proxied)
            && set.values.iter().map(|value| &value.data).eq(&found.values)
    };
    wanted.zip(ours).all(is_ours) && sets.iter().zip(found).all(is_there)
}

/// Whether a value is the HTTPS record beside an address, and foreign ones are there: they are right by themselves.
fn gives_way(
    input: &Input<'_>,
    value: &DesiredValue,
    ours: &[OwnedValue],
    before: Option<&RecordSet>,
    adopts: bool,
) -> bool {
    let is_foreign = |data: &RecordData| ours.iter().all(|own| own.data != *data);
    let in_its_place = |data: &RecordData| is_foreign(data) && !(adopts && *data == value.data);
    is_companion(&value.data, input.settings)
        && before.is_some_and(|before| before.values.iter().any(in_its_place))
}

/// A value that should stand there.
#[expect(clippy::too_many_arguments, reason = "it is one step of the loop above")]
fn compare_wanted<'a>(
    name: &mut NameDiff<'a>,
    set: &mut SetDiff<'a>,
    adopts: bool,
    value: &'a DesiredValue,
    own: Option<&'a OwnedValue>,
    there: bool,
    equal: &mut Vec<&'a DesiredValue>,
    notes: &mut Notes,
) {
    match (there, own) {
        (true, Some(own)) => {
            if own.reasons != value.reasons || own.pending {
                notes.restated.push((name.name.clone(), restated(own, value)));
            }
            if let Some(why) = value.waiting.as_ref().or(value.joined.as_deref()) {
                let value = Some(value.data.clone());
                notes.kept.push(Kept { name: name.name.clone(), value, why: why.clone() });
            }
        }
        (_, None) if value.waiting.is_some() => {}
        (true, None) if adopts => name.adopted.push(value),
        (true, None) => equal.push(value),
        (false, Some(own)) => {
            if !own.pending {
                let (name, value) = (name.name.clone(), value.data.clone());
                notes.drift.push(Drift { name, value, kind: DriftKind::Missing });
            }
            set.adds.push(value);
        }
        (false, None) => set.adds.push(value),
    }
}

/// The same value of ours with the reasons of today.
pub(super) fn restated(own: &OwnedValue, value: &DesiredValue) -> OwnedValue {
    let origin = if own.origin == Origin::Adopted { Origin::Adopted } else { Origin::Written };
    OwnedValue { data: own.data.clone(), reasons: value.reasons.clone(), origin, pending: false }
}

/// A value of ours that no workload asks for.
fn compare_unwanted<'a>(
    input: &Input<'a>,
    name: &Name,
    set: &mut SetDiff<'a>,
    own: &'a OwnedValue,
    leaving: &'a [UndesiredValue],
    notes: &mut Notes,
) -> Option<(RecordData, KeptReason)> {
    let there = set.before.is_some_and(|before| before.values.contains(&own.data));
    let unknown = RemovalDecision::Remove(Cause::Unknown, "nothing is known about it".into());
    let judged = leaving.binary_search_by(|leaving| leaving.data.cmp(&own.data)).ok();
    let judged = judged.and_then(|at| leaving.get(at)).map_or(&unknown, |leaving| &leaving.decision);
    match judged {
        _ if input.clean && there => {
            let (data, why, reasons) = (&own.data, "cleaned by a person".into(), own.reasons.as_slice());
            set.removes.push(Removal { data, cause: Cause::Asked, why, reasons });
        }
        _ if input.clean => notes.forgotten.push((name.clone(), own.data.clone())),
        // An adopted value was removed by others, and no workload asks for it: it is no longer ours.
        RemovalDecision::Keep(_) if !there && own.reasons.is_empty() => {
            notes.forgotten.push((name.clone(), own.data.clone()));
        }
        RemovalDecision::Keep(_) if !there => {}
        RemovalDecision::Keep(why) => {
            let value = Some(own.data.clone());
            notes.kept.push(Kept { name: name.clone(), value, why: why.clone() });
            return (!own.reasons.is_empty()).then(|| (own.data.clone(), why.clone()));
        }
        RemovalDecision::Remove(..) if !there => notes.forgotten.push((name.clone(), own.data.clone())),
        RemovalDecision::Remove(cause, why) => {
            let (data, cause, reasons) = (&own.data, *cause, own.reasons.as_slice());
            set.removes.push(Removal { data, cause, why: why.clone(), reasons });
        }
    }
    None
}

/// Takes back what the mode does not allow.
fn by_mode(mode: Mode, name: &mut NameDiff<'_>, notes: &mut Notes) {
    let why = match mode {
        Mode::Managed | Mode::Authoritative | Mode::Observe => return,
        Mode::Additive => "the mode is additive",
        Mode::CreateOnly => "the mode is create-only",
    };
    let turns = name.switches_alias();
    let owner = name.name;
    for set in &mut name.sets {
        let updates = mode == Mode::Additive && (!set.adds.is_empty() || turns);
        set.removes.retain(|removal| {
            if updates && !removal.cause.may_empty() {
                return true;
            }
            let value = Some(removal.data.clone());
            notes.kept.push(Kept { name: owner.clone(), value, why: why.into() });
            false
        });
        if let (Mode::CreateOnly, Some(before)) = (mode, set.before) {
            set.adds.clear();
            set.keep_as(before);
        }
    }
    if mode == Mode::CreateOnly && turns {
        name.sets.iter_mut().for_each(|set| set.adds.clear());
    }
}
