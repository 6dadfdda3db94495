//! Promises 4 and 8: giving back, keeping and handing on; and what is set aside.

use std::{sync::Arc, time::Duration};

use netstead_ledger::{Caller, Refusal, Reply};
use netstead_model::{ClaimRef, Ident, Key, Range, Released, Reservation, Span};

use super::{
    Model, Rested,
    free_blocks::{block_of, covers, extent, overlap, span},
    invalid, may_touch,
};

impl Model {
    pub fn release(&mut self, caller: &Caller, target: &ClaimRef) -> Result<Reply, Refusal> {
        self.pool(&target.pool)?;
        let place = self.held_index(&target.pool, &target.key);
        let waits = self.queue.iter().any(|queued| queued.waiting.is_for(&target.pool, &target.key));
        if place.is_none() && target.id.is_none() && waits {
            return self.abandon(caller, &target.pool, &target.key);
        }
        let named = |place: &usize| target.id.is_none_or(|id| id == self.held[*place].claim.id);
        let Some(place) = place.filter(named) else { return Ok(Reply::Released(Released::AlreadyGone)) };
        self.check_touch(caller, place)?;
        let claim = self.held[place].claim.clone();
        self.free(place)?;
        Ok(Reply::Released(Released::Done(claim.into())))
    }

    fn check_touch(&self, caller: &Caller, place: usize) -> Result<(), Refusal> {
        let claim = &self.held[place].claim;
        let (pool, key, owner) = (claim.pool.clone(), claim.key.clone(), claim.owner.clone());
        if may_touch(caller, &owner) { Ok(()) } else { Err(Refusal::NotYours { pool, key, owner }) }
    }

    /// Ends a claim: its address goes to rest.
    pub fn free(&mut self, place: usize) -> Result<(), Refusal> {
        let id = self.held[place].claim.id;
        if let Some(pool) = self.pools.values().find(|pool| pool.within == Some(id)) {
            let address = self.held[place].claim.held();
            return Err(Refusal::CarriesPool { address, pool: pool.name().clone() });
        }
        let claim = self.held.remove(place).claim;
        let vrf = self.pools[&claim.pool].spec.vrf.clone();
        self.rests.push(Rested { claim, vrf, freed: self.now });
        self.event();
        Ok(())
    }

    /// The claim a target means, if it is still there.
    fn named(&self, target: &ClaimRef) -> Result<usize, Refusal> {
        self.pool(&target.pool)?;
        let (pool, key) = (target.pool.clone(), target.key.clone());
        match (self.held_index(&pool, &key), target.id) {
            (Some(place), None) => Ok(place),
            (Some(place), Some(id)) if self.held[place].claim.id == id => Ok(place),
            (_, Some(id)) => Err(Refusal::AlreadyGone { key, id, now: "" }),
            (None, None) => Err(Refusal::NoSuchClaim { pool, key }),
        }
    }

    pub fn renew(&mut self, caller: &Caller, target: &ClaimRef, ttl: Option<Span>) -> Result<Reply, Refusal> {
        let place = self.named(target)?;
        self.check_touch(caller, place)?;
        let mut claim = self.held[place].claim.clone();
        if let Some(ttl) = ttl {
            claim.ttl = (ttl != Span::ZERO).then_some(ttl);
        }
        if claim != self.held[place].claim {
            self.event();
        }
        self.held[place] = self.leased(claim.clone());
        let left = claim.ttl.map(|ttl| Duration::from_millis(ttl.as_millis()));
        Ok(Reply::Renewed { claim: claim.into(), left })
    }

    pub fn move_claim(
        &mut self,
        caller: &Caller,
        target: &ClaimRef,
        to: &Key,
        owner: Option<&Arc<str>>,
    ) -> Result<Reply, Refusal> {
        self.pool(&target.pool)?;
        let goal = self.held_index(&target.pool, to);
        if let Some(goal) = goal {
            let claim = &self.held[goal].claim;
            // A repeat finds it where it went.
            let there = target.id.map_or(*to == target.key, |id| id == claim.id);
            if there && owner.is_none_or(|owner| *owner == claim.owner) {
                if owner.is_none() {
                    self.check_touch(caller, goal)?;
                }
                return Ok(Reply::Moved(claim.clone().into()));
            }
        }
        let place = self.named(target)?;
        self.check_touch(caller, place)?;
        let (pool, key) = (target.pool.clone(), to.clone());
        if let Some(other) = goal.filter(|goal| *goal != place).map(|goal| &self.held[goal].claim) {
            return Err(Refusal::KeyHeld { pool, key, owner: other.owner.clone(), address: other.held() });
        }
        if let Some(queued) = self.queue.iter().find(|queued| queued.waiting.is_for(&pool, to)) {
            return Err(Refusal::WaitingForOther { pool, key, owner: queued.waiting.owner.clone() });
        }
        let mut claim = self.held[place].claim.clone();
        if let Some(owner) = owner.filter(|owner| **owner != claim.owner) {
            self.check_quota(&self.pools[&pool], owner)?;
            claim.owner = owner.clone();
        }
        claim.key = key;
        self.event();
        self.held[place] = self.leased(claim.clone());
        Ok(Reply::Moved(claim.into()))
    }

    pub fn reserve(
        &mut self,
        caller: &Caller,
        pool: &Ident,
        key: &Key,
        range: Range,
        description: Option<String>,
    ) -> Result<Reply, Refusal> {
        let lies_in = self.pool(pool)?;
        let (pool, key) = (pool.clone(), key.clone());
        if let Some(place) = self.reservations.iter().position(|r| r.pool == pool && r.key == key) {
            let mut there = self.reservations[place].clone();
            return match (may_touch(caller, &there.owner), there.range == range) {
                (false, _) => Err(Refusal::NotYours { pool, key, owner: there.owner }),
                (true, false) => Err(invalid("range")),
                (true, true) => {
                    there.description = described(description.or(there.description.clone()));
                    self.seq += u64::from(there != self.reservations[place]);
                    self.reservations[place] = there.clone();
                    Ok(Reply::Reserved(there.into()))
                }
            };
        }
        if lies_in.closing {
            return Err(Refusal::PoolClosing { pool });
        }
        if !covers(&extent(lies_in), span(range)) {
            return Err(Refusal::NotInPool { address: range.to_string(), pool });
        }
        let others = self.reservations.iter().filter(|r| r.pool == pool && r.range.overlaps(range));
        if let Some(other) = others.min_by_key(|other| other.range) {
            let (key, owner) = (other.key.clone(), other.owner.clone());
            return Err(Refusal::Reserved { address: other.range.to_string(), pool, key, owner });
        }
        let foreign = self
            .holders(lies_in)
            .map(|held| &held.claim)
            .filter(|claim| claim.owner != *caller.owner() && overlap(block_of(claim), span(range)));
        if let Some(claim) = foreign.min_by_key(|claim| claim.address) {
            let (key, owner) = (claim.key.clone(), claim.owner.clone());
            return Err(Refusal::AddressHeld { address: claim.held(), pool, key, owner });
        }
        let owner = caller.owner().clone();
        let description = described(description);
        let reservation = Reservation { pool, key, owner, range, since: self.wall, description };
        self.reservations.push(reservation.clone());
        self.event();
        Ok(Reply::Reserved(reservation.into()))
    }

    pub fn unreserve(&mut self, caller: &Caller, pool: &Ident, key: &Key) -> Result<Reply, Refusal> {
        self.pool(pool)?;
        let Some(place) = self.reservations.iter().position(|r| r.pool == *pool && r.key == *key) else {
            return Ok(Reply::Gone(false));
        };
        let owner = self.reservations[place].owner.clone();
        if !may_touch(caller, &owner) {
            return Err(Refusal::NotYours { pool: pool.clone(), key: key.clone(), owner });
        }
        self.reservations.remove(place);
        self.event();
        Ok(Reply::Gone(true))
    }
}

/// No words are none.
fn described(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

pub(crate) trait IsFor {
    fn is_for(&self, pool: &Ident, key: &Key) -> bool;
}

impl IsFor for netstead_model::Waiting {
    fn is_for(&self, pool: &Ident, key: &Key) -> bool {
        self.pools.contains(pool) && self.key == *key
    }
}
