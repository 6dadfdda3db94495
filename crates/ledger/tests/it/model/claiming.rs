//! Promises 2, 6 and 7: who gets which address.

use netstead_ledger::{Caller, Outcome, Refusal, Reply};
use netstead_model::{
    Address, Claim, ClaimRequest, Family, Ident, Key, Pool, PoolChoice, Span, Waiting, Want,
};

use super::{
    Block, Model, Queued,
    binding::{details, lifetime},
    free_blocks::{self, block, block_of, covers, in_extent, overlap, span},
    invalid,
};

/// Where a block was found: the pool, its first number, its length.
pub type FoundBlock = (Ident, u128, u8);

impl Model {
    pub fn claim(
        &mut self,
        caller: &Caller,
        request: &ClaimRequest,
        hint: Option<&Reply>,
    ) -> Result<Reply, Refusal> {
        if request.wait.is_some() && matches!(request.want, Want::Exact(_)) {
            return Err(invalid("wait"));
        }
        let pools = self.choose(&request.from)?;
        let has = pools.iter().find_map(|pool| self.held_index(pool, &request.key));
        if let Some(place) = has {
            return self.claim_again(caller, place, request);
        }
        let waits = |queued: &&Queued| {
            queued.waiting.key == request.key && queued.waiting.pools.iter().any(|pool| pools.contains(pool))
        };
        let queued: Vec<Waiting> =
            self.queue.iter().filter(waits).map(|queued| queued.waiting.clone()).collect();
        if let Some(other) = queued.iter().find(|waiting| waiting.owner != *caller.owner()) {
            let (pool, key, owner) = (pools[0].clone(), request.key.clone(), other.owner.clone());
            return Err(Refusal::WaitingForOther { pool, key, owner });
        }
        match self.find(caller, &pools, request, hint) {
            Ok(found) => {
                self.queue.retain(|other| !queued.iter().any(|waiting| waiting.seq == other.waiting.seq));
                let claim = self.bind(caller, &found, request);
                Ok(Reply::Claimed { claim: claim.into(), outcome: Outcome::Created })
            }
            Err(Refusal::Exhausted { .. }) if request.wait.is_some() => {
                Ok(self.queue_up(caller, &pools, request, queued.first()))
            }
            Err(refusal) => Err(refusal),
        }
    }

    fn choose(&self, from: &PoolChoice) -> Result<Vec<Ident>, Refusal> {
        match from {
            PoolChoice::Pools(names) if names.is_empty() => Err(invalid("pools")),
            PoolChoice::Pools(names) => {
                names.iter().try_for_each(|name| self.pool(name).map(drop))?;
                Ok(names.clone())
            }
            PoolChoice::Select(selector) => {
                let matching = self.pools.values().filter(|pool| selector.matches(&pool.spec.labels));
                let names: Vec<Ident> = matching.map(|pool| pool.name().clone()).collect();
                let none = Refusal::NothingSelected { selector: selector.to_string() };
                if names.is_empty() { Err(none) } else { Ok(names) }
            }
        }
    }

    pub fn held_index(&self, pool: &Ident, key: &Key) -> Option<usize> {
        self.held.iter().position(|held| held.claim.pool == *pool && held.claim.key == *key)
    }

    fn claim_again(
        &mut self,
        caller: &Caller,
        place: usize,
        request: &ClaimRequest,
    ) -> Result<Reply, Refusal> {
        let claim = self.held[place].claim.clone();
        let (pool, key, owner) = (claim.pool.clone(), claim.key.clone(), claim.owner.clone());
        let foreign = owner != *caller.owner();
        if foreign && !request.adopt {
            return Err(Refusal::KeyHeld { pool, key, owner, address: claim.held() });
        }
        if foreign && !caller.manager {
            return Err(Refusal::NotYours { pool, key, owner });
        }
        let elsewhere = matches!(request.want, Want::Exact(address) if address != claim.address);
        if elsewhere || request.length.is_some_and(|length| Some(length) != claim.length) {
            return Err(Refusal::HoldsAnother { pool, key, held: claim.held(), asked: String::new() });
        }
        if foreign {
            self.check_quota(&self.pools[&pool], caller.owner())?;
        }
        let mut changed = claim.clone();
        changed.owner = caller.owner().clone();
        changed.ttl = lifetime(claim.ttl, request.ttl);
        changed.details = details(claim.details(), request);
        let outcome = if changed == claim { Outcome::Repeated } else { Outcome::Updated };
        if changed != claim {
            self.event();
        }
        self.held[place] = self.leased(changed.clone());
        Ok(Reply::Claimed { claim: changed.into(), outcome })
    }

    fn find(
        &self,
        caller: &Caller,
        pools: &[Ident],
        request: &ClaimRequest,
        hint: Option<&Reply>,
    ) -> Result<FoundBlock, Refusal> {
        match request.want {
            Want::Exact(address) => return self.find_exact(caller, pools, address, request),
            Want::Prefer(address) => {
                if let Ok(found) = self.find_exact(caller, pools, address, request) {
                    return Ok(found);
                }
            }
            Want::Any => {}
        }
        if self.paused {
            return Err(Refusal::Paused);
        }
        let tries: Vec<_> =
            pools.iter().map(|name| self.find_any(caller, &self.pools[name], request, hint)).collect();
        let mut refusals = Vec::new();
        for found in tries {
            match found {
                Ok(found) => return Ok(found),
                Err(refusal) => refusals.push(refusal),
            }
        }
        let full = refusals.iter().find(|refusal| matches!(refusal, Refusal::Exhausted { .. }));
        Err(full.unwrap_or(&refusals[0]).clone())
    }

    fn find_any(
        &self,
        caller: &Caller,
        pool: &Pool,
        request: &ClaimRequest,
        hint: Option<&Reply>,
    ) -> Result<FoundBlock, Refusal> {
        let length = self.length_in(pool, request.length)?;
        self.check_quota(pool, caller.owner())?;
        let name = pool.name().clone();
        let own = self.sticky(pool, &request.key, caller.owner(), length);
        // The claim that waits came first.
        let new = || match self.first_in_line(pool) {
            None => self.pick(pool, length, hint).or_else(|| self.pick_early(pool, length)),
            Some(_) => None,
        };
        let (resting, next_free) = self.resting(pool);
        match own.or_else(new) {
            Some(start) => Ok((name, start, length)),
            None => Err(Refusal::Exhausted { pool: name, resting, next_free }),
        }
    }

    /// The length a claim gets: prefixes only, as long as something of it can fit below what the pool lies in.
    pub fn length_in(&self, pool: &Pool, asked: Option<u8>) -> Result<u8, Refusal> {
        let bits = free_blocks::kind(pool).bits();
        if pool.closing {
            return Err(Refusal::PoolClosing { pool: pool.name().clone() });
        }
        if pool.spec.family != Family::Prefix {
            return if asked.is_some() { Err(invalid("length")) } else { Ok(bits) };
        }
        let length = asked.or(pool.spec.length).filter(|length| *length <= bits).ok_or(invalid("length"))?;
        let around = self.held.iter().find(|held| Some(held.claim.id) == pool.within);
        let carrier = around.and_then(|held| held.claim.length);
        let fits = free_blocks::blocks(&free_blocks::extent(pool), bits, length).next().is_some();
        if fits && carrier.is_none_or(|carrier| length > carrier) {
            Ok(length)
        } else {
            Err(invalid("length"))
        }
    }

    fn find_exact(
        &self,
        caller: &Caller,
        pools: &[Ident],
        address: Address,
        request: &ClaimRequest,
    ) -> Result<FoundBlock, Refusal> {
        let Some(pool) = pools.iter().map(|name| &self.pools[name]).find(|pool| in_extent(pool, address))
        else {
            return Err(Refusal::NotInPool { address: address.to_string(), pool: pools[0].clone() });
        };
        let length = self.length_in(pool, request.length)?;
        let (first, last) = block(pool, address.number(), length);
        if first % (last - first + 1) != 0 {
            return Err(invalid("address"));
        }
        let prefix = pool.spec.family == Family::Prefix;
        let shown = if prefix { format!("{address}/{length}") } else { address.to_string() };
        let name = pool.name().clone();
        if !covers(&free_blocks::usable(pool), (first, last)) {
            let withheld = !covers(&free_blocks::usable(pool), (first, first));
            let reason = "";
            return Err(if withheld {
                Refusal::Withheld { address: shown, pool: name, reason }
            } else {
                Refusal::NotInPool { address: shown, pool: name }
            });
        }
        self.check_neighbours(caller, pool, (first, last), &shown, request)?;
        self.check_quota(pool, caller.owner())?;
        Ok((name, first, length))
    }

    /// Checks that none of it is held; an address that rests, is reserved or was seen may be taken by a caller that may, or that insists.
    fn check_neighbours(
        &self,
        caller: &Caller,
        pool: &Pool,
        block: Block,
        shown: &str,
        request: &ClaimRequest,
    ) -> Result<(), Refusal> {
        let name = pool.name().clone();
        let touching = |claim: &Claim| overlap(block_of(claim), block);
        let holders = self.holders(pool).map(|held| &held.claim).filter(|claim| touching(claim));
        if let Some(claim) = holders.min_by_key(|claim| claim.address) {
            let (key, owner) = (claim.key.clone(), claim.owner.clone());
            return Err(Refusal::AddressHeld { address: claim.held(), pool: name, key, owner });
        }
        let own =
            |claim: &Claim| pool.spec.sticky && claim.key == request.key && claim.owner == *caller.owner();
        let resting =
            self.resting_in(pool).filter(|r| touching(&r.claim) && !own(&r.claim) && !request.force);
        if let Some(rest) = resting.min_by_key(|rest| rest.claim.address) {
            let (key, owner) = (rest.claim.key.clone(), rest.claim.owner.clone());
            let left = Span::from_millis(self.rest_left(pool, rest));
            return Err(Refusal::Resting { address: shown.into(), key, owner, left });
        }
        let reserved = self.reservations.iter().filter(|r| r.pool == name && overlap(span(r.range), block));
        let may_force = request.force && caller.manager;
        let foreign = reserved.filter(|r| r.owner != *caller.owner() && !may_force);
        if let Some(reserved) = foreign.min_by_key(|reserved| reserved.range) {
            let (key, owner) = (reserved.key.clone(), reserved.owner.clone());
            let address = shown.into();
            return Err(if request.force {
                Refusal::ForceDenied { address, pool: name, key, owner }
            } else {
                Refusal::Reserved { address, pool: name, key, owner }
            });
        }
        let seen = self.sightings.iter().filter(|seen| {
            let number = seen.address.number();
            seen.vrf == pool.spec.vrf && in_extent(pool, seen.address) && overlap((number, number), block)
        });
        match seen.min_by_key(|seen| (seen.address, &seen.source)) {
            Some(seen) if !request.adopt => Err(Refusal::Observed {
                address: shown.into(),
                source_name: seen.source.clone(),
                since: seen.since,
                note: seen.note.clone(),
            }),
            _ => Ok(()),
        }
    }

    pub fn check_quota(&self, pool: &Pool, owner: &std::sync::Arc<str>) -> Result<(), Refusal> {
        let held = self.holders(pool).filter(|held| held.claim.owner == *owner).count();
        let held = u32::try_from(held).unwrap();
        match pool.spec.max_per_owner {
            Some(most) if held >= most => {
                Err(Refusal::QuotaReached { pool: pool.name().clone(), owner: owner.clone(), held, most })
            }
            _ => Ok(()),
        }
    }
}
