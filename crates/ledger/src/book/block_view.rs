//! Explains a block of addresses: what each pool has of it.

use netstead_model::{Cidr, Ident, Usage};

use super::{
    Book,
    pool_state::{PoolState, host_mask},
    view::{AddressView, ClaimView},
};
use crate::record::Slot;

/// Claims of a block that are named.
const NAMED: usize = 5;
/// Most things of a part of a pool that are counted one by one; counting more would take too long.
const COUNTED: usize = 50_000;

/// The part of a block of addresses that is in one pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockView {
    pub vrf: Ident,
    pub pool: Ident,
    /// All of the block lies in the pool.
    pub inside: bool,
    /// All of the pool lies in the block.
    pub whole: bool,
    /// The claim or the rest that the whole block is part of.
    pub around: Option<AddressView>,
    /// Counters of what the two share, where that can be counted.
    pub usage: Option<Usage>,
    /// The first of the claims in it; the counters have their number.
    pub claims: Vec<ClaimView>,
}

impl Book {
    /// Explains a block, once per pool that has some of it.
    pub fn explain_block(&self, block: Cidr) -> Vec<BlockView> {
        let (first, last) = (block.first().number(), block.last().number());
        let of_kind = self.pools.values().filter(|state| state.space.kind == block.kind());
        of_kind.filter_map(|state| self.block_in(state, first, last)).collect()
    }

    /// The counters of several blocks in one pool, in their order; none for a block with too much in it to count. None of
    /// them if there is no such pool. A block outside of the pool has the size 0.
    pub fn usage_of_blocks(&self, pool: &Ident, blocks: &[Cidr]) -> Option<Vec<Option<Usage>>> {
        let state = self.pools.get(pool)?;
        let usage = |block: &Cidr| {
            let parts = if state.space.kind == block.kind() {
                state.parts_in(block.first().number(), block.last().number())
            } else {
                Vec::new()
            };
            state.usage_in(&parts)
        };
        Some(blocks.iter().map(usage).collect())
    }

    fn block_in(&self, state: &PoolState, first: u128, last: u128) -> Option<BlockView> {
        let parts = state.parts_in(first, last);
        if parts.is_empty() {
            return None;
        }
        let inside = parts.first() == Some(&(first, last));
        let whole = parts == state.parts_in(0, u128::MAX);
        let covers = |slot: &&Slot| {
            let start = slot.address().number();
            start <= first && start | host_mask(state.bits(), slot.length().unwrap_or(state.bits())) >= last
        };
        // The closest around it, and one that is held before one that rests.
        let around = state.busy_in(first, last, self.now).filter(covers);
        let around = around.max_by_key(|slot| (matches!(slot, Slot::Held(_)), slot.length()));
        let held = state.slots_in(first, last).filter_map(|slot| match slot {
            Slot::Held(claim) => Some(claim),
            Slot::Rested(_) => None,
        });
        Some(BlockView {
            vrf: state.space.vrf.clone(),
            pool: state.pool.name().clone(),
            inside,
            whole,
            around: around.and_then(|slot| self.slot_view(state, slot)),
            usage: if whole { Some(state.usage()) } else { state.usage_in(&parts) },
            claims: held.take(NAMED).map(|claim| self.claim_view(state, claim)).collect(),
        })
    }
}

impl PoolState {
    /// The counters of some parts of the pool, unless there is too much in them.
    fn usage_in(&self, parts: &[(u128, u128)]) -> Option<Usage> {
        let mut sum = Usage::default();
        for (first, last) in parts {
            let seen = self.observed.range(first..=last).map(|_| ());
            if self.slots_in(*first, *last).map(|_| ()).chain(seen).nth(COUNTED).is_some() {
                return None;
            }
            let (tally, free) = self.count(*first, *last);
            let held = self.slots_in(*first, *last).filter(|slot| matches!(slot, Slot::Held(_)));
            sum.held = sum.held.saturating_add(tally.held);
            sum.resting = sum.resting.saturating_add(tally.resting);
            sum.reserved = sum.reserved.saturating_add(tally.reserved);
            sum.observed = sum.observed.saturating_add(tally.observed);
            sum.free = sum.free.saturating_add(free.count());
            sum.claims += held.count() as u64;
        }
        let parts = [sum.held, sum.resting, sum.reserved, sum.observed, sum.free];
        sum.size = parts.into_iter().fold(0, u128::saturating_add);
        Some(sum)
    }
}
