//! [`Report`]: what one source saw in one look, scope by scope.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Ident, Key, Scope, Span, Workload};

/// How much of a scope a report shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum View {
    /// All there is. Only this can remove anything.
    Complete,
    /// Some of what there is.
    Partial { reason: String },
    /// Nothing could be seen.
    Failed { reason: String },
}

impl View {
    /// The worse of two; the first of two that are equally bad.
    #[must_use]
    pub fn worse<'a>(&'a self, other: &'a Self) -> &'a Self {
        if other.badness() > self.badness() { other } else { self }
    }

    pub fn is_complete(&self) -> bool {
        *self == Self::Complete
    }

    pub fn is_failed(&self) -> bool {
        matches!(self, Self::Failed { .. })
    }

    /// Words for what is missing; none if nothing is.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Complete => None,
            Self::Partial { reason } | Self::Failed { reason } => Some(reason),
        }
    }

    fn badness(&self) -> u8 {
        match self {
            Self::Complete => 0,
            Self::Partial { .. } => 1,
            Self::Failed { .. } => 2,
        }
    }
}

/// One look of one source. Each scope has a view of its own, and only its own scope can remove a workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "WrittenReport")]
pub struct Report {
    pub source: Ident,
    /// When the look began.
    pub begun: Timestamp,
    pub roster: Roster,
    pub scopes: BTreeMap<Scope, ScopeReport>,
}

/// The scopes that a source looks after now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Roster {
    /// The list was read completely: a scope that is not in it is retired, and one without a view has failed.
    Complete(BTreeSet<Scope>),
    /// The list could not be read completely: no scope is retired.
    Partial { reason: String },
}

/// One look at one scope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScopeReport {
    pub view: View,
    /// How old the view was when the look began. A source that is told of changes confirms with it that its view is
    /// "still complete as of" that moment.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub age: Span,
    /// Another number means that the source connected to this scope anew: every grace of the scope starts again.
    #[serde(default)]
    pub session: u64,
    /// The number of what was seen. Changes refer to it.
    #[serde(default)]
    pub version: u64,
    pub seen: Seen,
    /// Workloads of this scope whose end was seen since the last report.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<Ended>,
}

/// The workloads in a [`ScopeReport`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Seen {
    /// Every workload that was seen.
    All(Vec<Arc<Workload>>),
    /// The difference to the report with the version `since`. A reader that has another version asks for all again, by
    /// [`Source::remember`](crate::Source::remember).
    Changes { since: u64, changed: Vec<Arc<Workload>>, removed: Vec<Key> },
}

/// A workload that ended, rather than being merely absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    pub id: Key,
    /// It was asked for by name (a released claim, a deleted record): its names go at once.
    pub asked: bool,
}

impl Report {
    /// The report of a source that has no parts.
    pub fn whole(source: Ident, begun: Timestamp, view: View, workloads: Vec<Workload>) -> Self {
        Self::of(source, begun, [(Scope::WHOLE, ScopeReport::all(view, workloads))])
    }

    /// A report with a view of every scope the source looks after.
    pub fn of(
        source: Ident,
        begun: Timestamp,
        scopes: impl IntoIterator<Item = (Scope, ScopeReport)>,
    ) -> Self {
        let scopes: BTreeMap<Scope, ScopeReport> = scopes.into_iter().collect();
        let roster = Roster::Complete(scopes.keys().cloned().collect());
        Self { source, begun, roster, scopes }
    }

    /// A look that showed nothing at all, not even which scopes there are.
    pub fn failed(source: Ident, begun: Timestamp, reason: String) -> Self {
        Self { source, begun, roster: Roster::Partial { reason }, scopes: BTreeMap::new() }
    }

    /// Adds workloads of a source without parts whose end was seen.
    #[must_use]
    pub fn with_ended(mut self, ended: Vec<Ended>) -> Self {
        if let Some(whole) = self.scopes.get_mut(&Scope::WHOLE) {
            whole.ended = ended;
        }
        self
    }

    /// The worst view of all its scopes.
    pub fn view(&self) -> View {
        let unread = match &self.roster {
            Roster::Complete(scopes) => {
                let unseen = scopes.iter().find(|scope| !self.scopes.contains_key(*scope));
                unseen.map_or(View::Complete, |scope| View::Failed { reason: unlooked(scope) })
            }
            Roster::Partial { reason } if self.scopes.is_empty() => View::Failed { reason: reason.clone() },
            Roster::Partial { reason } => View::Partial { reason: reason.clone() },
        };
        self.scopes.values().fold(unread, |worst, scope| worst.worse(&scope.view).clone())
    }

    /// The workloads that it lists, of all scopes.
    pub fn workloads(&self) -> Vec<&Workload> {
        self.scopes.values().flat_map(|scope| scope.seen.workloads()).map(Arc::as_ref).collect()
    }

    /// The workloads whose end was seen, of all scopes.
    pub fn ended(&self) -> Vec<&Ended> {
        self.scopes.values().flat_map(|scope| &scope.ended).collect()
    }
}

/// Why a scope without a view has failed.
pub fn unlooked(scope: &Scope) -> String {
    format!("{scope} was not looked at")
}

impl ScopeReport {
    /// Every workload that was seen.
    pub fn all(view: View, workloads: impl IntoIterator<Item = Workload>) -> Self {
        Self::shared(view, workloads.into_iter().map(Arc::new).collect())
    }

    /// The same for workloads that the source keeps itself.
    pub fn shared(view: View, workloads: Vec<Arc<Workload>>) -> Self {
        let (age, session, version, ended) = (Span::ZERO, 0, 0, Vec::new());
        Self { view, age, session, version, seen: Seen::All(workloads), ended }
    }

    /// A scope of which nothing could be seen.
    pub fn failed(reason: impl Into<String>) -> Self {
        Self::shared(View::Failed { reason: reason.into() }, Vec::new())
    }
}

impl Seen {
    /// The workloads that it lists.
    pub fn workloads(&self) -> &[Arc<Workload>] {
        match self {
            Self::All(workloads) | Self::Changes { changed: workloads, .. } => workloads,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(span: &Span) -> bool {
    *span == Span::ZERO
}

/// A report as it may be written: by scope, or as version 0.1.0 wrote it, of a source without parts.
#[derive(Deserialize)]
struct WrittenReport {
    source: Ident,
    begun: Timestamp,
    #[serde(default)]
    roster: Option<Roster>,
    #[serde(default)]
    scopes: BTreeMap<Scope, ScopeReport>,
    #[serde(default)]
    view: Option<View>,
    #[serde(default)]
    workloads: Vec<Workload>,
    #[serde(default)]
    ended: Vec<Ended>,
}

impl From<WrittenReport> for Report {
    fn from(written: WrittenReport) -> Self {
        let WrittenReport { source, begun, roster, scopes, view, workloads, ended } = written;
        match (view, roster) {
            (Some(view), _) => Self::whole(source, begun, view, workloads).with_ended(ended),
            (None, Some(roster)) => Self { source, begun, roster, scopes },
            (None, None) => Self::of(source, begun, scopes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(text: &str) -> Scope {
        text.parse().unwrap()
    }

    #[test]
    fn a_report_shows_the_worst_of_its_scopes() {
        let at = |scopes: Vec<(Scope, ScopeReport)>| {
            Report::of("k8s".parse().unwrap(), Timestamp::UNIX_EPOCH, scopes)
        };
        let whole = || (scope("pods"), ScopeReport::all(View::Complete, []));
        let half = || (scope("routes"), ScopeReport::all(View::Partial { reason: "half".into() }, []));
        assert_eq!(at(vec![whole()]).view(), View::Complete);
        assert_eq!(at(vec![whole(), half()]).view(), View::Partial { reason: "half".into() });
        let failed = (scope("services"), ScopeReport::failed("forbidden"));
        assert_eq!(at(vec![failed, half()]).view(), View::Failed { reason: "forbidden".into() });
        let mut lacking = at(vec![whole()]);
        lacking.roster = Roster::Complete([scope("pods"), scope("services")].into());
        assert_eq!(lacking.view(), View::Failed { reason: "services was not looked at".into() });
        lacking.roster = Roster::Partial { reason: "no list".into() };
        assert_eq!(lacking.view(), View::Partial { reason: "no list".into() });
    }

    #[test]
    fn a_report_of_version_0_1_0_is_one_of_a_source_without_parts() {
        let old = r#"{"source": "pve", "view": "complete", "begun": "1970-01-01T00:00:00Z", "workloads": [],
            "ended": [{"id": "a", "asked": true}]}"#;
        let ended = vec![Ended { id: "a".parse().unwrap(), asked: true }];
        let report = Report::whole("pve".parse().unwrap(), Timestamp::UNIX_EPOCH, View::Complete, Vec::new());
        let report = report.with_ended(ended);
        assert_eq!(serde_json::from_str::<Report>(old).unwrap(), report);
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
    }
}
