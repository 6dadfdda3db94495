//! Decides which units of a write can be applied, given the sets in the zone. No I/O.

use std::collections::BTreeMap;

use netstead_model::{Name, RecordSet, RecordType, SetChange, Unit, UnitOutcome, WriteRequest};

use crate::{
    stored_zone::{Slot, Values},
    zone::Set,
};

/// Most a time to live may be (RFC 2181).
const MOST_TTL: u32 = i32::MAX.cast_unsigned();
/// Most bytes of a record set: it must fit into one message.
const MOST_BYTES: usize = 60_000;

/// The content of a zone, as far as a request touches it.
pub(super) type Present = BTreeMap<Slot, Values>;

/// The effects of a request.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Every slot that changes: what stood there, and what shall.
    pub(super) slots: BTreeMap<Slot, (Option<Values>, Option<Values>)>,
    /// In the order of the request's units.
    pub(super) outcomes: Vec<UnitOutcome>,
    /// How many of the sets that were looked at stand there afterwards.
    pub(super) left: usize,
}

impl Changes {
    pub(super) fn decide(zone: &Name, request: &WriteRequest, mut present: Present) -> Self {
        let mut changes = Self::default();
        for unit in &request.units {
            let outcome = match wanted(zone, unit, &present) {
                Ok(wanted) => {
                    for (slot, after) in wanted {
                        let before = match after.clone() {
                            Some(after) => present.insert(slot.clone(), after),
                            None => present.remove(&slot),
                        };
                        // A second unit about the same slot must not hide what stood there first.
                        changes.slots.entry(slot).or_insert((before, None)).1 = after;
                    }
                    UnitOutcome::Applied
                }
                Err(outcome) => outcome,
            };
            changes.outcomes.push(outcome);
        }
        changes.slots.retain(|_, (before, after)| before != after);
        changes.left = present.len();
        changes
    }
}

type Wanted = Vec<(Slot, Option<Values>)>;

/// The slots a unit changes, or why it cannot.
fn wanted(zone: &Name, unit: &Unit, present: &Present) -> Result<Wanted, UnitOutcome> {
    let mut wanted = Wanted::new();
    for SetChange { before, after } in &unit.changes {
        let after = after.as_ref().filter(|set| !set.is_empty());
        let before = before.as_ref().filter(|set| !set.is_empty());
        let Some(some) = after.or(before) else { continue };
        check(zone, before).and_then(|()| check(zone, after)).map_err(rejected)?;
        if before.zip(after).is_some_and(|(before, after)| before.name != after.name) {
            return Err(rejected("one change speaks of two names".into()));
        }
        if before.zip(after).is_some_and(|(before, after)| before.kind != after.kind) {
            return Err(rejected("one change speaks of two types".into()));
        }
        let slot = Slot { name: some.name.clone(), kind: some.kind };
        let (before, after) = (before.map(Values::of), after.map(Values::of));
        let stands = present.get(&slot);
        if stands == after.as_ref() {
            continue;
        }
        if stands != before.as_ref() {
            return Err(UnitOutcome::Changed);
        }
        wanted.push((slot, after));
    }
    let stays = |kind: RecordType| {
        let slot = Slot { name: unit.name.clone(), kind };
        match wanted.iter().find(|(changed, _)| *changed == slot) {
            Some((_, after)) => after.is_some(),
            None => present.contains_key(&slot),
        }
    };
    let types = RecordType::ALL.into_iter().filter(|kind| stays(*kind)).count();
    let own = wanted.iter().any(|(slot, _)| slot.name == unit.name);
    if types > 1 && stays(RecordType::Cname) && own {
        return Err(rejected("a CNAME cannot be beside other types".into()));
    }
    Ok(wanted)
}

fn rejected(reason: String) -> UnitOutcome {
    UnitOutcome::Rejected { reason }
}

fn check(zone: &Name, set: Option<&RecordSet>) -> Result<(), String> {
    let Some(set) = set else { return Ok(()) };
    if !set.name.is_subdomain_of(zone) {
        return Err(format!("`{}` does not lie in the zone `{zone}`", set.name));
    } else if set.ttl > MOST_TTL {
        return Err(format!("a time to live of {} s is over {MOST_TTL}", set.ttl));
    } else if set.values.iter().any(|value| value.kind() != set.kind) {
        return Err(format!("a set of type {} has a value of another type", set.kind));
    } else if set.kind == RecordType::Cname && set.values.len() > 1 {
        return Err("a name can have only one CNAME".into());
    }
    let wire = Set::new(set);
    if wire.records.len() < set.values.len() {
        return Err("a value is too long".into());
    }
    let bytes: usize = wire.records.iter().map(|record| record.len() + 2).sum();
    if bytes > MOST_BYTES {
        return Err(format!("the set takes {bytes} bytes, the most is {MOST_BYTES}"));
    }
    Ok(())
}
