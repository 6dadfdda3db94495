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
    external::ExternalState,
    in_cluster::{AddressSpace, FieldError, InClusterSpec, PrefixSpec},
    object::{AddressObject, Claim, ClusterObject, ObjectName, PROMISES, PoolKey, PoolObject, WATCH_FILTER},
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
    /// Claims that may get an address because another one left the line.
    pub(crate) woken: Vec<ObjectName>,
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
    pub(crate) grace_seconds: i64,
    pub(crate) written: WrittenStatus,
    /// Of a pool in another system: how it stands there.
    pub(crate) external: Option<ExternalState>,
    /// Claims that another system had no address for, the oldest first.
    pub(crate) unserved: BTreeSet<(Option<Timestamp>, ObjectName)>,
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
        Counts { total: info.size, free, out_of_range: 0, waiting: self.unserved.len() as u128, ..counts }
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
        wake.push(WorkKey::Claim(name));
        wake
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
            pool.unserved.remove(&(claim.metadata.creation_timestamp, name.clone()));
            wake.extend(pool.index.forget(name).into_iter().map(WorkKey::Claim));
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
        let born = object.metadata.version();
        let pool = self.pools.entry(key.clone()).or_default();
        wake.extend(pool.index.hold(&name, address, born).into_iter().map(WorkKey::Claim));
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
            let mut woken = pool.index.free_object(name);
            woken.extend(pool.unserved.first().map(|(_, claim)| claim.clone()));
            if let (true, Ok(address)) = (again, object.spec.address.parse()) {
                pool.index.reserve_again(name, address);
            }
            wake.extend(woken.into_iter().map(WorkKey::Claim));
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
        self.claims_of(&name)
    }

    pub(crate) fn remove_cluster(&mut self, name: &ObjectName) -> Vec<WorkKey> {
        self.clusters.remove(name);
        self.claims_of(name)
    }

    fn claims_of(&self, cluster: &ObjectName) -> Vec<WorkKey> {
        self.claims_of_cluster.get(cluster).into_iter().flatten().cloned().map(WorkKey::Claim).collect()
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
        let mut woken = Vec::new();
        if changed && !key.kind.is_external() {
            let (space, grace) = read_spec(key, &object);
            pool.grace_seconds = grace;
            let promises = promises(&object);
            let problem = match (&space, &promises) {
                (Err(problem), _) | (_, Err(problem)) => Some(problem.clone()),
                _ => None,
            };
            let mended = pool.problem != problem;
            pool.problem = problem;
            woken = pool.index.set_space(space.ok(), promises.unwrap_or_default());
            if mended {
                woken.extend(pool.claims.iter().cloned());
            }
        }
        if opened {
            woken.extend(pool.claims.iter().cloned());
        }
        pool.object = Some(Arc::new(object));
        wake.extend(woken.into_iter().map(WorkKey::Claim));
        wake
    }

    pub(crate) fn remove_pool(&mut self, key: &PoolKey) -> Vec<WorkKey> {
        let Some(pool) = self.pools.get_mut(key) else { return Vec::new() };
        pool.object = None;
        pool.external = None;
        pool.problem = None;
        pool.grace_seconds = 0;
        pool.index.set_space(None, BTreeMap::new());
        let mut wake: Vec<_> = pool.claims.iter().cloned().map(WorkKey::Claim).collect();
        wake.push(WorkKey::Pool(key.clone()));
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
