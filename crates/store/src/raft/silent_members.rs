//! Members that do not answer the leader, so that each is reported once.

use std::collections::{BTreeMap, BTreeSet};

use super::types::NodeId;

/// Ticks without an answer after which a member is missing.
const LONG: u64 = 100;

/// Ticks since an answer at which it is back.
const BACK: u64 = 20;

/// Kept by the leader: only it sends to all members all the time.
#[derive(Debug, Default)]
pub(super) struct SilentMembers {
    /// Ticks for which this node has led. Silence from before does not count.
    led: u64,
    told: BTreeSet<NodeId>,
}

/// Changes since the last look.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SilenceChanges {
    pub(super) silent: Vec<NodeId>,
    pub(super) back: Vec<NodeId>,
}

impl SilentMembers {
    /// A look after `ticks`: how long each of the others has been silent, as far as it was ever heard.
    pub(super) fn update(&mut self, ticks: u64, others: &BTreeMap<NodeId, Option<u64>>) -> SilenceChanges {
        self.led += ticks;
        self.told.retain(|id| others.contains_key(id));
        let mut news = SilenceChanges::default();
        for (id, silent) in others {
            let silent = silent.unwrap_or(u64::MAX).min(self.led);
            if silent >= LONG && self.told.insert(*id) {
                news.silent.push(*id);
            } else if silent <= BACK && self.told.remove(id) {
                news.back.push(*id);
            }
        }
        news
    }

    /// It does not lead.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    pub(super) fn count(&self) -> usize {
        self.told.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn news(silent: &[NodeId], back: &[NodeId]) -> SilenceChanges {
        SilenceChanges { silent: silent.to_vec(), back: back.to_vec() }
    }

    #[test]
    fn each_that_falls_silent_is_told_once_and_so_is_its_return() {
        let mut missing = SilentMembers::default();
        let mut look = |silent: Option<u64>| {
            let news = missing.update(50, &BTreeMap::from([(1, Some(2)), (2, silent)]));
            (news, missing.count())
        };
        // Who began to lead a moment ago has not waited long for anybody.
        assert_eq!(look(Some(900)), (news(&[], &[]), 0));
        assert_eq!(look(Some(950)), (news(&[2], &[]), 1));
        assert_eq!(look(Some(1000)), (news(&[], &[]), 1));
        assert_eq!(look(Some(30)), (news(&[], &[]), 1));
        assert_eq!(look(Some(3)), (news(&[], &[2]), 0));
        assert_eq!(look(None), (news(&[2], &[]), 1));
        assert_eq!(missing.update(50, &BTreeMap::from([(1, Some(2))])), SilenceChanges::default());
        assert_eq!(missing.count(), 0, "who was removed is not missed");
        missing.update(50, &BTreeMap::from([(1, None)]));
        missing.reset();
        assert_eq!(missing.count(), 0);
    }
}
