//! Keeping what is derived in step with the slots.

use std::collections::btree_map::Entry;

use netstead_model::{Order, Range};

use super::{ByKey, PoolState, host_mask};
use crate::record::{Rest, Slot};

impl PoolState {
    /// Replaces the slot at `number`; the former one comes back.
    pub(in crate::book) fn set_slot(&mut self, number: u128, slot: Option<Slot>, now: u64) -> Option<Slot> {
        let bits = self.bits();
        let reach = |slot: &Slot| number | host_mask(bits, slot.length().unwrap_or(bits));
        let last = slot.as_ref().map_or(number, reach);
        let busy = slot.as_ref().is_some_and(|slot| self.is_busy(slot, now));
        // Out of the way meanwhile, so that its place is looked for once.
        let mut slots = std::mem::take(&mut self.slots);
        let before = match (slots.entry(number), slot) {
            (Entry::Occupied(mut place), Some(slot)) => {
                self.unlink(number, place.get());
                self.link(number, &slot, now);
                Some(place.insert(slot))
            }
            (Entry::Occupied(place), None) => {
                self.unlink(number, place.get());
                Some(place.remove())
            }
            (Entry::Vacant(place), Some(slot)) => {
                self.link(number, &slot, now);
                place.insert(slot);
                None
            }
            (Entry::Vacant(_), None) => None,
        };
        self.slots = slots;
        if self.space.prefixes {
            self.refresh(number, last.max(before.as_ref().map_or(number, reach)), now);
        } else {
            self.refresh_single(number, busy);
        }
        before
    }

    /// Works out anew whether one address is free, `busy` being whether it is held or rests.
    fn refresh_single(&mut self, number: u128, busy: bool) {
        let free = !busy
            && self.contains_usable(number, number)
            && self.reservation_at(number, number).is_none()
            && !self.observed.contains(&number);
        self.free.set_single(number, free);
    }

    fn link(&mut self, number: u128, slot: &Slot, now: u64) {
        match slot {
            Slot::Held(claim) => {
                self.held = self.held.saturating_add(self.extent_of(claim.length));
                self.keys.replace(ByKey(claim.clone()));
                if self.pool.spec.max_per_owner.is_some() {
                    *self.owners.entry(claim.owner.clone()).or_default() += 1;
                }
                if let Some(ttl) = claim.ttl {
                    self.start_lease(number, now.saturating_add(ttl.as_millis()));
                }
                self.note_order(number, claim.id.seq, claim.fixed);
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
                self.held = self.held.saturating_sub(self.extent_of(claim.length));
                let named = self.keys.take(&claim.key);
                if let Some(other) = named.filter(|ByKey(named)| named.address.number() != number) {
                    // The key has moved on already.
                    self.keys.insert(other);
                }
                if let Some(count) = self.owners.get_mut(&claim.owner) {
                    *count = count.saturating_sub(1);
                    if *count == 0 {
                        self.owners.remove(&claim.owner);
                    }
                }
                self.end_lease(number);
                claim.id.seq
            }
            Slot::Rested(rest) => {
                self.end_rest(number, rest);
                self.freed.remove(&number);
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
                    self.end_rest(number, &rest);
                    match rest.length {
                        Some(length) => self.refresh(number, number | host_mask(self.bits(), length), now),
                        None => self.refresh_single(number, false),
                    }
                }
                _ => drop(self.resting.pop_first()),
            }
        }
    }

    /// Works out anew what of a region is free. Costs what is in the region, not what the pool is large.
    pub(in crate::book) fn refresh(&mut self, first: u128, last: u128, now: u64) {
        let mut free = std::mem::take(&mut self.free);
        free.take_region(first, last);
        for (start, end) in &self.usable {
            let (start, end) = ((*start).max(first), (*end).min(last));
            if start <= end {
                free.give_region(start, end);
            }
        }
        for slot in self.slots_in(first, last).filter(|slot| self.is_busy(slot, now)) {
            let start = slot.address().number();
            free.take_region(start, start | host_mask(self.bits(), slot.length().unwrap_or(self.bits())));
        }
        for reservation in self.reservations.range(..=last).rev().map(|(_, r)| r.range) {
            if reservation.last().number() < first {
                break;
            }
            free.take_region(reservation.first().number(), reservation.last().number());
        }
        for number in self.observed.range(first..=last) {
            free.take_region(*number, *number);
        }
        self.free = free;
    }

    pub(in crate::book) fn refresh_range(&mut self, range: Range, now: u64) {
        self.refresh(range.first().number(), range.last().number(), now);
    }
}
