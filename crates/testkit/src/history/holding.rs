//! One holding, as the history shows it: a key that has an address, under one id.

use super::{
    Held,
    spans::{Moment, NEVER, Span},
};

/// Built up from all operations that speak of it.
#[derive(Debug, Clone)]
pub(super) struct Holding {
    pub(super) held: Held,
    /// The first end of an operation that saw it; by then it had begun.
    pub(super) first_end: Moment,
    /// The last start of one; it had not ended before.
    pub(super) last_start: Moment,
    /// The first start of a claim that saw it, and may have made it.
    pub(super) first_claim: Moment,
    /// The start of an unanswered claim that may have made it.
    pub(super) unknown_claim: Option<Moment>,
    /// The release that was told that it had ended it.
    pub(super) released: Option<Span>,
    /// The first start of a release without an answer.
    pub(super) unknown_release: Moment,
}

impl Holding {
    pub(super) fn new(held: Held) -> Self {
        Self {
            held,
            first_end: NEVER,
            last_start: 0,
            first_claim: NEVER,
            unknown_claim: None,
            released: None,
            unknown_release: NEVER,
        }
    }

    pub(super) fn seen(&mut self, span: Span) {
        self.first_end = self.first_end.min(span.to);
        self.last_start = self.last_start.max(span.from);
    }

    /// The earliest moment at which it can end.
    pub(super) fn earliest_end(&self) -> Moment {
        let release = self.released.map_or(self.unknown_release, |release| release.from);
        release.max(self.last_start)
    }

    /// The earliest moment at which it can begin; `NEVER` if no claim can have made it.
    pub(super) fn earliest_begin(&self) -> Moment {
        let claim = if self.first_claim < self.first_end { self.first_claim } else { NEVER };
        claim.min(self.unknown_claim.unwrap_or(NEVER))
    }

    /// The latest moment at which it can end.
    pub(super) fn latest_end(&self) -> Moment {
        self.released.map_or(NEVER, |release| release.to)
    }

    /// The stretch that it covers in every order, if that is not empty.
    pub(super) fn must_cover(&self) -> Option<Span> {
        let span = Span { from: self.first_end, to: self.earliest_end() };
        (span.from < span.to).then_some(span)
    }

    /// Where its only moment lies, if one is enough for it.
    pub(super) fn moment(&self) -> Option<Span> {
        let span = Span { from: self.earliest_end().max(self.earliest_begin()), to: self.first_end };
        (span.from < span.to).then_some(span)
    }
}
