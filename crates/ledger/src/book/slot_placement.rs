//! Finds the pool that a stored slot belongs to, while pools are created, changed and deleted.
//!
//! A slot of a single address belongs to the pool whose range has the address. A slot of a prefix belongs to the pool that
//! it names, because prefix pools may lie inside each other. A slot without a pool is an *orphan*. It is kept: a pool may be
//! made around it later, and then a resting address goes on resting.

use std::collections::BTreeMap;

use netstead_model::{Address, Ident};

use super::{Book, pool_state::PoolState};
use crate::record::{Slot, SlotKey, Space};

/// Slots without a pool, by number and length.
pub(super) type OrphanSlots = BTreeMap<(u128, u8), Slot>;

impl Book {
    /// Replaces what stands at `place`, wherever it stood; the former one comes back.
    pub(super) fn absorb_slot(&mut self, place: &SlotKey, value: Option<Slot>) -> Option<Slot> {
        let now = self.now;
        // The way of nearly every claim: an address of the pool it names, which no other pool has.
        if let Some(slot) = value.as_ref().filter(|_| !place.space.prefixes)
            && let Some(state) = self.pools.get_mut(slot.pool())
            && state.space == place.space
            && state.in_extent(slot.address())
        {
            return state.set_slot(place.number, value, now);
        }
        let home = self.pool_for_slot(place, value.as_ref());
        let standing =
            if place.space.prefixes { self.pool_holding_prefix(place, home.as_ref()) } else { home.clone() };
        if let Some(state) = standing.as_ref().and_then(|name| self.pools.get_mut(name)) {
            if value.is_none() || home == standing {
                return state.set_slot(place.number, value, now);
            }
            let before = state.set_slot(place.number, None, now);
            self.insert_slot(place, home.as_ref(), value);
            return before;
        }
        let strays = self.orphans.get_mut(&place.space);
        let before = strays.and_then(|strays| strays.remove(&orphan_key(place.number, place.length)));
        self.insert_slot(place, home.as_ref(), value);
        before
    }

    /// Puts a slot where nothing of the kind stands.
    fn insert_slot(&mut self, place: &SlotKey, home: Option<&Ident>, value: Option<Slot>) {
        let (now, Some(slot)) = (self.now, value) else { return };
        match home.and_then(|name| self.pools.get_mut(name)) {
            Some(state) => drop(state.set_slot(place.number, Some(slot), now)),
            None => self.add_orphans(&place.space, [(place.number, slot)]),
        }
    }

    fn pool_for_slot(&self, place: &SlotKey, value: Option<&Slot>) -> Option<Ident> {
        if !place.space.prefixes {
            return self.pool_at(&place.space, place.number);
        }
        let slot = value?;
        let state = self.pools.get(slot.pool()).filter(|state| state.space == place.space)?;
        state.in_extent(slot.address()).then(|| slot.pool().clone())
    }

    /// The pool that has a prefix at `place`.
    fn pool_holding_prefix(&self, place: &SlotKey, home: Option<&Ident>) -> Option<Ident> {
        let has = |state: &&PoolState| {
            let slot = state.slots.get(&place.number);
            state.space == place.space && slot.is_some_and(|slot| slot.length() == place.length)
        };
        if let Some(home) = home {
            // Only where pools lie inside each other can it stand in another pool than its own.
            if self.carried.is_empty() || self.pools.get(home).as_ref().is_some_and(has) {
                return self.pools.get(home).filter(has).map(|_| home.clone());
            }
        }
        self.pools.values().find(has).map(|state| state.pool.name().clone())
    }

    /// The pool that lies over an address; of prefix pools inside each other, the innermost.
    pub(super) fn pool_at(&self, space: &Space, number: u128) -> Option<Ident> {
        if !space.prefixes {
            let (_, (last, name)) = self.extents.get(space)?.range(..=number).next_back()?;
            return (*last >= number).then(|| name.clone());
        }
        let address = Address::new(space.kind, number)?;
        let over = self.pools.values().filter(|state| state.space == *space && state.in_extent(address));
        over.min_by_key(|state| state.usage().size).map(|state| state.pool.name().clone())
    }

    pub(super) fn add_orphans(&mut self, space: &Space, slots: impl IntoIterator<Item = (u128, Slot)>) {
        let strays = slots.into_iter().map(|(number, slot)| (orphan_key(number, slot.length()), slot));
        self.orphans.entry(space.clone()).or_default().extend(strays);
    }

    /// The orphans that belong to `state`.
    pub(super) fn remove_orphans_in(&mut self, state: &PoolState) -> Vec<(u128, Slot)> {
        let Some(strays) = self.orphans.get_mut(&state.space) else { return Vec::new() };
        let own = |slot: &Slot| !state.space.prefixes || slot.pool() == state.pool.name();
        let extent = state.pool.spec.extent();
        let at_home = |slot: &Slot| own(slot) && extent.iter().any(|range| range.contains(slot.address()));
        let taken: Vec<_> = strays.iter().filter(|(_, slot)| at_home(slot)).map(|(spot, _)| *spot).collect();
        taken.into_iter().filter_map(|spot| Some((spot.0, strays.remove(&spot)?))).collect()
    }
}

fn orphan_key(number: u128, length: Option<u8>) -> (u128, u8) {
    (number, length.unwrap_or(0))
}
