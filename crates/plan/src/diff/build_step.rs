//! Turns the changes of a name into a step: the unit for the server, its mark, and the lines people read.

use std::sync::Arc;

use netstead_model::{Name, RecordData, RecordSet, RecordType, SetChange, Unit};

use super::{
    Input, NameDiff, ZoneIndex,
    breaker::Verdict,
    name_diff::{Removal, SetDiff},
};
use crate::{
    DesiredValue, Digest, Line, Origin, OwnedValue, ParkedChange, Reason, Sign, Step,
    marks::{Mark, is_mark_of, mark_name, render},
};

/// Builds the step of a name, and the part that waits for a person.
pub(super) fn build_step(
    name: &NameDiff<'_>,
    verdict: Verdict,
    input: &Input<'_>,
    zones: &ZoneIndex<'_>,
) -> (Option<Step>, Option<ParkedChange>) {
    let (flow, parked) = match &verdict {
        Verdict::Hold(id, guard) => return (None, Some(held(name, *id, guard.clone()))),
        Verdict::Park(..) => split(name),
        _ => (name.sets.iter().map(Part::of).collect(), Vec::new()),
    };
    let (counted, approved) = match verdict {
        Verdict::Pass(counted) => (counted, None),
        Verdict::Approved(id) => (0, Some(id)),
        Verdict::Park(..) | Verdict::Hold(..) => (0, None),
    };
    let parked = match verdict {
        Verdict::Park(id, guard) => {
            let lines = parked.iter().flat_map(lines).collect();
            let (zone, name) = (name.zone.clone(), name.name.clone());
            Some(ParkedChange { id, zone, name, lines, guard })
        }
        _ => None,
    };
    let unit = unit(name, &flow, input, zones);
    let adopted = name.adopted.iter().map(|value| put(value, Origin::Adopted));
    let added = flow.iter().flat_map(|part| &part.adds).map(|value| put(value, Origin::Written));
    let mut said: Vec<Line> = flow.iter().flat_map(lines).chain(adoptions(name)).collect();
    if said.is_empty() && !unit.changes.is_empty() {
        said.push(mark_line());
    }
    let step = Step {
        zone: name.zone.clone(),
        unit,
        lines: said,
        puts: adopted.chain(added).collect(),
        forgets: flow.iter().flat_map(|part| &part.removes).map(|removal| removal.data.clone()).collect(),
        counted,
        approved,
    };
    (Some(step).filter(|step| !step.unit.changes.is_empty() || !step.puts.is_empty()), parked)
}

/// Everything at a name, waiting for a person.
fn held(name: &NameDiff<'_>, id: Digest, guard: Arc<str>) -> ParkedChange {
    let parts: Vec<Part<'_>> = name.sets.iter().map(Part::of).collect();
    let mut lines: Vec<Line> = parts.iter().flat_map(lines).chain(adoptions(name)).collect();
    if lines.is_empty() {
        lines.push(mark_line());
    }
    ParkedChange { id, zone: name.zone.clone(), name: name.name.clone(), lines, guard }
}

fn adoptions(name: &NameDiff<'_>) -> impl Iterator<Item = Line> {
    name.adopted.iter().map(|value| {
        let (kind, text, why) = (Some(value.data.kind()), value.data.to_string(), "adopted".into());
        Line { sign: Sign::Change, kind, text, why }
    })
}

fn mark_line() -> Line {
    Line { sign: Sign::Change, kind: None, text: "mark".into(), why: "ownership on the server".into() }
}

fn put(value: &DesiredValue, origin: Origin) -> OwnedValue {
    let (data, reasons) = (value.data.clone(), value.reasons.clone());
    OwnedValue { data, reasons, origin, pending: origin == Origin::Written }
}

/// The part of a set's changes that happens, or that does not.
pub(super) struct Part<'a> {
    pub(super) set: &'a SetDiff<'a>,
    pub(super) adds: Vec<&'a DesiredValue>,
    pub(super) removes: Vec<&'a Removal<'a>>,
}

impl<'a> Part<'a> {
    fn of(set: &'a SetDiff<'a>) -> Self {
        Self { set, adds: set.adds.clone(), removes: set.removes.iter().collect() }
    }

    pub(super) fn after(&self, owner: &Name) -> Option<RecordSet> {
        let before = self.set.before.iter().flat_map(|before| &before.values);
        let stays = before.filter(|data| self.removes.iter().all(|removal| removal.data != *data));
        let adds = self.adds.iter().map(|value| &value.data);
        let mut set = RecordSet::new(owner.clone(), self.set.kind, self.set.ttl, stays.chain(adds).cloned());
        set.proxied = self.set.proxied;
        Some(set).filter(|set| !set.values.is_empty())
    }
}

/// Parts the guarded changes of a name from the rest: what a person must agree to goes together with what would take
/// its place, and everything else goes on. A claim is in neither: it joins nothing that has not left yet.
pub(super) fn split<'a>(name: &'a NameDiff<'a>) -> (Vec<Part<'a>>, Vec<Part<'a>>) {
    let turns = name.switches_alias();
    let guarded = name.is_guarded();
    let part = |set: &'a SetDiff<'a>| {
        let (free, held): (Vec<_>, Vec<_>) = set.removes.iter().partition(|removal| removal.is_free());
        let single = matches!(set.kind, RecordType::Cname | RecordType::Ptr);
        let waits = |value: &&DesiredValue| {
            turns || (single && !held.is_empty()) || held.iter().any(|removal| takes_place(value, removal))
        };
        let adds = set.adds.iter().copied().filter(|value| !(guarded && value.claim));
        let (late, now): (Vec<_>, Vec<_>) = adds.partition(waits);
        (Part { set, adds: now, removes: free }, Part { set, adds: late, removes: held })
    };
    name.sets.iter().map(part).unzip()
}

fn takes_place(value: &DesiredValue, removal: &Removal<'_>) -> bool {
    let same = |one: &Reason, other: &Reason| one.source == other.source && one.workload == other.workload;
    removal.reasons.is_empty()
        || removal.reasons.iter().any(|one| value.reasons.iter().any(|other| same(one, other)))
}

/// The changes in the order a server without atomic changes may take them: what comes, its mark, what goes. Only where
/// an alias and something else cannot stand together does the old go first.
fn unit(name: &NameDiff<'_>, flow: &[Part<'_>], input: &Input<'_>, zones: &ZoneIndex<'_>) -> Unit {
    let (mut comes, mut goes) = (Vec::new(), Vec::new());
    for part in flow {
        let after = part.after(name.name);
        if part.set.before == after.as_ref() {
            continue;
        }
        let change = SetChange { before: part.set.before.cloned(), after };
        if change.after.is_some() { comes.push(change) } else { goes.push(change) }
    }
    let mark = if input.settings.marks { mark_changes(name, flow, input, zones) } else { Vec::new() };
    let changes = if name.switches_alias() {
        goes.into_iter().chain(comes).chain(mark).collect()
    } else {
        comes.into_iter().chain(mark).chain(goes).collect()
    };
    Unit { name: name.name.clone(), changes }
}

/// Whether the mark says that exactly these values are ours.
pub(super) fn mark_is_right(
    at: &super::name_diff::NameContext<'_>,
    ours: &[OwnedValue],
    input: &Input<'_>,
    zones: &ZoneIndex<'_>,
) -> bool {
    let delegation = at.name != at.zone && ours.iter().any(|own| own.data.kind() == RecordType::Ns);
    let mark = if delegation {
        zones.marks.get(&mark_name(&input.settings.owner, at.name, at.zone, true))
    } else {
        at.mark
    };
    match mark {
        None => ours.is_empty(),
        Some(mark) => {
            let ours = ours.iter().map(|own| &own.data);
            mark.values.len() == 1 && mark.values.first().is_some_and(|mark| is_mark_of(mark, at.name, ours))
        }
    }
}

/// Whether the mark is wrong although nothing else changes.
pub(super) fn mark_differs(name: &NameDiff<'_>, input: &Input<'_>, zones: &ZoneIndex<'_>) -> bool {
    let quiet = |set: &SetDiff<'_>| set.adds.is_empty() && set.removes.is_empty();
    let flow: Vec<Part<'_>> = name.sets.iter().map(Part::of).collect();
    name.sets.iter().all(quiet)
        && name.adopted.is_empty()
        && !mark_changes(name, &flow, input, zones).is_empty()
}

/// Changes of the mark. It is elsewhere while a delegation is ours, so one may be removed and one added.
fn mark_changes(
    name: &NameDiff<'_>,
    flow: &[Part<'_>],
    input: &Input<'_>,
    zones: &ZoneIndex<'_>,
) -> Vec<SetChange> {
    let mut ours: Vec<&RecordData> = Vec::with_capacity(name.ours.len());
    let mut others: Vec<&RecordData> = Vec::new();
    for part in flow {
        let there = part.set.before.iter().flat_map(|before| &before.values);
        for data in there.filter(|data| part.removes.iter().all(|removal| removal.data != *data)) {
            let own = name.ours.iter().any(|own| own.data == *data)
                || name.adopted.iter().any(|value| value.data == *data);
            if own { ours.push(data) } else { others.push(data) }
        }
        ours.extend(part.adds.iter().map(|value| &value.data));
    }
    if ours.is_empty() && name.ours.is_empty() {
        // A mark of values the store does not know is all that `recover` has.
        return Vec::new();
    }
    let delegates = |data: &RecordData| name.name != name.zone && data.kind() == RecordType::Ns;
    let was = name.ours.iter().any(|own| delegates(&own.data));
    let is = if ours.is_empty() { was } else { ours.iter().any(|data| delegates(data)) };
    let at = |delegation| mark_name(&input.settings.owner, name.name, name.zone, delegation);
    let (old, new) = (at(was), at(is));
    let before = zones.marks.get(&new);
    let left = zones.marks.get(&old).filter(|_| old != new);
    if !others.is_empty() {
        let values = before.iter().chain(&left).flat_map(|mark| &mark.values);
        let marks: Vec<Mark> = values.filter_map(Mark::parse).collect();
        others.retain(|data| marks.iter().any(|mark| mark.covers(name.name, data)));
        ours.extend(others);
    }
    let left = left.map(|left| SetChange { before: Some(left.clone()), after: None });
    let expected = render(name.name, ours);
    let right = match (&expected, before) {
        (None, None) => true,
        (Some(data), Some(before)) => before.values.len() == 1 && before.values.contains(data),
        _ => false,
    };
    let change = || {
        let ttl = before.map_or(input.settings.ttl, |before| before.ttl);
        let at: Name = new.parse().ok()?;
        let after = expected.map(|data| RecordSet::new(at, RecordType::Txt, ttl, [data]));
        Some(SetChange { before: before.cloned(), after })
    };
    let change = if right { None } else { change() };
    change.into_iter().chain(left).collect()
}

/// The lines of a part, as a person reads them.
fn lines(part: &Part<'_>) -> Vec<Line> {
    let kind = Some(part.set.kind);
    let mut lines = Vec::new();
    let mut olds = part.removes.iter();
    let mut news = part.adds.iter();
    loop {
        lines.push(match (olds.next(), news.next()) {
            (Some(old), Some(new)) => {
                let text = format!("{} → {}", old.data, new.data);
                let why = format!("{}: {}", reasons(&new.reasons), old.why).into();
                Line { sign: Sign::Change, kind, text, why }
            }
            (Some(old), None) => {
                let who = reasons(old.reasons);
                let why = if who.is_empty() { old.why.clone() } else { format!("{who}: {}", old.why).into() };
                Line { sign: Sign::Remove, kind, text: old.data.to_string(), why }
            }
            (None, Some(new)) => {
                let why = new.reasons.first().map_or_else(String::new, |first| {
                    let more = new.reasons.len() - 1;
                    let others = if more > 0 { format!(" and {more} more") } else { String::new() };
                    format!("{}/{}: {}{others}", first.source, first.workload, first.why)
                });
                Line { sign: Sign::Add, kind, text: new.data.to_string(), why: why.into() }
            }
            (None, None) => break,
        });
    }
    if let Some(before) = part.set.before.filter(|before| lines.is_empty() && before.ttl != part.set.ttl) {
        let text = format!("TTL {} → {}", before.ttl, part.set.ttl);
        lines.push(Line { sign: Sign::Change, kind, text, why: "".into() });
    }
    let turned = |before: &&RecordSet| part.set.proxied.filter(|_| before.proxied != part.set.proxied);
    if let Some(proxied) = part.set.before.as_ref().and_then(turned) {
        let text = if proxied { "proxied" } else { "no longer proxied" }.to_owned();
        lines.push(Line { sign: Sign::Change, kind, text, why: "".into() });
    }
    lines
}

fn reasons(reasons: &[Reason]) -> String {
    let Some(first) = reasons.first() else { return String::new() };
    let more = reasons.len() - 1;
    let others = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}/{}{others}", first.source, first.workload)
}
