//! Counts the addresses of a pool by state.
//!
//! Every address that can be handed out has exactly one state: held, else resting, reserved, observed, or free. The counters
//! are kept up to date by region: a region is taken out of them before a change and counted again after it.

use super::{FreeAddresses, PoolState, host_mask};
use crate::record::Slot;

/// Why an address is not free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::book) enum Occupancy {
    Held,
    Resting,
    Reserved,
    Observed,
}

/// How many addresses are what, those that are free aside.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::book) struct Tally {
    pub held: u128,
    pub resting: u128,
    pub reserved: u128,
    pub observed: u128,
}

impl Tally {
    fn of(&mut self, what: Occupancy) -> &mut u128 {
        match what {
            Occupancy::Held => &mut self.held,
            Occupancy::Resting => &mut self.resting,
            Occupancy::Reserved => &mut self.reserved,
            Occupancy::Observed => &mut self.observed,
        }
    }

    fn each(&mut self, other: Self, step: impl Fn(u128, u128) -> u128) {
        self.held = step(self.held, other.held);
        self.resting = step(self.resting, other.resting);
        self.reserved = step(self.reserved, other.reserved);
        self.observed = step(self.observed, other.observed);
    }
}

impl PoolState {
    /// How a slot counts where nothing else does.
    pub(in crate::book) fn occupancy_of(&self, number: u128, slot: &Slot) -> Option<Occupancy> {
        match slot {
            Slot::Held(_) => Some(Occupancy::Held),
            Slot::Rested(rest) => {
                let resting = rest.drawn.is_some() || self.resting.contains(&(rest.freed, number));
                resting.then_some(Occupancy::Resting)
            }
        }
    }

    /// The addresses of a region that can be handed out, and which of them are free. The cost grows with what is held in the
    /// region, not with its size.
    pub(in crate::book) fn count(&self, first: u128, last: u128) -> (Tally, FreeAddresses) {
        let mut free = FreeAddresses::default();
        for (start, end) in &self.usable {
            let (start, end) = ((*start).max(first), (*end).min(last));
            if start <= end {
                free.give_region(start, end);
            }
        }
        let mut tally = Tally::default();
        for what in [Occupancy::Held, Occupancy::Resting] {
            let of_this = |slot: &&Slot| self.occupancy_of(slot.address().number(), slot) == Some(what);
            let slots = self.slots_in(first, last).filter(of_this);
            let regions = slots.map(|slot| {
                let start = slot.address().number();
                (start, start | host_mask(self.bits(), slot.length().unwrap_or(self.bits())))
            });
            *tally.of(what) = cut(&mut free, regions);
        }
        let reserved =
            self.reservations_in(first, last).map(|r| (r.range.first().number(), r.range.last().number()));
        tally.reserved = cut(&mut free, reserved);
        tally.observed = cut(&mut free, self.observed.range(first..=last).map(|number| (*number, *number)));
        (tally, free)
    }

    /// Takes a region out of the counters, before something in it changes. [`PoolState::refresh`] puts it back.
    pub(in crate::book) fn uncount(&mut self, first: u128, last: u128) {
        let (tally, _) = self.count(first, last);
        self.tally.each(tally, u128::saturating_sub);
    }

    /// Works out anew what a region is that is out of the counters.
    pub(in crate::book) fn refresh(&mut self, first: u128, last: u128) {
        let (tally, free) = self.count(first, last);
        self.tally.each(tally, u128::saturating_add);
        self.free.take_region(first, last);
        for (start, end) in free.runs() {
            self.free.give_region(start, end);
        }
    }

    /// Works out anew what all of the pool is.
    pub(in crate::book) fn refresh_all(&mut self) {
        self.tally = Tally::default();
        for (first, last) in self.extent.clone() {
            self.refresh(first, last);
        }
    }

    /// As [`PoolState::refresh`] for one address whose slot said `was` before and says `is` now.
    pub(super) fn refresh_single(&mut self, number: u128, was: Option<Occupancy>, is: Option<Occupancy>) {
        if !self.contains_usable(number, number) {
            return;
        }
        let beneath = if self.reservation_at(number, number).is_some() {
            Some(Occupancy::Reserved)
        } else if self.observed.contains(&number) {
            Some(Occupancy::Observed)
        } else {
            None
        };
        if let Some(was) = was.or(beneath) {
            let count = self.tally.of(was);
            *count = count.saturating_sub(1);
        }
        let is = is.or(beneath);
        if let Some(is) = is {
            let count = self.tally.of(is);
            *count = count.saturating_add(1);
        }
        self.free.set_single(number, is.is_none());
    }
}

/// Takes regions out of `free` and says how many addresses that were.
fn cut(free: &mut FreeAddresses, regions: impl Iterator<Item = (u128, u128)>) -> u128 {
    let before = free.count();
    for (first, last) in regions {
        free.take_region(first, last);
    }
    before.saturating_sub(free.count())
}
