//! [`PassReport`]: what one pass did.

use std::time::Duration;

use netstead_model::{Ident, Name};

use super::{HeldBy, ProviderPlan};
use crate::metrics::Tally;

/// The result of one pass.
#[derive(Debug, Clone)]
pub struct PassReport {
    pub provider: Ident,
    /// The plan; none if the pass did not come that far.
    pub plan: Option<ProviderPlan>,
    /// Names that were changed, were found otherwise than expected, were rejected, or may or may not be changed.
    pub applied: usize,
    pub changed: usize,
    pub rejected: usize,
    pub unknown: usize,
    /// Names for which no request was sent, because the server or the time of the pass did not allow it.
    pub not_tried: usize,
    /// Names that wait: paused, observed only, rejected before.
    pub held: usize,
    /// Why they wait.
    pub held_by: Option<HeldBy>,
    /// The same by zone, for numbers.
    pub tallies: Vec<Tally>,
    pub took: Duration,
    /// Why nothing could be planned or carried out.
    pub error: Option<String>,
    /// Why single zones were left out.
    pub zone_errors: Vec<(Name, String)>,
    /// The server asked to slow down.
    pub(crate) asked_pause: Option<AskedPause>,
    /// Another pass should follow at once.
    pub(crate) again: bool,
    /// The server had seen a later fence, as after a lost store. The fence is above that now, and the next pass writes the same.
    pub(crate) caught_up: bool,
    /// The time of the pass was over before everything was written: the next pass goes on.
    pub(crate) unfinished: bool,
}

/// The pause that a server asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum AskedPause {
    For(Duration),
    /// It did not say how long.
    Unsaid,
}

impl From<Option<Duration>> for AskedPause {
    fn from(retry_after: Option<Duration>) -> Self {
        retry_after.map_or(Self::Unsaid, Self::For)
    }
}

impl PassReport {
    pub(crate) fn new(provider: Ident) -> Self {
        Self {
            provider,
            plan: None,
            applied: 0,
            changed: 0,
            rejected: 0,
            unknown: 0,
            not_tried: 0,
            held: 0,
            held_by: None,
            tallies: Vec::new(),
            took: Duration::ZERO,
            error: None,
            zone_errors: Vec::new(),
            asked_pause: None,
            again: false,
            caught_up: false,
            unfinished: false,
        }
    }

    /// Whether nothing is left to do.
    pub fn is_in_sync(&self) -> bool {
        self.error.is_none()
            && self.zone_errors.is_empty()
            && self.held + self.rejected + self.unknown + self.changed + self.not_tried == 0
    }

    /// Whether another pass follows at once, because this one left something to do.
    pub fn goes_on(&self) -> bool {
        self.error.is_none() && (self.again || self.unfinished)
    }

    /// How it ended, in a few words.
    pub(super) fn outcome(&self) -> String {
        if let Some(error) = &self.error {
            return format!("failed: {error}");
        }
        let counts = [
            (self.applied, "applied"),
            (self.changed, "found changed"),
            (self.rejected, "rejected"),
            (self.unknown, "unknown"),
            (self.not_tried, "not tried yet"),
            (self.held, "held back"),
            (self.zone_errors.len(), "zones left out"),
        ];
        let said: Vec<String> = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        if said.is_empty() { "nothing to do".into() } else { said.join(", ") }
    }
}
