//! [`PoolIndex`]: which addresses of a pool are free, held, promised or about to be given out. No step looks at all of them.
//!
//! It is in memory only and follows the objects of the API server: an `IPAddress` that is seen holds its address, and one that
//! is gone frees it. Between the choice of an address and the sight of its object the claim has a *reservation*, so that two
//! claims of this process never get the same one. Of two processes that choose the same address, the one whose object the
//! server made first keeps it ([`PoolIndex::rivals`]).

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use jiff::Timestamp;
use netstead_model::Address;

use crate::{in_cluster::AddressSpace, interval_set::IntervalSet, object::ObjectName};

/// Why a claim gets no address now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The pool says nothing that can be used.
    NotReady,
    /// Nothing is free, or claims before this one take all that is.
    Exhausted,
    /// The wanted address is held by this one, or promised to it.
    Taken { by: String },
    /// The wanted address is not one of the pool's.
    Outside,
}

/// The numbers of a pool's status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) total: u128,
    pub(crate) used: u128,
    pub(crate) free: u128,
    pub(crate) out_of_range: u128,
    pub(crate) waiting: u128,
}

#[derive(Debug, Default)]
pub(crate) struct PoolIndex {
    space: Option<Arc<AddressSpace>>,
    total: u128,
    free: IntervalSet,
    free_count: u128,
    /// Objects of addresses by their name, which is that of their claim.
    objects: HashMap<ObjectName, HeldObject>,
    holders: HashMap<u128, Vec<ObjectName>>,
    out_of_range: u128,
    /// Units that were chosen for a claim and whose object has not been seen.
    reserved: HashMap<ObjectName, u128>,
    reserved_units: HashMap<u128, ObjectName>,
    /// Units that are kept for a claim, by its name.
    promises: BTreeMap<String, Address>,
    promised_units: HashMap<u128, String>,
    /// Claims that wait for any address, the oldest first.
    waiting: BTreeSet<(Option<Timestamp>, ObjectName)>,
    since: HashMap<ObjectName, Option<Timestamp>>,
    /// Claims that wait for one address.
    wishes: BTreeSet<(u128, ObjectName)>,
}

#[derive(Debug)]
struct HeldObject {
    address: Option<Address>,
    unit: Option<u128>,
    /// The version at which the object was seen first: the order in which the server made them.
    born: u64,
}

/// Another object with the same address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rival {
    pub(crate) name: ObjectName,
    /// It was made before.
    pub(crate) older: bool,
}

impl PoolIndex {
    pub(crate) fn space(&self) -> Option<&Arc<AddressSpace>> {
        self.space.as_ref()
    }

    pub(crate) fn counts(&self) -> Counts {
        let used = self.objects.len() as u128;
        Counts {
            total: self.total,
            used,
            free: self.total.saturating_sub(used.saturating_sub(self.out_of_range)),
            out_of_range: self.out_of_range,
            waiting: (self.waiting.len() + self.wishes.len()) as u128,
        }
    }

    /// Whether objects or reservations of the pool exist.
    pub(crate) fn is_in_use(&self) -> bool {
        !self.objects.is_empty() || !self.reserved.is_empty()
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.is_in_use() && self.waiting.is_empty() && self.wishes.is_empty()
    }

    /// Replaces what the pool may give out. Returns the claims that may get an address now.
    pub(crate) fn set_space(
        &mut self,
        space: Option<AddressSpace>,
        promises: BTreeMap<String, Address>,
    ) -> Vec<ObjectName> {
        if self.space.as_deref() == space.as_ref() && self.promises == promises {
            return Vec::new();
        }
        self.space = space.map(Arc::new);
        self.promises = promises;
        self.rebuild();
        let count = usize::try_from(self.free_count).unwrap_or(usize::MAX);
        let waiting = self.waiting.iter().take(count).map(|(_, claim)| claim.clone());
        waiting.chain(self.wishes.iter().map(|(_, claim)| claim.clone())).collect()
    }

    fn rebuild(&mut self) {
        let Some(space) = self.space.clone() else {
            (self.total, self.free_count, self.out_of_range) = (0, 0, self.objects.len() as u128);
            self.free = IntervalSet::default();
            return;
        };
        self.free = space.units().clone();
        self.total = self.free.count();
        self.free_count = self.total;
        self.holders.clear();
        self.out_of_range = 0;
        self.reserved_units.clear();
        self.promised_units.clear();
        let promises = self
            .promises
            .iter()
            .filter_map(|(claim, address)| space.unit_of(*address).map(|unit| (unit, claim.clone())));
        self.promised_units.extend(promises);
        let promised: Vec<u128> = self.promised_units.keys().copied().collect();
        for unit in promised {
            self.occupy(unit);
        }
        let mut units = Vec::with_capacity(self.objects.len());
        for (name, object) in &mut self.objects {
            object.unit = object.address.and_then(|address| space.unit_of(address));
            if !object.unit.is_some_and(|unit| space.units().contains(unit)) {
                self.out_of_range += 1;
            }
            units.extend(object.unit.map(|unit| (unit, name.clone())));
        }
        for (unit, name) in units {
            self.occupy(unit);
            self.holders.entry(unit).or_default().push(name);
        }
        // A reservation that the pool no longer has is given up: its claim gets another address.
        self.reserved.retain(|_, unit| space.units().contains(*unit));
        let reserved: Vec<_> = self.reserved.iter().map(|(claim, unit)| (*unit, claim.clone())).collect();
        for (unit, claim) in reserved {
            self.occupy(unit);
            self.reserved_units.insert(unit, claim);
        }
    }

    fn occupy(&mut self, unit: u128) {
        if self.free.contains(unit) {
            self.free.remove(unit, unit);
            self.free_count = self.free_count.saturating_sub(1);
        }
    }

    /// Frees a unit that nothing occupies any more. Returns the claims that may get an address now.
    fn vacate(&mut self, unit: u128) -> Vec<ObjectName> {
        let held = self.holders.contains_key(&unit) || self.reserved_units.contains_key(&unit);
        let inside = self.space.as_ref().is_some_and(|space| space.units().contains(unit));
        if held || !inside || self.free.contains(unit) {
            return Vec::new();
        }
        let first = (unit, ObjectName::default());
        let wishing = self.wishes.range(first..).take_while(|(wanted, _)| *wanted == unit);
        let mut wake: Vec<ObjectName> = wishing.map(|(_, claim)| claim.clone()).collect();
        if !self.promised_units.contains_key(&unit) {
            self.free.insert(unit, unit);
            self.free_count += 1;
            wake.extend(self.last_served());
        }
        wake
    }

    /// The last of the waiting claims for which there is an address: another one became free, or a claim before left.
    fn last_served(&self) -> Option<ObjectName> {
        let number = usize::try_from(self.free_count).unwrap_or(usize::MAX).checked_sub(1)?;
        if number >= self.waiting.len() {
            return None;
        }
        self.waiting.iter().nth(number).map(|(_, claim)| claim.clone())
    }

    /// An object with an address of the pool was seen. One that is known keeps its age.
    pub(crate) fn hold(&mut self, name: &ObjectName, address: Option<Address>, born: u64) -> Vec<ObjectName> {
        if self.objects.get(name).is_some_and(|known| known.address == address) {
            return Vec::new();
        }
        let mut wake = self.free_object(name);
        let unit = address.and_then(|address| self.space.as_ref()?.unit_of(address));
        self.objects.insert(name.clone(), HeldObject { address, unit, born });
        if !self.is_inside(unit) {
            self.out_of_range += 1;
        }
        if let Some(unit) = unit {
            self.occupy(unit);
            self.holders.entry(unit).or_default().push(name.clone());
        }
        wake.extend(self.forget_reservation(name));
        self.stop_waiting_quietly(name);
        wake
    }

    /// The object of an address is gone.
    pub(crate) fn free_object(&mut self, name: &ObjectName) -> Vec<ObjectName> {
        let Some(object) = self.objects.remove(name) else { return Vec::new() };
        if !self.is_inside(object.unit) {
            self.out_of_range = self.out_of_range.saturating_sub(1);
        }
        let Some(unit) = object.unit else { return Vec::new() };
        if let Some(holders) = self.holders.get_mut(&unit) {
            holders.retain(|holder| holder != name);
            if holders.is_empty() {
                self.holders.remove(&unit);
            }
        }
        self.vacate(unit)
    }

    fn is_inside(&self, unit: Option<u128>) -> bool {
        let inside = |unit| self.space.as_ref().is_some_and(|space| space.units().contains(unit));
        unit.is_some_and(inside)
    }

    /// Chooses an address for a claim: its reservation, the promised one, the wanted one, or the lowest free one if no older
    /// claim waits for it.
    pub(crate) fn reserve(
        &mut self,
        claim: &ObjectName,
        since: Option<Timestamp>,
        wanted: Option<Address>,
    ) -> Result<Address, Refusal> {
        let Some(space) = self.space.clone() else { return Err(Refusal::NotReady) };
        let promised = self.promise_for(claim);
        let wanted = promised.or(wanted);
        if let Some(unit) = self.reserved.get(claim)
            && wanted.is_none_or(|wanted| space.unit_of(wanted) == Some(*unit))
        {
            return space.address_of(*unit).ok_or(Refusal::NotReady);
        }
        self.forget_reservation(claim);
        let unit = if let Some(wanted) = wanted {
            let unit = space.unit_of(wanted).filter(|unit| space.units().contains(*unit));
            let unit = unit.ok_or(Refusal::Outside)?;
            if let Some(by) = self.occupant(unit, promised.is_none()) {
                self.wishes.insert((unit, claim.clone()));
                return Err(Refusal::Taken { by });
            }
            unit
        } else if self.is_next(claim, since) {
            self.free.first().ok_or(Refusal::Exhausted)?
        } else {
            self.waiting.insert((since, claim.clone()));
            self.since.insert(claim.clone(), since);
            return Err(Refusal::Exhausted);
        };
        self.stop_waiting_quietly(claim);
        self.occupy(unit);
        self.reserved.insert(claim.clone(), unit);
        self.reserved_units.insert(unit, claim.clone());
        space.address_of(unit).ok_or(Refusal::NotReady)
    }

    /// Keeps an address for a claim whose object is gone: a living claim never gets another one.
    pub(crate) fn reserve_again(&mut self, claim: &ObjectName, address: Address) {
        let unit = self.space.as_ref().and_then(|space| space.unit_of(address));
        let Some(unit) = unit.filter(|unit| self.occupant(*unit, false).is_none()) else { return };
        self.forget_reservation(claim);
        self.occupy(unit);
        self.reserved.insert(claim.clone(), unit);
        self.reserved_units.insert(unit, claim.clone());
    }

    fn promise_for(&self, claim: &ObjectName) -> Option<Address> {
        let full = claim.to_string();
        self.promises.get(&full).or_else(|| self.promises.get(&claim.name)).copied()
    }

    /// The claim that has a unit.
    fn occupant(&self, unit: u128, also_promises: bool) -> Option<String> {
        let held =
            self.holders.get(&unit).and_then(|holders| holders.first()).or(self.reserved_units.get(&unit));
        let promised = self.promised_units.get(&unit).filter(|_| also_promises);
        held.map(ToString::to_string).or_else(|| promised.cloned())
    }

    /// Whether fewer older claims wait than addresses are free.
    fn is_next(&self, claim: &ObjectName, since: Option<Timestamp>) -> bool {
        if self.waiting.is_empty() {
            return self.free_count > 0;
        }
        let own = (since, claim.clone());
        let free = usize::try_from(self.free_count).unwrap_or(usize::MAX);
        self.waiting.iter().take(free).take_while(|one| **one < own).count() < free
    }

    /// Gives up what a claim has not got yet. Returns the claims that may get an address now.
    pub(crate) fn forget(&mut self, claim: &ObjectName) -> Vec<ObjectName> {
        let mut wake = self.forget_reservation(claim);
        if self.stop_waiting_quietly(claim) {
            wake.extend(self.last_served());
        }
        wake
    }

    pub(crate) fn forget_reservation(&mut self, claim: &ObjectName) -> Vec<ObjectName> {
        let Some(unit) = self.reserved.remove(claim) else { return Vec::new() };
        self.reserved_units.remove(&unit);
        self.vacate(unit)
    }

    /// Whether the claim waited for any address.
    fn stop_waiting_quietly(&mut self, claim: &ObjectName) -> bool {
        if !self.wishes.is_empty() {
            self.wishes.retain(|(_, one)| one != claim);
        }
        let Some(since) = self.since.remove(claim) else { return false };
        self.waiting.remove(&(since, claim.clone()))
    }

    /// Other objects with the address of this one.
    pub(crate) fn rivals(&self, name: &ObjectName) -> Vec<Rival> {
        let Some(HeldObject { unit: Some(unit), born, .. }) = self.objects.get(name) else {
            return Vec::new();
        };
        let others = self.holders.get(unit).into_iter().flatten().filter(|other| *other != name);
        let rival = |other: &ObjectName| {
            let older = self.objects.get(other).is_some_and(|object| (object.born, other) < (*born, name));
            Rival { name: other.clone(), older }
        };
        others.map(rival).collect()
    }

    /// The addresses that are held and that the pool does not have, in order. Looks at all of them.
    pub(crate) fn outside(&self) -> Vec<Address> {
        let objects = self.objects.values().filter(|object| !self.is_inside(object.unit));
        let mut outside: Vec<Address> = objects.filter_map(|object| object.address).collect();
        outside.sort_unstable();
        outside
    }
}
