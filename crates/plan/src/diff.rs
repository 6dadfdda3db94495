//! [`diff`]: compares the desired record sets with the server's and with what is ours, and makes a plan.
//!
//! 1. `name_diff` compares each name: values to add, values to remove, foreign values that block.
//! 2. `ptr_records` and `never_empty` take back changes that must not happen alone.
//! 3. `breaker` decides which changes wait for approval.
//! 4. `build_step` makes units for the server of the rest, with their marks.

mod breaker;
mod build_step;
mod found_marks;
mod name_diff;
mod never_empty;
mod ptr_records;
mod zone_index;

use std::collections::{BTreeMap, BTreeSet};

use netstead_model::{Name, RecordData, RecordSet, RecordType};

use self::{
    build_step::build_step,
    name_diff::{NameDiff, Removal},
    zone_index::ZoneIndex,
};
use crate::{
    Actual, Blocked, Desired, Digest, Drift, DriftKind, Guard, Kept, Now, Owned, OwnedValue, Parked, Plan,
    Refused, Settings, WhyNot,
};

/// All that a plan is made of.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    pub desired: &'a Desired,
    pub actual: &'a Actual,
    pub owned: &'a Owned,
    pub guard: &'a Guard,
    pub settings: &'a Settings,
    pub now: Now,
    /// A person wants everything of ours gone from this provider.
    pub clean: bool,
}

/// The notes a plan takes beside its changes.
#[derive(Debug, Default)]
struct Notes {
    blocked: Vec<Blocked>,
    kept: Vec<Kept>,
    drift: Vec<Drift>,
    restated: Vec<(Name, OwnedValue)>,
    forgotten: Vec<(Name, RecordData)>,
}

/// Compares what should be with what is and what is ours. Linear in all three.
pub fn diff(input: &Input<'_>) -> Plan {
    let zones = ZoneIndex::new(input.actual, &input.settings.owner, input.owned);
    let mut notes = Notes::default();
    let mut owned_in: BTreeMap<usize, u64> = BTreeMap::new();
    let mut names: Vec<NameDiff<'_>> = Vec::new();
    let mut unread: BTreeSet<usize> = BTreeSet::new();
    let mut here = Cursor::new(&zones.sets);
    let mut marks = found_marks::Cursor::new(&zones.marks, &input.settings.owner);
    for (name, sets, ours) in joined(input) {
        let Some(index) = zones.of(name) else {
            without_zone(name, sets, ours, &mut notes);
            continue;
        };
        *owned_in.entry(index).or_default() += ours.len() as u64;
        let Some(zone) = zones.get(index).filter(|zone| zone.sets.is_some()) else {
            unread.insert(index);
            continue;
        };
        let found = here.at(name, index);
        let mark = marks.of(name, &zone.name, !ours.is_empty());
        let below_cut = zones.is_below_cut(name, index);
        let place = name_diff::NameContext { name, zone: &zone.name, index, below_cut, mark };
        names.extend(name_diff::compare(input, &place, sets, ours, &found, &zones, &mut notes));
    }
    for zone in unread.iter().filter_map(|index| zones.get(*index)) {
        let why = "the zone could not be read: nothing in it is planned".into();
        notes.kept.push(Kept { name: zone.name.clone(), value: None, why });
    }
    if !input.clean {
        blocked_claims(input.desired, &mut notes);
    }
    loose_marks(&marks, input.owned, &mut notes);
    ptr_records::without_blocked(&mut names, &notes);
    for name in &mut names {
        never_empty::keep_last_value(name, &mut notes);
    }
    names.retain(NameDiff::changes_something);
    names.sort_by(|one, other| (one.zone, one.name).cmp(&(other.zone, other.name)));
    let mut verdicts = breaker::guard_verdicts(&names, &owned_in, input);
    claims_beside_parked(&names, &verdicts, &mut notes);
    ptr_records::without_parked(&mut names, &mut verdicts, &mut notes);
    let (mut steps, mut changes) = (Vec::new(), Vec::new());
    for (name, verdict) in names.iter().zip(verdicts) {
        let (step, parked) = build_step(name, verdict, input, &zones);
        match step {
            Some(step) if step.unit.changes.is_empty() => {
                let puts = step.puts.into_iter().map(|value| (name.name.clone(), value));
                notes.restated.extend(puts);
            }
            step => steps.extend(step),
        }
        changes.extend(parked);
    }
    let parked = (!changes.is_empty()).then(|| {
        let hash = Digest::of(changes.iter().map(|change| change.id.to_string()));
        Parked { hash, since: input.guard.parked_since(hash, input.now), changes }
    });
    let texts = steps.iter().map(|step| serde_json::to_string(&(&step.zone, &step.unit)).unwrap_or_default());
    Plan {
        provider: input.settings.provider.clone(),
        mode: input.settings.mode,
        hash: Digest::of(texts),
        generation: input.guard.generation + u64::from(!steps.is_empty()),
        steps,
        parked,
        blocked: notes.blocked,
        kept: notes.kept,
        drift: notes.drift,
        restated: notes.restated,
        refused: if input.clean { Vec::new() } else { refused(input.desired) },
        forgotten: notes.forgotten,
    }
}

/// The records that the server cannot hold, each once.
fn refused(desired: &Desired) -> Vec<Refused> {
    let unheld = desired.why_not.iter().filter(|one| one.unheld);
    let refused = |one: &WhyNot| Some(Refused { name: one.name.clone()?, why: one.why.clone() });
    unheld.filter_map(refused).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Every name that is desired or ours, in order.
fn joined<'a>(
    input: &Input<'a>,
) -> impl Iterator<Item = (&'a Name, &'a [crate::DesiredSet], &'a [OwnedValue])> {
    let mut sets: &[crate::DesiredSet] = if input.clean { &[] } else { &input.desired.sets };
    let mut owned = input.owned.iter().peekable();
    std::iter::from_fn(move || {
        let wanted = sets.first().map(|set| &set.name);
        let ours = owned.peek().map(|(name, _)| *name);
        let name = match (wanted, ours) {
            (Some(one), Some(other)) => one.min(other),
            (one, other) => one.or(other)?,
        };
        let (group, rest) = sets.split_at(sets.iter().take_while(|set| set.name == *name).count());
        sets = rest;
        let values = owned.next_if(|(other, _)| *other == name).map_or(&[][..], |(_, values)| values);
        Some((name, group, values))
    })
}

/// The sets of the server, asked for in order of name.
struct Cursor<'a> {
    rest: &'a [(usize, &'a RecordSet)],
}

impl<'a> Cursor<'a> {
    fn new(sets: &'a [(usize, &'a RecordSet)]) -> Self {
        Self { rest: sets }
    }

    /// The sets at `name` in the zone; other zones may have the name too, above a cut.
    fn at(&mut self, name: &Name, zone: usize) -> Vec<&'a RecordSet> {
        let skip = self.rest.iter().take_while(|(_, set)| set.name < *name).count();
        self.rest = self.rest.get(skip..).unwrap_or_default();
        let here = self.rest.iter().take_while(|(_, set)| set.name == *name);
        here.filter(|(index, _)| *index == zone).map(|(_, set)| *set).collect()
    }
}

fn without_zone(name: &Name, sets: &[crate::DesiredSet], ours: &[OwnedValue], notes: &mut Notes) {
    let forward = sets.iter().filter(|set| set.kind != RecordType::Ptr);
    let values = forward.flat_map(|set| &set.values).filter(|value| value.waiting.is_none());
    let wanted: Vec<_> = values.map(|value| value.data.clone()).collect();
    if !wanted.is_empty() {
        notes.blocked.push(Blocked::new(name.clone(), wanted, "no zone of the server holds it"));
    }
    for value in ours {
        let why = "the server does not hold its zone".into();
        notes.kept.push(Kept { name: name.clone(), value: Some(value.data.clone()), why });
    }
}

/// Claims that would join a name which something else has.
fn blocked_claims(desired: &Desired, notes: &mut Notes) {
    let blocked = desired.blocked.iter().map(|claim| Blocked {
        found: claim.found.clone(),
        share: claim.can_share(),
        holder: Some(claim.holder.clone()),
        free_by: Some(claim.free_by.clone()),
        ..Blocked::new(claim.name.clone(), claim.wanted.clone(), claim.why.clone())
    });
    notes.blocked.extend(blocked);
}

/// A claim joins nothing that waits for a person to let it go.
fn claims_beside_parked(names: &[NameDiff<'_>], verdicts: &[breaker::Verdict], notes: &mut Notes) {
    let parked = |verdict: &breaker::Verdict| matches!(verdict, breaker::Verdict::Park(..));
    for (name, _) in names.iter().zip(verdicts).filter(|(_, verdict)| parked(verdict)) {
        let wanted: Vec<RecordData> = name.claimed().map(|value| value.data.clone()).collect();
        if !wanted.is_empty() {
            let why = "what another workload has there is parked, and a claim does not join it";
            let found = name.removals().map(|removal| removal.data.clone()).collect();
            let blocked = Blocked::new(name.name.clone(), wanted, why);
            notes.blocked.push(Blocked { found, share: true, ..blocked });
        }
    }
    notes.blocked.sort_by(|one, other| one.name.cmp(&other.name));
}

/// Marks with our owner id at names where nothing is ours. One that was written for a workload is no mark.
fn loose_marks(marks: &found_marks::Cursor<'_, '_>, owned: &Owned, notes: &mut Notes) {
    for set in marks.loose().filter(|set| owned.of(&set.name).is_empty()) {
        let value = set.values.first().cloned();
        notes.drift.extend(value.map(|value| Drift { name: set.name.clone(), value, kind: DriftKind::Mark }));
    }
}

impl Removal<'_> {
    fn is_free(&self) -> bool {
        matches!(self.cause, crate::Cause::Asked | crate::Cause::Adopted)
    }
}
