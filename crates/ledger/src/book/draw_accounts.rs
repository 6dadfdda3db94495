//! Counts what a backend may hold for a pool, with the indexes of claims that draw from it.

use std::sync::Arc;

use netstead_model::{BackendErrorKind, Drawn, Waiting};

use super::{Book, pool_state::PoolState};
use crate::{
    record::{Rest, Slot},
    refusal::Refusal,
};

/// A refusal of the backend that a pool draws from.
pub(super) fn backend_refusal(state: &PoolState, kind: BackendErrorKind, message: String) -> Refusal {
    let pool = state.pool.name().clone();
    match &state.pool.spec.upstream {
        Some(upstream) => Refusal::Backend { pool, backend: upstream.backend.clone(), kind, message },
        None => Refusal::exhausted(&pool, 0, None),
    }
}

impl Book {
    /// Counts what is held against an owner's quota: what it holds, and in a pool with a backend what it waits for and what is on
    /// its way back.
    pub(super) fn counted_for(&self, state: &PoolState, owner: &str) -> u32 {
        let held = state.held_count(owner);
        if state.pool.spec.upstream.is_none() || state.pool.spec.max_per_owner.is_none() {
            return held;
        }
        let waits = state.drawing.values().filter_map(|seq| self.waiting.get(seq));
        let waits = waits.filter(|waiting| *waiting.owner == *owner).count();
        let owed = state.owed.iter().filter_map(|number| state.slots.get(number));
        let owed = owed.filter(|slot| {
            matches!(slot, Slot::Rested(rest) if *rest.owner == *owner && state.gives_back(rest, self.now))
        });
        held.saturating_add(u32::try_from(waits + owed.count()).unwrap_or(u32::MAX))
    }
}

impl PoolState {
    /// Everything that the backend may hold for this pool beside the claims.
    pub(super) fn owes(&self) -> u64 {
        (self.draws.len() + self.owed.len()) as u64
    }

    /// Whether the rest is over and only the backend has not got the address back.
    pub(super) fn gives_back(&self, rest: &Rest, now: u64) -> bool {
        rest.drawn.as_ref().is_some_and(|drawn| drawn.giving || self.rest_left(rest, now) == 0)
    }

    /// Whether the address can go back to its former holder without a question to a backend.
    pub(super) fn may_return(&self, rest: &Rest) -> bool {
        match &rest.drawn {
            Some(drawn) => !drawn.giving,
            None => self.pool.spec.upstream.is_none(),
        }
    }

    pub(super) fn add_draw(&mut self, waiting: &Waiting) {
        let Some(draw) = &waiting.draw else { return };
        self.draws.insert(waiting.seq);
        if draw.is_live() {
            self.drawing.insert(waiting.key.clone(), waiting.seq);
        }
        *self.remote_keys.entry(draw.key.clone()).or_default() += 1;
    }

    pub(super) fn remove_draw(&mut self, waiting: &Waiting) {
        let Some(draw) = &waiting.draw else { return };
        if !self.draws.remove(&waiting.seq) {
            return;
        }
        if self.drawing.get(&waiting.key) == Some(&waiting.seq) {
            self.drawing.remove(&waiting.key);
        }
        self.forget_remote_key(&draw.key);
    }

    pub(super) fn use_remote_key(&mut self, drawn: Option<&Drawn>) {
        if let Some(drawn) = drawn {
            *self.remote_keys.entry(drawn.key.clone()).or_default() += 1;
        }
    }

    pub(super) fn drop_remote_key(&mut self, drawn: Option<&Drawn>) {
        if let Some(drawn) = drawn {
            self.forget_remote_key(&drawn.key);
        }
    }

    fn forget_remote_key(&mut self, key: &Arc<str>) {
        if let Some(count) = self.remote_keys.get_mut(key) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.remote_keys.remove(key);
            }
        }
    }
}
