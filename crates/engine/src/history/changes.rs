//! Lists the history: every change of a name, and every event, page by page.

use std::{fmt, str::FromStr, sync::Arc};

use jiff::Timestamp;
use netstead_model::{Ident, Name, NameSet, ObjectKey};
use netstead_plan::{Drift, DriftKind, Line, Step, ipam::IpamStep};

use super::{Applied, AppliedStep, EngineEvent, EngineEventKind, StoredPlanRef};
use crate::{
    EngineError,
    engine_state::EngineState,
    keys::{self, Class},
    provider_loop::LoopStep,
};

/// So many events are looked at before the history is let go for a moment.
const SOME: usize = 256;

/// Where in the history something stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChangePosition {
    pub event: u64,
    /// Of a plan that is stored in parts.
    pub part: u32,
    pub step: u32,
}

impl fmt::Display for ChangePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.event, self.part, self.step)
    }
}

impl FromStr for ChangePosition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit());
        let parts: Vec<&str> = text.split('.').filter(digits).collect();
        let read = || match parts.as_slice() {
            [event, part, step] if text.matches('.').count() == 2 => {
                Some(Self { event: event.parse().ok()?, part: part.parse().ok()?, step: step.parse().ok()? })
            }
            _ => None,
        };
        read().ok_or_else(|| "a place looks like `17.0.3`".to_owned())
    }
}

/// A change of one name, or an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub position: ChangePosition,
    pub at: Timestamp,
    /// One of [`Change::KINDS`], or `drift`, which is not stored.
    pub what: &'static str,
    pub provider: Option<Ident>,
    pub source: Option<Ident>,
    pub zone: Option<Name>,
    pub name: Option<Name>,
    /// The object of an IPAM system.
    pub object: Option<ObjectKey>,
    pub generation: Option<u64>,
    pub by: Option<String>,
    /// The planned changes; none for an event.
    pub lines: Vec<Line>,
    /// The subject of an event, or why the server rejected a change.
    pub text: Option<String>,
}

impl Change {
    /// The outcomes of a change of a name: it was made; the server had something else, so it was planned again; the server
    /// rejected it; it is unknown.
    const OUTCOMES: [&str; 4] = ["applied", "changed", "rejected", "unknown"];

    /// Everything `what` can be.
    pub const KINDS: [&str; 21] = [
        "applied",
        "changed",
        "rejected",
        "unknown",
        "approved",
        "paused",
        "resumed",
        "late",
        "doubtful",
        "parked",
        "unparked",
        "suspect",
        "believed",
        "failing",
        "working",
        "set",
        "deleted",
        "adopted",
        "recovered",
        "cleaned",
        "rolled-back",
    ];

    pub(crate) fn of_event(number: u64, event: &EngineEvent) -> Self {
        let EngineEvent { at, what, provider, source, zone, name, plan, by, text } = event.clone();
        let place = ChangePosition { event: number, part: 0, step: 0 };
        let (generation, lines) = (plan.map(|plan| plan.generation), Vec::new());
        let (what, text) = (what.as_str(), Some(text));
        Self {
            position: place,
            at,
            what,
            provider,
            source,
            zone,
            name,
            object: None,
            generation,
            by,
            lines,
            text,
        }
    }

    pub(crate) fn of_step<S: LoopStep>(
        place: ChangePosition,
        plan: &Applied<S>,
        applied: &AppliedStep<S>,
    ) -> Self {
        S::change(place, plan, &applied.step, &applied.outcome)
    }

    /// A change of a plan as far as it does not depend on what it is about.
    pub(crate) fn of_outcome<S>(place: ChangePosition, plan: &Applied<S>, outcome: &str) -> Self {
        let (outcome, reason) = match outcome.split_once(": ") {
            Some((outcome, reason)) => (outcome, Some(reason.to_owned())),
            None => (outcome, None),
        };
        Self {
            position: place,
            at: plan.at,
            what: Self::OUTCOMES.into_iter().find(|known| *known == outcome).unwrap_or("unknown"),
            provider: Some(plan.provider.clone()),
            source: None,
            zone: None,
            name: None,
            object: None,
            generation: Some(plan.generation),
            by: None,
            lines: Vec::new(),
            text: reason,
        }
    }
}

/// Changes and events of one moment, in the order of their places.
pub type LiveChanges = Arc<[Change]>;

impl Change {
    /// A value that is no longer as Netstead wrote it. Drift is sent and not stored: an earlier release that takes over
    /// would not understand it in the history.
    pub(crate) fn of_drift(provider: &Ident, drift: &Drift, at: Timestamp) -> Self {
        let (kind, value) = (drift.value.kind(), &drift.value);
        let text = match drift.kind {
            DriftKind::Missing => format!("{kind} {value} was removed by others"),
            DriftKind::Foreign => format!("{kind} {value} was added by others"),
            DriftKind::Mark => format!("{kind} {value} marks values that the store does not have"),
        };
        Self {
            position: ChangePosition { event: 0, part: 0, step: 0 },
            at,
            what: "drift",
            provider: Some(provider.clone()),
            source: None,
            zone: None,
            name: Some(drift.name.clone()),
            object: None,
            generation: None,
            by: None,
            lines: Vec::new(),
            text: Some(text),
        }
    }

    /// Whether a caller that may know `names`, or everything, may know of this.
    pub fn is_within(&self, names: Option<&NameSet>) -> bool {
        let place = self.name.as_ref().or(self.zone.as_ref());
        names.is_none_or(|names| place.is_some_and(|place| names.contains(place)))
    }
}

/// Filters of a list. `None` does not narrow it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangeQuery {
    pub provider: Option<Ident>,
    pub zone: Option<Name>,
    pub name: Option<Name>,
    /// One of [`Change::KINDS`].
    pub what: Option<String>,
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
    /// Only what happened at these names, or in zones that are wholly among them: the rest is not the caller's to know.
    pub within: Option<NameSet>,
    /// Go on after this place.
    pub after: Option<ChangePosition>,
    pub oldest_first: bool,
    pub limit: usize,
}

impl ChangeQuery {
    /// Whether anything of an event may be wanted.
    fn may_want(&self, event: &EngineEvent) -> bool {
        let is_step = |what: &String| Change::OUTCOMES.contains(&what.as_str());
        let kind = match &self.what {
            None => true,
            Some(what) if event.what == EngineEventKind::Applied => is_step(what),
            Some(what) => what == event.what.as_str(),
        };
        kind && (self.provider.is_none() || self.provider == event.provider)
            && self.since.is_none_or(|since| event.at >= since)
            && self.until.is_none_or(|until| event.at < until)
    }

    fn wants(&self, change: &Change) -> bool {
        let beyond = |after: ChangePosition| {
            if self.oldest_first { change.position > after } else { change.position < after }
        };
        self.after.is_none_or(beyond)
            && self.what.as_ref().is_none_or(|what| what == change.what)
            && (self.zone.is_none() || self.zone == change.zone)
            && (self.name.is_none() || self.name == change.name)
            && change.is_within(self.within.as_ref())
    }
}

/// One page of the history.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangePage {
    pub changes: Vec<Change>,
    /// Where the next page goes on, if there is more.
    pub next: Option<ChangePosition>,
}

impl ChangePage {
    /// Takes a change if it is wanted; whether the page is full.
    fn push_if_wanted(&mut self, query: &ChangeQuery, change: Change) -> bool {
        if !query.wants(&change) {
            return false;
        }
        if self.changes.len() < query.limit {
            self.changes.push(change);
            return false;
        }
        self.next = self.changes.last().map(|last| last.position);
        true
    }
}

/// One page, which costs what is on it and what is passed over: of a large plan only the parts that are needed are read.
pub(crate) async fn list(shared: &EngineState, query: &ChangeQuery) -> Result<ChangePage, EngineError> {
    let mut page = ChangePage::default();
    let mut from = query.after.map(|after| after.event);
    loop {
        let events = shared.history.events_from(from, !query.oldest_first, SOME).await;
        for (number, event) in events.iter().filter(|(_, event)| query.may_want(event)) {
            if add_event(shared, query, *number, event, &mut page).await? {
                return Ok(page);
            }
        }
        from = match events.last() {
            Some((last, _)) if query.oldest_first => Some(last + 1),
            Some((1.., _)) => events.last().map(|(last, _)| last - 1),
            _ => return Ok(page),
        };
    }
}

/// Adds what an event is about; whether the page is full.
async fn add_event(
    shared: &EngineState,
    query: &ChangeQuery,
    number: u64,
    event: &EngineEvent,
    page: &mut ChangePage,
) -> Result<bool, EngineError> {
    let (Some(plan), Some(provider)) = (event.plan, &event.provider) else {
        return Ok(page.push_if_wanted(query, Change::of_event(number, event)));
    };
    if plan.ipam {
        return add_steps::<IpamStep>(shared, Class::Ipam, query, (number, event), provider, plan, page)
            .await;
    }
    add_steps::<Step>(shared, Class::Dns, query, (number, event), provider, plan, page).await
}

/// Adds the steps of a stored plan; whether the page is full.
async fn add_steps<S: LoopStep>(
    shared: &EngineState,
    class: Class,
    query: &ChangeQuery,
    (number, event): (u64, &EngineEvent),
    provider: &Ident,
    StoredPlanRef { generation, parts, .. }: StoredPlanRef,
    page: &mut ChangePage,
) -> Result<bool, EngineError> {
    let begun = query.after.filter(|after| after.event == number).map(|after| after.part);
    let mut order: Vec<u32> = match (begun, query.oldest_first) {
        (Some(begun), true) => (begun..parts).collect(),
        (Some(begun), false) => (0..parts.min(begun + 1)).collect(),
        (None, _) => (0..parts).collect(),
    };
    if !query.oldest_first {
        order.reverse();
    }
    let fenced_store = shared.fenced_store("reader");
    for part in order {
        let key = keys::plan(class, provider, generation, usize::try_from(part).unwrap_or(usize::MAX));
        let stored: Option<Applied<S>> = fenced_store.get(&String::from_utf8_lossy(&key)).await?;
        // The number may have been given again since, after a provider was forgotten.
        let Some(plan) = stored.filter(|plan| plan.at == event.at) else {
            // Too old: how it ended is all that is left.
            return Ok(page.push_if_wanted(query, Change::of_event(number, event)));
        };
        let mut steps: Vec<(u32, &AppliedStep<S>)> = (0..).zip(&plan.steps).collect();
        if !query.oldest_first {
            steps.reverse();
        }
        for (step, applied) in steps {
            let place = ChangePosition { event: number, part, step };
            if page.push_if_wanted(query, Change::of_step(place, &plan, applied)) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_reads_as_it_is_written() {
        let place = ChangePosition { event: 17, part: 0, step: 3 };
        assert_eq!(place.to_string(), "17.0.3");
        assert_eq!("17.0.3".parse(), Ok(place));
        for text in ["", "17", "17.0", "17.0.", "17.0.3.1", "+17.0.3", "a.b.c", "-1.0.0"] {
            assert!(text.parse::<ChangePosition>().is_err(), "{text}");
        }
    }

    /// As 0.1.0 stored it.
    #[test]
    fn an_event_of_an_earlier_release_is_read_and_written_unchanged() {
        let text = r#"{"at":"2026-01-02T03:04:05Z","what":"applied","provider":"lan","plan":{"generation":3,"parts":1},"text":"generation 3: 1 applied"}"#;
        let event: EngineEvent = serde_json::from_str(text).unwrap();
        assert_eq!(event.plan, Some(StoredPlanRef { generation: 3, parts: 1, ipam: false }));
        assert_eq!(serde_json::to_string(&event).unwrap(), text);
    }

    #[test]
    fn every_occasion_is_a_kind() {
        for what in [
            EngineEventKind::Late,
            EngineEventKind::Doubtful,
            EngineEventKind::RolledBack,
            EngineEventKind::Believed,
        ] {
            assert!(Change::KINDS.contains(&what.as_str()), "{what}");
        }
        assert!(Change::OUTCOMES.iter().all(|outcome| Change::KINDS.contains(outcome)));
    }
}
