//! The Book's view of pool backends: the work that is due, and everything that a backend should hold for us.

use std::{collections::HashSet, sync::Arc};

use netstead_model::{
    Address, BackendErrorKind, Claim, DrawState, EventKind, Ident, Subject, Upstream, Waiting,
};

use super::{
    Batch, Book, Moment, draw_accounts::backend_refusal, drawing::MOST_TRIES, pool_changes::EVICTED_AT_ONCE,
    transaction::Transaction,
};
use crate::{
    command::{Caller, OwedPlace, Reply},
    record::{Record, Rest, Slot, SlotKey},
    refusal::Refusal,
};

/// Work for the worker that asks pool backends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrawJob {
    pub upstream: Upstream,
    /// The key at the backend. One operation at a time runs per key.
    pub key: Arc<str>,
    pub task: DrawTask,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DrawTask {
    /// Ask for an address, and bind it.
    Ask(Arc<Waiting>),
    /// Give back what the backend may hold for an ended claim.
    Withdraw(Arc<Waiting>),
    /// Give an address back whose rest is over; with `early`, if another claim needs room.
    GiveBack { place: OwedPlace, rest: Arc<Rest>, early: bool },
}

/// An object that a backend should hold for us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedObject {
    pub pool: Ident,
    pub key: Arc<str>,
    pub reference: String,
    pub address: Address,
    pub length: Option<u8>,
    /// The claim it belongs to; none for an address that rests.
    pub claim: Option<Arc<Claim>>,
}

impl Book {
    /// The pools with a backend.
    pub fn upstreams(&self) -> impl Iterator<Item = (&Ident, &Upstream)> {
        self.pools
            .values()
            .filter_map(|state| Some((state.pool.name(), state.pool.spec.upstream.as_deref()?)))
    }

    /// The waiting claims to ask for, and the withdrawn ones to end, the oldest first. Those that `wanted` refuses are left out.
    pub fn asks(&self, mut wanted: impl FnMut(&Ident, &Upstream, &Arc<str>) -> bool) -> Vec<DrawJob> {
        let mut jobs = Vec::new();
        let drawing = |waiting: &&Arc<Waiting>| waiting.draw.is_some();
        for waiting in self.waiting.values().filter(drawing) {
            let state = waiting.pools.first().and_then(|name| self.pools.get(name));
            let (Some(state), Some(draw)) = (state, waiting.draw.as_deref()) else { continue };
            let Some(upstream) = state.pool.spec.upstream.as_deref() else { continue };
            let task = match draw.state {
                DrawState::Waiting if draw.tries < MOST_TRIES => DrawTask::Ask(waiting.clone()),
                DrawState::Withdrawn => DrawTask::Withdraw(waiting.clone()),
                DrawState::Waiting | DrawState::Stray { .. } => continue,
            };
            if !wanted(state.pool.name(), upstream, &draw.key) {
                continue;
            }
            jobs.push(DrawJob { upstream: upstream.clone(), key: draw.key.clone(), task });
        }
        jobs
    }

    /// The addresses that go back now, in the order of pools.
    ///
    /// `hungry` names backends and their pools that have no free address: an address that has rested long enough there is given
    /// back early. Those that `wanted` refuses are left out.
    pub fn give_backs(
        &self,
        hungry: &HashSet<(Ident, String)>,
        mut wanted: impl FnMut(&Ident, &Upstream, &Arc<str>) -> bool,
    ) -> Vec<DrawJob> {
        let mut jobs = Vec::new();
        for state in self.pools.values() {
            let Some(upstream) = state.pool.spec.upstream.as_deref() else { continue };
            let is_hungry = hungry.contains(&(upstream.backend.clone(), upstream.pool.clone()));
            let least = state.pool.spec.cooldown_min.as_millis();
            for number in &state.owed {
                let Some(Slot::Rested(rest)) = state.slots.get(number) else { continue };
                let Some(drawn) = rest.drawn.as_deref() else { continue };
                let early = is_hungry && rest.freed.saturating_add(least) <= self.now;
                if !state.gives_back(rest, self.now) && !early {
                    continue;
                }
                if !wanted(state.pool.name(), upstream, &drawn.key) {
                    continue;
                }
                let (pool, number, key) = (state.pool.name().clone(), *number, drawn.key.clone());
                let place = OwedPlace { pool, number, key: key.clone() };
                let task = DrawTask::GiveBack { place, rest: rest.clone(), early };
                jobs.push(DrawJob { upstream: upstream.clone(), key, task });
            }
        }
        jobs
    }

    /// The claims that wait for the backend of a pool without a stored reason, in the order of their numbers.
    pub fn waits_without_reason(&self, pool: &Ident) -> impl Iterator<Item = &Arc<Waiting>> {
        let draws = self.pools.get(pool).into_iter().flat_map(|state| &state.draws);
        draws.filter_map(|seq| self.waiting.get(seq)).filter(|waiting| {
            waiting.draw.as_deref().is_some_and(|draw| draw.is_live() && draw.why.is_none())
        })
    }

    /// The backend's refusal that ended a claim, or why it ended otherwise; none for a claim without a backend.
    pub(crate) fn draw_refusal(&self, waiting: &Waiting) -> Option<Refusal> {
        let draw = waiting.draw.as_deref()?;
        let state = self.pools.get(waiting.pools.first()?)?;
        let (kind, message) = match &draw.why {
            Some(why) => (why.kind, why.message.clone()),
            None => (BackendErrorKind::Unavailable, "the claim was released meanwhile".to_owned()),
        };
        Some(backend_refusal(state, kind, message))
    }

    /// When the next rest ends that is owed to a backend, in ledger time.
    pub fn next_owed(&self) -> Option<u64> {
        let drawn = self.pools.values().filter(|state| !state.owed.is_empty());
        drawn.filter_map(|state| state.next_rest_end(self.now)).min()
    }

    /// Every object that the backend should hold for a pool.
    pub fn owned_objects(&self, pool: &Ident) -> Vec<OwnedObject> {
        let Some(state) = self.pools.get(pool) else { return Vec::new() };
        let mut objects = Vec::new();
        for slot in state.slots.values() {
            let (drawn, claim) = match slot {
                Slot::Held(claim) => (claim.drawn.as_deref(), Some(claim.clone())),
                Slot::Rested(rest) => (rest.drawn.as_deref(), None),
            };
            objects.extend(drawn.map(|drawn| OwnedObject {
                pool: pool.clone(),
                key: drawn.key.clone(),
                reference: drawn.reference.clone(),
                address: slot.address(),
                length: slot.length(),
                claim,
            }));
        }
        objects
    }

    /// Whether a key at the backend is in use by a claim, a rest, a stray or a withdrawn claim.
    pub fn uses_remote_key(&self, pool: &Ident, key: &str) -> bool {
        self.pools.get(pool).is_some_and(|state| state.remote_keys.contains_key(key))
    }

    /// The first pool that is being deleted and that no backend holds anything for any more.
    pub(super) fn next_emptied_pool(&self) -> Option<&Ident> {
        let emptied = self.pools.values().find(|state| {
            let pool = &state.pool;
            let left = state.claims() + state.owes() + state.waiting.len() as u64;
            pool.closing && pool.spec.upstream.is_some() && left == 0 && state.reservations.is_empty()
        });
        emptied.map(|state| state.pool.name())
    }

    pub(super) fn remove_emptied_pools(
        &mut self,
        most: usize,
        batch: &mut Batch,
        moment: Moment,
        system: &Caller,
    ) {
        while let Some(name) = self.next_emptied_pool().filter(|_| batch.len() < most).cloned() {
            let mut turn = Transaction { book: self, batch, moment, caller: system };
            let Ok(before) = turn.pool(&name).map(|state| state.pool.clone()) else { return };
            turn.put(Record::Pool(name, None));
            let reason = "its backend has every address back";
            turn.event(EventKind::PoolDeleted, Some(Subject::Pool(before)), None, Some(reason));
        }
    }
}

impl Transaction<'_> {
    /// Removes a pool with everything in it, and forgets what its backend holds for it.
    pub fn abandon_pool(
        &mut self,
        name: &Ident,
        reason: &str,
        if_version: Option<u64>,
    ) -> Result<Reply, Refusal> {
        if if_version.is_some() && !self.book.pools.contains_key(name) {
            return Ok(Reply::PoolDeleted { released: 0, left: 0, owed: 0 });
        }
        let before = self.changeable(name, if_version)?;
        if before.spec.upstream.is_none() {
            return Err(Refusal::invalid("abandon", "the pool has no backend: delete it with `force`"));
        }
        let state = self.pool(name)?;
        let space = state.space.clone();
        let slots = state.slots.iter().map(|(number, slot)| (*number, slot.clone()));
        let slots: Vec<(u128, Slot)> = slots.take(EVICTED_AT_ONCE).collect();
        let room = EVICTED_AT_ONCE - slots.len();
        let draws = state.draws.iter().filter_map(|seq| self.book.waiting.get(seq)).take(room);
        let draws: Vec<Arc<Waiting>> = draws.cloned().collect();
        let mut released = 0;
        for (number, slot) in slots {
            if let Slot::Held(claim) = &slot {
                self.free(claim, EventKind::Released, Some(reason))?;
                released += 1;
            }
            let place = SlotKey { space: space.clone(), number, length: slot.length() };
            self.put(Record::Slot(place, None));
        }
        for waiting in draws {
            self.put(Record::Waiting(waiting.seq, None));
            self.event(EventKind::Abandoned, Some(Subject::Waiting(waiting)), None, Some(reason));
        }
        let state = self.pool(name)?;
        let left = (state.slots.len() + state.draws.len()) as u64;
        if left > 0 {
            return Ok(Reply::PoolDeleted { released, left, owed: 0 });
        }
        self.put(Record::Pool(name.clone(), None));
        let told = format!("abandoned, with all that its backend holds for it: {reason}");
        self.event(EventKind::PoolDeleted, Some(Subject::Pool(before)), None, Some(&told));
        Ok(Reply::PoolDeleted { released, left: 0, owed: 0 })
    }
}
