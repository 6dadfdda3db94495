//! Claims in a pool with a backend: stored as waiting at once, and bound when the backend answers.
//!
//! The Book decides nothing about the address: the backend does. The Book decides whether the answer can be bound, and keeps
//! account of everything that a backend may hold for us:
//!
//! - a waiting claim that may have been asked for is never forgotten: it becomes *withdrawn*;
//! - a released address rests here first, and stays until the backend has it back;
//! - an answer that cannot be bound is kept as a *stray*.
//!
//! `draw_steps` has the steps on the way to the backend and back, `draw_accounts` counts what a backend may hold.

use std::sync::Arc;

use netstead_model::{
    BackendErrorKind, ClaimRequest, Details, Draw, DrawFailure, DrawState, EventKind, Ident, Key, Pool,
    PoolChoice, PoolSpec, Subject, Waiting, Want,
};

use super::{
    claiming::{check_new_key, new_ttl},
    draw_accounts::backend_refusal,
    pool_state::PoolState,
    transaction::Transaction,
    wait_queue::waiting_details,
};
use crate::{
    command::{Outcome, Reply},
    record::{Record, Rest, Slot},
    refusal::Refusal,
};

/// Most claims that may wait for one backend, with those that were withdrawn.
const MOST_DRAWS: usize = 10_000;
/// How many answers a claim may get that cannot be bound. Then it waits for a person.
pub(crate) const MOST_TRIES: u8 = 8;
/// Characters kept free behind a key at the backend, for `~` and a number.
const KEY_SLACK: usize = 21;

impl Transaction<'_> {
    /// Whether the choice names a pool with a backend.
    pub fn draws_from_backend(&self, from: &PoolChoice) -> bool {
        let drawn = |name: &Ident| self.pool(name).is_ok_and(|state| state.pool.spec.upstream.is_some());
        matches!(from, PoolChoice::Pools(names) if names.iter().any(drawn))
    }

    /// Claims in a pool with a backend: takes back what still rests for this key, else waits for the backend.
    pub fn draw(&mut self, name: &Ident, request: &ClaimRequest) -> Result<Reply, Refusal> {
        if let Some(waiting) = self.queued(std::slice::from_ref(name), &request.key).into_iter().next() {
            return self.draw_again(name, &waiting, request);
        }
        check_new_key(&request.key)?;
        let state = self.open_pool(name)?;
        self.book.length_for(state, request.length)?;
        self.check_quota(state)?;
        if let Want::Exact(address) = request.want {
            self.check_exact(state, address, request)?;
        }
        if let Some((number, rest)) = self.returnable(state, request)? {
            let drawn = rest.drawn.clone();
            let claim = self.bind_drawn(name, (number, rest.length), request, drawn)?;
            return Ok(Reply::Claimed { claim, outcome: Outcome::Created });
        }
        if self.book.paused {
            return Err(Refusal::Paused);
        }
        let state = self.pool(name)?;
        let key = self.remote_key(state, &request.key)?;
        self.check_room(state)?;
        let waiting = Arc::new(Waiting {
            seq: self.next_seq(),
            key: request.key.clone(),
            owner: self.caller.owner().clone(),
            by: Some(self.caller.subject.clone()),
            request: self.caller.request.clone(),
            pools: vec![name.clone()],
            since: self.moment.wall,
            length: request.length,
            ttl: new_ttl(None, request.ttl),
            details: waiting_details(&Details::default(), request),
            keep: request.keep,
            draw: Some(Box::new(Draw {
                key,
                asked: false,
                want: request.want,
                adopt: request.adopt,
                force: request.force,
                waits: request.wait.is_some() || request.keep,
                tries: 0,
                state: DrawState::Waiting,
                why: None,
            })),
        });
        self.put(Record::Waiting(waiting.seq, Some(waiting.clone())));
        self.event(EventKind::Waiting, None, Some(Subject::Waiting(waiting.clone())), None);
        Ok(Reply::Queued(waiting))
    }

    fn draw_again(
        &mut self,
        name: &Ident,
        waiting: &Arc<Waiting>,
        request: &ClaimRequest,
    ) -> Result<Reply, Refusal> {
        if waiting.owner != *self.caller.owner() {
            let (pool, key, owner) = (name.clone(), request.key.clone(), waiting.owner.clone());
            return Err(Refusal::WaitingForOther { pool, key, owner });
        }
        let asks_other = |draw: &Draw| matches!(request.want, Want::Exact(_)) && draw.want != request.want;
        let other_length = request.length.is_some() && request.length != waiting.length;
        if waiting.draw.as_deref().is_some_and(asks_other) || other_length {
            let reason = format!("`{}` already waits for another address; release it first", request.key);
            return Err(Refusal::invalid("address", reason));
        }
        self.note_heard(waiting.seq);
        self.book.note_caller_present(waiting.seq);
        Ok(Reply::Queued(self.queue_up_again(waiting.clone(), request)))
    }

    /// Refuses an exact address that can be seen here to be impossible.
    fn check_exact(
        &self,
        state: &PoolState,
        address: netstead_model::Address,
        request: &ClaimRequest,
    ) -> Result<(), Refusal> {
        match self.check_address(state, address, request) {
            // What rests for this caller comes back without a question to the backend.
            Err(Refusal::Resting { .. }) if self.resting_at(state, address.number(), request).is_some() => {
                Ok(())
            }
            Err(refusal) => Err(refusal),
            Ok(_) => Ok(()),
        }
    }

    /// Finds the rest that is ours at the backend, and that may be had back without asking there.
    fn returnable(
        &self,
        state: &PoolState,
        request: &ClaimRequest,
    ) -> Result<Option<(u128, Arc<Rest>)>, Refusal> {
        let length = self.book.length_for(state, request.length)?;
        let number = match request.want {
            Want::Exact(address) => Some(address.number()),
            Want::Any | Want::Prefer(_) if state.pool.spec.sticky => {
                state.resting_for(&request.key, self.caller.owner(), length, self.moment.now)
            }
            Want::Any | Want::Prefer(_) => None,
        };
        let found = number.and_then(|number| Some((number, self.resting_at(state, number, request)?)));
        Ok(found.filter(|(_, rest)| rest.length == state.stored_length(length)))
    }

    /// The rest at `number`, if this request may have it.
    fn resting_at(&self, state: &PoolState, number: u128, request: &ClaimRequest) -> Option<Arc<Rest>> {
        let Some(Slot::Rested(rest)) = state.slots.get(&number) else { return None };
        let own = state.pool.spec.sticky && rest.key == request.key && rest.owner == *self.caller.owner();
        let ours = rest.drawn.as_ref().is_some_and(|drawn| !drawn.giving);
        let resting = state.rest_left(rest, self.moment.now) > 0;
        (ours && resting && (own || request.force)).then(|| rest.clone())
    }

    /// A key for the backend that no other claim uses there.
    pub(super) fn remote_key(&self, state: &PoolState, key: &Key) -> Result<Arc<str>, Refusal> {
        let owner = state.pool.spec.upstream.as_ref().map_or("", |upstream| upstream.owner.as_str());
        let base = format!("{owner}/{}/{key}", state.pool.name());
        let (length, most) = (base.chars().count(), Key::MAX - KEY_SLACK);
        if length > most {
            let reason = format!(
                "with the pool and the owner id it has {length} characters, and a backend takes {most}; use a shorter one"
            );
            return Err(Refusal::invalid("key", reason));
        }
        let mut found = base.clone();
        let mut number = self.next_seq();
        while state.remote_keys.contains_key(&*found) {
            found = format!("{base}~{number}");
            number += 1;
        }
        Ok(found.into())
    }

    fn check_room(&self, state: &PoolState) -> Result<(), Refusal> {
        let Some(upstream) = &state.pool.spec.upstream else { return Ok(()) };
        let same = self.book.pools.values().filter(|other| {
            other.pool.spec.upstream.as_ref().is_some_and(|other| other.backend == upstream.backend)
        });
        if same.map(|state| state.draws.len()).sum::<usize>() < MOST_DRAWS {
            return Ok(());
        }
        let message = format!("{MOST_DRAWS} claims wait for it already; ask again later");
        Err(backend_refusal(state, BackendErrorKind::Exhausted, message))
    }

    /// Ends a waiting claim that a backend may have been asked for. What the backend holds for it is given back later.
    pub fn withdraw(&mut self, waiting: &Arc<Waiting>, why: Option<DrawFailure>, reason: &str) {
        let mut changed = Waiting::clone(waiting);
        if let Some(draw) = &mut changed.draw {
            draw.state = DrawState::Withdrawn;
            draw.why = why.or(draw.why.take());
        }
        self.put(Record::Waiting(waiting.seq, Some(Arc::new(changed))));
        self.event(EventKind::Abandoned, Some(Subject::Waiting(waiting.clone())), None, Some(reason));
    }

    /// Backend and extent of a pool stay while a backend may hold something for it.
    pub fn check_upstream(&self, before: &Pool, spec: &PoolSpec) -> Result<(), Refusal> {
        let state = self.pool(&spec.name)?;
        let at = |spec: &PoolSpec| spec.upstream.as_ref().map(|up| (up.backend.clone(), up.pool.clone()));
        let moved = at(&before.spec) != at(spec);
        let resized = before.spec.upstream.is_some() && before.spec.usable() != spec.usable();
        let field = if moved { "backend" } else { "ranges" };
        if (moved || resized) && state.claims() + state.owes() > 0 {
            let reason = "it cannot change while the pool holds anything: release the claims first";
            return Err(Refusal::invalid(field, reason));
        }
        if moved && !(state.waiting.is_empty() && state.reservations.is_empty()) {
            return Err(Refusal::invalid(field, "it cannot change while claims wait or ranges are reserved"));
        }
        Ok(())
    }
}
