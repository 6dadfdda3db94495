//! The next step of a claim, decided from the objects alone. Carrying it out is in `claim_controller`.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use netstead_model::{Address, Want};
use serde_json::{Value, json};

use crate::{
    ExternalClaim, ExternalPool,
    conditions::Ready,
    external::ExternalState,
    external_controller::external_claim,
    object::{
        AddressObject, CLUSTER_NAME, Claim, EXTERNAL_KEY, GIVES_WAY, NAME_PROBLEM, ObjectName,
        PROTECT_ADDRESS, PoolKey, PoolObject, RELEASE_ADDRESS, WANTED,
    },
    pool_index::Refusal,
    world::{ClusterState, WorkKey, World},
};

/// A full pool is looked at again after this even if nothing is heard of it.
const LOOK_AGAIN: Duration = Duration::from_mins(1);
/// How long the first of two claims with one address waits for the other to give way. Afterwards it gives way itself.
const COURTESY: i64 = 10;
const COURTESY_LOOK: Duration = Duration::from_secs(2);
/// A release whose rest is being written down is looked at again after this, should the event be late.
const WRITTEN_LOOK: Duration = Duration::from_secs(5);

/// The next thing to do for a claim.
#[derive(Debug)]
pub(crate) enum Step {
    /// Nothing, until something changes.
    Rest,
    /// Nothing, for this long.
    Wait(Duration),
    AddFinalizer(Arc<Claim>),
    /// Say on the claim why it has no address, and look again after a while.
    Refuse(Arc<Claim>, Ready, Option<Duration>),
    Create(Arc<Claim>, Box<NewAddress>),
    /// Ask another system for the address, and make its object.
    Draw(Arc<Claim>, PoolKey, Arc<dyn ExternalPool>, ExternalClaim),
    /// Give the object of the address its owners, finalizer and label.
    Repair(Arc<AddressObject>, Value),
    /// Two objects have one address and no owner was told of this one: it is removed, and its claim gets another address.
    GiveWay(Arc<Claim>, Arc<AddressObject>, ObjectName),
    /// Write our key on the address in another system, which was recorded there without it.
    GiveKey(Arc<Claim>, Arc<AddressObject>, Arc<dyn ExternalPool>, ExternalClaim),
    /// Tell the claim's owner the address.
    Publish(Arc<Claim>, Ready),
    /// The claim is being deleted, and its address with it.
    Release(Arc<Claim>, Option<Arc<AddressObject>>),
}

/// The object of an address that is to be made.
#[derive(Debug)]
pub(crate) struct NewAddress {
    pub(crate) address: Address,
    pub(crate) object: Value,
}

impl World {
    /// Decides, and chooses an address if the claim needs one.
    pub(crate) fn next_step(&mut self, name: &ObjectName, now: Timestamp) -> Step {
        let Some(claim) = self.claims.get(name).cloned() else { return Step::Rest };
        let Some(key) = claim.pool() else { return Step::Rest };
        let deleting = claim.metadata.is_deleting();
        let is_held_back = self.is_held_back(&claim, &key, deleting);
        if (is_held_back || deleting)
            && !claim.is_published()
            && let Some(pool) = self.pools.get_mut(&key)
        {
            // It takes no place in the line, and keeps no address from others.
            pool.index.forget(name);
        }
        let step = if is_held_back {
            Step::Rest
        } else if deleting {
            self.next_of_deleted(&claim, &key, now)
        } else {
            self.next_of_living(&claim, &key, now)
        };
        if let Some(pool) = self.pools.get_mut(&key) {
            self.woken.extend(pool.index.take_woken().into_iter().map(WorkKey::Claim));
        }
        step
    }

    /// Whether something says that the claim is to be left alone.
    pub(crate) fn is_held_back(&self, claim: &Claim, key: &PoolKey, deleting: bool) -> bool {
        if claim.metadata.is_paused() || claim.metadata.is_deleted_for_move() {
            return true;
        }
        if let Some(cluster) = claim.cluster() {
            match self.cluster(&cluster) {
                Some(ClusterState::Paused) => return true,
                // Without its cluster no claim is served, but every claim can go.
                None if !deleting => return true,
                _ => {}
            }
        }
        let pool = self.pool(key).and_then(|pool| pool.object.as_ref());
        pool.is_some_and(|pool| pool.metadata.is_paused())
    }

    fn next_of_deleted(&mut self, claim: &Arc<Claim>, key: &PoolKey, now: Timestamp) -> Step {
        if !claim.metadata.has_finalizer(RELEASE_ADDRESS) {
            return Step::Rest;
        }
        let address = self.addresses.get(&claim.metadata.key());
        let address = address.filter(|address| belongs(address, claim, key)).cloned();
        let grace = self.pool(key).and_then(|pool| {
            let living = pool.object.as_ref().is_some_and(|pool| !pool.metadata.is_deleting());
            (living && address.is_some() && pool.grace_seconds > 0).then_some(pool.grace_seconds)
        });
        if let (Some(grace), Some(deleted)) = (grace, claim.metadata.deletion_timestamp) {
            let passed = now.duration_since(deleted).as_secs();
            // A clock that is behind must not hold the claim longer than it was asked to.
            let left = grace.saturating_sub(passed).min(grace);
            if let Ok(left) = u64::try_from(left)
                && left > 0
            {
                return Step::Wait(Duration::from_secs(left));
            }
        }
        let living = |pool: &Arc<PoolObject>| !pool.metadata.is_deleting();
        if let Some(pool) = self.pools.get_mut(key)
            && pool.reuse_delay > 0
            && pool.object.as_ref().is_some_and(living)
            && let Some(value) = address.as_ref().and_then(|address| address.spec.address.parse().ok())
            && !pool.let_rest(&claim.metadata.key(), value, now)
        {
            // The pool writes it down, with all others that are released meanwhile; its watch brings this claim back.
            self.woken.push(WorkKey::Pool(key.clone()));
            return Step::Wait(WRITTEN_LOOK);
        }
        Step::Release(Arc::clone(claim), address)
    }

    fn next_of_living(&mut self, claim: &Arc<Claim>, key: &PoolKey, now: Timestamp) -> Step {
        let name = claim.metadata.key();
        let refuse =
            |reason, message: String| Step::Refuse(Arc::clone(claim), Ready::no(reason, message), None);
        let Some(pool) = self.pools.get(key) else { return Step::Rest };
        let Some(object) = pool.object.clone() else {
            if claim.is_published() {
                return Step::Rest;
            }
            return refuse("PoolNotReady", format!("the {} `{}` does not exist", key.kind, key.name));
        };
        if !claim.metadata.has_finalizer(RELEASE_ADDRESS) {
            return Step::AddFinalizer(Arc::clone(claim));
        }
        if let Some(address) = self.addresses.get(&name).cloned() {
            return self.next_of_held(claim, key, &object, &address, now);
        }
        if object.metadata.is_deleting() {
            return refuse("PoolNotReady", format!("the {} `{}` is being deleted", key.kind, key.name));
        }
        if let Some(problem) = &pool.problem {
            return refuse(
                "PoolNotReady",
                format!("the {} `{}` cannot be used: {problem}", key.kind, key.name),
            );
        }
        let wanted = match wanted_address(claim) {
            Ok(wanted) => wanted,
            Err(problem) => return refuse("AllocationFailed", problem),
        };
        if key.kind.is_external() {
            self.ask_for_address(claim, key, &object, wanted)
        } else {
            self.choose_address(claim, key, &object, wanted)
        }
    }

    /// The step of a claim whose address is kept in another system.
    fn ask_for_address(
        &mut self,
        claim: &Arc<Claim>,
        key: &PoolKey,
        object: &PoolObject,
        wanted: Option<Address>,
    ) -> Step {
        let name = claim.metadata.key();
        let refuse = |reason, message: String| {
            Step::Refuse(Arc::clone(claim), Ready::no(reason, message), Some(LOOK_AGAIN))
        };
        let Some(pool) = self.pools.get_mut(key) else { return Step::Rest };
        // Until it was asked how it stands, it is not asked for anything; the claim keeps its place.
        let Some((open, is_full)) = pool.external.as_ref().and_then(ExternalState::open) else {
            return Step::Rest;
        };
        let promised = pool.index.promise_for(&name);
        if let (None, Some(wanted)) = (promised, wanted)
            && let Some(by) = pool.index.promised_to(wanted)
        {
            return refuse(
                "AllocationFailed",
                format!("the address {wanted} that the claim asks for is that of `{by}`"),
            );
        }
        let want = promised.or(wanted);
        if want.is_some() {
            pool.index.leave_line(&name);
        } else {
            pool.index.enter_line(&name, claim.metadata.creation_timestamp);
            if !pool.index.is_admitted(&name) {
                let full = || format!("no address is free in the {} `{}`", key.kind, key.name);
                return if is_full { refuse("PoolExhausted", full()) } else { Step::Wait(LOOK_AGAIN) };
            }
        }
        let wanted = external_claim(&name, object, want.map_or(Want::Any, Want::Exact));
        Step::Draw(Arc::clone(claim), key.clone(), open, wanted)
    }

    fn choose_address(
        &mut self,
        claim: &Arc<Claim>,
        key: &PoolKey,
        object: &PoolObject,
        wanted: Option<Address>,
    ) -> Step {
        let name = claim.metadata.key();
        let refuse = |reason, message: String| {
            Step::Refuse(Arc::clone(claim), Ready::no(reason, message), Some(LOOK_AGAIN))
        };
        let Some(pool) = self.pools.get_mut(key) else { return Step::Rest };
        let chosen = pool.index.reserve(&name, claim.metadata.creation_timestamp, wanted);
        let space = pool.index.space().cloned();
        match (chosen, space) {
            (Ok(address), Some(space)) => {
                let object = new_address(claim, key, object, address, space.prefix(), space.gateway());
                Step::Create(Arc::clone(claim), Box::new(NewAddress { address, object }))
            }
            (Err(Refusal::Exhausted), _) => {
                refuse("PoolExhausted", format!("no address is free in the {} `{}`", key.kind, key.name))
            }
            (Err(Refusal::Taken { by }), _) => {
                let wanted = wanted.map(|address| format!(" {address}")).unwrap_or_default();
                refuse(
                    "AllocationFailed",
                    format!("the address{wanted} that the claim asks for is that of `{by}`"),
                )
            }
            (Err(Refusal::Resting { until }), _) => {
                let wanted = wanted.map(|address| format!(" {address}")).unwrap_or_default();
                let until = Timestamp::from_second(until).unwrap_or_default();
                refuse(
                    "AllocationFailed",
                    format!(
                        "the address{wanted} that the claim asks for was released and rests until {until}"
                    ),
                )
            }
            (Err(Refusal::Outside), _) => {
                let wanted = wanted.map(|address| format!(" {address}")).unwrap_or_default();
                refuse(
                    "AllocationFailed",
                    format!(
                        "the {} `{}` does not give out the address{wanted} that the claim asks for",
                        key.kind, key.name
                    ),
                )
            }
            (Err(Refusal::NotReady) | Ok(_), _) => {
                refuse("PoolNotReady", format!("the {} `{}` cannot be used yet", key.kind, key.name))
            }
        }
    }

    /// The step of a claim whose address has an object.
    fn next_of_held(
        &self,
        claim: &Arc<Claim>,
        key: &PoolKey,
        pool: &PoolObject,
        address: &Arc<AddressObject>,
        now: Timestamp,
    ) -> Step {
        if !belongs(address, claim, key) {
            let message = format!("an IPAddress `{}` of another claim or pool exists", address.metadata.name);
            return Step::Refuse(Arc::clone(claim), Ready::no("AllocationFailed", message), None);
        }
        let deleting = address.metadata.is_deleting();
        if !claim.is_published() && !deleting {
            let gives_way_already =
                claim.metadata.annotations.get(GIVES_WAY).is_some_and(|uid| *uid == address.metadata.uid);
            match self.rival(claim, key, address, now) {
                Some(Rivalry::Lost(to)) => {
                    return Step::GiveWay(Arc::clone(claim), Arc::clone(address), to);
                }
                // Only one of two objects with one address may ever be told of.
                Some(Rivalry::Waits) => return Step::Wait(COURTESY_LOOK),
                None if gives_way_already => {
                    return Step::GiveWay(Arc::clone(claim), Arc::clone(address), claim.metadata.key());
                }
                None => {}
            }
        }
        if !deleting && let Some(patch) = repair(claim, key, pool, address) {
            return Step::Repair(Arc::clone(address), patch);
        }
        let message = address.metadata.annotations.get(NAME_PROBLEM).cloned().unwrap_or_default();
        let ready = Ready { message, ..Ready::yes("AddressAllocated") };
        let told = claim.status.address_ref.name == address.metadata.name
            && ready.is_said_by(&claim.status.conditions, claim.metadata.generation);
        if !told {
            return Step::Publish(Arc::clone(claim), ready);
        }
        if key.kind.is_external() && !deleting && !address.metadata.annotations.contains_key(EXTERNAL_KEY) {
            return self.next_without_key(claim, key, pool, address);
        }
        Step::Rest
    }

    /// The step of an address that another program or a person recorded in another system.
    fn next_without_key(
        &self,
        claim: &Arc<Claim>,
        key: &PoolKey,
        object: &PoolObject,
        address: &Arc<AddressObject>,
    ) -> Step {
        let ready = self.pool(key).filter(|pool| pool.problem.is_none() && !object.metadata.is_deleting());
        let open = ready.and_then(|pool| pool.external.as_ref()?.open());
        let (Some((open, _)), Ok(value)) = (open, address.spec.address.parse()) else { return Step::Rest };
        let wanted = external_claim(&claim.metadata.key(), object, Want::Exact(value));
        Step::GiveKey(Arc::clone(claim), Arc::clone(address), open, wanted)
    }

    /// How it stands between this claim, of which no owner was told, and another one with the same address.
    fn rival(
        &self,
        claim: &Claim,
        key: &PoolKey,
        address: &AddressObject,
        now: Timestamp,
    ) -> Option<Rivalry> {
        let rivals = self.pools.get(key)?.index.rivals(&claim.metadata.key());
        let is_told = |rival: &ObjectName| self.claims.get(rival).is_some_and(|claim| claim.is_published());
        let age = address.metadata.creation_timestamp.map(|made| now.duration_since(made).as_secs());
        let is_young = age.is_some_and(|age| (0..COURTESY).contains(&age));
        let winner = rivals.iter().find(|rival| rival.is_first || is_told(&rival.name));
        match winner {
            Some(winner) => Some(Rivalry::Lost(winner.name.clone())),
            None if is_young => rivals.first().map(|_| Rivalry::Waits),
            // The other one does not move: its claim may be paused, gone, or in a namespace that is not looked at.
            None => rivals.first().map(|rival| Rivalry::Lost(rival.name.clone())),
        }
    }
}

/// How it stands between two claims with one address.
#[derive(Debug)]
enum Rivalry {
    /// The other one keeps it.
    Lost(ObjectName),
    /// The other one is about to give way.
    Waits,
}

/// The address that a claim asks for.
fn wanted_address(claim: &Claim) -> Result<Option<Address>, String> {
    let Some(text) = claim.metadata.annotations.get(WANTED) else { return Ok(None) };
    let read = text.parse::<Address>().map(Some);
    read.map_err(|error| format!("annotation {WANTED}: `{text}`: {error}"))
}

/// Whether an object of an address is that of a claim.
fn belongs(address: &AddressObject, claim: &Claim, key: &PoolKey) -> bool {
    address.spec.claim_ref.name == claim.metadata.name && address.pool().as_ref() == Some(key)
}

fn claim_owner(claim: &Claim) -> Value {
    json!({
        "apiVersion": crate::api::claims().api_version(), "kind": "IPAddressClaim", "name": claim.metadata.name,
        "uid": claim.metadata.uid, "controller": true, "blockOwnerDeletion": true,
    })
}

fn pool_owner(key: &PoolKey, pool: &PoolObject) -> Value {
    json!({
        "apiVersion": key.kind.resource().api_version(), "kind": key.kind.as_str(), "name": key.name.name,
        "uid": pool.metadata.uid, "controller": false, "blockOwnerDeletion": true,
    })
}

pub(crate) fn new_address(
    claim: &Claim,
    key: &PoolKey,
    pool: &PoolObject,
    address: Address,
    prefix: u8,
    gateway: Option<Address>,
) -> Value {
    let mut object = json!({
        "apiVersion": crate::api::addresses().api_version(),
        "kind": "IPAddress",
        "metadata": {
            "name": claim.metadata.name,
            "namespace": claim.metadata.namespace,
            "finalizers": [PROTECT_ADDRESS],
            "ownerReferences": [claim_owner(claim), pool_owner(key, pool)],
        },
        "spec": {
            "claimRef": { "name": claim.metadata.name },
            "poolRef": { "apiGroup": key.kind.group(), "kind": key.kind.as_str(), "name": key.name.name },
            "address": address.to_string(),
            "prefix": prefix,
        },
    });
    if let (Some(cluster), Some(metadata)) =
        (claim.metadata.labels.get(CLUSTER_NAME), object.get_mut("metadata").and_then(Value::as_object_mut))
    {
        metadata.insert("labels".to_owned(), json!({ CLUSTER_NAME: cluster }));
    }
    if let (Some(gateway), Some(spec)) = (gateway, object.get_mut("spec").and_then(Value::as_object_mut)) {
        spec.insert("gateway".to_owned(), Value::from(gateway.to_string()));
    }
    object
}

/// The patch that gives an object of an address its owners, finalizer and label; none if it has them. What others put there
/// stays, in its place.
fn repair(claim: &Claim, key: &PoolKey, pool: &PoolObject, address: &AddressObject) -> Option<Value> {
    let mut owners = address.metadata.owner_references.clone();
    put_owner(&mut owners, claim_owner(claim));
    // A garbage collector that deletes a pool takes it off what has another owner; that must not begin a quarrel.
    if !pool.metadata.is_deleting() {
        put_owner(&mut owners, pool_owner(key, pool));
    }
    let mut finalizers = address.metadata.finalizers.clone();
    if !address.metadata.has_finalizer(PROTECT_ADDRESS) {
        finalizers.push(PROTECT_ADDRESS.to_owned());
    }
    let mut labels = address.metadata.labels.clone();
    if let Some(cluster) = claim.metadata.labels.get(CLUSTER_NAME) {
        labels.insert(CLUSTER_NAME.to_owned(), cluster.clone());
    }
    let before = &address.metadata;
    if owners == before.owner_references && finalizers == before.finalizers && labels == before.labels {
        return None;
    }
    Some(json!({ "metadata": { "ownerReferences": owners, "finalizers": finalizers, "labels": labels } }))
}

/// Puts an owner in place of an older one of the same group, kind and name: after a move it has another uid.
fn put_owner(owners: &mut Vec<Value>, own: Value) {
    let text =
        |value: &Value, field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let group = |value: &Value| text(value, "apiVersion").split('/').next().unwrap_or_default().to_owned();
    let identity = |value: &Value| (group(value), text(value, "kind"), text(value, "name"));
    let wanted = identity(&own);
    match owners.iter_mut().find(|owner| identity(owner) == wanted) {
        Some(owner) => {
            let flag = |value: &Value, field| value.get(field).and_then(Value::as_bool).unwrap_or_default();
            let same = text(owner, "uid") == text(&own, "uid")
                && ["controller", "blockOwnerDeletion"]
                    .iter()
                    .all(|name| flag(owner, name) == flag(&own, name));
            if !same {
                *owner = own;
            }
        }
        None => owners.push(own),
    }
}
