//! Pools of other systems: opened, asked regularly how they stand, and asked for addresses.

use std::{sync::Arc, time::Duration};

use netstead_model::{Address, BackendErrorKind};
use netstead_wire::kubernetes::KubernetesError;
use serde_json::{Value, json};
use tracing::{debug, info, warn};

use crate::{
    claim_controller::Again,
    claim_step::{self, NewAddress},
    conditions::Ready,
    external::{self, ExternalClaim, ExternalPool, ExternalState},
    kinds,
    object::{Claim, INSTALLATION, ObjectName, PoolKey, PoolObject},
    shared::Shared,
    world::WorkKey,
};

/// How often a pool that is ready is asked how it stands, and one that is not.
const ASK: Duration = Duration::from_mins(1);
const ASK_AGAIN: Duration = Duration::from_secs(10);

impl Shared {
    /// Opens the pool if its spec changed, asks it how it stands if that is due, and wakes its claims if that changed. Returns
    /// when it is due again.
    pub(crate) async fn refresh_external(&self, key: &PoolKey) -> Result<Again, KubernetesError> {
        let now = self.clock.monotonic();
        let (object, known) = {
            let world = self.world();
            let Some(pool) = world.pool(key) else { return Ok(None) };
            let Some(object) = pool.object.clone().filter(|object| !object.metadata.is_paused()) else {
                return Ok(None);
            };
            let state = pool.external.as_ref();
            let same = state.filter(|state| state.generation == object.metadata.generation);
            if let Some(state) = same {
                let left = (state.asked + pause(&state.ready)).saturating_sub(now);
                if !left.is_zero() {
                    return Ok(Some(left));
                }
            }
            // One that is not ready is opened anew: its Secret may be another.
            (object, same.filter(|state| state.ready.good).and_then(|state| state.pool.clone()))
        };
        let opened = match known {
            Some(pool) => Ok(pool),
            None => self.open_external(key, &object).await?,
        };
        let (pool, info, ready) = match opened {
            Err(problem) => (None, None, Ready::no("InvalidPHPIPamConfiguration", problem)),
            Ok(pool) => match pool.describe().await {
                Ok(info) => (
                    Some(pool),
                    Some(info),
                    Ready { message: "IPPool is ready".to_owned(), ..Ready::yes("IPPoolReady") },
                ),
                Err(error) => (Some(pool), None, external::not_ready(&error)),
            },
        };
        let every = pause(&ready);
        let woken = {
            let mut world = self.world();
            let Some(pool_state) = world.pools.get_mut(key) else { return Ok(None) };
            let changed = pool_state.external.as_ref().is_none_or(|before| before.ready != ready);
            if changed {
                debug!(pool = %key, ?ready, "The state of a pool changed.");
            }
            pool_state.problem = (!ready.good).then(|| ready.message.clone());
            let (generation, used) = (object.metadata.generation, pool_state.index.counts().used);
            pool_state.external = Some(ExternalState { pool, info, ready, generation, asked: now, used });
            if changed { pool_state.claims().collect() } else { Vec::new() }
        };
        self.queue.add_all(woken.into_iter().map(WorkKey::Claim));
        Ok(Some(every))
    }

    async fn open_external(
        &self,
        key: &PoolKey,
        object: &PoolObject,
    ) -> Result<Result<Arc<dyn ExternalPool>, String>, KubernetesError> {
        let mut spec = object.spec.clone();
        if let Some(reference) = spec.get("credentialsRef").cloned() {
            match self.credentials(&reference).await? {
                Ok(credentials) => {
                    if let Some(fields) = spec.as_object_mut() {
                        fields.insert("credentials".to_owned(), credentials);
                    }
                }
                Err(problem) => return Ok(Err(problem)),
            }
        }
        Ok(self.external.open(key.kind, &spec).await)
    }

    /// The values of a Secret, as texts.
    async fn credentials(&self, reference: &Value) -> Result<Result<Value, String>, KubernetesError> {
        let text = |field: &str| reference.get(field).and_then(Value::as_str).unwrap_or_default();
        let name = ObjectName::new(text("namespace"), text("name"));
        let secrets = kinds::resource("", "v1", "secrets", "Secret", true);
        let secret = match self.api.get::<Value>(&secrets, &name).await {
            Ok(Some(secret)) => secret,
            Ok(None) => return Ok(Err(format!("spec.credentialsRef: there is no Secret {name}"))),
            Err(KubernetesError::Forbidden(message)) => {
                return Ok(Err(format!(
                    "spec.credentialsRef: {message}; the role needs `get` on this Secret"
                )));
            }
            Err(error) => return Err(error),
        };
        let mut values = serde_json::Map::new();
        for (field, value) in secret.get("data").and_then(Value::as_object).into_iter().flatten() {
            let decoded = value.as_str().and_then(|text| data_encoding::BASE64.decode(text.as_bytes()).ok());
            let Some(text) = decoded.and_then(|bytes| String::from_utf8(bytes).ok()) else { continue };
            values.insert(field.clone(), Value::from(text.trim_end_matches('\n')));
        }
        Ok(Ok(Value::Object(values)))
    }

    /// Asks for the address of a claim, and makes its object.
    pub(crate) async fn draw(
        &self,
        claim: &Claim,
        key: &PoolKey,
        pool: &dyn ExternalPool,
        wanted: &ExternalClaim,
    ) -> Result<Again, KubernetesError> {
        let answer = pool.claim(wanted).await;
        let is_full = matches!(&answer, Err(error) if error.kind == BackendErrorKind::Exhausted);
        if let Some(pool) = self.world().pools.get_mut(key) {
            let place = (claim.metadata.creation_timestamp, claim.metadata.key());
            if is_full {
                pool.unserved.insert(place)
            } else {
                pool.unserved.remove(&place)
            };
        }
        let address = match answer {
            Ok(address) => address,
            Err(error) => {
                let (ready, again) = external::refusal(&error);
                self.refuse(claim, &ready).await?;
                return Ok(Some(again));
            }
        };
        let Some(object) = self.object_of(claim, key, address) else { return Ok(Some(ASK_AGAIN)) };
        self.create_address(claim, &NewAddress { address, object }).await
    }

    fn object_of(&self, claim: &Claim, key: &PoolKey, address: Address) -> Option<Value> {
        let world = self.world();
        let pool = world.pool(key)?;
        let info = pool.external.as_ref()?.info.as_ref()?;
        let bits = address.kind().bits();
        let prefix = info.network.map_or(bits, |network| network.len());
        Some(claim_step::new_address(claim, key, pool.object.as_deref()?, address, prefix, info.gateway))
    }

    /// Gives the address of a deleted claim back to its system. `Some` if that has to wait.
    pub(crate) async fn release_external(&self, claim: &Claim) -> Result<Again, KubernetesError> {
        let Some(key) = claim.pool().filter(|key| key.kind.is_external()) else { return Ok(None) };
        let (open, wanted) = {
            let world = self.world();
            let pool = world.pool(&key).filter(|pool| pool.object.is_some());
            let Some(pool) = pool else {
                warn!(claim = %claim.metadata.key(), pool = %key, "The pool of a claim is gone, so its address cannot be given back.");
                return Ok(None);
            };
            let open = pool.external.as_ref().and_then(|external| external.pool.clone());
            (open, pool.object.as_deref().map(|object| external_claim(claim, object)))
        };
        let (Some(open), Some(wanted)) = (open, wanted) else {
            let ready = Ready::no(
                "PoolNotReady",
                format!("the {} `{}` cannot be asked to release the address", key.kind, key.name),
            );
            self.refuse(claim, &ready).await?;
            return Ok(Some(ASK_AGAIN));
        };
        match open.release(&wanted).await {
            Ok(()) => {
                info!(claim = %claim.metadata.key(), pool = %key, "An address was given back.");
                Ok(None)
            }
            Err(error) => {
                let (ready, again) = external::refusal(&error);
                self.refuse(claim, &Ready { reason: "PoolNotReady", ..ready }).await?;
                Ok(Some(again))
            }
        }
    }
}

/// How long a pool is not asked. Refused credentials are not sent often: phpIPAM locks out a client after ten.
fn pause(ready: &Ready) -> Duration {
    if ready.good || ready.reason == external::DENIED { ASK } else { ASK_AGAIN }
}

/// A claim as another system sees it. Its key begins with the installation that the pool was made in.
pub(crate) fn external_claim(claim: &Claim, pool: &PoolObject) -> ExternalClaim {
    let (namespace, name) = (&claim.metadata.namespace, &claim.metadata.name);
    let installation = pool.metadata.annotations.get(INSTALLATION).unwrap_or(&pool.metadata.uid);
    let wanted = claim.metadata.annotations.get(crate::object::WANTED).and_then(|text| text.parse().ok());
    ExternalClaim {
        key: format!("capi/{installation}/{namespace}/{name}"),
        hostname: format!("{name}.{namespace}"),
        want: wanted.map_or(netstead_model::Want::Any, netstead_model::Want::Exact),
    }
}

/// The part of a patch that remembers the installation; empty if it is remembered or there is none to remember.
pub(crate) fn remember_installation(key: &PoolKey, object: &PoolObject) -> Value {
    if key.kind.is_external() && !object.metadata.annotations.contains_key(INSTALLATION) {
        json!({ INSTALLATION: object.metadata.uid })
    } else {
        json!({})
    }
}
