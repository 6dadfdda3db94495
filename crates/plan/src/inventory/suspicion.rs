//! Suspicion: too much vanished at once, in one scope or in all of them together.

use netstead_model::{Scope, Span};
use serde::{Deserialize, Serialize};

use super::{Presence, ScopeState, SourceState, scope::Counts};
use crate::Now;

/// A scope is suspect from this many workloads on, when half are missing…
const FEWEST: usize = 5;
/// …until it said so this often…
pub(super) const POLLS: u32 = 3;
/// …over this time.
pub(super) const DOUBT: Span = Span::from_secs(300);

/// Too much vanished at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspicion {
    pub since: u64,
    /// How often it said so.
    pub polls: u32,
    pub missing: u32,
    pub of: u32,
}

/// The outcome of one more report.
enum Verdict {
    Believed,
    Suspect(Suspicion),
    /// It was said often enough: the absences count.
    Confirmed,
}

impl Suspicion {
    pub(super) fn restart(&mut self, now: Now) {
        (self.since, self.polls) = (now.millis, 0);
    }

    /// The engine time at which one more report is due. They are spread over the time of doubt, so that the last ends it.
    pub(super) fn next_look(&self) -> u64 {
        let steps = u64::from(POLLS.saturating_sub(1).max(1));
        let part = DOUBT.as_millis().saturating_mul(u64::from(self.polls).min(steps)) / steps;
        self.since.saturating_add(part)
    }
}

fn judge(before: Option<Suspicion>, present: usize, missing: usize, now: Now) -> Verdict {
    let of = present + missing;
    if of < FEWEST || missing * 2 < of {
        return Verdict::Believed;
    }
    let before = before.unwrap_or(Suspicion { since: now.millis, polls: 0, missing: 0, of: 0 });
    let polls = before.polls.saturating_add(1);
    if polls >= POLLS && now.since(before.since) >= DOUBT {
        return Verdict::Confirmed;
    }
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Verdict::Suspect(Suspicion { since: before.since, polls, missing: count(missing), of: count(of) })
}

impl SourceState {
    /// Judges the scopes that gave a Complete report just now, each by itself, then all Complete scopes together.
    pub(super) fn update_suspicion(&mut self, reported: &[Scope], now: Now) {
        for name in reported {
            let Some(scope) = self.scopes.get_mut(name).filter(|scope| !scope.left_the_configuration())
            else {
                continue;
            };
            let Counts { present, missing, .. } = scope.counts;
            match judge(scope.suspect, present, missing, now) {
                Verdict::Believed => scope.suspect = None,
                Verdict::Suspect(suspicion) => scope.suspect = Some(suspicion),
                Verdict::Confirmed => {
                    scope.suspect = None;
                    self.confirm_absences(|scope| scope == name);
                }
            }
        }
        if reported.is_empty() {
            return;
        }
        let counted =
            |scope: &ScopeState| scope.fresh && scope.view.is_complete() && !scope.left_the_configuration();
        let complete: Vec<&ScopeState> = self.scopes.values().filter(|scope| counted(scope)).collect();
        let present = complete.iter().map(|scope| scope.counts.present).sum();
        let missing = complete.iter().map(|scope| scope.counts.missing).sum();
        let verdict = match complete.as_slice() {
            [] | [_] => Verdict::Believed,
            _ => judge(self.together, present, missing, now),
        };
        match verdict {
            Verdict::Believed => self.together = None,
            Verdict::Suspect(suspicion) => self.together = Some(suspicion),
            Verdict::Confirmed => {
                self.together = None;
                let names: Vec<Scope> = self
                    .scopes
                    .iter()
                    .filter(|(_, scope)| counted(scope))
                    .map(|(name, _)| name.clone())
                    .collect();
                self.confirm_absences(|scope| names.contains(scope));
            }
        }
    }

    fn confirm_absences(&mut self, of: impl Fn(&Scope) -> bool) {
        let absent: Vec<_> = self.tombstones.iter().cloned().collect();
        for id in absent {
            self.change(&id, |entry, _| {
                if of(&entry.scope)
                    && let Presence::Absent(absence) = &mut entry.presence
                {
                    absence.confirmed = true;
                }
            });
        }
    }
}
