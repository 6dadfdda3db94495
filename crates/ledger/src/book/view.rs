//! Reads the Book: pools, claims and addresses, with filters and pages.

use std::{sync::Arc, time::Duration};

use netstead_model::{
    Address, Claim, ClaimId, Ident, Key, Name, Observation, PoolStatus, Range, Reservation, Selector, Waiting,
};

use super::{Book, pool_rows::PoolRow, pool_state::PoolState};
use crate::record::{Slot, Space};

/// A claim with how long it lives unless it is renewed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimView {
    pub claim: Arc<Claim>,
    pub left: Option<Duration>,
}

/// Which claims to list; every field narrows.
#[derive(Debug, Clone, Default)]
pub struct ClaimFilter {
    pub pool: Option<Ident>,
    /// Only pools of this list: what the caller may see.
    pub pools: Option<Vec<Ident>>,
    pub vrf: Option<Ident>,
    pub owner: Option<Arc<str>>,
    pub key: Option<Key>,
    pub selector: Option<Selector>,
    /// Only pools in which a claim can have a name.
    pub named: bool,
}

/// Where a list of claims goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimCursor {
    pub pool: Ident,
    pub address: Address,
}

/// The state of one address in one VRF.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressView {
    pub vrf: Ident,
    pub pool: Option<Ident>,
    pub address: Address,
    pub length: Option<u8>,
    /// The last of a stretch of addresses that are all the same; none for a single one or a prefix.
    pub through: Option<Address>,
    pub state: AddressState,
    pub observed: Vec<Arc<Observation>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AddressState {
    Held(ClaimView),
    /// Nothing is left once it would be handed out again.
    Resting {
        key: Key,
        owner: Arc<str>,
        left: Duration,
        last_claim: ClaimId,
    },
    /// Its rest is over, and the backend it came from has not got it back yet.
    GivingBack {
        key: Key,
        owner: Arc<str>,
        last_claim: ClaimId,
    },
    Reserved(Arc<Reservation>),
    Observed,
    Withheld(&'static str),
    Free,
    Outside,
}

/// Which addresses to list.
#[derive(Debug, Clone, Default)]
pub struct AddressFilter {
    pub pool: Option<Ident>,
    pub pools: Option<Vec<Ident>>,
    pub vrf: Option<Ident>,
    pub within: Option<Range>,
    /// `held`, `resting`, `reserved`, `observed`, `excluded` or `gateway`.
    pub state: Option<&'static str>,
}

/// Where a list of addresses goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressCursor {
    pub pool: Ident,
    pub address: Address,
}

impl AddressState {
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Held(_) => "held",
            Self::Resting { .. } => "resting",
            Self::GivingBack { .. } => "giving-back",
            Self::Reserved(_) => "reserved",
            Self::Observed => "observed",
            Self::Withheld(reason) if reason.contains("gateway") => "gateway",
            Self::Withheld(_) => "excluded",
            Self::Free => "free",
            Self::Outside => "outside",
        }
    }
}

impl Book {
    pub fn pools(&self) -> impl Iterator<Item = PoolStatus> {
        self.pools.values().map(PoolState::status)
    }

    pub fn pool(&self, name: &Ident) -> Option<PoolStatus> {
        self.pools.get(name).map(PoolState::status)
    }

    /// The domain of a pool's claims; the outer `None` if there is no such pool.
    pub fn domain_of(&self, pool: &Ident) -> Option<Option<&Name>> {
        self.pools.get(pool).map(|state| state.pool.spec.domain.as_ref())
    }

    /// The VRF of a pool.
    pub fn vrf_of(&self, pool: &Ident) -> Option<&Ident> {
        self.pools.get(pool).map(|state| &state.space.vrf)
    }

    pub fn claim(&self, pool: &Ident, key: &Key) -> Option<ClaimView> {
        let state = self.pools.get(pool)?;
        Some(self.claim_view(state, state.held_by(key)?))
    }

    pub(super) fn claim_view(&self, state: &PoolState, claim: &Arc<Claim>) -> ClaimView {
        let end = state.lease_end(claim.address.number()).filter(|_| self.knows_leases);
        let left = end.map(|end| Duration::from_millis(end.saturating_sub(self.now)));
        ClaimView { claim: claim.clone(), left }
    }

    pub fn waiting_claim(&self, pool: &Ident, key: &Key) -> Option<Arc<Waiting>> {
        let state = self.pools.get(pool)?;
        if let Some(drawing) = state.drawing.get(key).and_then(|seq| self.waiting.get(seq)) {
            return Some(drawing.clone());
        }
        state
            .waiting
            .iter()
            .filter_map(|seq| self.waiting.get(seq))
            .find(|waiting| waiting.key == *key)
            .cloned()
    }

    /// The claim at this place of the queue, as it was last asked for.
    pub fn waiting_at(&self, seq: u64) -> Option<&Arc<Waiting>> {
        self.waiting.get(&seq)
    }

    pub fn waitings(&self) -> impl Iterator<Item = &Arc<Waiting>> {
        self.waiting.values()
    }

    pub fn reservations(&self) -> impl Iterator<Item = &Arc<Reservation>> {
        self.pools.values().flat_map(|state| state.reservations.values())
    }

    pub fn observations(&self) -> impl Iterator<Item = &Arc<Observation>> {
        self.observed.values().flat_map(|field| field.values()).flat_map(|sightings| sightings.values())
    }

    /// Claims in order of pool name and address, from behind `after` on.
    pub fn claims(&self, filter: &ClaimFilter, after: Option<&ClaimCursor>, limit: usize) -> Vec<ClaimView> {
        let mut found = Vec::new();
        let wanted = |state: &&PoolState| filter.wants_pool(state);
        for state in self.pools_from(after.map(|cursor| &cursor.pool)).filter(wanted) {
            // With a key there is an index, and one answer.
            if let Some(key) = &filter.key {
                let claim = state
                    .held_by(key)
                    .filter(|claim| filter.wants(claim) && after.is_none_or(|a| a.before(claim)));
                found.extend(claim.map(|claim| self.claim_view(state, claim)));
            } else {
                let from = after
                    .filter(|cursor| cursor.pool == *state.pool.name())
                    .map(|cursor| cursor.address.number());
                let slots = state.slots_after(from).filter_map(held);
                let claims = slots.filter(|claim| filter.wants(claim)).take(limit - found.len());
                found.extend(claims.map(|claim| self.claim_view(state, claim)));
            }
            if found.len() >= limit {
                found.truncate(limit);
                break;
            }
        }
        found
    }

    fn pools_from(&self, name: Option<&Ident>) -> impl Iterator<Item = &PoolState> {
        let all = name.is_none().then(|| self.pools.values());
        let from = name.map(|name| self.pools.range::<Ident, _>(name..).map(|(_, state)| state));
        all.into_iter().flatten().chain(from.into_iter().flatten())
    }

    /// Every address that is not simply free, in order of pool and address. What is reserved or excluded comes in
    /// stretches, however large.
    pub fn addresses(
        &self,
        filter: &AddressFilter,
        after: Option<&AddressCursor>,
        limit: usize,
    ) -> Vec<AddressView> {
        let mut found = Vec::new();
        let wanted = |state: &&PoolState| filter.wants_pool(state);
        for state in self.pools_from(after.map(|cursor| &cursor.pool)).filter(wanted) {
            let from = after
                .filter(|cursor| cursor.pool == *state.pool.name())
                .map(|cursor| cursor.address.number());
            let Some(rows) = state.rows(from, filter.within) else { continue };
            for row in rows {
                let view = match row {
                    PoolRow::Slot(slot) => self.slot_view(state, slot),
                    PoolRow::Idle(first, last) => self.idle_view(state, first, last),
                };
                let wanted =
                    |view: &AddressView| filter.state.is_none_or(|state| view.state.as_str() == state);
                found.extend(view.filter(wanted));
                if found.len() >= limit {
                    return found;
                }
            }
        }
        found
    }

    /// Explains an address, once per VRF in which it means something.
    pub fn explain(&self, address: Address) -> Vec<AddressView> {
        let mut vrfs: Vec<&Ident> = self.pools.values().map(|state| &state.space.vrf).collect();
        vrfs.extend(self.observed.keys().map(|(vrf, _)| vrf));
        vrfs.sort_unstable();
        vrfs.dedup();
        let mut views = Vec::new();
        for vrf in vrfs {
            for prefixes in [true, false] {
                let space = Space { vrf: vrf.clone(), kind: address.kind(), prefixes };
                let pool = self.pool_at(&space, address.number()).and_then(|name| self.pools.get(&name));
                views.extend(pool.and_then(|state| self.view_in(state, address.number())));
            }
            let observed = self.observed_at(vrf, address);
            if !observed.is_empty() && views.last().is_none_or(|view| view.vrf != *vrf) {
                let (vrf, state) = (vrf.clone(), AddressState::Outside);
                let view =
                    AddressView { vrf, pool: None, address, length: None, through: None, state, observed };
                views.push(view);
            }
        }
        views
    }

    fn observed_at(&self, vrf: &Ident, address: Address) -> Vec<Arc<Observation>> {
        let field = self.observed.get(&(vrf.clone(), address.kind()));
        let sightings = field.and_then(|field| field.get(&address.number()));
        sightings.map(|sightings| sightings.values().cloned().collect()).unwrap_or_default()
    }

    fn view_in(&self, state: &PoolState, number: u128) -> Option<AddressView> {
        let busy = |held: bool| {
            let mut slots = state.busy_in(number, number, self.now);
            slots.find(|slot| matches!(slot, Slot::Held(_)) == held)
        };
        match busy(true).or_else(|| busy(false)) {
            Some(slot) => {
                let observed = self.observed_at(&state.space.vrf, state.address(number)?);
                Some(AddressView { observed, ..self.slot_view(state, slot)? })
            }
            None => self.idle_view(state, number, number),
        }
    }

    /// A slot that is held or rests, as a view.
    pub(super) fn slot_view(&self, state: &PoolState, slot: &Slot) -> Option<AddressView> {
        let shows = match slot {
            Slot::Held(claim) => AddressState::Held(self.claim_view(state, claim)),
            Slot::Rested(rest) if state.gives_back(rest, self.now) => AddressState::GivingBack {
                key: rest.key.clone(),
                owner: rest.owner.clone(),
                last_claim: rest.claim,
            },
            Slot::Rested(rest) => AddressState::Resting {
                key: rest.key.clone(),
                owner: rest.owner.clone(),
                left: Duration::from_millis(state.rest_left(rest, self.now)),
                last_claim: rest.claim,
            },
        };
        let view = self.idle_view(state, slot.address().number(), slot.address().number())?;
        Some(AddressView { length: slot.length(), state: shows, ..view })
    }

    /// Addresses that are all the same, and neither held nor resting.
    fn idle_view(&self, state: &PoolState, first: u128, last: u128) -> Option<AddressView> {
        let address = state.address(first)?;
        let observed = self.observed_at(&state.space.vrf, address);
        Some(AddressView {
            vrf: state.space.vrf.clone(),
            pool: Some(state.pool.name().clone()),
            address,
            length: None,
            through: state.address(last).filter(|last| *last != address),
            state: idle_state(state, address, !observed.is_empty()),
            observed,
        })
    }
}

fn idle_state(state: &PoolState, address: Address, observed: bool) -> AddressState {
    let number = address.number();
    if let Some(reason) = state.pool.spec.withheld(address) {
        AddressState::Withheld(reason)
    } else if let Some(reservation) = state.reservation_at(number, number) {
        AddressState::Reserved(reservation.clone())
    } else if observed {
        AddressState::Observed
    } else {
        AddressState::Free
    }
}

fn held(slot: &Slot) -> Option<&Arc<Claim>> {
    if let Slot::Held(claim) = slot { Some(claim) } else { None }
}

impl ClaimCursor {
    fn before(&self, claim: &Claim) -> bool {
        (&self.pool, self.address) < (&claim.pool, claim.address)
    }
}

impl ClaimFilter {
    fn wants_pool(&self, state: &PoolState) -> bool {
        let name = state.pool.name();
        self.pool.as_ref().is_none_or(|pool| pool == name)
            && self.pools.as_ref().is_none_or(|pools| pools.contains(name))
            && self.vrf.as_ref().is_none_or(|vrf| *vrf == state.space.vrf)
            && (!self.named || state.may_name())
    }

    fn wants(&self, claim: &Claim) -> bool {
        self.owner.as_ref().is_none_or(|owner| *owner == claim.owner)
            && self.selector.as_ref().is_none_or(|selector| selector.matches(&claim.details().labels))
    }
}

impl AddressFilter {
    fn wants_pool(&self, state: &PoolState) -> bool {
        let name = state.pool.name();
        self.pool.as_ref().is_none_or(|pool| pool == name)
            && self.pools.as_ref().is_none_or(|pools| pools.contains(name))
            && self.vrf.as_ref().is_none_or(|vrf| *vrf == state.space.vrf)
            && self.within.is_none_or(|range| range.kind() == state.space.kind)
    }
}

impl PoolState {
    fn status(&self) -> PoolStatus {
        PoolStatus { pool: netstead_model::Pool::clone(&self.pool), usage: self.usage() }
    }

    fn slots_after(&self, from: Option<u128>) -> impl Iterator<Item = &Slot> {
        let start = from.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded);
        self.slots.range((start, std::ops::Bound::Unbounded)).map(|(_, slot)| slot)
    }
}
