//! The commands that create, update and delete pools, and that bring file pools in line with the file.

use std::{collections::BTreeSet, sync::Arc};

use netstead_model::{
    Claim, ClaimId, EventKind, Ident, Kind, Origin, Pool, PoolSpec, Range, Subject, Waiting,
};
use netstead_store::MAX_BYTES;
use serde::Serialize;

use super::{Book, pool_state::PoolState, transaction::Transaction};
use crate::{
    command::Reply,
    record::{Record, Slot, Space, encode},
    refusal::Refusal,
};

/// Claims, places in the queue and reservations that one commit ends when a pool is forced out.
pub(super) const EVICTED_AT_ONCE: usize = 48;
/// How large they may be, with all their labels and names: each stands in the event of its end.
const EVICTED_BYTES: usize = MAX_BYTES / 2;
/// Pools of the configuration file changed by one commit.
const POOLS_AT_ONCE: usize = 64;

impl Transaction<'_> {
    /// Makes a pool. Asking again with the same settings changes nothing.
    pub fn create_pool(&mut self, spec: &PoolSpec) -> Result<Reply, Refusal> {
        self.make_pool(spec, Origin::Api)
    }

    fn make_pool(&mut self, spec: &PoolSpec, origin: Origin) -> Result<Reply, Refusal> {
        spec.check().map_err(|error| Refusal::Invalid { field: error.field, reason: error.reason })?;
        if let Some(state) = self.book.pools.get(&spec.name) {
            if state.pool.spec == *spec && !state.pool.closing && state.pool.origin == origin {
                return Ok(Reply::Pool(state.pool.clone()));
            }
            let pool = spec.name.clone();
            return Err(if state.pool.closing {
                Refusal::PoolClosing { pool }
            } else {
                Refusal::PoolExists { pool }
            });
        }
        let within = self.book.enclosing_prefix(spec)?;
        let (version, created) = (self.next_seq(), self.moment.wall);
        let pool = Arc::new(Pool { spec: spec.clone(), version, created, origin, within, closing: false });
        self.put(Record::Pool(spec.name.clone(), Some(pool.clone())));
        self.event(EventKind::PoolCreated, None, Some(Subject::Pool(pool.clone())), None);
        Ok(Reply::Pool(pool))
    }

    /// Changes a pool, unless a held address would fall outside.
    pub fn update_pool(&mut self, spec: &PoolSpec, if_version: Option<u64>) -> Result<Reply, Refusal> {
        let is_so = |pool: &Pool| pool.spec == *spec && !pool.closing && pool.origin == Origin::Api;
        let pool = &self.pool(&spec.name)?.pool;
        if is_so(pool) {
            // Perhaps a repeat, which would no longer find the version it names.
            return Ok(Reply::Pool(pool.clone()));
        }
        let before = self.changeable(&spec.name, if_version)?;
        self.change_pool(&before, spec, Origin::Api)
    }

    pub(super) fn changeable(&self, name: &Ident, if_version: Option<u64>) -> Result<Arc<Pool>, Refusal> {
        let pool = self.pool(name)?.pool.clone();
        if pool.origin == Origin::File {
            return Err(Refusal::ReadOnly { pool: name.clone() });
        }
        match if_version {
            Some(asked) if asked != pool.version => {
                Err(Refusal::VersionMismatch { pool: name.clone(), is: pool.version, asked })
            }
            _ => Ok(pool),
        }
    }

    fn change_pool(&mut self, before: &Arc<Pool>, spec: &PoolSpec, origin: Origin) -> Result<Reply, Refusal> {
        if before.spec == *spec && before.origin == origin && !before.closing {
            return Ok(Reply::Pool(before.clone()));
        }
        spec.check().map_err(|error| Refusal::Invalid { field: error.field, reason: error.reason })?;
        for (field, same) in
            [("family", before.spec.family == spec.family), ("vrf", before.spec.vrf == spec.vrf)]
        {
            if !same {
                return Err(Refusal::invalid(field, "it cannot change: make a new pool"));
            }
        }
        if before.spec.kind() != spec.kind() {
            return Err(Refusal::invalid("ranges", "the kind of address cannot change: make a new pool"));
        }
        self.check_upstream(before, spec)?;
        let within = self.book.enclosing_prefix(spec)?;
        self.check_stranded(spec)?;
        let version = self.next_seq();
        let pool = Arc::new(Pool {
            spec: spec.clone(),
            version,
            created: before.created,
            origin,
            within,
            closing: false,
        });
        self.put(Record::Pool(spec.name.clone(), Some(pool.clone())));
        let (was, is) = (Subject::Pool(before.clone()), Subject::Pool(pool.clone()));
        self.event(EventKind::PoolUpdated, Some(was), Some(is), None);
        Ok(Reply::Pool(pool))
    }

    fn check_stranded(&self, spec: &PoolSpec) -> Result<(), Refusal> {
        let state = self.pool(&spec.name)?;
        let usable = spec.usable();
        let kept = |range: Range| usable.iter().any(|part| part.contains_range(range));
        for slot in state.slots.values() {
            let Slot::Held(claim) = slot else { continue };
            let range = claim.prefix().map_or_else(|| Range::single(claim.address), Range::from);
            if !kept(range) {
                return Err(Refusal::WouldStrand {
                    pool: spec.name.clone(),
                    address: claim.held(),
                    key: claim.key.clone(),
                    owner: claim.owner.clone(),
                });
            }
        }
        let extent = Range::joined(spec.extent());
        match state.reservations.values().find(|r| !extent.iter().any(|part| part.contains_range(r.range))) {
            Some(lost) => {
                let reason = format!("the reservation `{}` of {} would fall outside", lost.key, lost.range);
                Err(Refusal::invalid("ranges", reason))
            }
            None => Ok(()),
        }
    }

    /// Removes a pool. With a reason, the claims in it are released first, some with each commit.
    pub fn delete_pool(
        &mut self,
        name: &Ident,
        force: Option<&str>,
        if_version: Option<u64>,
    ) -> Result<Reply, Refusal> {
        if if_version.is_some() && !self.book.pools.contains_key(name) {
            // Who names a version has seen the pool: it is gone already, perhaps by this very request.
            return Ok(Reply::PoolDeleted { released: 0, left: 0, owed: 0 });
        }
        let before = self.changeable(name, if_version)?;
        let state = self.pool(name)?;
        let (claims, reservations) = (state.claims(), state.reservations.len() as u64);
        if force.is_none() && claims + reservations > 0 {
            return Err(Refusal::PoolInUse { pool: name.clone(), claims, reservations });
        }
        let reason = force.unwrap_or("the pool was deleted").to_owned();
        let released = self.evict(name, &reason)?;
        let state = self.pool(name)?;
        let left =
            state.claims() + (state.waiting.len() + state.drawing.len() + state.reservations.len()) as u64;
        let owed = state.owes();
        if left + owed > 0 {
            if !before.closing {
                // The version stays, so that a caller that named it may go on deleting.
                let closing = Arc::new(Pool { closing: true, ..Pool::clone(&before) });
                self.put(Record::Pool(name.clone(), Some(closing.clone())));
                let (was, is) = (Subject::Pool(before), Subject::Pool(closing));
                self.event(EventKind::PoolUpdated, Some(was), Some(is), Some(&reason));
            }
            return Ok(Reply::PoolDeleted { released, left, owed });
        }
        self.put(Record::Pool(name.clone(), None));
        self.event(EventKind::PoolDeleted, Some(Subject::Pool(before)), None, force);
        Ok(Reply::PoolDeleted { released, left: 0, owed: 0 })
    }

    /// Ends claims, places in the queue and reservations of a pool, as many as one commit takes.
    fn evict(&mut self, name: &Ident, reason: &str) -> Result<u64, Refusal> {
        let state = self.pool(name)?;
        let held = state
            .slots
            .values()
            .filter_map(|slot| if let Slot::Held(claim) = slot { Some(claim) } else { None });
        let mut room = EvictionBudget::new(reason);
        let claims: Vec<Arc<Claim>> = held.take_while(|claim| room.has_room_for(*claim)).cloned().collect();
        let queue = state.waiting.iter().chain(state.drawing.values());
        let queue = queue.filter_map(|seq| self.book.waiting.get(seq));
        let waiting: Vec<Arc<Waiting>> =
            queue.take_while(|waiting| room.has_room_for(*waiting)).cloned().collect();
        let reserved = state.reservations.values();
        let reservations: Vec<_> =
            reserved.take_while(|reserved| room.has_room_for(*reserved)).cloned().collect();
        for claim in &claims {
            self.free(claim, EventKind::Released, Some(reason))?;
        }
        for waiting in waiting {
            self.leave_pool(name, &waiting);
        }
        for reservation in reservations {
            let first = reservation.range.first().number();
            self.put(Record::Reservation { pool: name.clone(), first, value: None });
            self.event(EventKind::Unreserved, Some(Subject::Reservation(reservation)), None, Some(reason));
        }
        Ok(claims.len() as u64)
    }

    fn leave_pool(&mut self, name: &Ident, waiting: &Arc<Waiting>) {
        let pools: Vec<Ident> = waiting.pools.iter().filter(|pool| *pool != name).cloned().collect();
        if pools.is_empty() {
            self.leave_queue(waiting, "its pool was deleted");
        } else {
            let changed = Arc::new(Waiting { pools, ..Waiting::clone(waiting) });
            self.put(Record::Waiting(waiting.seq, Some(changed)));
        }
    }

    /// Brings the pools of the configuration file in line; those it no longer names stay and can be changed again.
    pub fn sync_file_pools(&mut self, specs: &[PoolSpec]) -> Result<Reply, Refusal> {
        let (mut created, mut updated, mut detached) = (Vec::new(), Vec::new(), Vec::new());
        let named: BTreeSet<&Ident> = specs.iter().map(|spec| &spec.name).collect();
        let gone: Vec<Arc<Pool>> = self
            .book
            .pools
            .values()
            .filter(|state| state.pool.origin == Origin::File)
            .filter(|state| !named.contains(state.pool.name()))
            .map(|state| state.pool.clone())
            .collect();
        let most = POOLS_AT_ONCE;
        let mut more = gone.len() > most;
        for pool in gone.into_iter().take(most) {
            let spec = pool.spec.clone();
            self.change_pool(&pool, &spec, Origin::Api)?;
            detached.push(spec.name);
        }
        for spec in specs {
            if detached.len() + created.len() + updated.len() >= most {
                more = true;
                break;
            }
            match self.book.pools.get(&spec.name).map(|state| state.pool.clone()) {
                None => {
                    self.make_pool(spec, Origin::File)?;
                    created.push(spec.name.clone());
                }
                Some(pool) if pool.spec == *spec && pool.origin == Origin::File => {}
                Some(pool) => {
                    self.change_pool(&pool, spec, Origin::File)?;
                    updated.push(spec.name.clone());
                }
            }
        }
        Ok(Reply::Synced { created, updated, detached, more })
    }
}

/// The room left in one commit for a pool that is forced out.
struct EvictionBudget {
    taken: usize,
    bytes: usize,
    /// The reason stands in each event.
    each: usize,
}

impl EvictionBudget {
    fn new(reason: &str) -> Self {
        Self { taken: 0, bytes: 0, each: encode(&reason).len() }
    }

    /// Whether there is room for this one too. There always is for the first, or it would be in the way for ever.
    fn has_room_for<T: Serialize>(&mut self, value: &T) -> bool {
        self.bytes += encode(value).len() + self.each;
        self.taken += 1;
        self.taken == 1 || (self.taken <= EVICTED_AT_ONCE && self.bytes <= EVICTED_BYTES)
    }
}

impl Book {
    /// Checks that a pool overlaps no other of its VRF, save that it may lie inside one held prefix; which one, if so.
    fn enclosing_prefix(&self, spec: &PoolSpec) -> Result<Option<ClaimId>, Refusal> {
        let Some(kind) = spec.kind() else { return Ok(None) };
        let extent = spec.extent();
        let mut within = None;
        for other in self.pools_near(&spec.vrf, kind, &extent).filter(|o| *o.pool.name() != spec.name) {
            let Some((ours, _)) = overlap(&extent, &other.pool.spec.extent()) else { continue };
            match other.prefix_around(&extent) {
                Some(claim) => within = Some(innermost(within, claim)),
                // A pool inside one of our own prefixes overlaps us, and that is allowed.
                None if self.lies_in_pool(other, &spec.name) => {}
                None => {
                    return Err(Refusal::Overlap {
                        pool: spec.name.clone(),
                        other: other.pool.name().clone(),
                        vrf: spec.vrf.clone(),
                        at: ours.to_string(),
                    });
                }
            }
        }
        Ok(within.map(|(id, _)| id))
    }

    /// The pools, in order of name, that may overlap `extent`: those of single addresses that do, and all of prefixes.
    fn pools_near<'a>(
        &'a self,
        vrf: &Ident,
        kind: Kind,
        extent: &[Range],
    ) -> impl Iterator<Item = &'a PoolState> + use<'a> {
        let of_prefixes = self
            .pools
            .values()
            .filter(|state| state.space.prefixes && state.space.kind == kind && state.space.vrf == *vrf)
            .map(|state| state.pool.name());
        let mut names: BTreeSet<&Ident> = of_prefixes.collect();
        let addresses = self.extents.get(&Space { vrf: vrf.clone(), kind, prefixes: false });
        for (addresses, range) in
            addresses.into_iter().flat_map(|one| extent.iter().map(move |range| (one, range)))
        {
            let (first, last) = (range.first().number(), range.last().number());
            // They do not overlap each other, so the first one that ends too early ends the search.
            let met = addresses.range(..=last).rev().take_while(|(_, (end, _))| *end >= first);
            names.extend(met.map(|(_, (_, name))| name));
        }
        names.into_iter().filter_map(|name| self.pools.get(name))
    }

    /// Whether `inner` was made inside a prefix that pool `outer` handed out, directly or further down.
    fn lies_in_pool(&self, inner: &PoolState, outer: &Ident) -> bool {
        let mut within = inner.pool.within;
        while let Some(id) = within {
            let holder =
                self.pools.values().filter(|state| state.space.prefixes).find(|state| state.holds(id));
            match holder {
                Some(state) if state.pool.name() == outer => return true,
                Some(state) => within = state.pool.within,
                None => return false,
            }
        }
        false
    }

    /// The length of the prefix a pool lies in.
    pub(super) fn carrier_length(&self, inner: &PoolState) -> Option<u8> {
        let id = inner.pool.within?;
        let first = inner.pool.spec.extent().first()?.first().number();
        let outer = self.pools.values().filter(|state| {
            state.space.prefixes && state.space.vrf == inner.space.vrf && state.space.kind == inner.space.kind
        });
        outer.flat_map(|state| state.slots_in(first, first)).find_map(|slot| match slot {
            Slot::Held(claim) if claim.id == id => claim.length,
            _ => None,
        })
    }
}

impl PoolState {
    fn holds(&self, id: ClaimId) -> bool {
        self.slots.values().any(|slot| matches!(slot, Slot::Held(claim) if claim.id == id))
    }

    /// The held prefix of this pool that contains all of `extent`.
    fn prefix_around(&self, extent: &[Range]) -> Option<(ClaimId, u8)> {
        if !self.space.prefixes {
            return None;
        }
        let first = extent.first()?.first().number();
        let slot = self.slots_in(first, first).find(|slot| matches!(slot, Slot::Held(_)))?;
        let Slot::Held(claim) = slot else { return None };
        let prefix = Range::from(claim.prefix()?);
        extent.iter().all(|range| prefix.contains_range(*range)).then_some((claim.id, claim.length?))
    }
}

fn innermost(one: Option<(ClaimId, u8)>, other: (ClaimId, u8)) -> (ClaimId, u8) {
    one.filter(|one| one.1 >= other.1).unwrap_or(other)
}

fn overlap(ours: &[Range], theirs: &[Range]) -> Option<(Range, Range)> {
    ours.iter().find_map(|our| theirs.iter().find(|their| our.overlaps(**their)).map(|their| (*our, *their)))
}
