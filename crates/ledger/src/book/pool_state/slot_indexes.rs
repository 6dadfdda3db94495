//! Keeps the indexes of a pool in step when a slot changes.

use std::collections::btree_map::Entry;

use netstead_model::Order;

use super::{ByKey, PoolState, counting::Occupancy, host_mask};
use crate::record::{Rest, Slot};

impl PoolState {
    /// Replaces the slot at `number`; the former one comes back.
    pub(in crate::book) fn set_slot(&mut self, number: u128, slot: Option<Slot>, now: u64) -> Option<Slot> {
        let bits = self.bits();
        let reach = |slot: &Slot| number | host_mask(bits, slot.length().unwrap_or(bits));
        let region = |of: Option<&Slot>| of.map_or(number, reach);
        let last = region(slot.as_ref());
        if self.space.prefixes {
            let last = last.max(region(self.slots.get(&number)));
            self.uncount(number, last);
        }
        let (mut was, mut is) = (None, None);
        // Out of the way meanwhile, so that its place is looked for once.
        let mut slots = std::mem::take(&mut self.slots);
        let before = match (slots.entry(number), slot) {
            (Entry::Occupied(mut place), Some(slot)) => {
                was = self.occupancy_of(number, place.get());
                self.unlink(number, place.get());
                self.link(number, &slot, now);
                is = self.occupancy_of(number, &slot);
                Some(place.insert(slot))
            }
            (Entry::Occupied(place), None) => {
                was = self.occupancy_of(number, place.get());
                self.unlink(number, place.get());
                Some(place.remove())
            }
            (Entry::Vacant(place), Some(slot)) => {
                self.link(number, &slot, now);
                is = self.occupancy_of(number, &slot);
                place.insert(slot);
                None
            }
            (Entry::Vacant(_), None) => None,
        };
        self.slots = slots;
        if self.space.prefixes {
            self.refresh(number, last.max(region(before.as_ref())));
        } else {
            self.refresh_single(number, was, is);
        }
        before
    }

    fn link(&mut self, number: u128, slot: &Slot, now: u64) {
        match slot {
            Slot::Held(claim) => {
                self.keys.replace(ByKey(claim.clone()));
                self.hostnamed += u64::from(!claim.details().hostnames.is_empty());
                if self.pool.spec.max_per_owner.is_some() {
                    *self.owners.entry(claim.owner.clone()).or_default() += 1;
                }
                if let Some(ttl) = claim.ttl {
                    self.start_lease(number, now.saturating_add(ttl.as_millis()));
                }
                self.note_order(number, claim.id.seq, claim.fixed);
                self.use_remote_key(claim.drawn.as_deref());
            }
            Slot::Rested(rest) => {
                if self.rest_left(rest, now) > 0 {
                    self.resting.insert((rest.freed, number));
                    self.resting_size = self.resting_size.saturating_add(self.extent_of(rest.length));
                    self.resting_keys.entry(rest.key.clone()).or_default().push(number);
                }
                if self.pool.spec.order == Order::FreedFirst {
                    self.freed.insert(number);
                }
                self.note_order(number, rest.claim.seq, rest.fixed);
                self.use_remote_key(rest.drawn.as_deref());
                if rest.drawn.is_some() {
                    self.owed.insert(number);
                }
            }
        }
    }

    fn note_order(&mut self, number: u128, seq: u64, fixed: bool) {
        match self.pool.spec.order {
            Order::Next if !fixed => {
                self.handed_out.insert(seq, number);
            }
            Order::FreedFirst if !fixed => {
                self.generated.insert(number);
            }
            _ => {}
        }
    }

    fn unlink(&mut self, number: u128, slot: &Slot) {
        let seq = match slot {
            Slot::Held(claim) => {
                let named = self.keys.take(&claim.key);
                if let Some(other) = named.filter(|ByKey(named)| named.address.number() != number) {
                    // The key has moved on already.
                    self.keys.insert(other);
                }
                self.hostnamed -= u64::from(!claim.details().hostnames.is_empty());
                if let Some(count) = self.owners.get_mut(&claim.owner) {
                    *count = count.saturating_sub(1);
                    if *count == 0 {
                        self.owners.remove(&claim.owner);
                    }
                }
                self.end_lease(number);
                self.drop_remote_key(claim.drawn.as_deref());
                claim.id.seq
            }
            Slot::Rested(rest) => {
                self.end_rest(number, rest);
                self.freed.remove(&number);
                self.owed.remove(&number);
                self.drop_remote_key(rest.drawn.as_deref());
                rest.claim.seq
            }
        };
        if self.handed_out.get(&seq) == Some(&number) {
            self.handed_out.remove(&seq);
        }
        self.generated.remove(&number);
    }

    fn end_rest(&mut self, number: u128, rest: &Rest) {
        if !self.resting.remove(&(rest.freed, number)) {
            return;
        }
        self.resting_size = self.resting_size.saturating_sub(self.extent_of(rest.length));
        if let Some(numbers) = self.resting_keys.get_mut(&rest.key) {
            numbers.retain(|other| *other != number);
            if numbers.is_empty() {
                self.resting_keys.remove(&rest.key);
            }
        }
    }

    fn extent_of(&self, length: Option<u8>) -> u128 {
        host_mask(self.bits(), length.unwrap_or(self.bits())).saturating_add(1)
    }

    /// Packs what was loaded address by address: nodes filled one by one stay half empty.
    pub(in crate::book) fn pack(&mut self) {
        self.slots = std::mem::take(&mut self.slots).into_iter().collect();
        self.keys.shrink_to_fit();
    }

    /// Ends the rests whose time has come.
    pub(in crate::book) fn settle(&mut self, now: u64) {
        let cooldown = self.pool.spec.cooldown.as_millis();
        while let Some((freed, number)) = self.resting.first().copied() {
            if freed.saturating_add(cooldown) > now {
                break;
            }
            match self.slots.get(&number).cloned() {
                Some(Slot::Rested(rest)) if rest.freed == freed => {
                    if let Some(length) = rest.length {
                        let last = number | host_mask(self.bits(), length);
                        self.uncount(number, last);
                        self.end_rest(number, &rest);
                        self.refresh(number, last);
                    } else {
                        self.end_rest(number, &rest);
                        let is = rest.drawn.is_some().then_some(Occupancy::Resting);
                        self.refresh_single(number, Some(Occupancy::Resting), is);
                    }
                }
                _ => drop(self.resting.pop_first()),
            }
        }
    }
}
