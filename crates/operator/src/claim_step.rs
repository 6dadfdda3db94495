//! The next step of a claim, decided from the objects alone. Carrying it out is in `claim_controller`.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use netstead_model::Address;
use serde_json::{Value, json};

use crate::{
    ExternalClaim, ExternalPool,
    conditions::Ready,
    external_controller::external_claim,
    kinds::GROUP,
    object::{
        AddressObject, CLUSTER_NAME, Claim, DELETE_FOR_MOVE, ObjectName, PROTECT_ADDRESS, PoolKey,
        PoolObject, RELEASE_ADDRESS, WANTED,
    },
    pool_index::Refusal,
    world::{ClusterState, World},
};

/// A full pool is looked at again after this even if nothing is heard of it.
const LOOK_AGAIN: Duration = Duration::from_mins(1);

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
    /// Two objects have one address and this one came later: it is removed, and its claim gets another address.
    GiveWay(Arc<AddressObject>, ObjectName),
    /// Tell the claim's owner the address.
    Publish(Arc<Claim>),
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
        let step = if self.is_held_back(&claim, &key, deleting) {
            Step::Rest
        } else if deleting {
            self.next_of_deleted(&claim, &key, now)
        } else {
            self.next_of_living(&claim, &key)
        };
        if matches!(step, Step::Rest) && !claim.is_published() {
            // A claim that rests takes no place in the line.
            self.forget(&key, name);
        }
        step
    }

    /// Gives up a claim's place in the line and its reservation; those behind it are remembered as woken.
    fn forget(&mut self, key: &PoolKey, name: &ObjectName) {
        if let Some(pool) = self.pools.get_mut(key) {
            let woken = pool.index.forget(name);
            self.woken.extend(woken);
        }
    }

    /// Whether something says that the claim is to be left alone.
    fn is_held_back(&self, claim: &Claim, key: &PoolKey, deleting: bool) -> bool {
        if claim.metadata.is_paused() || claim.metadata.annotations.contains_key(DELETE_FOR_MOVE) {
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

    fn next_of_deleted(&self, claim: &Arc<Claim>, key: &PoolKey, now: Timestamp) -> Step {
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
        Step::Release(Arc::clone(claim), address)
    }

    fn next_of_living(&mut self, claim: &Arc<Claim>, key: &PoolKey) -> Step {
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
            return self.next_of_held(claim, key, &object, &address);
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
        if key.kind.is_external() {
            // Until it was asked how it stands, it is not asked for anything.
            let open = pool.external.as_ref().and_then(|external| external.pool.clone());
            let draw =
                |open| Step::Draw(Arc::clone(claim), key.clone(), open, external_claim(claim, &object));
            return open.map_or(Step::Rest, draw);
        }
        self.choose_address(claim, key, &object)
    }

    fn choose_address(&mut self, claim: &Arc<Claim>, key: &PoolKey, object: &PoolObject) -> Step {
        let name = claim.metadata.key();
        let refuse = |reason, message: String| {
            Step::Refuse(Arc::clone(claim), Ready::no(reason, message), Some(LOOK_AGAIN))
        };
        let wanted = claim.metadata.annotations.get(WANTED).map(|text| (text, text.parse::<Address>()));
        if let Some((text, Err(error))) = &wanted {
            return refuse("AllocationFailed", format!("annotation {WANTED}: `{text}`: {error}"));
        }
        let wanted = wanted.and_then(|(_, address)| address.ok());
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
        &mut self,
        claim: &Arc<Claim>,
        key: &PoolKey,
        pool: &PoolObject,
        address: &Arc<AddressObject>,
    ) -> Step {
        if !belongs(address, claim, key) {
            let message = format!("an IPAddress `{}` of another claim or pool exists", address.metadata.name);
            return Step::Refuse(Arc::clone(claim), Ready::no("AllocationFailed", message), None);
        }
        let deleting = address.metadata.is_deleting();
        if !claim.is_published()
            && !deleting
            && let Some(rival) = self.winner_over(&claim.metadata.key(), key)
        {
            return Step::GiveWay(Arc::clone(address), rival);
        }
        if !deleting && let Some(patch) = repair(claim, key, pool, address) {
            return Step::Repair(Arc::clone(address), patch);
        }
        let ready = Ready::yes("AddressAllocated");
        let told = claim.status.address_ref.name == address.metadata.name
            && ready.is_said_by(&claim.status.conditions, claim.metadata.generation);
        if told { Step::Rest } else { Step::Publish(Arc::clone(claim)) }
    }

    /// Another object with the same address that keeps it: its owner knows it already, or the server made it first.
    fn winner_over(&self, name: &ObjectName, key: &PoolKey) -> Option<ObjectName> {
        let rivals = self.pools.get(key)?.index.rivals(name).into_iter();
        let keeps = |rival: &ObjectName| self.claims.get(rival).is_none_or(|claim| claim.is_published());
        rivals.filter(|rival| rival.older || keeps(&rival.name)).map(|rival| rival.name).next()
    }
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
            "poolRef": { "apiGroup": GROUP, "kind": key.kind.as_str(), "name": key.name.name },
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
