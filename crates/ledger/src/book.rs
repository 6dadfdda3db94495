//! The Book: everything about pools and claims in memory, and every decision about them.
//!
//! It is pure: no clock, no randomness, no I/O. A [`Record`] is absorbed in the same way whether the Book just decided it,
//! loaded it at the start, or got it from a watch. So a Book depends only on what the store has and on ledger time.
//!
//! - `transaction`: one command after another, each all or nothing, with a way back.
//! - `claiming`, `releasing`, `reserving`, `observing`, `pool_changes`: the commands.
//! - `wait_queue`, `housekeeping`: claims that wait, and what ends by itself.
//! - `drawing`, `draw_steps`, `draw_accounts`, `draw_view`: claims whose address comes out of a pool backend.
//! - `pool_state`: one pool with its indexes. `free_addresses`, `free_prefixes`: its free space.
//! - `slot_placement`: which pool a stored slot belongs to.
//! - `view`, `block_view`, `pool_rows`: reading.

mod block_view;
mod claiming;
mod draw_accounts;
mod draw_steps;
mod draw_view;
mod drawing;
mod free_addresses;
mod free_prefixes;
mod free_space;
mod housekeeping;
mod observing;
mod pool_changes;
mod pool_rows;
mod pool_state;
mod releasing;
mod reserving;
mod slot_placement;
mod transaction;
mod view;
mod wait_queue;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use foldhash::fast::RandomState;
use jiff::Timestamp;
use netstead_model::{Address, ClaimId, Ident, Kind, Observation, Pool, Reservation, Waiting};

pub(crate) use self::transaction::MOST_RECORDS;
pub use self::{
    block_view::BlockView,
    draw_view::{DrawJob, DrawTask, OwnedObject},
    housekeeping::Served,
    transaction::{Batch, Savepoint},
    view::{AddressCursor, AddressFilter, AddressState, AddressView, ClaimCursor, ClaimFilter, ClaimView},
};
use self::{pool_state::PoolState, slot_placement::OrphanSlots};
use crate::record::{Head, Record, Slot, Space};

/// The input of a decision besides the Book and the command: time and a random number.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// Ledger time in milliseconds.
    pub now: u64,
    /// For people and events only.
    pub wall: Timestamp,
    pub random: u64,
}

/// Their keys come from clients, so the hasher is seeded, anew for each map; it is several times as fast as the
/// standard one.
type HashMap<K, V> = std::collections::HashMap<K, V, RandomState>;
type HashSet<T> = std::collections::HashSet<T, RandomState>;

/// A VRF and a kind of number: where sightings live.
type Field = (Ident, Kind);

/// The source that saw an address.
type Sightings = BTreeMap<Ident, Arc<Observation>>;

/// Pools and claims as of one sequence number.
#[derive(Debug, Clone)]
pub struct Book {
    ledger: u32,
    seq: u64,
    now: u64,
    paused: bool,
    pools: BTreeMap<Ident, PoolState>,
    /// Which pool of single addresses an address lies in: first to last and name. Such pools never overlap.
    extents: HashMap<Space, BTreeMap<u128, (u128, Ident)>>,
    orphans: HashMap<Space, OrphanSlots>,
    observed: HashMap<Field, BTreeMap<u128, Sightings>>,
    /// Since when Complete reports lack a sighting. Not stored: after a restart the grace begins anew.
    missing: HashMap<(Ident, Ident, Address), u64>,
    /// Sightings that end by themselves.
    sighting_ends: BTreeSet<(u64, Ident, Address, Ident)>,
    waiting: BTreeMap<u64, Arc<Waiting>>,
    /// When a waiting claim's caller was last heard of.
    heard: HashMap<u64, u64>,
    /// Pools that lie in a prefix claim.
    carried: HashMap<ClaimId, BTreeSet<Ident>>,
    /// True on the leader only: renewals are not persisted, so followers cannot know lease deadlines.
    knows_leases: bool,
}

impl Book {
    /// An empty Book at `head`.
    pub fn new(head: &Head) -> Self {
        Self {
            ledger: head.ledger,
            seq: head.seq,
            now: head.time,
            paused: head.paused,
            pools: BTreeMap::new(),
            extents: HashMap::default(),
            orphans: HashMap::default(),
            observed: HashMap::default(),
            missing: HashMap::default(),
            sighting_ends: BTreeSet::new(),
            waiting: BTreeMap::new(),
            heard: HashMap::default(),
            carried: HashMap::default(),
            knows_leases: true,
        }
    }

    /// Takes in what another process committed, in any order; `head` is what the ledger's head became by it.
    pub fn follow(&mut self, head: &Head, records: Vec<Record>) {
        self.advance(head.time);
        self.knows_leases = false;
        // Pools first, as at a start: the rest finds its place in them.
        let (pools, rest): (Vec<_>, Vec<_>) =
            records.into_iter().partition(|record| matches!(record, Record::Pool(..)));
        for record in pools.into_iter().chain(rest) {
            self.absorb(record);
        }
        self.seq = head.seq;
        self.paused = head.paused;
    }

    /// Prepares the Book of a new leader: each lease gets its full time again, as do the claims that wait
    /// in the queue, and what reports lack is missed from now on.
    pub fn begin_to_lead(&mut self) {
        self.knows_leases = true;
        self.missing.clear();
        for pool in self.pools.values_mut() {
            pool.renew_all(self.now);
        }
        for heard in self.heard.values_mut() {
            *heard = self.now;
        }
    }

    pub fn ledger(&self) -> u32 {
        self.ledger
    }

    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Ledger time, in milliseconds.
    pub fn now(&self) -> u64 {
        self.now
    }

    pub fn paused(&self) -> bool {
        self.paused
    }

    /// Moves ledger time on; it never goes back. Rests that are over end here.
    pub fn advance(&mut self, now: u64) {
        if now <= self.now {
            return;
        }
        self.now = now;
        for pool in self.pools.values_mut() {
            pool.settle(now);
        }
    }

    /// Call it once everything is loaded.
    pub fn pack(&mut self) {
        for pool in self.pools.values_mut() {
            pool.pack();
        }
    }

    /// Takes in one stored thing in its new state and returns it in its former one, so that absorbing what comes back
    /// undoes it.
    pub fn absorb(&mut self, record: Record) -> Record {
        match record {
            Record::Pool(name, value) => {
                let before = self.absorb_pool(&name, value);
                Record::Pool(name, before)
            }
            Record::Slot(place, value) => {
                let before = self.absorb_slot(&place, value);
                Record::Slot(place, before)
            }
            Record::Reservation { pool, first, value } => {
                let before = self.absorb_reservation(&pool, first, value.as_ref());
                Record::Reservation { pool, first, value: before }
            }
            Record::Observation { vrf, address, source, value } => {
                let before = self.absorb_observation(&vrf, address, &source, value.as_ref());
                Record::Observation { vrf, address, source, value: before }
            }
            Record::Waiting(seq, value) => {
                let before = self.absorb_waiting(seq, value);
                Record::Waiting(seq, before)
            }
            Record::Paused(paused) => Record::Paused(std::mem::replace(&mut self.paused, paused)),
        }
    }

    fn absorb_pool(&mut self, name: &Ident, value: Option<Arc<Pool>>) -> Option<Arc<Pool>> {
        let former = self.pools.remove(name);
        let before = former.as_ref().map(|state| state.pool.clone());
        if let Some(former) = &former {
            self.forget_extents(former);
        }
        let Some((pool, space)) = value.and_then(|pool| Space::of(&pool).map(|space| (pool, space))) else {
            if let Some(former) = former {
                self.add_orphans(&former.space, former.slots);
            }
            return before;
        };
        let mut state = PoolState::new(pool.clone(), space.clone());
        let mut slots: Vec<(u128, Slot)> = Vec::new();
        let mut leases: Vec<(u128, u64)> = Vec::new();
        if let Some(former) = former {
            leases.extend(former.lease_ends());
            state.reservations = former.reservations;
            state.waiting = former.waiting;
            // What rests where the pool no longer lies may be another's to hand out.
            let extent = pool.spec.extent();
            let inside = |slot: &Slot| extent.iter().any(|range| range.contains(slot.address()));
            let (own, lost): (Vec<_>, Vec<_>) = former.slots.into_iter().partition(|(_, slot)| inside(slot));
            slots.extend(own);
            self.add_orphans(&space, lost);
        } else {
            state.waiting = self
                .waiting
                .iter()
                .filter(|(_, w)| w.draw.is_none() && w.pools.contains(name))
                .map(|(seq, _)| *seq)
                .collect();
        }
        for waiting in self.waiting.values().filter(|waiting| waiting.pools.first() == Some(name)) {
            state.add_draw(waiting);
        }
        slots.extend(self.remove_orphans_in(&state));
        state.observed = self.observed_in(&state);
        for (number, slot) in slots {
            state.set_slot(number, Some(slot), self.now);
        }
        // Another description of the pool renews no lease.
        for (number, end) in leases {
            state.start_lease(number, end);
        }
        state.refresh_all();
        if !space.prefixes {
            let extents = self.extents.entry(space.clone()).or_default();
            for range in pool.spec.extent() {
                extents.insert(range.first().number(), (range.last().number(), name.clone()));
            }
        }
        if let Some(within) = pool.within {
            self.carried.entry(within).or_default().insert(name.clone());
        }
        self.pools.insert(name.clone(), state);
        before
    }

    fn forget_extents(&mut self, former: &PoolState) {
        let name = former.pool.name();
        if let Some(extents) = self.extents.get_mut(&former.space) {
            for range in former.pool.spec.extent() {
                extents.remove(&range.first().number());
            }
        }
        if let Some(within) = former.pool.within
            && let Some(pools) = self.carried.get_mut(&within)
        {
            pools.remove(name);
            if pools.is_empty() {
                self.carried.remove(&within);
            }
        }
    }

    fn observed_in(&self, state: &PoolState) -> BTreeSet<u128> {
        let Some(seen) = self.observed.get(&(state.space.vrf.clone(), state.space.kind)) else {
            return BTreeSet::new();
        };
        let extent = state.pool.spec.extent();
        let inside =
            extent.iter().flat_map(|range| seen.range(range.first().number()..=range.last().number()));
        inside.map(|(number, _)| *number).collect()
    }

    fn absorb_reservation(
        &mut self,
        pool: &Ident,
        first: u128,
        value: Option<&Arc<Reservation>>,
    ) -> Option<Arc<Reservation>> {
        let state = self.pools.get_mut(pool)?;
        let ends = state.reservations.get(&first).into_iter().chain(value).map(|r| r.range.last().number());
        let last = ends.max().unwrap_or(first);
        state.uncount(first, last);
        let before = match value {
            Some(value) => state.reservations.insert(first, value.clone()),
            None => state.reservations.remove(&first),
        };
        state.refresh(first, last);
        before
    }

    fn absorb_observation(
        &mut self,
        vrf: &Ident,
        address: Address,
        source: &Ident,
        value: Option<&Arc<Observation>>,
    ) -> Option<Arc<Observation>> {
        let field = self.observed.entry((vrf.clone(), address.kind())).or_default();
        let sightings = field.entry(address.number()).or_default();
        let before = match value {
            Some(value) => sightings.insert(source.clone(), value.clone()),
            None => sightings.remove(source),
        };
        let seen = !sightings.is_empty();
        if !seen {
            field.remove(&address.number());
        }
        let end = |observation: &Observation| {
            observation.until.map(|until| (until, vrf.clone(), address, source.clone()))
        };
        if let Some(end) = before.as_deref().and_then(end) {
            self.sighting_ends.remove(&end);
        }
        self.sighting_ends.extend(value.and_then(|value| end(value)));
        if value.is_none() {
            self.missing.remove(&(source.clone(), vrf.clone(), address));
        }
        for state in self.pools.values_mut() {
            if state.space.vrf == *vrf && state.space.kind == address.kind() && state.in_extent(address) {
                let number = address.number();
                state.uncount(number, number);
                if seen {
                    state.observed.insert(number);
                } else {
                    state.observed.remove(&number);
                }
                state.refresh(number, number);
            }
        }
        before
    }

    fn absorb_waiting(&mut self, seq: u64, value: Option<Arc<Waiting>>) -> Option<Arc<Waiting>> {
        let before = self.waiting.remove(&seq);
        for name in before.iter().flat_map(|waiting| &waiting.pools) {
            if let Some(state) = self.pools.get_mut(name) {
                state.waiting.remove(&seq);
                if let Some(before) = &before {
                    state.remove_draw(before);
                }
            }
        }
        if let Some(value) = value {
            for name in &value.pools {
                if let Some(state) = self.pools.get_mut(name) {
                    if value.draw.is_some() {
                        state.add_draw(&value);
                    } else {
                        state.waiting.insert(seq);
                    }
                }
            }
            self.heard.entry(seq).or_insert(self.now);
            self.waiting.insert(seq, value);
        } else {
            self.heard.remove(&seq);
        }
        before
    }
}
