//! When another look at a source can change something by itself.

use netstead_model::Span;

use super::{Absence, Entry, Grace, Presence, ScopeState, SourceState};
use crate::Now;

impl SourceState {
    /// The engine time at which another Complete report would let something go under one of `graces`, or say once more
    /// that much is gone. None if no report is waited for.
    pub fn next_look(&self, graces: &[Span]) -> Option<u64> {
        if self.detached {
            return None;
        }
        let seen = |scope: &&ScopeState| scope.view.is_complete() && scope.fresh;
        let suspects = self.scopes.values().filter(seen).filter_map(|scope| scope.suspect);
        let together = self.together.filter(|_| self.scopes.values().any(|scope| seen(&scope)));
        let suspicion = suspects.chain(together).map(|suspicion| suspicion.next_look()).min();
        if self.together.is_some() {
            return suspicion;
        }
        // A change that a person commands takes effect at once, so no earlier version waits.
        let waits =
            self.tombstones().filter(|(_, entry)| self.settled_in(&entry.scope)).flat_map(|(_, entry)| {
                let scope = self.scope_of(entry);
                let absences = absences(entry).filter(|(_, former)| !former || !self.commanded);
                absences.flat_map(move |(absence, _)| {
                    let scope = scope.into_iter();
                    scope.flat_map(|scope| {
                        let lefts = graces.iter().filter_map(|grace| left(scope, absence, *grace));
                        lefts.map(|left| scope.last.saturating_add(left))
                    })
                })
            });
        waits.chain(suspicion).min()
    }
}

/// The workloads of a source that wait for a grace to pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitingForGrace {
    /// Workloads that are no longer seen, or ended, and whose names may still be there.
    pub workloads: usize,
    /// The engine time at which the first of them may go.
    pub next: u64,
}

impl SourceState {
    /// The workloads that wait for one of `graces`; none if there are none, or the source is not believed now.
    pub fn waiting(&self, graces: &[Grace], now: Now) -> Option<WaitingForGrace> {
        if self.detached {
            return None;
        }
        let dues = self.tombstones().filter_map(|(_, entry)| {
            let scope = self.scope_of(entry).filter(|_| self.settled_in(&entry.scope))?;
            match &entry.presence {
                Presence::Ended { since } => {
                    let ends = graces.iter().map(|grace| since.saturating_add(grace.ended.as_millis()));
                    ends.filter(|end| *end > now.millis).min()
                }
                Presence::Absent(absence) => {
                    let lefts = graces.iter().filter_map(|grace| left(scope, absence, grace.absent));
                    lefts.min().map(|left| scope.last.saturating_add(left))
                }
                Presence::Present | Presence::Asked => None,
            }
        });
        let (workloads, next) = dues.fold((0, u64::MAX), |(count, next), due| (count + 1, next.min(due)));
        (workloads > 0).then_some(WaitingForGrace { workloads, next })
    }
}

/// The absences of a workload that may pass a grace later, each with whether it is of an earlier version.
fn absences(entry: &Entry) -> impl Iterator<Item = (&Absence, bool)> {
    let own = if let Presence::Absent(absence) = &entry.presence { Some(absence) } else { None };
    let former =
        entry.former.iter().filter(|_| entry.presence == Presence::Present && !entry.workload.unclear);
    own.into_iter().map(|absence| (absence, false)).chain(former.map(|former| (&former.absence, true)))
}

/// For how many milliseconds after the newest report the absence must go on.
fn left(scope: &ScopeState, absence: &Absence, grace: Span) -> Option<u64> {
    let waited = scope.waited(absence).as_millis();
    (!scope.passed(absence, grace)).then(|| grace.as_millis().saturating_sub(waited))
}

/// Whether one of `graces` passed for something in one of the two and not in the other.
pub fn grace_passed_between(old: &SourceState, new: &SourceState, graces: &[Span]) -> bool {
    let passed = |state: &SourceState, entry: &Entry, grace: Span| {
        let scope = state.scope_of(entry);
        let of_scope = |absence: &Absence| scope.is_some_and(|scope| scope.passed(absence, grace));
        absences(entry).filter(|(absence, _)| of_scope(absence)).count()
    };
    new.tombstones().any(|(id, entry)| {
        let Some(known) = old.entries.get(id) else { return true };
        graces.iter().any(|grace| passed(old, known, *grace) != passed(new, entry, *grace))
    })
}
