//! Spans of time.

/// Moments of a history, as ranks: equal times are made different, ends after starts, so that touching is overlapping.
pub(super) type Moment = u64;

/// After everything.
pub(super) const NEVER: Moment = u64::MAX;

/// A closed stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Span {
    pub(super) from: Moment,
    pub(super) to: Moment,
}

impl Span {
    pub(super) fn overlaps(self, other: Self) -> bool {
        self.from <= other.to && other.from <= self.to
    }

    /// Whether the time right after `moment` is in it.
    pub(super) fn has(self, moment: Moment) -> bool {
        self.from <= moment && moment < self.to
    }
}

/// The first moment of `span` that none of `covers` has strictly inside or at its edges, if there is one.
///
/// Stretches of `covers` may overlap. Between two moments that are named there is always time for another one, so a
/// cover leaves its own edges free on the outside: the moment right after its end is returned as its end.
pub(super) fn gap(span: Span, covers: &mut [Span]) -> Option<Moment> {
    covers.sort_unstable();
    let mut free = span.from;
    for cover in covers.iter() {
        if cover.from > free {
            break;
        }
        if cover.to >= span.to {
            return None;
        }
        free = free.max(cover.to);
    }
    // There is a gap right after `free`, unless the next cover begins there.
    Some(free)
}

/// Whether `span` has a moment outside of all `covers`.
pub(super) fn has_gap(span: Span, covers: impl IntoIterator<Item = Span>) -> bool {
    let mut covers: Vec<Span> = covers.into_iter().filter(|cover| cover.overlaps(span)).collect();
    gap(span, &mut covers).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(from: Moment, to: Moment) -> Span {
        Span { from, to }
    }

    #[test]
    fn a_gap_is_found_between_covers_and_at_both_ends() {
        assert!(has_gap(span(10, 20), []));
        assert!(has_gap(span(10, 20), [span(12, 20 - 1)]));
        assert!(has_gap(span(10, 20), [span(5, 14), span(16, 30)]));
        assert!(!has_gap(span(10, 20), [span(5, 16), span(14, 30)]));
        assert!(!has_gap(span(10, 20), [span(10, 20)]));
        assert!(has_gap(span(10, 20), [span(11, 20)]), "before it");
        assert!(has_gap(span(10, 20), [span(10, 19)]), "after it");
        assert!(has_gap(span(10, 20), [span(21, 30), span(0, 9)]));
    }
}
