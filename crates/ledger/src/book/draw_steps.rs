//! The steps of a claim on its way to a backend and back, as the worker reports them.

use std::sync::Arc;

use netstead_model::{
    BackendErrorKind, BackendObject, Claim, ClaimRequest, Draw, DrawFailure, DrawState, Drawn, EventKind,
    Ident, Span, Subject, Waiting,
};

use super::{pool_state::host_mask, transaction::Transaction, wait_queue::request_of};
use crate::{
    command::{DrawReply, DrawStep, OwedPlace, Reply},
    record::{Record, Rest, Slot, SlotKey},
    refusal::Refusal,
};

/// Why a backend's answer is not bound.
enum NotBindable {
    /// Another of our claims had it, and is about to give it back.
    Later,
    Never(String),
}

impl Transaction<'_> {
    pub fn draw_step(&mut self, step: &DrawStep) -> Result<Reply, Refusal> {
        let reply = match step {
            DrawStep::Asking { seq, key } => self.note_asked(*seq, key),
            DrawStep::Bind { seq, key, object, checked } => self.bind_answer(*seq, key, object, *checked)?,
            DrawStep::Failed { seq, key, failure, over } => self.note_failure(*seq, key, failure, *over),
            DrawStep::Gone { seq, key, gave } => self.end_withdrawn(*seq, key, *gave),
            DrawStep::ReleaseStray { seq } => self.release_stray(*seq),
            DrawStep::GiveBack { place, early } => self.begin_giving_back(place, *early),
            DrawStep::GaveBack { place } => self.note_given_back(place),
            DrawStep::Rebound { pool, key, id, reference } => {
                let claim = self.pool(pool)?.held_by(key).filter(|claim| claim.id == *id).cloned();
                match claim.and_then(|claim| Some((claim.drawn.clone()?, claim))) {
                    Some((drawn, claim)) => {
                        let drawn = Some(Box::new(Drawn { reference: reference.clone(), ..*drawn }));
                        self.put_claim(&Arc::new(Claim { drawn, ..Claim::clone(&claim) }))?;
                        DrawReply::Done
                    }
                    None => DrawReply::Stale,
                }
            }
        };
        Ok(Reply::Drawn(reply))
    }

    /// The waiting claim with this number and this key at the backend.
    fn drawing(&self, seq: u64, key: &str) -> Option<(Arc<Waiting>, Draw)> {
        let waiting = self.book.waiting.get(&seq)?;
        let draw = waiting.draw.as_deref().filter(|draw| *draw.key == *key)?;
        Some((waiting.clone(), draw.clone()))
    }

    fn put_draw(&mut self, waiting: &Waiting, draw: Draw) -> Arc<Waiting> {
        let changed = Arc::new(Waiting { draw: Some(Box::new(draw)), ..waiting.clone() });
        self.put(Record::Waiting(changed.seq, Some(changed.clone())));
        changed
    }

    fn note_asked(&mut self, seq: u64, key: &str) -> DrawReply {
        match self.drawing(seq, key) {
            Some((waiting, draw)) if draw.is_live() => {
                if !draw.asked {
                    self.put_draw(&waiting, Draw { asked: true, ..draw });
                }
                DrawReply::Done
            }
            _ => DrawReply::Stale,
        }
    }

    fn bind_answer(
        &mut self,
        seq: u64,
        key: &str,
        object: &BackendObject,
        checked: bool,
    ) -> Result<DrawReply, Refusal> {
        let Some((waiting, draw)) = self.drawing(seq, key).filter(|(_, draw)| draw.is_live()) else {
            return Ok(DrawReply::Stale);
        };
        let Some(pool) = waiting.pools.first().cloned() else { return Ok(DrawReply::Stale) };
        let (caller, request) = request_of(&waiting, &pool);
        let length = object.length.or(request.length);
        let request =
            ClaimRequest { want: draw.want, adopt: draw.adopt, force: draw.force, length, ..request };
        let (book, batch, moment) = (&mut *self.book, &mut *self.batch, self.moment);
        let mut turn = Transaction { book, batch, moment, caller: &caller };
        let found = match turn.bindable(&pool, object, &request) {
            Ok(found) => found,
            Err(NotBindable::Later) if checked => return Ok(DrawReply::Later),
            Err(NotBindable::Never(reason)) if checked => {
                self.keep_stray(&waiting, draw, object, &reason)?;
                return Ok(DrawReply::Stray);
            }
            Err(_) => (object.address.number(), object.length),
        };
        let (key, reference) = (draw.key.clone(), object.reference.clone());
        let drawn = Some(Box::new(Drawn { key, reference, giving: false }));
        turn.put(Record::Waiting(seq, None));
        turn.bind_drawn(&pool, found, &request, drawn).map(DrawReply::Bound)
    }

    /// Whether the backend's answer may be bound: what the ledger knows of the address must not speak against it.
    fn bindable(
        &self,
        pool: &Ident,
        object: &BackendObject,
        request: &ClaimRequest,
    ) -> Result<(u128, Option<u8>), NotBindable> {
        let never = |refusal: Refusal| NotBindable::Never(refusal.to_string());
        let state = self.pool(pool).map_err(never)?;
        if !state.in_extent(object.address) {
            let (address, pool) = (Refusal::shown(object.address, object.length), pool.clone());
            return Err(never(Refusal::NotInPool { address, pool }));
        }
        let length = object.length.unwrap_or(state.bits());
        let (first, last) =
            (object.address.number(), object.address.number() | host_mask(state.bits(), length));
        for slot in state.slots_in(first, last) {
            let Slot::Rested(rest) = slot else { continue };
            if rest.drawn.is_none() {
                continue;
            }
            if state.gives_back(rest, self.moment.now) {
                return Err(NotBindable::Later);
            }
            let (key, owner) = (rest.key.clone(), rest.owner.clone());
            let left = Span::from_millis(state.rest_left(rest, self.moment.now));
            let address = Refusal::shown(rest.address, rest.length);
            return Err(never(Refusal::Resting { address, key, owner, left }));
        }
        self.check_address(state, object.address, request).map_err(never)
    }

    /// Keeps an object that cannot be bound, and lets the claim ask again under another key.
    fn keep_stray(
        &mut self,
        waiting: &Arc<Waiting>,
        draw: Draw,
        object: &BackendObject,
        reason: &str,
    ) -> Result<(), Refusal> {
        let why = Some(DrawFailure { kind: BackendErrorKind::Held, message: reason.to_owned() });
        let (reference, address, length) = (object.reference.clone(), object.address, object.length);
        let stray = Draw {
            state: DrawState::Stray { reference, address, length },
            asked: true,
            why: why.clone(),
            ..draw.clone()
        };
        let stray = Arc::new(Waiting {
            seq: self.next_seq(),
            draw: Some(Box::new(stray)),
            keep: true,
            ..Waiting::clone(waiting)
        });
        self.put(Record::Waiting(stray.seq, Some(stray.clone())));
        self.event(EventKind::Waiting, None, Some(Subject::Waiting(stray)), Some(reason));
        let tries = draw.tries.saturating_add(1);
        let name = waiting.pools.first().cloned().unwrap_or_else(Ident::default_vrf);
        let key = self.remote_key(self.pool(&name)?, &waiting.key)?;
        let after = self.put_draw(waiting, Draw { key, asked: false, tries, why, ..draw });
        let (before, after) = (Subject::Waiting(waiting.clone()), Subject::Waiting(after));
        self.event(EventKind::Updated, Some(before), Some(after), Some(reason));
        Ok(())
    }

    fn note_failure(&mut self, seq: u64, key: &str, failure: &DrawFailure, over: bool) -> DrawReply {
        let Some((waiting, draw)) = self.drawing(seq, key).filter(|(_, draw)| draw.is_live()) else {
            return DrawReply::Stale;
        };
        let gives_up = !draw.waits && !waiting.keep && failure.kind.is_refusal();
        if over || gives_up {
            self.withdraw(&waiting, Some(failure.clone()), &failure.message);
        } else if draw.why.as_ref() != Some(failure) {
            self.put_draw(&waiting, Draw { why: Some(failure.clone()), ..draw });
        }
        DrawReply::Done
    }

    fn end_withdrawn(&mut self, seq: u64, key: &str, gave: bool) -> DrawReply {
        match self.drawing(seq, key) {
            Some((waiting, draw)) if draw.is_withdrawn() => {
                self.put(Record::Waiting(seq, None));
                if gave {
                    self.event(EventKind::GivenBack, Some(Subject::Waiting(waiting)), None, None);
                }
                DrawReply::Done
            }
            _ => DrawReply::Stale,
        }
    }

    fn release_stray(&mut self, seq: u64) -> DrawReply {
        let Some(waiting) = self.book.waiting.get(&seq).cloned() else { return DrawReply::Stale };
        match waiting.draw.as_deref() {
            Some(Draw { state: DrawState::Stray { .. }, .. }) => {
                self.withdraw(&waiting, None, "a person gave it back");
                DrawReply::Done
            }
            _ => DrawReply::Stale,
        }
    }

    fn owed(&self, place: &OwedPlace) -> Option<(Arc<Rest>, Drawn, SlotKey)> {
        let state = self.book.pools.get(&place.pool)?;
        let Some(Slot::Rested(rest)) = state.slots.get(&place.number) else { return None };
        let drawn = rest.drawn.as_deref().filter(|drawn| drawn.key == place.key)?;
        let at = SlotKey { space: state.space.clone(), number: place.number, length: rest.length };
        Some((rest.clone(), drawn.clone(), at))
    }

    fn begin_giving_back(&mut self, place: &OwedPlace, early: bool) -> DrawReply {
        let Some((rest, drawn, at)) = self.owed(place) else { return DrawReply::Stale };
        if drawn.giving {
            return DrawReply::GivingBack(rest);
        }
        let rested = self.book.pools.get(&place.pool).is_some_and(|state| {
            let least = state.pool.spec.cooldown_min.as_millis();
            state.rest_left(&rest, self.moment.now) == 0
                || (early && rest.freed.saturating_add(least) <= self.moment.now)
        });
        if !rested {
            return DrawReply::Stale;
        }
        let drawn = Some(Box::new(Drawn { giving: true, ..drawn }));
        let rest = Arc::new(Rest { drawn, ..Rest::clone(&rest) });
        self.put(Record::Slot(at, Some(Slot::Rested(rest.clone()))));
        DrawReply::GivingBack(rest)
    }

    fn note_given_back(&mut self, place: &OwedPlace) -> DrawReply {
        let Some((rest, drawn, at)) = self.owed(place).filter(|(_, drawn, _)| drawn.giving) else {
            return DrawReply::Stale;
        };
        self.put(Record::Slot(at, None));
        let claim = Arc::new(Claim {
            id: rest.claim,
            pool: rest.pool.clone(),
            key: rest.key.clone(),
            owner: rest.owner.clone(),
            address: rest.address,
            length: rest.length,
            fixed: rest.fixed,
            since: rest.at,
            ttl: None,
            details: None,
            drawn: Some(Box::new(drawn)),
        });
        self.event(EventKind::GivenBack, Some(Subject::Claim(claim)), None, None);
        DrawReply::Done
    }
}
