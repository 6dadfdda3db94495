//! Turns a report into one look at every scope that is known: listed, retired, or not yet assigned.

use std::{collections::BTreeMap, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use netstead_model::{
    Ended, Ident, Key, Report, Roster, Scope, ScopeReport, Seen, Span, View, Workload, unlooked,
};

use super::ReportArrival;
use crate::inventory::{RetiredBy, SourceState, Standing};

/// One look at one scope.
pub(super) struct ScopeLook {
    pub(super) view: View,
    pub(super) begun: Timestamp,
    pub(super) began: u64,
    /// Engine time up to which it speaks.
    pub(super) last: u64,
    pub(super) session: u64,
    pub(super) version: u64,
    pub(super) based: bool,
    /// Absences of this scope are counted by it.
    pub(super) counts: bool,
    pub(super) listed: Listed,
    pub(super) workloads: Vec<Arc<Workload>>,
    pub(super) removed: Vec<Key>,
    pub(super) ended: Vec<Ended>,
}

/// Which of a scope's workloads a look lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Listed {
    /// All there are: a workload that is not listed is absent.
    All,
    Some,
}

impl SourceState {
    /// The looks that count, and whether a scope sent changes to something unknown.
    pub(super) fn scope_looks(
        &mut self,
        report: Report,
        look: ReportArrival,
        floor: u64,
    ) -> (BTreeMap<Scope, ScopeLook>, bool) {
        let Report { source, begun, roster, scopes } = report;
        let reports = self.read_roster(roster, scopes, look.now.millis);
        let mut unbased = false;
        let mut looks = BTreeMap::new();
        for (name, report) in reports {
            if let Some(one) = self.look(&name, report, &source, begun, look, floor, &mut unbased) {
                looks.insert(name, one);
            }
        }
        self.add_unlisted(&mut looks, begun, look);
        let view = |name: &Scope| looks.get(name).map(|look| &look.view);
        let complete = |(name, scope): (&Scope, &crate::ScopeState)| {
            !scope.is_listed()
                || view(name).map_or(scope.fresh && scope.view.is_complete(), View::is_complete)
        };
        let all = self.unread_roster.is_none() && self.scopes.iter().all(complete);
        for look in looks.values_mut() {
            look.counts = look.view.is_complete() && (all || !self.movable);
        }
        (looks, unbased)
    }

    /// Learns which scopes there are. Returns a report for each that the source looks after.
    fn read_roster(
        &mut self,
        roster: Roster,
        mut scopes: BTreeMap<Scope, ScopeReport>,
        now: u64,
    ) -> BTreeMap<Scope, ScopeReport> {
        let known: Vec<Scope> =
            self.scopes.iter().filter(|(_, scope)| scope.is_listed()).map(|(name, _)| name.clone()).collect();
        match roster {
            Roster::Complete(names) => {
                self.unread_roster = None;
                for name in names {
                    let reason = || ScopeReport::failed(unlooked(&name));
                    scopes.entry(name.clone()).or_insert_with(reason);
                }
                let missing: Vec<Scope> =
                    known.into_iter().filter(|name| !scopes.contains_key(name)).collect();
                for name in missing {
                    self.retire(&name, now);
                }
            }
            Roster::Partial { reason } => {
                for name in known {
                    scopes.entry(name).or_insert_with(|| ScopeReport::failed(reason.clone()));
                }
                if self.scopes.is_empty() && scopes.is_empty() {
                    scopes.insert(Scope::WHOLE, ScopeReport::failed(reason.clone()));
                }
                // A failure of a source without parts is no news about its list of scopes.
                let whole_alone = scopes.keys().all(Scope::is_whole);
                self.unread_roster = (!whole_alone).then_some(reason);
            }
        }
        for name in scopes.keys() {
            let scope = self.scopes.entry(name.clone()).or_default();
            scope.standing = Standing::Listed;
            scope.config = self.config;
        }
        scopes
    }

    fn retire(&mut self, name: &Scope, now: u64) {
        let config = self.config;
        let Some(scope) = self.scopes.get_mut(name) else { return };
        scope.standing = if name.is_whole() {
            Standing::Unassigned
        } else {
            let by = if scope.config == config { RetiredBy::Platform } else { RetiredBy::Configuration };
            Standing::Retired { since: now, by }
        };
        if scope.workloads() == 0 {
            self.scopes.remove(name);
        }
    }

    /// The look that a report is; none if it says nothing that is newer than what is known.
    #[expect(clippy::too_many_arguments, reason = "all of one report")]
    fn look(
        &mut self,
        name: &Scope,
        report: ScopeReport,
        source: &Ident,
        begun: Timestamp,
        look: ReportArrival,
        floor: u64,
        unbased: &mut bool,
    ) -> Option<ScopeLook> {
        let ScopeReport { mut view, age, session, version, seen, ended } = report;
        let scope = self.scopes.get_mut(name)?;
        let began = look.began.saturating_sub(age.as_millis());
        let session = look.session.wrapping_add(session);
        let repeated = age > Span::ZERO && began == scope.began && scope.version == version;
        if began < floor.max(scope.began) || (repeated && view == scope.view) {
            return None;
        }
        if !view.is_failed() {
            scope.cleaned = false;
        }
        let same_session = scope.session == session;
        let (mut listed, mut based, mut removed) = (Listed::Some, scope.based && same_session, Vec::new());
        let (mut workloads, mut version) = (Vec::new(), version);
        match seen {
            _ if view.is_failed() => version = scope.version,
            Seen::All(all) => {
                workloads = all;
                based = view.is_complete();
                if based {
                    listed = Listed::All;
                }
            }
            Seen::Changes { since, changed, removed: gone } if based && since == scope.version => {
                (workloads, removed) = (changed, gone);
            }
            Seen::Changes { .. } => {
                *unbased = true;
                (based, version) = (false, scope.version);
                let reason =
                    "it sent changes to something that was not seen here; it is asked for all".into();
                view = View::Partial { reason };
            }
        }
        for workload in workloads.iter_mut().filter(|workload| workload.source != *source) {
            Arc::make_mut(workload).source.clone_from(source);
        }
        let last = look.now.millis.saturating_sub(age.as_millis());
        let begun = earlier(begun, age);
        Some(ScopeLook {
            view,
            begun,
            began,
            last,
            session,
            version,
            based,
            counts: false,
            listed,
            workloads,
            removed,
            ended,
        })
    }

    /// Looks at the scopes that no report is about. A complete roster without a scope says that nothing is in it.
    fn add_unlisted(&self, looks: &mut BTreeMap<Scope, ScopeLook>, begun: Timestamp, look: ReportArrival) {
        let mut worst = match &self.unread_roster {
            Some(reason) => View::Partial { reason: reason.clone() },
            None => View::Complete,
        };
        let roster = worst.clone();
        for (name, scope) in self.scopes.iter().filter(|(_, scope)| scope.is_listed()) {
            let view = looks.get(name).map_or(&scope.view, |look| &look.view);
            let silent = View::Partial { reason: format!("{name} has not reported yet") };
            let view =
                if view.is_complete() && !scope.fresh && !looks.contains_key(name) { &silent } else { view };
            worst = worst.worse(view).clone();
        }
        let unlisted = self.scopes.iter().filter(|(_, scope)| !scope.is_listed());
        for (name, scope) in unlisted {
            let view = if scope.standing == Standing::Unassigned { worst.clone() } else { roster.clone() };
            let listed = if view.is_complete() { Listed::All } else { Listed::Some };
            let one = ScopeLook {
                view,
                begun,
                began: look.began,
                last: look.now.millis,
                session: look.session,
                version: scope.version,
                based: false,
                counts: false,
                listed,
                workloads: Vec::new(),
                removed: Vec::new(),
                ended: Vec::new(),
            };
            looks.insert(name.clone(), one);
        }
    }

    pub(super) fn is_unassigned(&self, scope: &Scope) -> bool {
        self.scopes.get(scope).is_some_and(|scope| scope.standing == Standing::Unassigned)
    }
}

/// The moment so long before.
fn earlier(begun: Timestamp, age: Span) -> Timestamp {
    let age = SignedDuration::from_millis(i64::try_from(age.as_millis()).unwrap_or(i64::MAX));
    begun.checked_sub(age).unwrap_or(begun)
}
