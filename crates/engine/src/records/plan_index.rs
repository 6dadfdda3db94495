//! An index of a plan by name.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
    sync::Arc,
};

use netstead_model::{Ident, Name, RecordData};
use netstead_plan::{Desired, DriftKind, Line, Plan, Reason, Sign};

use super::{RecordState, RecordView, reason_text};
use crate::{
    dns_pass::{ProviderHandle, ProviderSnapshot},
    status::ZoneStatus,
};

/// The names that are not as they should be, with their positions in the newest plan. Built once for every plan that is
/// asked about.
#[derive(Debug, Default)]
pub(crate) struct PlanIndex(BTreeMap<Name, PlanPositions>);

/// Places in a plan.
#[derive(Debug, Default)]
struct PlanPositions {
    steps: Vec<usize>,
    blocked: Vec<usize>,
    drift: Vec<usize>,
    parked: Vec<usize>,
}

impl PlanIndex {
    fn of(seen: &ProviderSnapshot) -> Self {
        let mut noted = Self::default();
        let pending = seen.owned.iter().filter(|(_, values)| values.iter().any(|value| value.pending));
        for (name, _) in pending {
            noted.at(name);
        }
        if seen.unread {
            // No plan says what is missing there.
            for set in &seen.desired.sets {
                noted.at(&set.name);
            }
        }
        let Some(plan) = &seen.plan else { return noted };
        if seen.pending > 0 {
            for (place, step) in plan.steps.iter().enumerate() {
                noted.at(&step.unit.name).steps.push(place);
            }
        }
        for (place, blocked) in plan.blocked.iter().enumerate() {
            noted.at(&blocked.name).blocked.push(place);
        }
        for (place, drift) in plan.drift.iter().enumerate() {
            noted.at(&drift.name).drift.push(place);
        }
        let parked = plan.parked.iter().flat_map(|parked| &parked.changes);
        for (place, change) in parked.enumerate() {
            noted.at(&change.name).parked.push(place);
        }
        noted
    }

    fn at(&mut self, name: &Name) -> &mut PlanPositions {
        self.0.entry(name.clone()).or_default()
    }
}

/// One provider as it stands at one moment.
pub(super) struct ProviderRecords {
    provider: Ident,
    seen: ProviderSnapshot,
    plan_index: Arc<PlanIndex>,
}

type RecordStates = BTreeMap<RecordData, (RecordState, Vec<String>)>;

impl ProviderRecords {
    pub(super) fn new(handle: &ProviderHandle) -> Self {
        let seen = handle.snapshot.read().clone();
        let noted = seen.plan_index.get_or_init(|| Arc::new(PlanIndex::of(&seen))).clone();
        Self { provider: handle.setup.name().clone(), seen, plan_index: noted }
    }

    pub(super) fn provider(&self) -> &Ident {
        &self.provider
    }

    pub(super) fn desired(&self) -> &Desired {
        &self.seen.desired
    }

    /// The next name about which there is something to say.
    pub(super) fn next(&self, from: Bound<&Name>, noted_only: bool) -> Option<&Name> {
        let noted = self.plan_index.0.range::<Name, _>((from, Bound::Unbounded)).next().map(|(name, _)| name);
        let owned = if noted_only { None } else { self.seen.owned.next_name(from) };
        noted.into_iter().chain(owned).min()
    }

    /// How each value at a name stands.
    pub(super) fn states(&self, name: &Name) -> Vec<RecordState> {
        if self.plan_index.0.contains_key(name) {
            return self.record_states(name).into_values().map(|(state, _)| state).collect();
        }
        let state = self.state_of_confirmed(name);
        self.seen.owned.of(name).iter().map(|_| state).collect()
    }

    /// The state of a value that is ours and was written: it is unknown while the server, or the zone, cannot be read.
    fn state_of_confirmed(&self, name: &Name) -> RecordState {
        let zone_fails = || self.zone_status(name).is_some_and(|zone| zone.error.is_some());
        if self.seen.unread || zone_fails() { RecordState::Unknown } else { RecordState::Ok }
    }

    /// Everything at a name.
    pub(super) fn at(&self, name: &Name) -> Vec<RecordView> {
        let zone = self.zone_of(name);
        let wanted = self.seen.desired.of(name);
        let view = |(value, (state, reasons)): (RecordData, (RecordState, Vec<String>))| {
            let kind = value.kind();
            let ttl = wanted.iter().find(|set| set.kind == kind).map(|set| set.ttl);
            let (provider, zone, name) = (self.provider.clone(), zone.clone(), name.clone());
            RecordView { provider, zone, name, kind, ttl, value, state, reasons }
        };
        self.record_states(name).into_iter().map(view).collect()
    }

    /// The zone of the server that holds a name.
    pub(super) fn zone_of(&self, name: &Name) -> Option<Name> {
        self.zone_status(name).map(|zone| zone.name.clone())
    }

    fn zone_status(&self, name: &Name) -> Option<&ZoneStatus> {
        let zones = &self.seen.zones;
        let mut rest = name.as_str();
        loop {
            if let Ok(at) = zones.binary_search_by(|zone| zone.name.as_str().cmp(rest)) {
                return zones.get(at);
            }
            rest = rest.split_once('.')?.1;
        }
    }

    fn record_states(&self, name: &Name) -> RecordStates {
        let mut found = RecordStates::new();
        let confirmed = self.state_of_confirmed(name);
        for value in self.seen.owned.of(name) {
            let state = if value.pending { RecordState::Pending } else { confirmed };
            found.insert(value.data.clone(), (state, reason_texts(&value.reasons)));
        }
        if self.seen.unread {
            for value in self.seen.desired.of(name).iter().flat_map(|set| &set.values) {
                let never_written = || (RecordState::Pending, reason_texts(&value.reasons));
                found.entry(value.data.clone()).or_insert_with(never_written);
            }
        }
        if let (Some(plan), Some(places)) = (&self.seen.plan, self.plan_index.0.get(name)) {
            apply_plan_states(plan, places, &mut found);
        }
        let rejected = self.seen.rejected.iter().filter(|((_, at), _)| at == name);
        let reasons: BTreeSet<&String> = rejected.map(|(_, why)| why).collect();
        for (state, whys) in found.values_mut().filter(|(state, _)| *state == RecordState::Pending) {
            for why in &reasons {
                *state = RecordState::Blocked;
                whys.push(format!("the server rejects it: {why}"));
            }
        }
        found
    }
}

/// Applies the states that a plan gives to one name.
fn apply_plan_states(plan: &Plan, places: &PlanPositions, found: &mut RecordStates) {
    for step in places.steps.iter().filter_map(|place| plan.steps.get(*place)) {
        let puts = step.puts.iter().map(|value| (&value.data, reason_texts(&value.reasons)));
        let goes = step.forgets.iter().map(|data| (data, Vec::new()));
        for (data, reasons) in puts.chain(goes) {
            set_state(found, data, RecordState::Pending, reasons);
        }
    }
    for blocked in places.blocked.iter().filter_map(|place| plan.blocked.get(*place)) {
        for data in &blocked.wanted {
            set_state(found, data, RecordState::Blocked, vec![blocked.why.clone()]);
        }
    }
    for drift in places.drift.iter().filter_map(|place| plan.drift.get(*place)) {
        let (state, why) = match drift.kind {
            DriftKind::Missing => (RecordState::Drift, "removed on the server"),
            DriftKind::Foreign => (RecordState::Foreign, "not ours"),
            DriftKind::Mark => (RecordState::Foreign, "a mark that the store does not know"),
        };
        set_state(found, &drift.value, state, vec![why.to_owned()]);
    }
    let Some(parked) = &plan.parked else { return };
    for change in places.parked.iter().filter_map(|place| parked.changes.get(*place)) {
        for (data, (state, reasons)) in &mut *found {
            if change.lines.iter().any(|line| is_about(line, data)) {
                *state = RecordState::Parked;
                reasons.push(format!("parked: {}", change.guard));
            }
        }
    }
}

fn is_about(line: &Line, data: &RecordData) -> bool {
    let text = data.to_string();
    let moves = || line.sign == Sign::Change && line.text.starts_with(&format!("{text} →"));
    line.kind == Some(data.kind()) && (line.text == text || moves())
}

fn reason_texts(reasons: &[Reason]) -> Vec<String> {
    reasons.iter().map(reason_text).collect()
}

fn set_state(found: &mut RecordStates, data: &RecordData, state: RecordState, reasons: Vec<String>) {
    let slot = found.entry(data.clone()).or_insert((state, Vec::new()));
    slot.0 = state;
    for reason in reasons {
        if !slot.1.contains(&reason) {
            slot.1.push(reason);
        }
    }
}
