//! Released addresses of a pool that rest before they are given out again.

use jiff::Timestamp;
use netstead_model::Address;

use super::PoolIndex;
use crate::cooling::Cooling;

impl PoolIndex {
    /// The second at which the rest of a unit ends.
    pub(super) fn rest_of(&self, unit: u128) -> Option<i64> {
        let address = self.space.as_ref()?.address_of(unit)?;
        self.cooling.until(address)
    }

    pub(super) fn begin_rest(&mut self, unit: u128) {
        let occupied = self.holders.contains_key(&unit) || self.reserved_units.contains_key(&unit);
        if !occupied && self.is_inside(Some(unit)) {
            self.occupy(unit);
            self.resting += 1;
        }
    }

    /// Ends the rest of a unit, whose address is no longer among those that cool.
    fn end_rest(&mut self, address: Address) {
        let Some(unit) = self.space.as_ref().and_then(|space| space.unit_of(address)) else { return };
        let occupied = self.holders.contains_key(&unit) || self.reserved_units.contains_key(&unit);
        if !occupied && self.is_inside(Some(unit)) {
            self.resting = self.resting.saturating_sub(1);
            self.vacate(unit);
        }
    }

    pub(crate) fn cooling(&self) -> &Cooling {
        &self.cooling
    }

    /// Lets an address rest until this second, from when nothing holds it any more.
    pub(crate) fn cool(&mut self, address: Address, until: i64) {
        let unit = self.space.as_ref().and_then(|space| space.unit_of(address));
        let known = self.cooling.until(address).is_some();
        let early = self.cooling.insert(address, until);
        if let (Some(unit), false) = (unit, known) {
            self.begin_rest(unit);
        }
        if let Some(early) = early {
            self.end_rest(early);
        }
        self.fit_line();
    }

    /// Ends the rest of an address before its time.
    pub(crate) fn end_cooling(&mut self, address: Address) {
        self.cooling.remove(address);
        self.end_rest(address);
    }

    /// Ends the rests that are over.
    pub(crate) fn warm_up(&mut self, now: Timestamp) {
        for address in self.cooling.expire(now) {
            self.end_rest(address);
        }
    }
}
