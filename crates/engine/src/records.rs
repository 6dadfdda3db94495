//! Lists records: every value that is desired, ours or foreign at a name of ours, with its state.

mod plan_index;

use std::{collections::BTreeMap, fmt, ops::Bound};

use netstead_model::{Ident, Key, Name, NameSet, NameState, RecordData, RecordType, WrittenState};
use netstead_plan::{MissingBecause, Reason};

pub(crate) use self::plan_index::PlanIndex;
use self::plan_index::ProviderRecords;
use crate::{dns_pass::ProviderHandle, engine_state::EngineState};

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

impl RecordView {
    /// Where it stands among all records; no two have the same.
    pub fn sort_key(&self) -> String {
        format!("{} {} {} {}", self.name, self.kind, self.provider, self.value)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordState {
    /// Ours, and as it should be.
    Ok,
    /// It shall come or go, and has not yet.
    Pending,
    /// A guard holds it back.
    Parked,
    /// The name has foreign values, or the server rejects the change.
    Blocked,
    /// Ours, and changed by others.
    Drift,
    /// Foreign, beside ours.
    Foreign,
    /// Ours, and the server cannot be read now.
    Unknown,
}

impl RecordState {
    pub const ALL: [Self; 7] =
        [Self::Ok, Self::Pending, Self::Parked, Self::Blocked, Self::Drift, Self::Foreign, Self::Unknown];
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
            Self::Unknown => "unknown",
        })
    }
}

/// Filters of a list. `None` does not narrow it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordQuery {
    pub provider: Option<Ident>,
    pub zone: Option<Name>,
    pub name: Option<Name>,
    pub state: Option<RecordState>,
    /// Only these names: the others are not the caller's to know.
    pub within: Option<NameSet>,
    /// Go on after this [`RecordView::sort_key`].
    pub after: Option<String>,
    /// At most so many.
    pub limit: Option<usize>,
}

impl RecordQuery {
    fn wants_name(&self, name: &Name) -> bool {
        let inside = |zone: &Name| name.is_subdomain_of(zone);
        self.name.as_ref().is_none_or(|wanted| wanted == name)
            && self.zone.as_ref().is_none_or(inside)
            && self.within.as_ref().is_none_or(|names| names.contains(name))
    }

    fn wants(&self, view: &RecordView) -> bool {
        (self.zone.is_none() || self.zone == view.zone)
            && self.state.is_none_or(|state| state == view.state)
            && self.after.as_ref().is_none_or(|after| view.sort_key() > *after)
    }
}

/// Records in the order of their places. Only the names that are listed are looked at, and those that filters pass over.
pub(crate) fn list(shared: &EngineState, query: &RecordQuery) -> Vec<RecordView> {
    let looks = provider_records(shared, query.provider.as_ref());
    // Values of all other states are in the index.
    let noted_only =
        query.state.is_some_and(|state| !matches!(state, RecordState::Ok | RecordState::Unknown));
    let limit = query.limit.unwrap_or(usize::MAX);
    let mut from = match (&query.name, &query.after) {
        (Some(name), _) => Some(name.clone()),
        (None, Some(after)) => after.split(' ').next().and_then(|name| name.parse().ok()),
        (None, None) => None,
    };
    let mut found = Vec::new();
    let mut fresh = true;
    while found.len() < limit {
        let bound = match &from {
            Some(name) if fresh => Bound::Included(name),
            Some(name) => Bound::Excluded(name),
            None => Bound::Unbounded,
        };
        let Some(name) = looks.iter().filter_map(|look| look.next(bound, noted_only)).min().cloned() else {
            break;
        };
        if query.name.as_ref().is_some_and(|wanted| *wanted != name) {
            break;
        }
        if query.wants_name(&name) {
            let mut views: Vec<RecordView> = looks.iter().flat_map(|look| look.at(&name)).collect();
            views.retain(|view| query.wants(view));
            views.sort_by_cached_key(RecordView::sort_key);
            found.extend(views);
        }
        (from, fresh) = (Some(name), false);
    }
    found.truncate(limit);
    found
}

/// How many values each zone has beside foreign ones, and how many of them are not as they should be. Only names `within`
/// are counted, if that is given.
pub(crate) fn count_zones(
    shared: &EngineState,
    within: Option<&NameSet>,
) -> BTreeMap<(Ident, Name), (u64, u64)> {
    let mut counts: BTreeMap<(Ident, Name), (u64, u64)> = BTreeMap::new();
    for look in provider_records(shared, None) {
        let mut from: Option<Name> = None;
        loop {
            let bound = from.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
            let Some(name) = look.next(bound, false).cloned() else { break };
            let counted = within.is_none_or(|names| names.contains(&name));
            if let Some(zone) = look.zone_of(&name).filter(|_| counted) {
                let slot = counts.entry((look.provider().clone(), zone)).or_default();
                for state in look.states(&name) {
                    slot.0 += u64::from(state != RecordState::Foreign);
                    slot.1 += u64::from(matches!(state, RecordState::Pending | RecordState::Drift));
                }
            }
            from = Some(name);
        }
    }
    counts
}

/// How many values at these names are ours on each provider.
pub(crate) fn count_owned(shared: &EngineState, names: &NameSet) -> BTreeMap<Ident, usize> {
    let handles: Vec<ProviderHandle> = shared.providers().values().cloned().collect();
    let count = |handle: &ProviderHandle| {
        let owned = handle.snapshot.read().owned.clone();
        let values = owned.iter().filter(|(name, _)| names.contains(name)).map(|(_, values)| values.len());
        (handle.setup.name().clone(), values.sum())
    };
    handles.iter().map(count).collect()
}

fn provider_records(shared: &EngineState, provider: Option<&Ident>) -> Vec<ProviderRecords> {
    let handles: Vec<ProviderHandle> = shared.providers().values().cloned().collect();
    let wanted =
        handles.iter().filter(|handle| provider.is_none_or(|name| handle.setup.settings.is_called(name)));
    wanted.map(ProviderRecords::new).collect()
}

/// States of names by name and provider, each with the reason of one that is not written.
type NameStates = BTreeMap<(Name, Option<Ident>), (WrittenState, Option<String>)>;

/// States of the names that the workloads of a source ask for, by workload. PTR records follow their names and are left
/// out.
pub(crate) fn names_of_source(shared: &EngineState, source: &Ident) -> BTreeMap<Key, Vec<NameState>> {
    let mut found: BTreeMap<Key, NameStates> = BTreeMap::new();
    let mut note = |id: &Key, name: &Name, provider: &Ident, state: WrittenState, why: Option<String>| {
        let slot = found.entry(id.clone()).or_default().entry((name.clone(), Some(provider.clone())));
        let slot = slot.or_insert((state, why.clone()));
        if state > slot.0 {
            *slot = (state, why);
        }
    };
    for look in provider_records(shared, None) {
        let provider = look.provider().clone();
        let desired = look.desired();
        for set in desired.sets.iter().filter(|set| set.kind != RecordType::Ptr) {
            let own = |reason: &&Reason| reason.source == *source;
            if !set.values.iter().any(|value| value.reasons.iter().any(|reason| own(&reason))) {
                continue;
            }
            let states = look.at(&set.name);
            for value in &set.values {
                let view = states.iter().find(|view| view.value == value.data);
                let (state, why) = written_state(view);
                for reason in value.reasons.iter().filter(own) {
                    note(&reason.workload, &set.name, &provider, state, why.clone());
                }
            }
        }
        for one in desired.why_not.iter().filter(|one| one.source == *source) {
            let Some(name) = &one.name else { continue };
            let state = match one.absence {
                Some(MissingBecause::Elsewhere | MissingBecause::Detail) => continue,
                Some(MissingBecause::NoAddress) => WrittenState::Pending,
                None => WrittenState::Refused,
            };
            note(&one.workload, name, &provider, state, Some(one.why.clone()));
        }
    }
    let states = |names: NameStates| {
        let state = |((name, provider), (state, why))| NameState { name, provider, state, why };
        names.into_iter().map(state).collect()
    };
    found.into_iter().map(|(id, names)| (id, states(names))).collect()
}

fn written_state(view: Option<&RecordView>) -> (WrittenState, Option<String>) {
    let why = || view.and_then(|view| view.reasons.last().cloned());
    match view.map(|view| view.state) {
        Some(RecordState::Ok) => (WrittenState::Written, None),
        Some(RecordState::Parked | RecordState::Blocked) => (WrittenState::Refused, why()),
        None
        | Some(RecordState::Pending | RecordState::Drift | RecordState::Foreign | RecordState::Unknown) => {
            (WrittenState::Pending, None)
        }
    }
}

pub(crate) fn reason_text(reason: &Reason) -> String {
    format!("{}/{}: {}", reason.source, reason.workload, reason.why)
}
