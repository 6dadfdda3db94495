//! The queue of claims that found no free address.

use std::sync::Arc;

use netstead_model::{
    Claim, ClaimRequest, Details, EventKind, Ident, Key, PoolChoice, Subject, Waiting, Want,
};

use super::{
    Book,
    claiming::{new_details, new_ttl},
    pool_state::PoolState,
    transaction::Transaction,
};
use crate::{
    command::{Caller, Reply},
    record::Record,
    refusal::Refusal,
};

/// A waiting claim whose caller is silent for this long leaves the queue.
pub(crate) const SILENCE_MS: u64 = 30_000;
/// Most claims that may wait at a time.
const MOST_WAITING: usize = 10_000;
/// Most pools one of them may wait for: they are stored with it, and with its events.
const MOST_POOLS: usize = 1000;

impl Transaction<'_> {
    /// The places `key` has in the queues of these pools.
    pub fn queued(&self, pools: &[Ident], key: &Key) -> Vec<Arc<Waiting>> {
        if self.book.waiting.is_empty() {
            return Vec::new();
        }
        let seqs = pools.iter().filter_map(|name| self.book.pools.get(name)).flat_map(|state| &state.waiting);
        let drawing = pools.iter().filter_map(|name| self.book.pools.get(name)?.drawing.get(key));
        let waiting = seqs.chain(drawing).filter_map(|seq| self.book.waiting.get(seq));
        let waiting = waiting.filter(|waiting| waiting.key == *key);
        let mut found: Vec<Arc<Waiting>> = waiting.cloned().collect();
        found.sort_by_key(|waiting| waiting.seq);
        found.dedup_by_key(|waiting| waiting.seq);
        found
    }

    /// Takes a place in the queue, or confirms the one it has.
    pub fn queue_up(
        &mut self,
        pools: &[Ident],
        request: &ClaimRequest,
        has: Option<Arc<Waiting>>,
        full: Refusal,
    ) -> Result<Reply, Refusal> {
        if let Some(waiting) = has {
            self.note_heard(waiting.seq);
            self.book.note_caller_present(waiting.seq);
            return Ok(Reply::Queued(self.queue_up_again(waiting, request)));
        }
        let in_line = self.book.waiting.values().filter(|waiting| waiting.draw.is_none()).count();
        if in_line >= MOST_WAITING {
            return Err(full);
        }
        if pools.len() > MOST_POOLS {
            let reason =
                format!("a claim can wait for at most {MOST_POOLS} pools, and these are {}", pools.len());
            return Err(Refusal::invalid("wait", reason));
        }
        let waiting = Arc::new(Waiting {
            seq: self.next_seq(),
            key: request.key.clone(),
            owner: self.caller.owner().clone(),
            by: Some(self.caller.subject.clone()),
            request: self.caller.request.clone(),
            pools: pools.to_vec(),
            since: self.moment.wall,
            length: request.length,
            ttl: new_ttl(None, request.ttl),
            details: waiting_details(&Details::default(), request),
            keep: request.keep,
            draw: None,
        });
        self.put(Record::Waiting(waiting.seq, Some(waiting.clone())));
        self.event(EventKind::Waiting, None, Some(Subject::Waiting(waiting.clone())), None);
        Ok(Reply::Queued(waiting))
    }

    /// Confirms a place in the queue, with other details if other ones are given. Where and for what it waits stays.
    pub fn queue_up_again(&mut self, waiting: Arc<Waiting>, request: &ClaimRequest) -> Arc<Waiting> {
        let mut changed = Waiting {
            ttl: new_ttl(waiting.ttl, request.ttl),
            details: waiting_details(&waiting.details, request),
            keep: request.keep,
            ..Waiting::clone(&waiting)
        };
        if let Some(draw) = &mut changed.draw {
            draw.waits |= request.wait.is_some() || request.keep;
        }
        if changed == *waiting {
            return waiting;
        }
        // What it will get, it gets as this request wants it.
        changed.by = Some(self.caller.subject.clone());
        changed.request.clone_from(&self.caller.request);
        let changed = Arc::new(changed);
        self.put(Record::Waiting(changed.seq, Some(changed.clone())));
        let (before, after) = (Subject::Waiting(waiting), Subject::Waiting(changed.clone()));
        self.event(EventKind::Updated, Some(before), Some(after), None);
        changed
    }

    /// Gives a waiting claim an address of `pool`.
    pub fn serve(
        &mut self,
        waiting: &Arc<Waiting>,
        pool: &Ident,
        request: &ClaimRequest,
    ) -> Option<Arc<Claim>> {
        let state = self.book.pools.get(pool)?;
        let length = self.book.length_for(state, waiting.length).ok()?;
        let picked =
            state.pick(length, self.moment.random).or_else(|| state.pick_early(length, self.moment.now));
        let (number, length) = (picked?, state.stored_length(length));
        self.put(Record::Waiting(waiting.seq, None));
        self.bind(pool, number, length, request).ok()
    }

    pub fn abandon(&mut self, pool: &Ident, key: &Key) -> Result<Reply, Refusal> {
        self.pool(pool)?;
        let queued = self.queued(std::slice::from_ref(pool), key);
        for waiting in &queued {
            if !self.may_touch(&waiting.owner) {
                let (pool, key, owner) = (pool.clone(), key.clone(), waiting.owner.clone());
                return Err(Refusal::NotYours { pool, key, owner });
            }
            self.leave_queue(waiting, "it was asked to");
        }
        Ok(Reply::Gone(!queued.is_empty()))
    }

    /// Ends a waiting claim. One that a backend may have been asked for stays, as withdrawn.
    pub fn leave_queue(&mut self, waiting: &Arc<Waiting>, reason: &str) {
        if waiting.draw.as_ref().is_some_and(|draw| draw.asked) {
            return self.withdraw(waiting, None, reason);
        }
        self.put(Record::Waiting(waiting.seq, None));
        self.event(EventKind::Abandoned, Some(Subject::Waiting(waiting.clone())), None, Some(reason));
    }
}

impl Book {
    /// The caller of a waiting claim is still there.
    pub fn note_caller_present(&mut self, seq: u64) {
        self.set_heard_at(seq, self.now);
    }

    pub(super) fn set_heard_at(&mut self, seq: u64, at: u64) {
        if let Some(heard) = self.heard.get_mut(&seq) {
            *heard = at;
        }
    }

    pub(super) fn heard_at(&self, seq: u64) -> Option<u64> {
        self.heard.get(&seq).copied()
    }

    /// The first in line that can be served, with where from.
    pub(super) fn next_served(&self) -> Option<(Arc<Waiting>, Ident)> {
        if self.paused {
            return None;
        }
        let with_room =
            self.pools.values().filter(|state| !state.waiting.is_empty() && state.has_room(self.now));
        let served = with_room.filter_map(|state| {
            let waiting = self.first_in_line(state)?;
            let length = self.length_for(state, waiting.length).ok()?;
            state.pick(length, 0).or_else(|| state.pick_early(length, self.now))?;
            let name = state.pool.name();
            // Who has room in several pools gets the one named first.
            let place = waiting.pools.iter().position(|pool| pool == name)?;
            Some(((waiting.seq, place), waiting, name))
        });
        served.min_by_key(|(order, ..)| *order).map(|(_, waiting, name)| (waiting.clone(), name.clone()))
    }

    /// The first who waits for this pool and whom it could serve, had it room.
    pub(super) fn first_in_line(&self, state: &PoolState) -> Option<&Arc<Waiting>> {
        if state.pool.closing {
            return None;
        }
        let most = state.pool.spec.max_per_owner.unwrap_or(u32::MAX);
        state.waiting.iter().filter_map(|seq| self.waiting.get(seq)).find(|waiting| {
            state.held_count(&waiting.owner) < most && self.length_for(state, waiting.length).is_ok()
        })
    }

    pub(super) fn silent(&self, most: usize) -> Vec<Arc<Waiting>> {
        let silent = |waiting: &&Arc<Waiting>| {
            let heard = self.heard.get(&waiting.seq).copied().unwrap_or(self.now);
            may_lapse(waiting) && heard.saturating_add(SILENCE_MS) <= self.now
        };
        self.waiting.values().filter(silent).take(most).cloned().collect()
    }
}

/// Whether it ends when its caller is silent.
pub(super) fn may_lapse(waiting: &Waiting) -> bool {
    !waiting.keep && waiting.draw.as_ref().is_none_or(|draw| draw.is_live())
}

pub(super) fn waiting_details(was: &Details, request: &ClaimRequest) -> Details {
    new_details(was, request).map_or_else(Details::default, |details| *details)
}

/// The request a waiting claim stands for, and who made it.
pub(super) fn request_of(waiting: &Waiting, pool: &Ident) -> (Caller, ClaimRequest) {
    let subject = waiting.by.as_ref().unwrap_or(&waiting.owner).clone();
    let behalf = Some(waiting.owner.clone());
    let caller = Caller { subject, behalf, manager: false, request: waiting.request.clone() };
    let request = ClaimRequest {
        key: waiting.key.clone(),
        from: PoolChoice::Pools(vec![pool.clone()]),
        want: Want::Any,
        length: waiting.length,
        ttl: waiting.ttl,
        labels: Some(waiting.details.labels.clone()),
        hostnames: Some(waiting.details.hostnames.clone()),
        description: waiting.details.description.clone(),
        adopt: false,
        force: false,
        wait: None,
        keep: false,
    };
    (caller, request)
}
