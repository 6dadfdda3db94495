//! The commands *release*, *renew* and *move*.

use std::{sync::Arc, time::Duration};

use netstead_model::{Claim, ClaimRef, EventKind, Ident, Key, Released, Span, Subject};

use super::{Book, claiming::check_new_key, transaction::Transaction};
use crate::{
    command::Reply,
    record::{Record, Rest, Slot, SlotKey},
    refusal::Refusal,
};

impl Transaction<'_> {
    /// Ends a claim; its address goes to rest. Releasing what is gone touches nothing.
    pub fn release(&mut self, target: &ClaimRef) -> Result<Reply, Refusal> {
        let Some(claim) = self.pool(&target.pool)?.held_by(&target.key).cloned() else {
            if target.id.is_none() && !self.queued(std::slice::from_ref(&target.pool), &target.key).is_empty()
            {
                return self.abandon(&target.pool, &target.key);
            }
            return Ok(Reply::Released(Released::AlreadyGone));
        };
        if target.id.is_some_and(|id| id != claim.id) {
            return Ok(Reply::Released(Released::AlreadyGone));
        }
        self.check_touch(&claim)?;
        self.free(&claim, EventKind::Released, None)?;
        Ok(Reply::Released(Released::Done(claim)))
    }

    fn check_touch(&self, claim: &Claim) -> Result<(), Refusal> {
        if self.may_touch(&claim.owner) {
            return Ok(());
        }
        Err(Refusal::NotYours {
            pool: claim.pool.clone(),
            key: claim.key.clone(),
            owner: claim.owner.clone(),
        })
    }

    pub fn free(&mut self, claim: &Arc<Claim>, what: EventKind, reason: Option<&str>) -> Result<(), Refusal> {
        if let Some(pool) = self.book.carried.get(&claim.id).and_then(|pools| pools.first()) {
            return Err(Refusal::CarriesPool { address: claim.held(), pool: pool.clone() });
        }
        let space = self.pool(&claim.pool)?.space.clone();
        let rest = Arc::new(Rest {
            claim: claim.id,
            pool: claim.pool.clone(),
            key: claim.key.clone(),
            owner: claim.owner.clone(),
            address: claim.address,
            length: claim.length,
            fixed: claim.fixed,
            freed: self.moment.now,
            at: self.moment.wall,
            drawn: claim.drawn.clone(),
        });
        let place = SlotKey { space, number: claim.address.number(), length: claim.length };
        self.put(Record::Slot(place, Some(Slot::Rested(rest))));
        self.event(what, Some(Subject::Claim(claim.clone())), None, reason);
        Ok(())
    }

    /// Gives the claim its full time again. Nothing is stored unless the time to live itself changes.
    pub fn renew(&mut self, target: &ClaimRef, ttl: Option<Span>) -> Result<Reply, Refusal> {
        let claim = self.named(target)?;
        self.check_touch(&claim)?;
        let ttl = ttl.map(|ttl| (!ttl.is_zero()).then_some(ttl));
        let claim = match ttl {
            Some(ttl) if ttl != claim.ttl => {
                let changed = Arc::new(Claim { ttl, ..Claim::clone(&claim) });
                self.put_claim(&changed)?;
                let (before, after) = (Subject::Claim(claim), Subject::Claim(changed.clone()));
                self.event(EventKind::Updated, Some(before), Some(after), None);
                changed
            }
            _ => {
                self.renew_lease(&claim);
                claim
            }
        };
        let left = claim.ttl.map(Duration::from);
        Ok(Reply::Renewed { claim, left })
    }

    fn named(&self, target: &ClaimRef) -> Result<Arc<Claim>, Refusal> {
        let held = self.pool(&target.pool)?.held_by(&target.key);
        match (held, target.id) {
            (Some(claim), Some(id)) if claim.id != id => {
                Err(Refusal::AlreadyGone { key: target.key.clone(), id, now: "the key has a later claim" })
            }
            (Some(claim), _) => Ok(claim.clone()),
            (None, Some(id)) => {
                Err(Refusal::AlreadyGone { key: target.key.clone(), id, now: "the key holds nothing" })
            }
            (None, None) => Err(Refusal::NoSuchClaim { pool: target.pool.clone(), key: target.key.clone() }),
        }
    }

    /// Hands the address to another key. The claim stays the same claim, so a repeat finds it where it went.
    pub fn move_claim(
        &mut self,
        target: &ClaimRef,
        to: &Key,
        owner: Option<&Arc<str>>,
    ) -> Result<Reply, Refusal> {
        let at_goal = self.pool(&target.pool)?.held_by(to).cloned();
        if let Some(claim) = &at_goal {
            let there = target.id.map_or(*to == target.key, |id| id == claim.id);
            let as_asked = owner.is_none_or(|owner| *owner == claim.owner);
            if there && as_asked {
                self.check_touch(claim)
                    .or_else(|refusal| if owner.is_some() { Ok(()) } else { Err(refusal) })?;
                return Ok(Reply::Moved(claim.clone()));
            }
        }
        let claim = self.named(target)?;
        self.check_touch(&claim)?;
        if *to != claim.key {
            check_new_key(to)?;
        }
        if let Some(other) = at_goal.filter(|other| other.id != claim.id) {
            let (pool, key, owner) = (target.pool.clone(), to.clone(), other.owner.clone());
            return Err(Refusal::KeyHeld { pool, key, owner, address: other.held() });
        }
        if let Some(waiting) = self.queued(std::slice::from_ref(&target.pool), to).into_iter().next() {
            let (pool, key, owner) = (target.pool.clone(), to.clone(), waiting.owner.clone());
            return Err(Refusal::WaitingForOther { pool, key, owner });
        }
        let owner = owner.unwrap_or(&claim.owner).clone();
        let state = self.pool(&target.pool)?;
        let (held, most) =
            (self.book.counted_for(state, &owner), state.pool.spec.max_per_owner.unwrap_or(u32::MAX));
        if owner != claim.owner && held >= most {
            return Err(Refusal::QuotaReached { pool: target.pool.clone(), owner, held, most });
        }
        let changed = Arc::new(Claim { key: to.clone(), owner, ..Claim::clone(&claim) });
        self.put_claim(&changed)?;
        let (before, after) = (Subject::Claim(claim), Subject::Claim(changed.clone()));
        self.event(EventKind::Moved, Some(before), Some(after), None);
        Ok(Reply::Moved(changed))
    }
}

impl Book {
    pub(super) fn renew_lease(&mut self, claim: &Claim) {
        let now = self.now;
        if let Some(state) = self.pools.get_mut(&claim.pool) {
            state.renew(claim.address.number(), now);
        }
    }

    pub(super) fn set_lease(&mut self, pool: &Ident, number: u128, end: u64) {
        if let Some(state) = self.pools.get_mut(pool) {
            state.start_lease(number, end);
        }
    }
}
