//! [`PoolState`]: one pool with its slots, and the free space, counters and indexes derived from them.

mod choosing;
mod counting;
mod slot_indexes;

use std::{
    borrow::Borrow,
    collections::{BTreeMap, BTreeSet},
    hash::{Hash, Hasher},
    sync::Arc,
};

use netstead_model::{Address, Claim, Family, Key, Order, Pool, Range, Reservation, Span, Usage};

use self::counting::Tally;
use super::{HashMap, HashSet, free_addresses::FreeAddresses, free_space::FreeSpace};
use crate::record::{Rest, Slot, Space};

/// A pool, its slots, and the free sets, counters and indexes that follow from them.
#[derive(Debug, Clone)]
pub struct PoolState {
    pub pool: Arc<Pool>,
    pub space: Space,
    pub(super) slots: BTreeMap<u128, Slot>,
    pub(super) reservations: BTreeMap<u128, Arc<Reservation>>,
    /// Addresses of the pool that were seen in use.
    pub(super) observed: BTreeSet<u128>,
    /// Places in the queue.
    pub(super) waiting: BTreeSet<u64>,
    /// In a pool with a backend: claims that wait for it, and those that ended and may hold something there.
    pub(super) draws: BTreeSet<u64>,
    /// Of those, the ones that still want an address.
    pub(super) drawing: HashMap<Key, u64>,
    /// Resting addresses that the backend has not got back.
    pub(super) owed: BTreeSet<u128>,
    /// How often each key at the backend is in use.
    pub(super) remote_keys: HashMap<Arc<str>, u32>,
    keys: HashSet<ByKey>,
    /// Claims with hostnames of their own.
    hostnamed: u64,
    /// Claims per owner, where that is limited.
    owners: HashMap<Arc<str>, u32>,
    /// The addresses of the pool, and those of them that can be handed out: first and last of each stretch, in order.
    extent: Vec<(u128, u128)>,
    usable: Vec<(u128, u128)>,
    /// The length of the largest block that fits.
    shortest: u8,
    size: u128,
    free: FreeSpace,
    tally: Tally,
    /// When it was freed, and where: the oldest first.
    resting: BTreeSet<(u64, u128)>,
    resting_size: u128,
    /// Resting addresses by the key that gave them back.
    resting_keys: HashMap<Key, Vec<u128>>,
    /// Lowest first, for `freed-first` only.
    freed: BTreeSet<u128>,
    /// By sequence number, for `next` only: the last is the one handed out last.
    handed_out: BTreeMap<u64, u128>,
    /// For `freed-first` only: the pointer stands behind the highest.
    generated: BTreeSet<u128>,
    leases: BTreeSet<(u64, u128)>,
    lease_ends: HashMap<u128, u64>,
}

impl PoolState {
    pub fn new(pool: Arc<Pool>, space: Space) -> Self {
        let numbers = |ranges: &[Range]| -> Vec<(u128, u128)> {
            ranges.iter().map(|range| (range.first().number(), range.last().number())).collect()
        };
        let usable = numbers(&pool.spec.usable());
        let extent = Range::joined(pool.spec.extent());
        let shortest =
            extent.iter().flat_map(Range::cidrs).map(|block| block.len()).min().unwrap_or_default();
        let extent = numbers(&extent);
        let mut free = FreeSpace::new(pool.spec.family, space.kind.bits());
        let mut size = 0u128;
        for (first, last) in &usable {
            free.give_region(*first, *last);
            size = size.saturating_add((last - first).saturating_add(1));
        }
        Self {
            pool,
            space,
            slots: BTreeMap::new(),
            reservations: BTreeMap::new(),
            observed: BTreeSet::new(),
            waiting: BTreeSet::new(),
            draws: BTreeSet::new(),
            drawing: HashMap::default(),
            owed: BTreeSet::new(),
            remote_keys: HashMap::default(),
            keys: HashSet::default(),
            hostnamed: 0,
            owners: HashMap::default(),
            extent,
            usable,
            shortest,
            size,
            free,
            tally: Tally::default(),
            resting: BTreeSet::new(),
            resting_size: 0,
            resting_keys: HashMap::default(),
            freed: BTreeSet::new(),
            handed_out: BTreeMap::new(),
            generated: BTreeSet::new(),
            leases: BTreeSet::new(),
            lease_ends: HashMap::default(),
        }
    }

    pub fn bits(&self) -> u8 {
        self.space.kind.bits()
    }

    pub fn address(&self, number: u128) -> Option<Address> {
        Address::new(self.space.kind, number)
    }

    pub fn in_extent(&self, address: Address) -> bool {
        address.kind() == self.space.kind && covers(&self.extent, address.number(), address.number())
    }

    pub fn held_by(&self, key: &Key) -> Option<&Arc<Claim>> {
        self.keys.get(key).map(|ByKey(claim)| claim)
    }

    pub fn held_count(&self, owner: &str) -> u32 {
        self.owners.get(owner).copied().unwrap_or(0)
    }

    pub fn claims(&self) -> u64 {
        self.keys.len() as u64
    }

    /// Whether any claim of it can have a name, as far as is known without a look at each.
    pub fn may_name(&self) -> bool {
        let named = matches!(self.pool.spec.family, Family::Ipv4 | Family::Ipv6);
        named && (self.pool.spec.domain.is_some() || self.hostnamed > 0)
    }

    /// The length of the largest block that fits into the pool.
    pub fn shortest(&self) -> u8 {
        self.shortest
    }

    /// The address that `key` of `owner` gave back last, if it still rests and could be handed out but for that.
    pub fn resting_for(&self, key: &Key, owner: &str, length: u8, now: u64) -> Option<u128> {
        let rests = self.resting_keys.get(key)?.iter().filter_map(|number| match self.slots.get(number) {
            Some(Slot::Rested(rest))
                if *rest.owner == *owner && self.rest_left(rest, now) > 0 && self.may_return(rest) =>
            {
                Some(rest)
            }
            _ => None,
        });
        let whole = rests.filter(|rest| self.only_rests(rest.address.number(), length, now));
        whole.map(|rest| (rest.freed, rest.address.number())).max().map(|(_, number)| number)
    }

    /// How much longer an address rests, in milliseconds.
    pub fn rest_left(&self, rest: &Rest, now: u64) -> u64 {
        if self.pool.spec.order == Order::FreedFirst {
            return 0;
        }
        rest.freed.saturating_add(self.pool.spec.cooldown.as_millis()).saturating_sub(now)
    }

    pub fn reservation_at(&self, first: u128, last: u128) -> Option<&Arc<Reservation>> {
        self.reservations_in(first, last).next()
    }

    /// Every reservation that overlaps the region, in order.
    pub fn reservations_in(&self, first: u128, last: u128) -> impl Iterator<Item = &Arc<Reservation>> {
        let before =
            self.reservations.range(..first).next_back().filter(|(_, r)| r.range.last().number() >= first);
        before.into_iter().chain(self.reservations.range(first..=last)).map(|(_, reservation)| reservation)
    }

    pub fn observed_in(&self, first: u128, last: u128) -> Option<u128> {
        self.observed.range(first..=last).next().copied()
    }

    /// Every slot that overlaps the block and is held, or still rests.
    pub fn busy_in(&self, first: u128, last: u128, now: u64) -> impl Iterator<Item = &Slot> {
        self.slots_in(first, last).filter(move |slot| self.is_busy(slot, now))
    }

    fn is_busy(&self, slot: &Slot, now: u64) -> bool {
        match slot {
            Slot::Held(_) => true,
            // A backend that has not got it back counts it as held.
            Slot::Rested(rest) => rest.drawn.is_some() || self.rest_left(rest, now) > 0,
        }
    }

    /// Every slot that overlaps the region.
    pub(super) fn slots_in(&self, first: u128, last: u128) -> impl Iterator<Item = &Slot> {
        // A prefix that begins before the region may reach into it: look at each block that could.
        let shorter = if self.pool.spec.family == Family::Prefix { 0..self.bits() } else { 0..0 };
        let around = shorter.filter_map(move |length| {
            let start = first & !host_mask(self.bits(), length);
            self.slots.get(&start).filter(|slot| start < first && slot.length() == Some(length))
        });
        around.chain(self.slots.range(first..=last).map(|(_, slot)| slot))
    }

    /// Addresses of the pool that can never be handed out, in order.
    pub(super) fn gaps(&self) -> Vec<(u128, u128)> {
        let mut gaps = FreeAddresses::default();
        self.extent.iter().for_each(|(first, last)| gaps.give_region(*first, *last));
        self.usable.iter().for_each(|(first, last)| gaps.take_region(*first, *last));
        gaps.runs().collect()
    }

    /// The parts of the pool that lie in a region, in order.
    pub(super) fn parts_in(&self, first: u128, last: u128) -> Vec<(u128, u128)> {
        let clipped = self.extent.iter().map(|(start, end)| ((*start).max(first), (*end).min(last)));
        clipped.filter(|(start, end)| start <= end).collect()
    }

    pub fn contains_usable(&self, first: u128, last: u128) -> bool {
        covers(&self.usable, first, last)
    }

    /// How many addresses rest, and how long until the first of them may go.
    pub fn resting(&self, now: u64) -> (u128, Option<Span>) {
        let least = self.pool.spec.cooldown_min.as_millis().min(self.pool.spec.cooldown.as_millis());
        let next = self.resting.first().map(|(freed, _)| freed.saturating_add(least).saturating_sub(now));
        (self.resting_size, next.map(Span::from_millis))
    }

    pub fn usage(&self) -> Usage {
        let Tally { held, resting, reserved, observed } = self.tally;
        Usage {
            size: self.size,
            held,
            resting,
            reserved,
            observed,
            free: self.free.count(),
            claims: self.claims(),
            waiting: (self.waiting.len() + self.drawing.len()) as u64,
        }
    }

    pub fn has_room(&self, now: u64) -> bool {
        self.free.count() > 0 || self.resting(now).1.is_some_and(Span::is_zero)
    }

    /// Gives a lease its full time from `now` on.
    pub(super) fn renew(&mut self, number: u128, now: u64) {
        if let Some(Slot::Held(claim)) = self.slots.get(&number)
            && let Some(ttl) = claim.ttl
        {
            self.start_lease(number, now.saturating_add(ttl.as_millis()));
        }
    }

    /// Gives every lease its full time from `now` on.
    pub(super) fn renew_all(&mut self, now: u64) {
        let numbers: Vec<u128> = self.lease_ends.keys().copied().collect();
        for number in numbers {
            self.renew(number, now);
        }
    }

    pub fn lease_end(&self, number: u128) -> Option<u64> {
        self.lease_ends.get(&number).copied()
    }

    pub(super) fn first_lease(&self) -> Option<(u64, u128)> {
        self.leases.first().copied()
    }

    /// The claims whose time is over, the longest over first.
    pub(super) fn leases_until(&self, now: u64) -> impl Iterator<Item = u128> {
        self.leases.range(..=(now, u128::MAX)).map(|(_, number)| *number)
    }

    /// When the next address may go early, or has rested to the end.
    pub(super) fn next_rest_end(&self, now: u64) -> Option<u64> {
        let (early, full) = (self.pool.spec.cooldown_min.as_millis(), self.pool.spec.cooldown.as_millis());
        // Those that could go early by now and did not will not before something else happens.
        let later = now.checked_sub(early).map_or(0, |freed| freed.saturating_add(1));
        let early =
            self.resting.range((later, 0)..).next().map(|(freed, _)| freed.saturating_add(early.min(full)));
        early.into_iter().chain(self.resting.first().map(|(freed, _)| freed.saturating_add(full))).min()
    }

    pub(super) fn start_lease(&mut self, number: u128, end: u64) {
        self.end_lease(number);
        self.leases.insert((end, number));
        self.lease_ends.insert(number, end);
    }

    /// When each lease ends.
    pub(super) fn lease_ends(&self) -> impl Iterator<Item = (u128, u64)> {
        self.lease_ends.iter().map(|(number, end)| (*number, *end))
    }

    fn end_lease(&mut self, number: u128) {
        if let Some(end) = self.lease_ends.remove(&number) {
            self.leases.remove(&(end, number));
        }
    }
}

/// A claim that is found by its key: one pointer per claim, where a map would keep key and address again.
#[derive(Debug, Clone)]
struct ByKey(Arc<Claim>);

impl Borrow<Key> for ByKey {
    fn borrow(&self) -> &Key {
        &self.0.key
    }
}

impl Hash for ByKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.key.hash(state);
    }
}

impl PartialEq for ByKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.key == other.0.key
    }
}

impl Eq for ByKey {}

/// Whether one of the stretches has all of it.
fn covers(stretches: &[(u128, u128)], first: u128, last: u128) -> bool {
    let after = stretches.partition_point(|(start, _)| *start <= first);
    after.checked_sub(1).and_then(|place| stretches.get(place)).is_some_and(|(_, end)| *end >= last)
}

/// The bits of an address below a prefix of `length`, all set.
pub(super) fn host_mask(bits: u8, length: u8) -> u128 {
    1u128.checked_shl(u32::from(bits.saturating_sub(length))).map_or(u128::MAX, |size| size - 1)
}
