//! The last changes of a zone, for IXFR.

use std::{collections::VecDeque, sync::Arc};

use super::Set;

/// Most generations kept.
const MOST_DIFFS: usize = 32;
/// Most record sets in all of them: past that, a whole zone is as quick.
const MOST_SETS: usize = 20_000;

/// One step from a serial to the next: what went and what came.
#[derive(Debug)]
pub(crate) struct Diff {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) removed: Vec<(Box<[u8]>, Arc<Set>)>,
    pub(crate) added: Vec<(Box<[u8]>, Arc<Set>)>,
}

/// Steps without a gap, oldest first.
#[derive(Debug, Clone, Default)]
pub(crate) struct History(VecDeque<Arc<Diff>>);

impl History {
    pub(crate) fn push(&mut self, diff: Diff) {
        if self.0.back().is_some_and(|last| last.to != diff.from) {
            self.0.clear();
        }
        self.0.push_back(Arc::new(diff));
        let sets = |diffs: &VecDeque<Arc<Diff>>| -> usize {
            diffs.iter().map(|diff| diff.removed.len() + diff.added.len()).sum()
        };
        while self.0.len() > MOST_DIFFS || sets(&self.0) > MOST_SETS {
            self.0.pop_front();
        }
    }

    /// The steps from `serial` to now, if all are known.
    pub(crate) fn since(&self, serial: u32) -> Option<Vec<Arc<Diff>>> {
        let first = self.0.iter().position(|diff| diff.from == serial)?;
        Some(self.0.iter().skip(first).cloned().collect())
    }
}
