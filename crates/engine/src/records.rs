//! Every record that matters here, and how it stands.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use netstead_model::{Ident, Name, RecordData, RecordType};
use netstead_plan::{DriftKind, Reason, Sign};

use crate::{provider::ProviderHandle, shared::Shared};

/// One value on one provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordView {
    pub provider: Ident,
    /// None if no zone of the server holds the name.
    pub zone: Option<Name>,
    pub name: Name,
    pub kind: RecordType,
    pub ttl: Option<u32>,
    pub value: RecordData,
    pub state: RecordState,
    pub reasons: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordState {
    /// Ours, and as it should be.
    Ok,
    /// It shall come or go, and has not yet.
    Pending,
    /// A guard holds it back.
    Parked,
    /// Somebody else has the name, or the server will not have it.
    Blocked,
    /// Ours, and somebody changed it.
    Drift,
    /// Somebody else's, beside ours.
    Foreign,
}

impl fmt::Display for RecordState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ok => "ok",
            Self::Pending => "pending",
            Self::Parked => "parked",
            Self::Blocked => "blocked",
            Self::Drift => "drift",
            Self::Foreign => "foreign",
        })
    }
}

pub(crate) fn records(shared: &Shared) -> Vec<RecordView> {
    let handles: Vec<ProviderHandle> = shared.providers().values().cloned().collect();
    handles.iter().flat_map(of_provider).collect()
}

type Found = BTreeMap<(Name, RecordData), (RecordState, Vec<String>)>;

fn of_provider(handle: &ProviderHandle) -> Vec<RecordView> {
    let seen = handle.outlook.read().clone();
    let mut found = Found::new();
    let said = |reasons: &[Reason]| reasons.iter().map(reason).collect::<Vec<_>>();
    for (name, values) in seen.owned.iter() {
        for value in values {
            let state = if value.pending { RecordState::Pending } else { RecordState::Ok };
            found.insert((name.clone(), value.data.clone()), (state, said(&value.reasons)));
        }
    }
    if let Some(plan) = &seen.plan {
        for step in plan.steps.iter().filter(|_| seen.pending > 0) {
            let puts = step.puts.iter().map(|value| (&value.data, said(&value.reasons)));
            let goes = step.forgets.iter().map(|data| (data, Vec::new()));
            for (data, reasons) in puts.chain(goes) {
                mark(&mut found, &step.unit.name, data, RecordState::Pending, reasons);
            }
        }
        for blocked in &plan.blocked {
            for data in &blocked.wanted {
                mark(&mut found, &blocked.name, data, RecordState::Blocked, vec![blocked.why.clone()]);
            }
        }
        for drift in &plan.drift {
            let (state, why) = match drift.kind {
                DriftKind::Missing => (RecordState::Drift, "somebody removed it"),
                DriftKind::Foreign => (RecordState::Foreign, "somebody else's"),
                DriftKind::Mark => (RecordState::Foreign, "a mark that the store does not know"),
            };
            mark(&mut found, &drift.name, &drift.value, state, vec![why.to_owned()]);
        }
        let parked = plan.parked.iter().flat_map(|parked| &parked.changes);
        let parked: BTreeMap<&Name, _> = parked.map(|change| (&change.name, change)).collect();
        for ((name, data), (state, reasons)) in &mut found {
            let Some(change) = parked.get(name) else { continue };
            let text = data.to_string();
            let meant = |line: &&netstead_plan::Line| {
                line.kind == Some(data.kind())
                    && (line.text == text
                        || line.sign == Sign::Change && line.text.starts_with(&format!("{text} →")))
            };
            if change.lines.iter().any(|line| meant(&line)) {
                *state = RecordState::Parked;
                reasons.push(format!("parked: {}", change.guard));
            }
        }
    }
    let rejected: BTreeMap<&Name, &String> = seen.rejected.iter().map(|(_, name, why)| (name, why)).collect();
    let zones: BTreeSet<&str> = seen.zones.iter().map(|zone| zone.name.as_str()).collect();
    let view =
        |((name, value), (mut state, mut reasons)): ((Name, RecordData), (RecordState, Vec<String>))| {
            if let Some(why) = rejected.get(&name).filter(|_| state == RecordState::Pending) {
                state = RecordState::Blocked;
                reasons.push(format!("the server rejects it: {why}"));
            }
            let kind = value.kind();
            let ttl = seen.desired.of(&name).iter().find(|set| set.kind == kind).map(|set| set.ttl);
            let (provider, zone) = (handle.setup.name().clone(), zone_of(&zones, &name));
            RecordView { provider, zone, name, kind, ttl, value, state, reasons }
        };
    found.into_iter().map(view).collect()
}

fn mark(found: &mut Found, name: &Name, data: &RecordData, state: RecordState, reasons: Vec<String>) {
    let slot = found.entry((name.clone(), data.clone())).or_insert((state, Vec::new()));
    slot.0 = state;
    for reason in reasons {
        if !slot.1.contains(&reason) {
            slot.1.push(reason);
        }
    }
}

pub(crate) fn reason(reason: &Reason) -> String {
    format!("{}/{}: {}", reason.source, reason.workload, reason.why)
}

fn zone_of(zones: &BTreeSet<&str>, name: &Name) -> Option<Name> {
    let mut rest = name.as_str();
    while !zones.contains(rest) {
        rest = rest.split_once('.')?.1;
    }
    rest.parse().ok()
}
