//! The command *claim*: finds an address and gives it to a key.

use std::{borrow::Cow, sync::Arc};

use netstead_model::{
    Address, Claim, ClaimId, ClaimRequest, Details, Drawn, EventKind, Family, Ident, Key, PoolChoice, Span,
    Subject, Want,
};

use super::{
    Book,
    pool_state::{PoolState, host_mask},
    transaction::Transaction,
};
use crate::{
    command::{Outcome, Reply},
    record::{Record, Rest, Slot, SlotKey},
    refusal::Refusal,
};

/// Most hostnames one claim may have.
const MOST_HOSTNAMES: usize = 32;
const LONGEST_DESCRIPTION: usize = 1000;

impl Transaction<'_> {
    /// Gives `request.key` an address: the wanted one if stated, else the one the pool's order gives.
    ///
    /// Asking again returns the same address, so a caller may retry after any error. Asking for a different one under
    /// a key that holds one is refused: someone may be using the old address.
    pub fn claim(&mut self, request: &ClaimRequest) -> Result<Reply, Refusal> {
        check_details(request)?;
        let pools = self.choose_pools(&request.from)?;
        for name in pools.iter() {
            if let Some(claim) = self.pool(name)?.held_by(&request.key).cloned() {
                return self.claim_again(&claim, request);
            }
        }
        if let [name] = &*pools
            && self.pool(name)?.pool.spec.upstream.is_some()
        {
            return self.draw(name, request);
        }
        let queued = self.queued(&pools, &request.key);
        if let Some(other) = queued.iter().find(|waiting| waiting.owner != *self.caller.owner()) {
            let (pool, key, owner) = (pools_first(&pools), request.key.clone(), other.owner.clone());
            return Err(Refusal::WaitingForOther { pool, key, owner });
        }
        if queued.is_empty() {
            check_new_key(&request.key)?;
        }
        match self.find_address(&pools, request) {
            Ok((pool, number, length)) => {
                for waiting in queued {
                    self.put(Record::Waiting(waiting.seq, None));
                }
                let claim = self.bind(pool, number, length, request)?;
                Ok(Reply::Claimed { claim, outcome: Outcome::Created })
            }
            Err(refusal @ Refusal::Exhausted { .. }) if request.wait.is_some() => {
                self.queue_up(&pools, request, queued.into_iter().next(), refusal)
            }
            Err(refusal) => Err(refusal),
        }
    }

    fn choose_pools<'a>(&self, from: &'a PoolChoice) -> Result<Cow<'a, [Ident]>, Refusal> {
        match from {
            PoolChoice::Pools(names) if names.is_empty() => {
                Err(Refusal::invalid("pools", "name at least one pool"))
            }
            // A single one is looked for at once anyway.
            PoolChoice::Pools(names) if names.len() == 1 => Ok(Cow::Borrowed(names)),
            PoolChoice::Pools(names) => {
                for name in names {
                    if self.pool(name)?.pool.spec.upstream.is_some() {
                        let reason = format!("pool `{name}` has a backend: claim from it alone");
                        return Err(Refusal::invalid("pools", reason));
                    }
                }
                Ok(Cow::Borrowed(names))
            }
            PoolChoice::Select(selector) => {
                let matching =
                    self.book.pools.values().filter(|state| selector.matches(&state.pool.spec.labels));
                let (drawn, own): (Vec<_>, Vec<_>) =
                    matching.partition(|state| state.pool.spec.upstream.is_some());
                let names: Vec<Ident> = own.iter().map(|state| state.pool.name().clone()).collect();
                if let (true, Some(drawn)) = (names.is_empty(), drawn.first()) {
                    let reason = format!(
                        "only pools with a backend match, and a selector skips them: claim from `{}` by name",
                        drawn.pool.name()
                    );
                    return Err(Refusal::invalid("select", reason));
                }
                if names.is_empty() {
                    return Err(Refusal::NothingSelected { selector: selector.to_string() });
                }
                Ok(Cow::Owned(names))
            }
        }
    }

    /// The key holds an address already: confirm it, with other details if other ones are given.
    fn claim_again(&mut self, claim: &Arc<Claim>, request: &ClaimRequest) -> Result<Reply, Refusal> {
        let adopted = claim.owner != *self.caller.owner();
        if adopted && !request.adopt {
            return Err(Refusal::KeyHeld {
                pool: claim.pool.clone(),
                key: claim.key.clone(),
                owner: claim.owner.clone(),
                address: claim.held(),
            });
        }
        if adopted && !self.caller.manager {
            let (pool, key, owner) = (claim.pool.clone(), claim.key.clone(), claim.owner.clone());
            return Err(Refusal::NotYours { pool, key, owner });
        }
        let other_address = matches!(request.want, Want::Exact(address) if address != claim.address);
        let other_length = request.length.is_some_and(|length| claim.length != Some(length));
        if other_address || other_length {
            let asked = match request.want {
                Want::Exact(address) => Refusal::shown(address, request.length),
                _ => format!("a /{}", request.length.unwrap_or_default()),
            };
            let (pool, key, held) = (claim.pool.clone(), claim.key.clone(), claim.held());
            return Err(Refusal::HoldsAnother { pool, key, held, asked });
        }
        if adopted {
            self.check_quota(self.pool(&claim.pool)?)?;
        }
        let mut changed = Claim::clone(claim);
        changed.owner = self.caller.owner().clone();
        changed.ttl = new_ttl(claim.ttl, request.ttl);
        changed.details = new_details(claim.details(), request);
        if changed == **claim {
            self.renew_lease(claim);
            return Ok(Reply::Claimed { claim: claim.clone(), outcome: Outcome::Repeated });
        }
        let changed = Arc::new(changed);
        self.put_claim(&changed)?;
        let what = if adopted { EventKind::Adopted } else { EventKind::Updated };
        self.event(what, Some(Subject::Claim(claim.clone())), Some(Subject::Claim(changed.clone())), None);
        Ok(Reply::Claimed { claim: changed, outcome: Outcome::Updated })
    }

    fn find_address<'a>(
        &self,
        pools: &'a [Ident],
        request: &ClaimRequest,
    ) -> Result<(&'a Ident, u128, Option<u8>), Refusal> {
        match request.want {
            Want::Exact(address) => return self.find_exact(pools, address, request),
            Want::Prefer(address) => {
                if let Ok(found) = self.find_exact(pools, address, request) {
                    return Ok(found);
                }
            }
            Want::Any => {}
        }
        if self.book.paused {
            return Err(Refusal::Paused);
        }
        let mut refusals = Vec::new();
        for name in pools {
            match self.find_any(name, &request.key, request.length) {
                Ok((number, length)) => return Ok((name, number, length)),
                Err(refusal) => refusals.push(refusal),
            }
        }
        // A full pool can be waited for; a reached quota or an impossible length cannot.
        let waitable =
            refusals.iter().position(|refusal| matches!(refusal, Refusal::Exhausted { .. })).unwrap_or(0);
        Err(refusals.into_iter().nth(waitable).unwrap_or(Refusal::invalid("pools", "name at least one pool")))
    }

    fn find_any(&self, name: &Ident, key: &Key, length: Option<u8>) -> Result<(u128, Option<u8>), Refusal> {
        let state = self.open_pool(name)?;
        let length = self.book.length_for(state, length)?;
        self.check_quota(state)?;
        let now = self.moment.now;
        // The address this key and owner gave back a moment ago.
        let own = if state.pool.spec.sticky {
            state.resting_for(key, self.caller.owner(), length, now)
        } else {
            None
        };
        // A waiting claim came first.
        let found = match own {
            None if self.book.first_in_line(state).is_none() => {
                state.pick(length, self.moment.random).or_else(|| state.pick_early(length, now))
            }
            own => own,
        };
        found.map(|number| (number, state.stored_length(length))).ok_or_else(|| {
            let (resting, next_free) = state.resting(now);
            Refusal::exhausted(name, resting, next_free)
        })
    }

    fn find_exact<'a>(
        &self,
        pools: &'a [Ident],
        address: Address,
        request: &ClaimRequest,
    ) -> Result<(&'a Ident, u128, Option<u8>), Refusal> {
        let lies_in = |name: &&Ident| {
            self.pool(name).is_ok_and(|s| s.space.kind == address.kind() && s.in_extent(address))
        };
        let Some(name) = pools.iter().find(lies_in) else {
            return Err(Refusal::NotInPool { address: address.to_string(), pool: pools_first(pools) });
        };
        let state = self.open_pool(name)?;
        let found = self.check_address(state, address, request)?;
        self.check_quota(state)?;
        Ok((name, found.0, found.1))
    }

    /// Whether the address can be given to the caller, its quota aside.
    pub(super) fn check_address(
        &self,
        state: &PoolState,
        address: Address,
        request: &ClaimRequest,
    ) -> Result<(u128, Option<u8>), Refusal> {
        let name = state.pool.name();
        let length = self.book.length_for(state, request.length)?;
        let stored = state.stored_length(length);
        let shown = Refusal::shown(address, stored);
        let (first, last) = (address.number(), address.number() | host_mask(state.bits(), length));
        if first & host_mask(state.bits(), length) != 0 {
            return Err(Refusal::invalid("address", format!("{shown} is not the start of a /{length}")));
        }
        if !state.contains_usable(first, last) {
            return Err(match state.pool.spec.withheld(address) {
                Some(reason) => Refusal::Withheld { address: shown, pool: name.clone(), reason },
                None => Refusal::NotInPool { address: shown, pool: name.clone() },
            });
        }
        self.check_slots(state, (first, last), shown.clone(), request)?;
        let foreign = state.reservations_in(first, last).find(|r| r.owner != *self.caller.owner());
        if let Some(reservation) = foreign.filter(|_| !(request.force && self.caller.manager)) {
            let (pool, key, owner) = (name.clone(), reservation.key.clone(), reservation.owner.clone());
            return Err(if request.force {
                Refusal::ForceDenied { address: shown, pool, key, owner }
            } else {
                Refusal::Reserved { address: shown, pool, key, owner }
            });
        }
        if let Some(number) = state.observed_in(first, last)
            && !request.adopt
        {
            return Err(self.observed_refusal(state, number, shown));
        }
        Ok((first, stored))
    }

    fn check_slots(
        &self,
        state: &PoolState,
        (first, last): (u128, u128),
        shown: String,
        request: &ClaimRequest,
    ) -> Result<(), Refusal> {
        let now = self.moment.now;
        // All of them: behind a rest that may be taken there may be a holder.
        let holder = state.busy_in(first, last, now).find_map(|slot| match slot {
            Slot::Held(claim) => Some(claim),
            Slot::Rested(_) => None,
        });
        if let Some(claim) = holder {
            let (pool, key, owner) = (state.pool.name().clone(), claim.key.clone(), claim.owner.clone());
            return Err(Refusal::AddressHeld { address: claim.held(), pool, key, owner });
        }
        let own = |rest: &Rest| {
            state.pool.spec.sticky && rest.key == request.key && rest.owner == *self.caller.owner()
        };
        let resting = state.busy_in(first, last, now).find_map(|slot| match slot {
            Slot::Rested(rest) if !own(rest) && !request.force => Some(rest),
            _ => None,
        });
        match resting {
            Some(rest) => {
                let left = Span::from_millis(state.rest_left(rest, now));
                let (key, owner) = (rest.key.clone(), rest.owner.clone());
                Err(Refusal::Resting { address: shown, key, owner, left })
            }
            None => Ok(()),
        }
    }

    fn observed_refusal(&self, state: &PoolState, number: u128, shown: String) -> Refusal {
        let field = self.book.observed.get(&(state.space.vrf.clone(), state.space.kind));
        match field.and_then(|field| field.get(&number)).and_then(|sightings| sightings.values().next()) {
            Some(sighting) => Refusal::Observed {
                address: shown,
                source_name: sighting.source.clone(),
                since: sighting.since,
                note: sighting.note.clone(),
            },
            None => Refusal::invalid("address", format!("{shown} was seen in use")),
        }
    }

    pub(super) fn open_pool(&self, name: &Ident) -> Result<&PoolState, Refusal> {
        let state = self.pool(name)?;
        if state.pool.closing { Err(Refusal::PoolClosing { pool: name.clone() }) } else { Ok(state) }
    }

    pub(super) fn check_quota(&self, state: &PoolState) -> Result<(), Refusal> {
        let held = self.book.counted_for(state, self.caller.owner());
        match state.pool.spec.max_per_owner {
            Some(most) if held >= most => Err(Refusal::QuotaReached {
                pool: state.pool.name().clone(),
                owner: self.caller.owner().clone(),
                held,
                most,
            }),
            _ => Ok(()),
        }
    }

    /// Makes the claim.
    pub(super) fn bind(
        &mut self,
        pool: &Ident,
        number: u128,
        length: Option<u8>,
        request: &ClaimRequest,
    ) -> Result<Arc<Claim>, Refusal> {
        self.bind_drawn(pool, (number, length), request, None)
    }

    /// As [`Self::bind`], of an address that a backend holds for us.
    pub(super) fn bind_drawn(
        &mut self,
        pool: &Ident,
        (number, length): (u128, Option<u8>),
        request: &ClaimRequest,
        drawn: Option<Box<Drawn>>,
    ) -> Result<Arc<Claim>, Refusal> {
        let state = self.pool(pool)?;
        let address =
            state.address(number).ok_or_else(|| Refusal::invalid("address", "it is out of its space"))?;
        let space = state.space.clone();
        let stale = match length {
            Some(_) => state.slots.get(&number).filter(|slot| slot.length() != length).map(Slot::length),
            None => None,
        };
        if let Some(length) = stale {
            // A rested prefix of another length stands under another key; two slots never share a start.
            self.put(Record::Slot(SlotKey { space: space.clone(), number, length }, None));
        }
        let fixed = match request.want {
            Want::Exact(_) => true,
            Want::Prefer(wanted) => wanted == address,
            Want::Any => false,
        };
        let claim = Arc::new(Claim {
            id: ClaimId { ledger: self.book.ledger, seq: self.next_seq() },
            pool: pool.clone(),
            key: request.key.clone(),
            owner: self.caller.owner().clone(),
            address,
            length,
            fixed,
            since: self.moment.wall,
            ttl: new_ttl(None, request.ttl),
            details: new_details(&Details::default(), request),
            drawn,
        });
        self.put(Record::Slot(SlotKey { space, number, length }, Some(Slot::Held(claim.clone()))));
        self.event(EventKind::Claimed, None, Some(Subject::Claim(claim.clone())), None);
        Ok(claim)
    }

    pub(super) fn put_claim(&mut self, claim: &Arc<Claim>) -> Result<(), Refusal> {
        let space = self.pool(&claim.pool)?.space.clone();
        let place = SlotKey { space, number: claim.address.number(), length: claim.length };
        self.put(Record::Slot(place, Some(Slot::Held(claim.clone()))));
        Ok(())
    }
}

impl Book {
    /// How long a prefix of this pool the claim asks for; in other pools, all of an address.
    pub(super) fn length_for(&self, state: &PoolState, asked: Option<u8>) -> Result<u8, Refusal> {
        if state.pool.spec.family != Family::Prefix {
            return match asked {
                None => Ok(state.bits()),
                Some(_) => Err(Refusal::invalid("length", "only a claim in a prefix pool has a length")),
            };
        }
        let Some(length) = asked.or(state.pool.spec.length) else {
            let reason = format!(
                "pool `{}` has no length of its own: say how long the prefix shall be",
                state.pool.name()
            );
            return Err(Refusal::invalid("length", reason));
        };
        let around = self.carrier_length(state);
        let shortest = state.shortest().max(around.map_or(0, |length| length.saturating_add(1)));
        if length < shortest || length > state.bits() {
            let reason = format!(
                "a /{length} does not fit: pool `{}` has /{shortest} to /{}",
                state.pool.name(),
                state.bits()
            );
            return Err(Refusal::invalid("length", reason));
        }
        Ok(length)
    }
}

impl PoolState {
    /// The length as it is stored: only prefixes have one.
    pub(super) fn stored_length(&self, length: u8) -> Option<u8> {
        (self.pool.spec.family == Family::Prefix).then_some(length)
    }
}

fn pools_first(pools: &[Ident]) -> Ident {
    pools.first().cloned().unwrap_or_else(Ident::default_vrf)
}

/// `None` keeps what is, zero means for ever.
pub(super) fn new_ttl(was: Option<Span>, asked: Option<Span>) -> Option<Span> {
    match asked {
        None => was,
        Some(ttl) if ttl.is_zero() => None,
        Some(ttl) => Some(ttl),
    }
}

pub(super) fn new_details(was: &Details, request: &ClaimRequest) -> Option<Box<Details>> {
    let silent = request.labels.is_none() && request.hostnames.is_none() && request.description.is_none();
    if silent && *was == Details::default() {
        return None;
    }
    let description = request.description.clone().or_else(|| was.description.clone());
    let details = Details {
        labels: request.labels.clone().unwrap_or_else(|| was.labels.clone()),
        hostnames: request.hostnames.clone().unwrap_or_else(|| was.hostnames.clone()),
        description: description.filter(|text| !text.is_empty()),
    };
    (details != Details::default()).then(|| Box::new(details))
}

pub(super) fn check_description(text: Option<&str>) -> Result<(), Refusal> {
    if text.is_some_and(|text| text.chars().count() > LONGEST_DESCRIPTION) {
        return Err(Refusal::invalid(
            "description",
            format!("it is longer than {LONGEST_DESCRIPTION} characters"),
        ));
    }
    Ok(())
}

/// Refuses a key that nothing new may have: its holder could not be addressed by a URL.
pub(super) fn check_new_key(key: &Key) -> Result<(), Refusal> {
    if !key.is_path_step() {
        return Ok(());
    }
    let reason = format!("`{key}` cannot be a key: in the path of a URL it means another place; use another");
    Err(Refusal::invalid("key", reason))
}

fn check_details(request: &ClaimRequest) -> Result<(), Refusal> {
    if request.hostnames.as_ref().is_some_and(|names| names.len() > MOST_HOSTNAMES) {
        return Err(Refusal::invalid("hostnames", format!("at most {MOST_HOSTNAMES} are allowed")));
    }
    check_description(request.description.as_deref())?;
    if request.wait.is_some() && matches!(request.want, Want::Exact(_)) {
        return Err(Refusal::invalid("wait", "a claim of an exact address cannot wait"));
    }
    Ok(())
}
