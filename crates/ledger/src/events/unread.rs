//! Events that cannot be read, by their numbers.

use crate::refusal::LedgerError;

/// Which events cannot be read. Usually none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct UnreadEvents {
    /// First and last number of each gap.
    gaps: Vec<(u64, u64)>,
    pub reason: String,
}

impl UnreadEvents {
    /// Those from `first` on, up to the one before `next`; to the last one if there is no next.
    pub fn add(&mut self, first: u64, next: Option<u64>) {
        self.gaps.push((first, next.map_or(u64::MAX, |next| next.saturating_sub(1)).max(first)));
    }

    pub fn is_empty(&self) -> bool {
        self.gaps.is_empty()
    }

    /// An error if one of the numbers from `first` to `last` cannot be read.
    pub fn check(&self, first: u64, last: u64) -> Result<(), LedgerError> {
        if self.gaps.iter().any(|(begin, end)| *begin <= last && first <= *end) {
            return Err(LedgerError::Damaged { reason: self.reason.clone() });
        }
        Ok(())
    }

    /// The first number that can be as late as a moment. `found` is the first known one that is: what cannot be read right
    /// before it may be, too.
    pub fn first_possible(&self, found: Option<u64>) -> Option<u64> {
        let hidden = self.gaps.iter().find(|(begin, end)| match found {
            Some(found) => *begin < found && found.saturating_sub(1) <= *end,
            None => *end == u64::MAX,
        });
        hidden.map(|(begin, _)| *begin).or(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_meets_a_gap_is_an_error() {
        let mut unread = UnreadEvents { reason: "a block is bad".into(), ..UnreadEvents::default() };
        assert_eq!(unread.check(0, u64::MAX), Ok(()));
        assert_eq!((unread.first_possible(None), unread.first_possible(Some(7))), (None, Some(7)));
        unread.add(10, Some(20));
        let error = Err(LedgerError::Damaged { reason: "a block is bad".into() });
        assert_eq!((unread.check(0, 9), unread.check(20, 30)), (Ok(()), Ok(())));
        assert_eq!(
            (unread.check(0, 10), unread.check(19, 30), unread.check(12, 13)),
            (error.clone(), error.clone(), error)
        );
        assert_eq!((unread.first_possible(Some(20)), unread.first_possible(Some(21))), (Some(10), Some(21)));
        assert_eq!((unread.first_possible(Some(5)), unread.first_possible(None)), (Some(5), None));
        unread.add(40, None);
        assert_eq!(unread.first_possible(None), Some(40));
    }
}
