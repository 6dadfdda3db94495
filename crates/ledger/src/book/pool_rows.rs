//! Walks through a pool in order of address: what is held, resting, reserved, withheld or seen in use.

use std::{collections::btree_map, iter::Peekable};

use netstead_model::Range;

use super::pool_state::{PoolState, host_mask};
use crate::record::Slot;

/// One thing of a pool that is not simply free.
#[derive(Debug, Clone, Copy)]
pub(super) enum PoolRow<'a> {
    /// Held, or resting.
    Slot(&'a Slot),
    /// From the first to the last: reserved, withheld or seen in use, all of it for the same reason.
    Idle(u128, u128),
}

/// Walks through a pool. A stretch is one row however large it is, so the walk costs what there is to say.
pub(super) struct PoolRows<'a> {
    state: &'a PoolState,
    slots: Peekable<btree_map::Range<'a, u128, Slot>>,
    withheld: Vec<(u128, u128)>,
    /// Where the walk stands; nowhere once it is through.
    at: Option<u128>,
    high: u128,
}

impl PoolState {
    /// Rows after `from`, and in the range; none if that is nowhere.
    pub(super) fn rows(&self, from: Option<u128>, within: Option<Range>) -> Option<PoolRows<'_>> {
        let low = from.map_or(Some(0), |from| from.checked_add(1))?;
        let low = within.map_or(low, |range| low.max(range.first().number()));
        let high = within.map_or(u128::MAX, |range| range.last().number());
        if low > high {
            return None;
        }
        let slots = self.slots.range(low..=high).peekable();
        Some(PoolRows { state: self, slots, withheld: self.withheld(), at: Some(low), high })
    }

    /// Addresses of the pool that are never handed out: stretches in order, cut where the reason may be another.
    fn withheld(&self) -> Vec<(u128, u128)> {
        let spec = &self.pool.spec;
        let gateway = spec.gateway.map(Range::single);
        let reasons = spec.exclude.iter().copied().chain(gateway);
        let cuts: Vec<u128> = reasons
            .flat_map(|range| [Some(range.first().number()), range.last().number().checked_add(1)])
            .flatten()
            .collect();
        let mut stretches = Vec::new();
        for (first, last) in self.gaps() {
            let mut cuts: Vec<u128> =
                cuts.iter().copied().filter(|cut| (first..=last).contains(cut)).chain([first]).collect();
            cuts.sort_unstable();
            cuts.dedup();
            let ends = cuts.iter().skip(1).map(|next| next - 1).chain([last]);
            stretches.extend(cuts.iter().copied().zip(ends));
        }
        stretches
    }

    fn end_of(&self, slot: &Slot) -> u128 {
        slot.address().number() | host_mask(self.bits(), slot.length().unwrap_or(self.bits()))
    }
}

impl<'a> Iterator for PoolRows<'a> {
    type Item = PoolRow<'a>;

    fn next(&mut self) -> Option<PoolRow<'a>> {
        let at = self.at.filter(|at| *at <= self.high)?;
        let state = self.state;
        while self.slots.next_if(|(number, slot)| state.occupancy_of(**number, slot).is_none()).is_some() {}
        let slot = self.slots.peek().map(|(number, slot)| (**number, *slot));
        // A prefix that begins before may reach over this place.
        let around = state.slots_in(at, at).filter(|slot| slot.address().number() < at);
        let around = around.filter(|slot| state.occupancy_of(slot.address().number(), slot).is_some());
        let from = around.map(|slot| state.end_of(slot)).max().map_or(Some(at), |end| end.checked_add(1));
        let idle = from.and_then(|from| self.idle_from(from)).filter(|(first, _)| *first <= self.high);
        match (slot, idle) {
            (Some((number, slot)), idle) if idle.is_none_or(|(first, _)| number <= first) => {
                self.slots.next();
                self.at = number.checked_add(1);
                Some(PoolRow::Slot(slot))
            }
            (slot, Some((first, last))) => {
                let before = slot.map_or(self.high, |(number, _)| number - 1);
                let last = last.min(before).min(self.high);
                self.at = last.checked_add(1);
                Some(PoolRow::Idle(first, last))
            }
            _ => {
                self.at = None;
                None
            }
        }
    }
}

impl PoolRows<'_> {
    /// The next stretch at `from` or above that is reserved, withheld or seen, as if there were no slots.
    fn idle_from(&self, from: u128) -> Option<(u128, u128)> {
        let state = self.state;
        let cut = |(first, last): (u128, u128)| (first.max(from), last);
        let place = self.withheld.partition_point(|(_, last)| *last < from);
        let withheld = self.withheld.get(place).copied().map(cut);
        let reserved = state.reservations_in(from, u128::MAX).next();
        let reserved = reserved.map(|r| cut((r.range.first().number(), r.range.last().number())));
        let seen = state.observed_in(from, u128::MAX);
        let first = [withheld, reserved].into_iter().flatten().map(|(first, _)| first).chain(seen).min()?;
        if seen == Some(first) {
            return Some((first, first));
        }
        // What is withheld is that before it is reserved, and what was seen is told apart.
        let starts = |stretch: Option<(u128, u128)>| stretch.filter(|(start, _)| *start == first);
        let last = match (starts(withheld), starts(reserved)) {
            (Some((_, last)), _) => last,
            (None, Some((_, last))) => withheld.map_or(last, |(next, _)| last.min(next - 1)),
            (None, None) => first,
        };
        Some((first, seen.map_or(last, |seen| last.min(seen - 1))))
    }
}
