//! [`PoolIndex`]: which addresses of a pool are free, held, promised, resting or about to be given out. No step looks at all of
//! them.
//!
//! It is in memory only and follows the objects of the API server: an `IPAddress` that is seen holds its address, and one that
//! is gone frees it. Between the choice of an address and the sight of its object the claim has a *reservation*, so that two
//! claims of this process never get the same one. Two processes may choose the same address; `claim_controller` says which of the
//! two claims keeps it.

mod rest;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use jiff::Timestamp;
use netstead_model::Address;

use crate::{
    cooling::Cooling, in_cluster::AddressSpace, interval_set::IntervalSet, line::Line, object::ObjectName,
};

/// Why a claim gets no address now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The pool says nothing that can be used.
    NotReady,
    /// Nothing is free, or claims before this one take all that is.
    Exhausted,
    /// The wanted address is held by this one, or promised to it.
    Taken { by: String },
    /// The wanted address rests until this second.
    Resting { until: i64 },
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
    /// Released, and not given out again yet.
    pub(crate) cooling: u128,
    pub(crate) waiting: u128,
}

/// The place of a claim in the line: when it was made, then its name.
type Place = (Option<Timestamp>, ObjectName);

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
    /// Claims that wait for any address.
    line: Line<Place>,
    since: HashMap<ObjectName, Option<Timestamp>>,
    /// Claims that wait for one address.
    wishes: BTreeSet<(u128, ObjectName)>,
    wish_of: HashMap<ObjectName, u128>,
    cooling: Cooling,
    /// Units that rest and that nothing holds.
    resting: u128,
    /// Of a pool in another system: how many claims may ask for an address at once.
    external_room: Option<usize>,
    /// Claims that may get an address now and are to be looked at.
    woken: Vec<ObjectName>,
}

#[derive(Debug)]
struct HeldObject {
    address: Option<Address>,
    unit: Option<u128>,
    /// When the server made the object, in whole seconds. With its name it gives all replicas the same order.
    made: Option<Timestamp>,
}

/// Another object with the same address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rival {
    pub(crate) name: ObjectName,
    /// It comes before in the order that all replicas compute alike.
    pub(crate) is_first: bool,
}

impl PoolIndex {
    pub(crate) fn space(&self) -> Option<&Arc<AddressSpace>> {
        self.space.as_ref()
    }

    pub(crate) fn counts(&self) -> Counts {
        let used = self.objects.len() as u128;
        let inside = used.saturating_sub(self.out_of_range);
        Counts {
            total: self.total,
            used,
            free: self.total.saturating_sub(inside).saturating_sub(self.resting),
            out_of_range: self.out_of_range,
            cooling: self.resting,
            waiting: (self.line.len() + self.wishes.len()) as u128,
        }
    }

    /// Whether objects or reservations of the pool exist.
    pub(crate) fn is_in_use(&self) -> bool {
        !self.objects.is_empty() || !self.reserved.is_empty()
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.is_in_use() && self.line.is_empty() && self.wishes.is_empty()
    }

    /// The claims that may get an address since this was asked last.
    pub(crate) fn take_woken(&mut self) -> Vec<ObjectName> {
        std::mem::take(&mut self.woken)
    }

    /// Replaces what the pool may give out.
    pub(crate) fn set_space(&mut self, space: Option<AddressSpace>, promises: BTreeMap<String, Address>) {
        if self.space.as_deref() == space.as_ref() && self.promises == promises {
            return;
        }
        self.space = space.map(Arc::new);
        self.promises = promises;
        self.rebuild();
        self.woken.extend(self.wish_of.keys().cloned());
        if !self.promises.is_empty() {
            let promised = self.line.iter().map(|(_, claim)| claim);
            let promised: Vec<ObjectName> =
                promised.filter(|claim| self.promise_for(claim).is_some()).cloned().collect();
            self.woken.extend(promised);
        }
    }

    /// How many claims may ask another system for an address at once.
    pub(crate) fn set_external_room(&mut self, room: usize) {
        self.external_room = Some(room);
        self.fit_line();
    }

    /// Admits as many claims as addresses are free.
    fn fit_line(&mut self) {
        let free = usize::try_from(self.free_count).unwrap_or(usize::MAX);
        let admitted = self.line.set_room(self.external_room.unwrap_or(free));
        self.woken.extend(admitted.into_iter().map(|(_, claim)| claim));
    }

    fn rebuild(&mut self) {
        self.holders.clear();
        self.reserved_units.clear();
        self.promised_units.clear();
        self.resting = 0;
        let Some(space) = self.space.clone() else {
            (self.total, self.free_count, self.out_of_range) = (0, 0, self.objects.len() as u128);
            self.free = IntervalSet::default();
            self.objects.values_mut().for_each(|object| object.unit = None);
            self.fit_line();
            return;
        };
        self.free = space.units().clone();
        self.total = self.free.count();
        self.free_count = self.total;
        self.out_of_range = 0;
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
        let cooling: Vec<u128> =
            self.cooling.addresses().filter_map(|address| space.unit_of(address)).collect();
        for unit in cooling {
            self.begin_rest(unit);
        }
        self.fit_line();
    }

    fn occupy(&mut self, unit: u128) {
        if self.free.contains(unit) {
            self.free.remove(unit, unit);
            self.free_count = self.free_count.saturating_sub(1);
        }
    }

    /// Frees a unit if nothing occupies it any more.
    fn vacate(&mut self, unit: u128) {
        let held = self.holders.contains_key(&unit) || self.reserved_units.contains_key(&unit);
        if held || !self.is_inside(Some(unit)) || self.free.contains(unit) {
            return;
        }
        if self.rest_of(unit).is_some() {
            self.resting += 1;
            return;
        }
        let first = (unit, ObjectName::default());
        let wishing = self.wishes.range(first..).take_while(|(wanted, _)| *wanted == unit);
        self.woken.extend(wishing.map(|(_, claim)| claim.clone()));
        if !self.promised_units.contains_key(&unit) {
            self.free.insert(unit, unit);
            self.free_count += 1;
            self.fit_line();
        }
    }

    /// Wakes the first claims of the line.
    pub(crate) fn wake_line(&mut self, count: usize) {
        self.woken.extend(self.line.iter().take(count).map(|(_, claim)| claim.clone()));
    }

    /// An object with an address of the pool was seen.
    pub(crate) fn hold(&mut self, name: &ObjectName, address: Option<Address>, made: Option<Timestamp>) {
        if let Some(known) = self.objects.get_mut(name)
            && known.address == address
        {
            // It may have been made anew meanwhile.
            known.made = made;
            return;
        }
        self.free_object(name);
        let unit = address.and_then(|address| self.space.as_ref()?.unit_of(address));
        self.objects.insert(name.clone(), HeldObject { address, unit, made });
        if !self.is_inside(unit) {
            self.out_of_range += 1;
        }
        if let Some(unit) = unit {
            let rests = self.rest_of(unit).is_some();
            let occupied = self.holders.contains_key(&unit) || self.reserved_units.contains_key(&unit);
            if rests && !occupied && self.is_inside(Some(unit)) {
                self.resting = self.resting.saturating_sub(1);
            }
            self.occupy(unit);
            self.holders.entry(unit).or_default().push(name.clone());
        }
        self.forget_reservation(name);
        self.leave_line(name);
        self.fit_line();
    }

    /// The object of an address is gone.
    pub(crate) fn free_object(&mut self, name: &ObjectName) {
        let Some(object) = self.objects.remove(name) else { return };
        if !self.is_inside(object.unit) {
            self.out_of_range = self.out_of_range.saturating_sub(1);
        }
        let Some(unit) = object.unit else { return };
        if let Some(holders) = self.holders.get_mut(&unit) {
            holders.retain(|holder| holder != name);
            // One that waited for its rival to give way.
            self.woken.extend(holders.iter().cloned());
            if holders.is_empty() {
                self.holders.remove(&unit);
            }
        }
        self.vacate(unit);
    }

    fn is_inside(&self, unit: Option<u128>) -> bool {
        let inside = |unit| self.space.as_ref().is_some_and(|space| space.units().contains(unit));
        unit.is_some_and(inside)
    }

    /// Puts a claim that needs an address into the line, unless it has one in prospect.
    pub(crate) fn enter_line(&mut self, claim: &ObjectName, since: Option<Timestamp>) {
        let has_other_way = self.objects.contains_key(claim)
            || self.reserved.contains_key(claim)
            || self.wish_of.contains_key(claim)
            || self.promise_for(claim).is_some();
        if has_other_way || self.since.contains_key(claim) {
            return;
        }
        self.since.insert(claim.clone(), since);
        self.line.enter((since, claim.clone()));
    }

    /// Whether fewer claims are before this one than addresses are free.
    pub(crate) fn is_admitted(&self, claim: &ObjectName) -> bool {
        self.since.get(claim).is_some_and(|since| self.line.is_admitted(&(*since, claim.clone())))
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
            self.leave_line(claim);
            let unit = space.unit_of(wanted).filter(|unit| space.units().contains(*unit));
            let unit = unit.ok_or(Refusal::Outside)?;
            let refused = match self.occupant(unit, promised.is_none()) {
                Some(by) => Some(Refusal::Taken { by }),
                None => self.rest_of(unit).map(|until| Refusal::Resting { until }),
            };
            if let Some(refused) = refused {
                self.wishes.insert((unit, claim.clone()));
                self.wish_of.insert(claim.clone(), unit);
                return Err(refused);
            }
            unit
        } else {
            self.forget_wish(claim);
            self.enter_line(claim, since);
            if !self.is_admitted(claim) {
                return Err(Refusal::Exhausted);
            }
            let unit = self.free.first().ok_or(Refusal::Exhausted)?;
            if let Some(since) = self.since.remove(claim) {
                self.line.serve(&(since, claim.clone()));
            }
            unit
        };
        self.forget_wish(claim);
        self.keep_for(claim, unit);
        space.address_of(unit).ok_or(Refusal::NotReady)
    }

    fn keep_for(&mut self, claim: &ObjectName, unit: u128) {
        self.occupy(unit);
        self.reserved.insert(claim.clone(), unit);
        self.reserved_units.insert(unit, claim.clone());
        self.fit_line();
    }

    /// Keeps an address for a claim whose object is gone: a living claim never gets another one.
    pub(crate) fn reserve_again(&mut self, claim: &ObjectName, address: Address) {
        let unit = self.space.as_ref().and_then(|space| space.unit_of(address));
        let Some(unit) = unit.filter(|unit| self.occupant(*unit, false).is_none()) else { return };
        self.forget_reservation(claim);
        if self.rest_of(unit).is_some() && self.is_inside(Some(unit)) {
            self.resting = self.resting.saturating_sub(1);
        }
        self.keep_for(claim, unit);
    }

    /// The address that the pool keeps for a claim.
    pub(crate) fn promise_for(&self, claim: &ObjectName) -> Option<Address> {
        if self.promises.is_empty() {
            return None;
        }
        let full = claim.to_string();
        self.promises.get(&full).or_else(|| self.promises.get(&claim.name)).copied()
    }

    /// The claim that an address is promised to.
    pub(crate) fn promised_to(&self, address: Address) -> Option<&String> {
        self.promises.iter().find(|(_, promised)| **promised == address).map(|(claim, _)| claim)
    }

    /// The claim that has a unit.
    fn occupant(&self, unit: u128, also_promises: bool) -> Option<String> {
        let held =
            self.holders.get(&unit).and_then(|holders| holders.first()).or(self.reserved_units.get(&unit));
        let promised = self.promised_units.get(&unit).filter(|_| also_promises);
        held.map(ToString::to_string).or_else(|| promised.cloned())
    }

    /// Gives up what a claim has not got yet: its reservation, its wish and its place in the line.
    pub(crate) fn forget(&mut self, claim: &ObjectName) {
        self.forget_reservation(claim);
        self.forget_wish(claim);
        self.leave_line(claim);
    }

    pub(crate) fn forget_reservation(&mut self, claim: &ObjectName) {
        let Some(unit) = self.reserved.remove(claim) else { return };
        self.reserved_units.remove(&unit);
        self.vacate(unit);
    }

    fn forget_wish(&mut self, claim: &ObjectName) {
        if let Some(unit) = self.wish_of.remove(claim) {
            self.wishes.remove(&(unit, claim.clone()));
        }
    }

    /// Takes a claim out of the line; another one is admitted instead.
    pub(crate) fn leave_line(&mut self, claim: &ObjectName) {
        self.forget_wish(claim);
        let Some(since) = self.since.remove(claim) else { return };
        let admitted = self.line.leave(&(since, claim.clone()));
        self.woken.extend(admitted.map(|(_, claim)| claim));
    }

    /// Other objects with the address of this one.
    pub(crate) fn rivals(&self, name: &ObjectName) -> Vec<Rival> {
        let Some(HeldObject { unit: Some(unit), made, .. }) = self.objects.get(name) else {
            return Vec::new();
        };
        let others = self.holders.get(unit).into_iter().flatten().filter(|other| *other != name);
        let rival = |other: &ObjectName| {
            let is_first = self.objects.get(other).is_some_and(|object| (object.made, other) < (*made, name));
            Rival { name: other.clone(), is_first }
        };
        others.map(rival).collect()
    }

    /// The addresses that are held and can be read.
    pub(crate) fn held(&self) -> impl Iterator<Item = Address> + '_ {
        self.objects.values().filter_map(|object| object.address)
    }

    /// The addresses that are held and that the pool does not have, in order. Looks at all of them.
    pub(crate) fn outside(&self) -> Vec<Address> {
        let objects = self.objects.values().filter(|object| !self.is_inside(object.unit));
        let mut outside: Vec<Address> = objects.filter_map(|object| object.address).collect();
        outside.sort_unstable();
        outside
    }
}
