//! The grace verdict: whether a version of a workload is present, waiting, or gone.

use std::sync::Arc;

use netstead_model::{Ident, Scope, View};

use super::{Absence, Entry, Former, Grace, Presence, ScopeState, SourceState};
use crate::{Cause, Digest, KeptReason, Now, now::spoken};

/// Present, not yet to be given up, or gone; the text ends a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GraceVerdict {
    Present,
    Waiting(KeptReason),
    Gone(Cause, Arc<str>),
}

impl GraceVerdict {
    /// Of the newest version.
    pub(crate) fn of(name: &Ident, state: &SourceState, entry: &Entry, grace: Grace, now: Now) -> Self {
        if state.is_cleaned(&entry.scope) {
            return Self::Gone(Cause::Asked, "cleaned by a person".into());
        }
        if state.detached {
            return Self::Waiting(format!("source {name} is detached").into());
        }
        match &entry.presence {
            Presence::Present => Self::Present,
            Presence::Asked => Self::Gone(Cause::Asked, "asked for".into()),
            Presence::Absent(absence) => absent(name, state, entry, *absence, entry.config, grace),
            Presence::Ended { since } => {
                if let Some(doubt) = doubt(name, state, &entry.scope) {
                    return Self::Waiting(doubt);
                }
                let ago = now.since(*since);
                if ago >= grace.ended {
                    Self::Gone(Cause::Ended, format!("ended {} ago", spoken(ago)).into())
                } else {
                    Self::Waiting(KeptReason::Ended { ended: *since, grace: grace.ended })
                }
            }
        }
    }

    /// Of an earlier version of a workload whose newest stands as `newest`.
    pub(crate) fn of_former(
        name: &Ident,
        state: &SourceState,
        entry: &Entry,
        former: &Former,
        newest: &Self,
        grace: Grace,
    ) -> Self {
        match newest {
            // A person asked for the new version; unless the configuration did, and that may be a typo.
            Self::Present if state.commanded && former.config == state.config => {
                Self::Gone(Cause::Asked, "asked for".into())
            }
            Self::Present if state.commanded => {
                Self::Gone(Cause::Config, format!("the configuration of {name} changed").into())
            }
            Self::Present if entry.workload.unclear => {
                Self::Waiting("something it asks for now cannot be read".into())
            }
            Self::Present => absent(name, state, entry, former.absence, former.config, grace),
            other => other.clone(),
        }
    }
}

fn absent(
    name: &Ident,
    state: &SourceState,
    entry: &Entry,
    absence: Absence,
    config: Digest,
    grace: Grace,
) -> GraceVerdict {
    if let Some(doubt) = doubt(name, state, &entry.scope) {
        return GraceVerdict::Waiting(doubt);
    }
    let Some(scope) = state.scope_of(entry) else {
        return GraceVerdict::Waiting(format!("source {name} has not reported yet").into());
    };
    let waited = scope.waited(&absence);
    if !scope.passed(&absence, grace.absent) {
        // It goes on to be absent while the source is settled, so this stays the same from report to report.
        let absent_from = scope.last.saturating_sub(waited.as_millis());
        return GraceVerdict::Waiting(KeptReason::Absent { absent_from, grace: grace.absent });
    }
    if config != state.config || scope.left_the_configuration() {
        return GraceVerdict::Gone(Cause::Config, format!("the configuration of {name} changed").into());
    }
    let text = format!("absent {}, {} reports", spoken(waited), scope.reports(&absence));
    GraceVerdict::Gone(Cause::Absent, text.into())
}

/// Why what a scope does not say means nothing now. Where workloads can move, every scope must say all it has.
fn doubt(name: &Ident, state: &SourceState, scope: &Scope) -> Option<KeptReason> {
    let suspect = |what: &str, suspect: super::Suspicion| {
        format!("{what} is suspect, {} of {} vanished", suspect.missing, suspect.of)
    };
    if let Some(suspicion) = state.together {
        return Some(suspect(&format!("source {name}"), suspicion).into());
    }
    let of_one = |scope: &Scope, known: &ScopeState| {
        let what = if scope.is_whole() {
            format!("source {name}")
        } else {
            format!("scope {scope} of source {name}")
        };
        match (&known.view, known.suspect) {
            (_, Some(suspicion)) => Some(suspect(&what, suspicion)),
            (View::Partial { reason }, _) => Some(format!("{what} incomplete: {reason}")),
            (View::Failed { reason }, _) => Some(format!("{what} failed: {reason}")),
            (View::Complete, _) if !known.fresh => Some(format!("{what} has not reported yet")),
            (View::Complete, _) => None,
        }
    };
    let Some(known) = state.scopes.get(scope) else {
        return Some(format!("source {name} has not reported yet").into());
    };
    let own = of_one(scope, known);
    if own.is_some() || !state.movable {
        return own.map(Into::into);
    }
    if let Some(reason) = &state.unread_roster {
        return Some(format!("source {name} incomplete: {reason}").into());
    }
    let others = state.scopes.iter().filter(|(_, other)| other.is_listed());
    others.into_iter().find_map(|(scope, other)| of_one(scope, other)).map(Into::into)
}
