//! Carries out the steps of claims.
//!
//! The way of a new claim: finalizer, object of the address, status. The object is made and then *seen* in the watch before the
//! claim's owner is told, because of a race that no lease prevents:
//!
//! 1. Replica A chooses 10.0.0.5 for claim a, and stands still.
//! 2. Replica B takes the lead, chooses 10.0.0.5 for claim b and makes its object.
//! 3. Replica A goes on and makes its object with 10.0.0.5.
//!
//! An owner is told of an address only while no other object has it. Watches show objects in the order in which the server made
//! them, so of two objects only the first can be seen alone: the owner of the second is told once the first is gone. Which of the
//! two goes, all replicas compute alike: one whose owner was told stays, else the one that was made first by the server's clock,
//! else by name. The other gives way:
//!
//! 1. Its claim gets an annotation with the object's uid, on condition that the claim is as this replica knows it. If another
//!    replica has told its owner meanwhile, that is a conflict, and all is decided anew.
//! 2. From then on no replica tells the owner of this object: their view of the claim is too old to change it, or has the
//!    annotation.
//! 3. The object is removed, and the claim gets another address.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use netstead_wire::kubernetes::KubernetesError;
use serde_json::json;
use tracing::{debug, info, warn};

use crate::{
    api::{self, Deleted},
    claim_step::{NewAddress, Step},
    conditions::Ready,
    events::EventKind,
    external_controller::GivenBack,
    metrics::AllocationOutcome,
    object::{AddressObject, Claim, GIVES_WAY, ObjectName, PROTECT_ADDRESS, RELEASE_ADDRESS},
    shared::Shared,
};

/// More steps than a claim needs in one go.
const MOST_STEPS: usize = 8;
/// An object that was made is looked for again after this, should its event be late.
const UNSEEN: Duration = Duration::from_secs(5);

/// When a key must be looked at again without news.
pub(crate) type Again = Option<Duration>;

impl Shared {
    pub(crate) async fn reconcile_claim(&self, name: &ObjectName) -> Result<Again, KubernetesError> {
        for _ in 0..MOST_STEPS {
            let (step, woken) = {
                let mut world = self.world();
                let step = world.next_step(name, self.clock.wall());
                (step, std::mem::take(&mut world.woken))
            };
            self.queue.add_all(woken);
            match step {
                Step::Rest => return Ok(None),
                Step::Wait(pause) => return Ok(Some(pause)),
                Step::AddFinalizer(claim) => self.add_finalizer(&claim).await?,
                Step::Refuse(claim, ready, again) => {
                    self.refuse(&claim, &ready).await?;
                    return Ok(again);
                }
                Step::Create(claim, new) => return self.create_address(&claim, &new).await,
                Step::Draw(claim, key, pool, wanted) => {
                    return self.draw(&claim, &key, &*pool, &wanted).await;
                }
                Step::Repair(address, patch) => {
                    let name = address.metadata.key();
                    let version = &address.metadata.resource_version;
                    // The watch brings the result.
                    self.api.patch(&api::addresses(), &name, version, patch).await?;
                    return Ok(None);
                }
                Step::GiveWay(claim, address, to) => {
                    self.give_way(&claim, &address, &to).await?;
                    return Ok(None);
                }
                Step::GiveKey(claim, address, pool, wanted) => {
                    return self.give_key(&claim, &address, &*pool, &wanted).await;
                }
                Step::Publish(claim, ready) => {
                    self.publish(&claim, &ready).await?;
                    return Ok(None);
                }
                Step::Release(claim, address) => {
                    if let Some(pause) = self.release_external(&claim).await? {
                        return Ok(Some(pause));
                    }
                    return self.release(&claim, address.as_deref()).await.map(|()| None);
                }
            }
        }
        Ok(Some(UNSEEN))
    }

    /// Puts the finalizer on, and goes on with the claim as the server has it then.
    async fn add_finalizer(&self, claim: &Claim) -> Result<(), KubernetesError> {
        let mut finalizers = claim.metadata.finalizers.clone();
        finalizers.push(RELEASE_ADDRESS.to_owned());
        let patch = json!({ "metadata": { "finalizers": finalizers } });
        let name = claim.metadata.key();
        let version = &claim.metadata.resource_version;
        let fresh: Claim = self.api.patch_to(&api::claims(), &name, version, patch).await?;
        let mut world = self.world();
        // The watch may have brought something newer.
        if world.claims.get(&name).is_some_and(|known| known.metadata.version() < fresh.metadata.version()) {
            world.put_claim(fresh);
        }
        Ok(())
    }

    /// Says on the claim why it has no address. What it says already is not said again.
    pub(crate) async fn refuse(&self, claim: &Claim, ready: &Ready) -> Result<(), KubernetesError> {
        if ready.is_said_by(&claim.status.conditions, claim.metadata.generation) {
            return Ok(());
        }
        debug!(claim = %claim.metadata.key(), reason = ready.reason, message = ready.message, "A claim has to wait.");
        self.metrics.allocation(if ready.reason == "PoolExhausted" {
            AllocationOutcome::Exhausted
        } else {
            AllocationOutcome::Refused
        });
        self.write_status(claim, ready, None).await?;
        let subject = (&api::claims(), &claim.metadata);
        self.event(subject, EventKind::Warning, ready.reason, &ready.message).await;
        Ok(())
    }

    async fn write_status(
        &self,
        claim: &Claim,
        ready: &Ready,
        address: Option<&str>,
    ) -> Result<(), KubernetesError> {
        let now = self.clock.wall();
        let conditions = ready.among(&claim.status.conditions, claim.metadata.generation, now);
        let old = claim.status.deprecated.pointer("/v1beta1/conditions").and_then(|old| old.as_array());
        let old = ready.among_old(old.map_or(&[], Vec::as_slice), now);
        let mut status =
            json!({ "conditions": conditions, "deprecated": { "v1beta1": { "conditions": old } } });
        if let (Some(address), Some(fields)) = (address, status.as_object_mut()) {
            fields.insert("addressRef".to_owned(), json!({ "name": address }));
        }
        let version = &claim.metadata.resource_version;
        let patch = json!({ "status": status });
        self.api.patch_status(&api::claims(), &claim.metadata.key(), version, patch).await
    }

    pub(crate) async fn create_address(
        &self,
        claim: &Claim,
        new: &NewAddress,
    ) -> Result<Again, KubernetesError> {
        let namespace = &claim.metadata.namespace;
        let made = self.api.create::<AddressObject>(&api::addresses(), namespace, &new.object).await;
        match made {
            // Its owner is told once the watch has shown it: this one, or one that is there and was not seen yet.
            Ok(_) | Err(KubernetesError::Conflict(_)) => Ok(Some(UNSEEN)),
            Err(KubernetesError::Rejected { status, message }) if status < 500 => {
                let name = claim.metadata.key();
                warn!(claim = %name, status, message, "The server refuses the object of an address.");
                let ready = Ready::no(
                    "AllocationFailed",
                    format!("the API server refuses the object of the address {}: {message}", new.address),
                );
                self.refuse(claim, &ready).await?;
                Ok(Some(Duration::from_secs(30)))
            }
            Err(error) => Err(error),
        }
    }

    async fn give_way(
        &self,
        claim: &Claim,
        address: &AddressObject,
        to: &ObjectName,
    ) -> Result<(), KubernetesError> {
        let name = claim.metadata.key();
        let uid = &address.metadata.uid;
        if claim.metadata.annotations.get(GIVES_WAY) != Some(uid) {
            let patch = json!({ "metadata": { "annotations": { GIVES_WAY: uid } } });
            self.api.patch(&api::claims(), &name, &claim.metadata.resource_version, patch).await?;
            warn!(claim = %name, other = %to, address = address.spec.address,
                "Two claims have one address; this one, of which no owner was told, gets another.");
            self.metrics.allocation(AllocationOutcome::GaveWay);
        }
        self.remove_address_object(address, Some(&address.metadata.resource_version)).await.map(drop)
    }

    async fn publish(&self, claim: &Claim, ready: &Ready) -> Result<(), KubernetesError> {
        let name = claim.metadata.key();
        self.write_status(claim, ready, Some(&claim.metadata.name)).await?;
        if !ready.message.is_empty() {
            let subject = (&api::claims(), &claim.metadata);
            self.event(subject, EventKind::Warning, "NameNotGiven", &ready.message).await;
        }
        if !claim.is_published() {
            let now = self.clock.wall();
            let waited = claim.metadata.creation_timestamp.map(|since| seconds_between(since, now));
            self.metrics.allocated(waited.unwrap_or_default());
            debug!(claim = %name, "A claim got its address.");
        }
        Ok(())
    }

    /// Removes the object of the address, and then the claim's finalizer. Neither is missed if it is gone already.
    async fn release(&self, claim: &Claim, address: Option<&AddressObject>) -> Result<(), KubernetesError> {
        let name = claim.metadata.key();
        // An object that was made a moment ago may not have been seen: the server is asked.
        let found: Option<Arc<AddressObject>> = match address {
            Some(_) => None,
            None => self.api.get::<AddressObject>(&api::addresses(), &name).await?.map(Arc::new),
        };
        let own = |object: &&AddressObject| {
            object.spec.claim_ref.name == claim.metadata.name && object.pool() == claim.pool()
        };
        let object = address.or(found.as_deref()).filter(own);
        if let Some(object) = object
            && self.remove_address_object(object, None).await? == Deleted::Pending
        {
            // The watch says when the finalizers of others are gone.
            return Ok(());
        }
        let finalizers: Vec<&String> =
            claim.metadata.finalizers.iter().filter(|one| *one != RELEASE_ADDRESS).collect();
        let patch = json!({ "metadata": { "finalizers": finalizers } });
        match self.api.patch(&api::claims(), &name, &claim.metadata.resource_version, patch).await {
            Err(KubernetesError::NotFound(_)) | Ok(()) => {
                info!(claim = %name, "A claim and its address were released.");
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Takes the finalizer off and deletes the object.
    async fn remove_address_object(
        &self,
        object: &AddressObject,
        version: Option<&str>,
    ) -> Result<Deleted, KubernetesError> {
        let name = object.metadata.key();
        let resource = api::addresses();
        let mut version = version.map(str::to_owned);
        if object.metadata.has_finalizer(PROTECT_ADDRESS) {
            let finalizers: Vec<&String> =
                object.metadata.finalizers.iter().filter(|one| *one != PROTECT_ADDRESS).collect();
            let patch = json!({ "metadata": { "finalizers": finalizers } });
            let before = &object.metadata.resource_version;
            match self.api.patch_to::<AddressObject>(&resource, &name, before, patch).await {
                Ok(fresh) => version = version.map(|_| fresh.metadata.resource_version),
                Err(KubernetesError::NotFound(_)) => return Ok(Deleted::Gone),
                Err(error) => return Err(error),
            }
        }
        let uid = &object.metadata.uid;
        let conflict = match self.api.delete(&resource, &name, uid, version.as_deref()).await {
            Err(conflict @ KubernetesError::Conflict(_)) => conflict,
            done => return done,
        };
        // Either another object has the name by now, or this one changed.
        match self.api.get::<AddressObject>(&resource, &name).await? {
            Some(now) if now.metadata.uid == *uid => Err(conflict),
            _ => Ok(Deleted::Gone),
        }
    }

    /// Lets an object of an address go that is being deleted and whose claim is gone. What it has in another system is given
    /// back first.
    pub(crate) async fn reconcile_orphan(&self, name: &ObjectName) -> Result<Again, KubernetesError> {
        let object = {
            let world = self.world();
            let object = world.addresses.get(name).filter(|object| {
                object.metadata.is_deleting()
                    && object.metadata.has_finalizer(PROTECT_ADDRESS)
                    && !object.metadata.is_deleted_for_move()
                    && !world.claims.contains_key(name)
                    && !world.is_pool_paused(object)
            });
            object.cloned()
        };
        let Some(object) = object else { return Ok(None) };
        if self.api.get::<Claim>(&api::claims(), name).await?.is_some() {
            return Ok(None);
        }
        if let Some(key) = object.pool().filter(|key| key.kind.is_external()) {
            let claim = ObjectName::new(&name.namespace, &object.spec.claim_ref.name);
            match self.give_back(&key, &claim).await {
                GivenBack::Done => {}
                GivenBack::NoPool => {
                    warn!(address = %name, value = object.spec.address, pool = %key,
                        "The pool of an address without claim is gone, so it cannot be given back: remove it in the other system by hand.");
                }
                GivenBack::NotYet(ready, again) => {
                    warn!(address = %name, pool = %key, problem = ready.message, "An address without claim cannot be given back yet.");
                    return Ok(Some(again));
                }
            }
        }
        info!(address = %name, "An address that is being deleted and has no claim is let go.");
        self.remove_address_object(&object, None).await.map(|_| None)
    }
}

fn seconds_between(since: Timestamp, now: Timestamp) -> f64 {
    now.duration_since(since).as_secs_f64().max(0.0)
}
