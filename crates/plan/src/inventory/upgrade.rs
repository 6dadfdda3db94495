//! Reads sources as version 0.1.0 stored them: one view, and absences that count for themselves.

use std::collections::BTreeSet;

use jiff::Timestamp;
use netstead_model::{Scope, Span};

use super::{Absence, Clock, Entry, Presence, ScopeState, SourceState};

impl SourceState {
    /// Reads what version 0.1.0 stored: one view, and absences that count for themselves.
    pub(super) fn upgrade(&mut self) {
        if self.scopes.is_empty() && (self.begun > Timestamp::MIN || !self.entries.is_empty()) {
            self.scopes.insert(Scope::WHOLE, self.as_scope());
        }
        // A member that knows no scopes may have written the source, and left those of its workloads.
        let lost: BTreeSet<Scope> = self
            .entries
            .values()
            .filter(|entry| !self.scopes.contains_key(&entry.scope))
            .map(|entry| entry.scope.clone())
            .collect();
        for scope in lost {
            self.scopes.insert(scope, self.as_scope());
        }
        self.upgrade_absences();
        self.recount();
    }

    fn as_scope(&self) -> ScopeState {
        ScopeState {
            view: self.view.clone(),
            begun: self.begun,
            began: self.began,
            last: self.last,
            last_complete: self.last_complete,
            session: self.session,
            config: self.config,
            fresh: self.fresh,
            suspect: self.suspect,
            ..ScopeState::default()
        }
    }

    /// Turns absences that count for themselves into readings of a clock.
    fn upgrade_absences(&mut self) {
        let counted = |absence: &Absence| absence.reports > 0 || absence.waited.as_millis() > 0;
        let old = |entry: &Entry| absences(entry).any(counted);
        if !self.entries.values().any(old) {
            return;
        }
        let all = || self.entries.values().flat_map(absences);
        let time = all().map(|absence| absence.waited.as_millis()).max().unwrap_or(0);
        let reports = all().map(|absence| u64::from(absence.reports)).max().unwrap_or(0);
        self.scopes.values_mut().for_each(|scope| scope.clock = Clock { time, reports });
        for entry in self.entries.edit().values_mut() {
            let own = if let Presence::Absent(absence) = &mut entry.presence { Some(absence) } else { None };
            for absence in entry.former.iter_mut().map(|former| &mut former.absence).chain(own) {
                absence.from = Clock {
                    time: time.saturating_sub(absence.waited.as_millis()),
                    reports: reports.saturating_sub(absence.reports.into()),
                };
                (absence.waited, absence.reports) = (Span::ZERO, 0);
            }
        }
    }
}

/// All absences of an entry: its own, and those of its earlier versions.
fn absences(entry: &Entry) -> impl Iterator<Item = &Absence> {
    let own = if let Presence::Absent(absence) = &entry.presence { Some(absence) } else { None };
    entry.former.iter().map(|former| &former.absence).chain(own)
}
