//! The grace verdict: whether a version of a workload is present, waiting, or gone.

use std::sync::Arc;

use netstead_model::{Ident, View};

use super::{Absence, Entry, Former, Grace, Presence, SourceState};
use crate::{Cause, Digest, Now, now::spoken};

/// Present, not yet to be given up, or gone; the text ends a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GraceVerdict {
    Present,
    Waiting(Arc<str>),
    Gone(Cause, Arc<str>),
}

impl GraceVerdict {
    /// Of the newest version.
    pub(crate) fn of(name: &Ident, state: &SourceState, entry: &Entry, grace: Grace, now: Now) -> Self {
        if state.cleaned {
            return Self::Gone(Cause::Asked, "cleaned by a person".into());
        }
        if state.detached {
            return Self::Waiting(format!("source {name} is detached").into());
        }
        match &entry.presence {
            Presence::Present => Self::Present,
            Presence::Asked => Self::Gone(Cause::Asked, "asked for".into()),
            Presence::Absent(absence) => absent(name, state, *absence, entry.config, grace),
            Presence::Ended { since } => {
                if let Some(doubt) = doubt(name, state) {
                    return Self::Waiting(doubt);
                }
                let ago = now.since(*since);
                if ago >= grace.ended {
                    Self::Gone(Cause::Ended, format!("ended {} ago", spoken(ago)).into())
                } else {
                    let grace = spoken(grace.ended);
                    Self::Waiting(format!("ended {} ago, grace {grace}", spoken(ago)).into())
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
            Self::Present => absent(name, state, former.absence, former.config, grace),
            other => other.clone(),
        }
    }
}

fn absent(name: &Ident, state: &SourceState, absence: Absence, config: Digest, grace: Grace) -> GraceVerdict {
    if let Some(doubt) = doubt(name, state) {
        return GraceVerdict::Waiting(doubt);
    }
    let waited = spoken(absence.waited);
    if !absence.passed(grace.absent) {
        let grace = spoken(grace.absent);
        return GraceVerdict::Waiting(format!("absent {waited}, grace {grace}").into());
    }
    if config != state.config {
        return GraceVerdict::Gone(Cause::Config, format!("the configuration of {name} changed").into());
    }
    GraceVerdict::Gone(Cause::Absent, format!("absent {waited}, {} reports", absence.reports).into())
}

/// Why what the source does not say means nothing now.
fn doubt(name: &Ident, state: &SourceState) -> Option<Arc<str>> {
    let text = if let Some(suspect) = state.suspect {
        format!("source {name} is suspect, {} of {} vanished", suspect.missing, suspect.of)
    } else {
        match &state.view {
            View::Partial { reason } => format!("source {name} incomplete: {reason}"),
            View::Failed { reason } => format!("source {name} failed: {reason}"),
            View::Complete if !state.fresh => format!("source {name} has not reported yet"),
            View::Complete => return None,
        }
    };
    Some(text.into())
}
