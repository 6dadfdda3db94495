//! [`World`]: all objects that the controllers look at, as their watches have them, and what follows from them.
//!
//! Every change goes in through one method and comes back as the keys that must be looked at again.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use jiff::Timestamp;
use netstead_model::Address;

use crate::{
    PoolKind,
    cooling::Cooling,
    external::{ExternalLane, ExternalState},
    in_cluster::{AddressSpace, FieldError, InClusterSpec, PrefixSpec},
    object::{
        AddressObject, COOLING, Claim, ClusterObject, ObjectName, PROMISES, PoolKey, PoolObject, REUSE_DELAY,
        WANTED, WATCH_FILTER,
    },
    pool_controller::WrittenStatus,
    pool_index::{Counts, PoolIndex},
};

/// An object to look at.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum WorkKey {
    Claim(ObjectName),
    /// The `IPAddress` of this name, which is being deleted and may have no claim.
    Address(ObjectName),
    Pool(PoolKey),
}

#[derive(Debug, Default)]
pub(crate) struct World {
    kinds: Vec<PoolKind>,
    filter: Option<String>,
    pub(crate) claims: HashMap<ObjectName, Arc<Claim>>,
    pub(crate) addresses: HashMap<ObjectName, Arc<AddressObject>>,
    clusters: HashMap<ObjectName, ClusterState>,
    pub(crate) pools: HashMap<PoolKey, Pool>,
    claims_of_cluster: HashMap<ObjectName, BTreeSet<ObjectName>>,
    /// Keys to look at because of a decision about another one.
    pub(crate) woken: Vec<WorkKey>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClusterState {
    Running,
    Paused,
}

/// A pool with all that refers to it. It may be missing while something does.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    pub(crate) object: Option<Arc<PoolObject>>,
    pub(crate) index: PoolIndex,
    claims: BTreeSet<ObjectName>,
    /// Why the pool cannot be used.
    pub(crate) problem: Option<String>,
    /// The problem of an annotation, of a pool in another system.
    pub(crate) annotation_problem: Option<String>,
    pub(crate) grace_seconds: i64,
    /// How long a released address rests, while its claim is gone.
    pub(crate) reuse_delay: i64,
    /// The addresses that rest, as the pool's annotation has them.
    pub(crate) written_cooling: Cooling,
    /// Claims that are released once the rest of their address is written down.
    releasing: BTreeMap<Address, ObjectName>,
    pub(crate) written: WrittenStatus,
    /// Of a pool in another system: how it stands there.
    pub(crate) external: Option<ExternalState>,
    pub(crate) lane: ExternalLane,
    /// Claims that asked another system for an address and whose object was not seen yet.
    pub(crate) drawing: BTreeSet<ObjectName>,
}

impl Pool {
    /// The claims that refer to it.
    pub(crate) fn claims(&self) -> impl Iterator<Item = ObjectName> + '_ {
        self.claims.iter().cloned()
    }

    /// The numbers of its status. Another system counts by itself; what was taken since it was asked is counted here.
    pub(crate) fn counts(&self) -> Counts {
        let counts = self.index.counts();
        let Some(ExternalState { info: Some(info), used, .. }) = &self.external else { return counts };
        let free = info.free.saturating_add(*used).saturating_sub(counts.used).min(info.size);
        Counts { total: info.size, free, out_of_range: 0, cooling: 0, ..counts }
    }

    /// Whether an address of it is held or about to be.
    pub(crate) fn is_in_use(&self) -> bool {
        self.index.is_in_use() || !self.drawing.is_empty()
    }

    /// Lets the address of a claim rest once that is released. Returns whether the pool's annotation says so already.
    pub(crate) fn let_rest(&mut self, claim: &ObjectName, address: Address, now: Timestamp) -> bool {
        if self.index.cooling().until(address).is_none() {
            self.index.cool(address, now.as_second().saturating_add(self.reuse_delay));
        }
        let written = self.written_cooling.until(address).is_some();
        if !written {
            self.releasing.insert(address, claim.clone());
        }
        written
    }
}

impl Pool {
    /// Takes over which addresses rest, and for how long, as the annotation has it; those that are not written yet stay.
    fn read_cooling(&mut self, object: &PoolObject) {
        let text = object.metadata.annotations.get(COOLING).map_or("", String::as_str);
        let before = std::mem::replace(&mut self.written_cooling, Cooling::parse(text));
        for address in self.written_cooling.addresses() {
            let until = self.written_cooling.until(address).unwrap_or_default();
            if self.index.cooling().until(address) != Some(until) {
                self.index.cool(address, until);
            }
        }
        // A person took them out.
        for address in before.addresses().filter(|address| self.written_cooling.until(*address).is_none()) {
            self.index.end_cooling(address);
        }
    }

    /// Admits as many claims as may ask another system at once: one if it has no free address, and never many.
    pub(crate) fn fit_external_line(&mut self) {
        let Some(external) = &self.external else { return };
        let free = usize::try_from(self.counts().free).unwrap_or(usize::MAX);
        let room = if external.is_full { 1 } else { free.clamp(1, ExternalLane::WIDTH) };
        self.index.set_external_room(room);
    }

    /// An address of another system became free: the first claim of the line asks again.
    pub(crate) fn has_room_again(&mut self) {
        if let Some(external) = &mut self.external {
            external.is_full = false;
            self.fit_external_line();
            self.index.wake_line(1);
        }
    }
}

impl World {
    /// Objects with another value of the label `watch-filter` are left alone; without a filter there is none to have.
    pub(crate) fn new(kinds: Vec<PoolKind>, filter: Option<String>) -> Self {
        Self { kinds, filter, ..Self::default() }
    }

    /// The pool of a reference, if it is of a kind that is switched on.
    fn ours(&self, pool: Option<PoolKey>) -> Option<PoolKey> {
        pool.filter(|pool| self.kinds.contains(&pool.kind))
    }

    /// Whether objects with these labels are ours.
    pub(crate) fn admits(&self, labels: &BTreeMap<String, String>) -> bool {
        self.filter.as_ref().is_none_or(|filter| labels.get(WATCH_FILTER) == Some(filter))
    }

    /// The state of a cluster; none if it is not there.
    pub(crate) fn cluster(&self, name: &ObjectName) -> Option<ClusterState> {
        self.clusters.get(name).copied()
    }

    pub(crate) fn pool(&self, key: &PoolKey) -> Option<&Pool> {
        self.pools.get(key)
    }

    pub(crate) fn is_pool_paused(&self, address: &AddressObject) -> bool {
        let pool = address.pool().and_then(|key| self.pools.get(&key)?.object.as_ref());
        pool.is_some_and(|pool| pool.metadata.is_paused())
    }

    pub(crate) fn put_claim(&mut self, claim: Claim) -> Vec<WorkKey> {
        let name = claim.metadata.key();
        let Some(pool) = self.ours(claim.pool()) else { return self.remove_claim(&name) };
        if self.claims.get(&name).is_some_and(|known| **known == claim) {
            return Vec::new();
        }
        // References of a claim never change, unless another claim has taken the name.
        let moved = self
            .claims
            .get(&name)
            .is_some_and(|known| known.pool().as_ref() != Some(&pool) || known.cluster() != claim.cluster());
        let mut wake = if moved { self.remove_claim(&name) } else { Vec::new() };
        if let Some(cluster) = claim.cluster() {
            self.claims_of_cluster.entry(cluster).or_default().insert(name.clone());
        }
        let entry = self.pools.entry(pool).or_default();
        entry.claims.insert(name.clone());
        self.claims.insert(name.clone(), Arc::new(claim));
        self.enter_line(&name);
        wake.push(WorkKey::Claim(name));
        wake
    }

    /// Gives a claim that needs any address its place in the line, before a worker has looked at it: after a start the claims
    /// are served in the order in which they were made, not in that in which workers come to them.
    fn enter_line(&mut self, name: &ObjectName) {
        let Some(claim) = self.claims.get(name).cloned() else { return };
        let Some(key) = claim.pool() else { return };
        let needs_none = claim.is_published()
            || claim.metadata.is_deleting()
            || claim.metadata.annotations.contains_key(WANTED)
            || self.addresses.contains_key(name);
        if needs_none || self.is_held_back(&claim, &key, false) {
            return;
        }
        if let Some(pool) = self.pools.get_mut(&key) {
            pool.index.enter_line(name, claim.metadata.creation_timestamp);
        }
    }

    /// Takes a claim out of the line until it is looked at again.
    pub(crate) fn leave_line(&mut self, name: &ObjectName) -> Vec<WorkKey> {
        let Some(key) = self.claims.get(name).and_then(|claim| claim.pool()) else { return Vec::new() };
        if let Some(pool) = self.pools.get_mut(&key) {
            pool.index.leave_line(name);
        }
        self.take_woken(&key)
    }

    /// The claims of a pool that may get an address since this was asked last.
    fn take_woken(&mut self, key: &PoolKey) -> Vec<WorkKey> {
        let woken = self.pools.get_mut(key).map(|pool| pool.index.take_woken());
        woken.unwrap_or_default().into_iter().map(WorkKey::Claim).collect()
    }

    pub(crate) fn remove_claim(&mut self, name: &ObjectName) -> Vec<WorkKey> {
        let Some(claim) = self.claims.remove(name) else { return Vec::new() };
        if let Some(cluster) = claim.cluster()
            && let Some(claims) = self.claims_of_cluster.get_mut(&cluster)
        {
            claims.remove(name);
            if claims.is_empty() {
                self.claims_of_cluster.remove(&cluster);
            }
        }
        let mut wake = vec![WorkKey::Claim(name.clone()), WorkKey::Address(name.clone())];
        if let Some(key) = claim.pool()
            && let Some(pool) = self.pools.get_mut(&key)
        {
            pool.claims.remove(name);
            pool.drawing.remove(name);
            pool.index.forget(name);
            wake.extend(self.take_woken(&key));
            wake.push(WorkKey::Pool(key.clone()));
            self.drop_if_unused(&key);
        }
        wake
    }

    pub(crate) fn put_address(&mut self, object: AddressObject) -> Vec<WorkKey> {
        let name = object.metadata.key();
        let Some(key) = self.ours(object.pool()) else { return self.remove_address(&name) };
        let known = self.addresses.get(&name);
        if known.is_some_and(|known| **known == object) {
            return Vec::new();
        }
        let mut wake = Vec::new();
        if known.is_some_and(|known| known.pool().as_ref() != Some(&key)) {
            wake = self.remove_address(&name);
        }
        let address: Option<Address> = object.spec.address.parse().ok();
        let pool = self.pools.entry(key.clone()).or_default();
        pool.drawing.remove(&name);
        pool.index.hold(&name, address, object.metadata.creation_timestamp);
        wake.extend(self.take_woken(&key));
        let deleting = object.metadata.is_deleting();
        self.addresses.insert(name.clone(), Arc::new(object));
        wake.push(WorkKey::Claim(name.clone()));
        if deleting {
            wake.push(WorkKey::Address(name));
        }
        wake.push(WorkKey::Pool(key));
        wake
    }

    pub(crate) fn remove_address(&mut self, name: &ObjectName) -> Vec<WorkKey> {
        let Some(object) = self.addresses.remove(name) else { return Vec::new() };
        let mut wake = vec![WorkKey::Claim(name.clone())];
        let Some(key) = object.pool() else { return wake };
        let claim = self.claims.get(name);
        // A living claim whose owner knows the address gets the same one again.
        let again = claim.is_some_and(|claim| claim.is_published() && !claim.metadata.is_deleting());
        if let Some(pool) = self.pools.get_mut(&key) {
            pool.index.free_object(name);
            if let (true, Ok(address)) = (again, object.spec.address.parse()) {
                pool.index.reserve_again(name, address);
            }
            pool.has_room_again();
            wake.extend(self.take_woken(&key));
        }
        wake.push(WorkKey::Pool(key.clone()));
        self.drop_if_unused(&key);
        wake
    }

    pub(crate) fn put_cluster(&mut self, cluster: &ClusterObject) -> Vec<WorkKey> {
        let name = cluster.metadata.key();
        let state = if cluster.is_paused() { ClusterState::Paused } else { ClusterState::Running };
        if self.clusters.insert(name.clone(), state) == Some(state) {
            return Vec::new();
        }
        let claims = self.claims_of(&name);
        for claim in &claims {
            self.enter_line(claim);
        }
        claims.into_iter().map(WorkKey::Claim).collect()
    }

    pub(crate) fn remove_cluster(&mut self, name: &ObjectName) -> Vec<WorkKey> {
        self.clusters.remove(name);
        self.claims_of(name).into_iter().map(WorkKey::Claim).collect()
    }

    fn claims_of(&self, cluster: &ObjectName) -> Vec<ObjectName> {
        self.claims_of_cluster.get(cluster).into_iter().flatten().cloned().collect()
    }

    pub(crate) fn put_pool(&mut self, key: &PoolKey, object: PoolObject) -> Vec<WorkKey> {
        let pool = self.pools.entry(key.clone()).or_default();
        let mut wake = vec![WorkKey::Pool(key.clone())];
        let before = pool.object.as_ref();
        let gate = |object: &PoolObject| {
            (object.metadata.is_paused(), object.metadata.is_deleting(), object.metadata.labels.clone())
        };
        let opened = before.is_none_or(|before| gate(before) != gate(&object));
        let changed = before.is_none_or(|before| {
            before.spec != object.spec || before.metadata.annotations != object.metadata.annotations
        });
        let mut look_at_all = opened;
        if changed && key.kind.is_external() {
            let promises = promises(&object);
            let problem = promises.as_ref().err().cloned();
            if pool.annotation_problem != problem {
                pool.annotation_problem = problem;
                // It is asked anew at once, and its condition tells of the problem.
                pool.external = None;
            }
            pool.index.set_space(None, promises.unwrap_or_default());
        } else if changed {
            let (space, grace) = read_spec(key, &object);
            pool.grace_seconds = grace;
            let (promises, delay) = (promises(&object), reuse_delay(&object));
            let problem = match (&space, &promises, &delay) {
                (Err(problem), ..) | (_, Err(problem), _) | (.., Err(problem)) => Some(problem.clone()),
                _ => None,
            };
            look_at_all |= pool.problem != problem;
            pool.problem = problem;
            pool.index.set_space(space.ok(), promises.unwrap_or_default());
            pool.reuse_delay = delay.unwrap_or_default();
            pool.read_cooling(&object);
            let written = std::mem::take(&mut pool.releasing);
            for (address, claim) in written {
                if pool.written_cooling.until(address).is_some() {
                    wake.push(WorkKey::Claim(claim));
                } else {
                    pool.releasing.insert(address, claim);
                }
            }
        }
        pool.object = Some(Arc::new(object));
        if look_at_all {
            let claims: Vec<ObjectName> = pool.claims.iter().cloned().collect();
            for claim in &claims {
                self.enter_line(claim);
            }
            wake.extend(claims.into_iter().map(WorkKey::Claim));
        }
        wake.extend(self.take_woken(key));
        wake
    }

    pub(crate) fn remove_pool(&mut self, key: &PoolKey) -> Vec<WorkKey> {
        let Some(pool) = self.pools.get_mut(key) else { return Vec::new() };
        pool.object = None;
        pool.external = None;
        pool.problem = None;
        pool.annotation_problem = None;
        (pool.grace_seconds, pool.reuse_delay) = (0, 0);
        pool.written_cooling = Cooling::default();
        pool.releasing.clear();
        pool.index.set_space(None, BTreeMap::new());
        let mut wake: Vec<_> = pool.claims.iter().cloned().map(WorkKey::Claim).collect();
        wake.push(WorkKey::Pool(key.clone()));
        wake.extend(self.take_woken(key));
        self.drop_if_unused(key);
        wake
    }

    fn drop_if_unused(&mut self, key: &PoolKey) {
        let unused = |pool: &Pool| pool.object.is_none() && pool.claims.is_empty() && pool.index.is_empty();
        if self.pools.get(key).is_some_and(unused) {
            self.pools.remove(key);
        }
    }
}

/// The addresses that a pool means, or why it means none; and how long a deleted claim keeps its address.
fn read_spec(key: &PoolKey, object: &PoolObject) -> (Result<AddressSpace, String>, i64) {
    let said =
        |errors: Vec<FieldError>| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    if key.kind.is_of_prefixes() {
        let spec: Result<PrefixSpec, _> = serde_json::from_value(object.spec.clone());
        let space = spec.map_err(|error| format!("spec: {error}"));
        return (space.and_then(|spec| AddressSpace::of_prefixes(&spec).map_err(said)), 0);
    }
    let spec: Result<InClusterSpec, _> = serde_json::from_value(object.spec.clone());
    match spec {
        Ok(spec) => {
            let grace = spec.address_reuse_grace_period_seconds.unwrap_or(0).max(0);
            (AddressSpace::of_addresses(&spec).map_err(said), grace)
        }
        Err(error) => (Err(format!("spec: {error}")), 0),
    }
}

/// How long released addresses of a pool rest, in seconds.
fn reuse_delay(object: &PoolObject) -> Result<i64, String> {
    let Some(text) = object.metadata.annotations.get(REUSE_DELAY) else { return Ok(0) };
    let seconds = text.trim().parse::<i64>().ok().filter(|seconds| (0..=31_536_000).contains(seconds));
    seconds.ok_or_else(|| {
        format!("annotation {REUSE_DELAY}: `{text}`: write a number of seconds, a year (31536000) at most")
    })
}

/// The addresses that a pool keeps for claims.
fn promises(object: &PoolObject) -> Result<BTreeMap<String, Address>, String> {
    let text = object.metadata.annotations.get(PROMISES).map_or("", String::as_str);
    let mut promises: BTreeMap<String, Address> = BTreeMap::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let wrong = |problem: &str| format!("annotation {PROMISES}: `{part}`: {problem}");
        let (claim, address) =
            part.split_once('=').ok_or_else(|| wrong("write the name of a claim, `=` and its address"))?;
        let address = address.trim().parse::<Address>().map_err(|_| wrong("this is no address"))?;
        if promises.values().any(|known| *known == address) {
            return Err(wrong("the address is promised twice"));
        }
        if promises.insert(claim.trim().to_owned(), address).is_some() {
            return Err(wrong("the claim is named twice"));
        }
    }
    Ok(promises)
}
