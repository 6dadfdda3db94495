//! When another look at a source can change something by itself.

use netstead_model::{Span, View};

use super::{
    Absence, Entry, Grace, Presence, SourceState,
    ingest::{DOUBT, POLLS},
};
use crate::Now;

impl SourceState {
    /// The engine time at which another Complete report would let something go under one of `graces`, or say once more
    /// that much is gone. None if no report is waited for.
    pub fn next_look(&self, graces: &[Span]) -> Option<u64> {
        if self.detached || self.view != View::Complete || !self.fresh {
            return None;
        }
        if let Some(suspect) = self.suspect {
            // Spread over the time of doubt, so that the last of them ends it.
            let steps = u64::from(POLLS.saturating_sub(1).max(1));
            let part = DOUBT.as_millis().saturating_mul(u64::from(suspect.polls).min(steps)) / steps;
            return Some(suspect.since.saturating_add(part));
        }
        // A change that a person commands takes effect at once, so no earlier version waits.
        let absences =
            self.entries.values().flat_map(absences).filter(|(_, former)| !former || !self.commanded);
        let absences = absences.map(|(absence, _)| absence);
        let waits = absences.flat_map(|absence| graces.iter().filter_map(|grace| left(absence, *grace)));
        waits.min().map(|left| self.last.saturating_add(left))
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
        if self.detached || !self.settled() {
            return None;
        }
        let dues = self.entries.values().filter_map(|entry| match &entry.presence {
            Presence::Ended { since } => {
                let ends = graces.iter().map(|grace| since.saturating_add(grace.ended.as_millis()));
                ends.filter(|end| *end > now.millis).min()
            }
            Presence::Absent(absence) => {
                let lefts = graces.iter().filter_map(|grace| left(absence, grace.absent));
                lefts.min().map(|left| self.last.saturating_add(left))
            }
            Presence::Present | Presence::Asked => None,
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
fn left(absence: &Absence, grace: Span) -> Option<u64> {
    (!absence.passed(grace)).then(|| grace.as_millis().saturating_sub(absence.waited.as_millis()))
}

/// Whether one of `graces` passed for one of the two and not for the other.
pub fn grace_passed_between(old: &Entry, new: &Entry, graces: &[Span]) -> bool {
    let passed =
        |entry: &Entry, grace: Span| absences(entry).filter(|(absence, _)| absence.passed(grace)).count();
    graces.iter().any(|grace| passed(old, *grace) != passed(new, *grace))
}
