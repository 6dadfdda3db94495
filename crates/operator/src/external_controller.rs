//! Pools of other systems: opened, asked regularly how they stand, and asked for addresses.

use std::{sync::Arc, time::Duration};

use netstead_model::{Address, BackendError, BackendErrorKind, BackendPoolInfo, Range, Want};
use netstead_wire::kubernetes::KubernetesError;
use serde_json::{Value, json};
use tokio::time::timeout;
use tracing::{debug, info, warn};

use crate::{
    claim_controller::Again,
    claim_step::{self, NewAddress},
    conditions::Ready,
    events::EventKind,
    external::{self, ExternalAddress, ExternalClaim, ExternalPool, ExternalState, Reasons, limited},
    kinds,
    object::{
        AddressObject, Claim, EXTERNAL_KEY, INSTALLATION, NAME_PROBLEM, NAMES, ObjectName, PoolKey,
        PoolObject, RELEASE_ADDRESS,
    },
    shared::Shared,
    world::{Pool, WorkKey},
};

/// How often a pool that is ready is asked how it stands, and one that is not.
const ASK: Duration = Duration::from_mins(1);
const ASK_AGAIN: Duration = Duration::from_secs(10);
/// Opening a pool reads files and settings; it connects to nothing.
const OPEN: Duration = Duration::from_secs(30);
/// Addresses that are tried one by one, where the next free ones are promised to other claims.
const MOST_TRIES: usize = 64;

/// The outcome of giving an address back to its system.
#[derive(Debug)]
pub(crate) enum GivenBack {
    Done,
    /// The pool is gone, and with it the way to its system.
    NoPool,
    /// It has to wait, and why.
    NotYet(Ready, Duration),
}

impl Shared {
    /// Changes a pool if it is there, and wakes the claims that may get an address by it.
    fn change_pool<T>(&self, key: &PoolKey, change: impl FnOnce(&mut Pool) -> T) -> Option<T> {
        let (changed, woken) = {
            let mut world = self.world();
            let pool = world.pools.get_mut(key)?;
            let changed = change(pool);
            (changed, pool.index.take_woken())
        };
        self.queue.add_all(woken.into_iter().map(WorkKey::Claim));
        Some(changed)
    }

    /// Opens the pool if its spec changed, asks it how it stands if that is due, and wakes its claims if that changed. Returns
    /// when it is due again.
    pub(crate) async fn refresh_external(&self, key: &PoolKey) -> Result<Again, KubernetesError> {
        let now = self.clock.monotonic();
        let (object, known, problem) = {
            let world = self.world();
            let Some(pool) = world.pool(key) else { return Ok(None) };
            let Some(object) = pool.object.clone().filter(|object| !object.metadata.is_paused()) else {
                return Ok(None);
            };
            let state = pool.external.as_ref();
            let same = state.filter(|state| state.generation == object.metadata.generation);
            if let Some(state) = same {
                let left = state.due.saturating_sub(now);
                if !left.is_zero() {
                    return Ok(Some(left));
                }
            }
            // One that is not ready is opened anew: its Secret may be another.
            let known = same.filter(|state| state.ready.good).and_then(|state| state.pool.clone());
            (object, known, pool.annotation_problem.clone())
        };
        let opened = match known {
            Some(pool) => Ok(pool),
            None => self.open_external(key, &object).await?,
        };
        let reasons = Reasons::of(key.kind);
        let (pool, info, ready) = match opened {
            Err(problem) => (None, None, Ready::no(reasons.wrong, problem)),
            Ok(pool) => match limited(pool.describe()).await {
                Ok(info) => (Some(pool), Some(info), reasons.ready()),
                Err(error) => (Some(pool), None, reasons.not_ready(&error)),
            },
        };
        let ready = match problem {
            Some(problem) => Ready::no(reasons.wrong, problem),
            None => ready,
        };
        let every = pause(&ready, reasons);
        let generation = object.metadata.generation;
        let asked = self.clock.monotonic();
        let woken = self.change_pool(key, |state| {
            let changed = state.external.as_ref().is_none_or(|before| before.ready != ready);
            if changed {
                debug!(pool = %key, ?ready, "The state of a pool changed.");
            }
            state.problem = (!ready.good).then(|| ready.message.clone());
            let used = state.index.counts().used;
            let is_full = info.as_ref().is_some_and(|info| info.free == 0);
            let due = asked.saturating_add(every);
            state.external = Some(ExternalState { pool, info, ready, generation, asked, due, used, is_full });
            state.fit_external_line();
            if !is_full {
                state.index.wake_line(1);
            }
            if changed { state.claims().collect() } else { Vec::new() }
        });
        self.queue.add_all(woken.unwrap_or_default().into_iter().map(WorkKey::Claim));
        Ok(Some(every))
    }

    async fn open_external(
        &self,
        key: &PoolKey,
        object: &PoolObject,
    ) -> Result<Result<Arc<dyn ExternalPool>, String>, KubernetesError> {
        let mut spec = object.spec.clone();
        if let Some(reference) = spec.get("credentialsRef").cloned() {
            match self.credentials(key, &reference).await? {
                Ok(credentials) => {
                    if let Some(fields) = spec.as_object_mut() {
                        fields.insert("credentials".to_owned(), credentials);
                    }
                }
                Err(problem) => return Ok(Err(problem)),
            }
        }
        let slow = || Err(format!("it could not be opened within {} s", OPEN.as_secs()));
        Ok(timeout(OPEN, self.external.open(key.kind, &spec)).await.unwrap_or_else(|_| slow()))
    }

    /// The values of a Secret, as texts. A pool in a namespace reads Secrets of that namespace alone.
    async fn credentials(
        &self,
        key: &PoolKey,
        reference: &Value,
    ) -> Result<Result<Value, String>, KubernetesError> {
        let text = |field: &str| reference.get(field).and_then(Value::as_str).unwrap_or_default();
        let namespace = if key.kind.is_namespaced() { &key.name.namespace } else { text("namespace") };
        for (field, value) in [("namespace", namespace), ("name", text("name"))] {
            if value.is_empty() {
                return Ok(Err(format!("spec.credentialsRef.{field}: it is missing")));
            }
        }
        let name = ObjectName::new(namespace, text("name"));
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
        let name = claim.metadata.key();
        let naming = self.naming(claim, key).await?;
        let wanted = &ExternalClaim { naming, ..wanted.clone() };
        // From here on the pool stays, until the object of the address is seen or there is no address.
        self.change_pool(key, |pool| pool.drawing.insert(name.clone()));
        let answer = match limited(pool.claim(wanted)).await {
            Ok(given) if wanted.want == Want::Any && self.is_promised_to_another(key, given.address) => {
                self.draw_another(key, pool, wanted, given.address).await
            }
            answer => answer,
        };
        let given = match answer {
            Ok(given) => given,
            Err(error) => {
                self.note_failure(key, &name, &error);
                let (ready, again) = external::refusal(&error);
                self.refuse(claim, &ready).await?;
                return Ok(Some(again));
            }
        };
        let Some(object) = self.object_of(claim, key, &given, &wanted.key) else {
            return Ok(Some(ASK_AGAIN));
        };
        self.create_address(claim, &NewAddress { address: given.address, object }).await
    }

    /// Remembers that a claim got no address. One that found the system full keeps its place, so that it is the first to ask
    /// again; any other failure lets those behind it go on.
    fn note_failure(&self, key: &PoolKey, name: &ObjectName, error: &BackendError) {
        let now = self.clock.monotonic();
        let look = self.change_pool(key, |pool| {
            pool.drawing.remove(name);
            if error.kind == BackendErrorKind::Exhausted {
                let news = pool.external.as_mut().is_some_and(|external| !external.is_full);
                if let Some(external) = &mut pool.external {
                    external.is_full = true;
                }
                pool.fit_external_line();
                if news {
                    // The others say so too.
                    pool.index.wake_line(usize::MAX);
                }
                return false;
            }
            pool.index.leave_line(name);
            let is_of_pool = matches!(
                error.kind,
                BackendErrorKind::Denied
                    | BackendErrorKind::NoSuchPool
                    | BackendErrorKind::Unavailable
                    | BackendErrorKind::Unknown
            );
            match &mut pool.external {
                // Whether it is ready is looked at now, and no claim asks until it is.
                Some(external) if is_of_pool && now.saturating_sub(external.asked) >= ASK_AGAIN => {
                    external.due = now;
                    external.ready.good
                }
                _ => false,
            }
        });
        if look == Some(true) {
            self.queue.add(WorkKey::Pool(key.clone()));
        }
    }

    fn is_promised_to_another(&self, key: &PoolKey, address: Address) -> bool {
        self.world().pool(key).is_some_and(|pool| pool.index.promised_to(address).is_some())
    }

    /// Gives back an address that is promised to another claim, and takes the next one that is not.
    async fn draw_another(
        &self,
        key: &PoolKey,
        pool: &dyn ExternalPool,
        wanted: &ExternalClaim,
        promised: Address,
    ) -> Result<ExternalAddress, BackendError> {
        limited(pool.release(wanted)).await?;
        let info = {
            let world = self.world();
            world.pool(key).and_then(|pool| pool.external.as_ref()?.info.clone())
        };
        let Some(info) = info else { return Err(BackendError::unavailable("the pool is being asked anew")) };
        for address in
            candidates(&info, promised).filter(|one| !self.is_promised_to_another(key, *one)).take(MOST_TRIES)
        {
            let exact = ExternalClaim { want: Want::Exact(address), ..wanted.clone() };
            match limited(pool.claim(&exact)).await {
                Err(error) if matches!(error.kind, BackendErrorKind::Held | BackendErrorKind::NotHere) => {}
                answer => return answer,
            }
        }
        let message = "the next free addresses are kept for other claims";
        Err(BackendError::new(BackendErrorKind::Exhausted, message))
    }

    fn object_of(
        &self,
        claim: &Claim,
        key: &PoolKey,
        given: &ExternalAddress,
        external_key: &str,
    ) -> Option<Value> {
        let world = self.world();
        let pool = world.pool(key)?;
        let info = pool.external.as_ref()?.info.as_ref()?;
        let address = given.address;
        let of_pool = || (info.network.map_or(address.kind().bits(), |network| network.len()), info.gateway);
        let (prefix, gateway) = given.network.unwrap_or_else(of_pool);
        let mut object =
            claim_step::new_address(claim, key, pool.object.as_deref()?, address, prefix, gateway);
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("annotations".to_owned(), annotations(given, external_key));
        }
        Some(object)
    }

    /// Gives an address that another program or a person recorded our key in its system, so that it is found whatever becomes
    /// of its hostname.
    pub(crate) async fn give_key(
        &self,
        claim: &Claim,
        object: &AddressObject,
        pool: &dyn ExternalPool,
        wanted: &ExternalClaim,
    ) -> Result<Again, KubernetesError> {
        let name = claim.metadata.key();
        let naming = match claim.pool() {
            Some(key) => self.naming(claim, &key).await?,
            None => None,
        };
        let problem = match limited(pool.claim(&ExternalClaim { naming, ..wanted.clone() })).await {
            Ok(given) if Want::Exact(given.address) == wanted.want => {
                let patch = json!({ "metadata": { "annotations": annotations(&given, &wanted.key) } });
                let version = &object.metadata.resource_version;
                self.api.patch(&crate::api::addresses(), &object.metadata.key(), version, patch).await?;
                info!(claim = %name, address = object.spec.address, "An address got its key in the other system.");
                return Ok(None);
            }
            Ok(given) => {
                let (has, not) = (given.address, &object.spec.address);
                format!("the other system has {has} for the claim, not {not}")
            }
            Err(error) => format!("{} has no key in the other system: {error}", object.spec.address),
        };
        debug!(claim = %name, problem, "An address could not be given its key.");
        let claims = crate::api::claims();
        self.event((&claims, &claim.metadata), EventKind::Warning, "KeyNotWritten", &problem).await;
        Ok(Some(ASK))
    }

    /// Gives the address of a deleted claim back to its system. `Some` if that has to wait.
    pub(crate) async fn release_external(&self, claim: &Claim) -> Result<Again, KubernetesError> {
        let Some(key) = claim.pool().filter(|key| key.kind.is_external()) else { return Ok(None) };
        match self.give_back(&key, &claim.metadata.key()).await {
            GivenBack::Done => Ok(None),
            GivenBack::NoPool => {
                let name = claim.metadata.key();
                warn!(claim = %name, pool = %key, "The pool of a claim is gone, so its address cannot be given back.");
                let note = format!(
                    "the {} `{}` is gone, so {} was not released in the other system: remove it there by hand",
                    key.kind,
                    key.name,
                    hostname(&name)
                );
                let claims = crate::api::claims();
                self.event((&claims, &claim.metadata), EventKind::Warning, "NotReleased", &note).await;
                Ok(None)
            }
            GivenBack::NotYet(ready, again) => {
                self.refuse(claim, &ready).await?;
                Ok(Some(again))
            }
        }
    }

    /// Gives back what a claim has in the system of its pool. Nothing to give back is fine.
    pub(crate) async fn give_back(&self, key: &PoolKey, claim: &ObjectName) -> GivenBack {
        let not_yet = |why: &str| {
            let message =
                format!("the {} `{}` cannot be asked to release the address: {why}", key.kind, key.name);
            GivenBack::NotYet(Ready::no("PoolNotReady", message), ASK_AGAIN)
        };
        let (open, wanted) = {
            let world = self.world();
            let pool = world.pool(key);
            let Some((pool, object)) = pool.and_then(|pool| Some((pool, pool.object.as_deref()?))) else {
                return GivenBack::NoPool;
            };
            if let Some(problem) = &pool.problem {
                return not_yet(problem);
            }
            let open = pool.external.as_ref().and_then(|external| external.pool.clone());
            (open, external_claim(claim, object, Want::Any))
        };
        let Some(open) = open else { return not_yet("it was not asked yet") };
        match limited(open.release(&wanted)).await {
            Ok(()) => {
                info!(%claim, pool = %key, "An address was given back.");
                GivenBack::Done
            }
            Err(error) => {
                self.note_failure(key, claim, &error);
                let (ready, again) = external::refusal(&error);
                GivenBack::NotYet(Ready { reason: "PoolNotReady", ..ready }, again)
            }
        }
    }

    /// Gives back what claims of a pool that is being deleted may have got without an object: a crash may have come between.
    /// `Some` if that has to wait.
    pub(crate) async fn give_back_unseen(&self, key: &PoolKey) -> Again {
        let (claims, is_open) = {
            let world = self.world();
            let pool = world.pool(key)?;
            let may_have = |name: &ObjectName| {
                let claim = world.claims.get(name);
                claim.is_some_and(|claim| claim.metadata.has_finalizer(RELEASE_ADDRESS))
                    && !world.addresses.contains_key(name)
            };
            let claims: Vec<ObjectName> = pool.claims().filter(may_have).collect();
            (claims, pool.external.as_ref().is_none_or(|external| external.pool.is_some()))
        };
        if !is_open && !claims.is_empty() {
            warn!(pool = %key, claims = claims.len(), "A pool goes whose system cannot be asked for addresses of its claims.");
            return None;
        }
        for claim in claims {
            if let GivenBack::NotYet(ready, again) = self.give_back(key, &claim).await {
                warn!(pool = %key, %claim, problem = ready.message, "A pool that is being deleted waits for its system.");
                return Some(again);
            }
        }
        None
    }
}

/// Addresses of a pool behind this one, and then those before it.
fn candidates(info: &BackendPoolInfo, after: Address) -> impl Iterator<Item = Address> + '_ {
    let numbers = |range: &Range| (range.first().number(), range.last().number());
    let behind = info.ranges.iter().flat_map(move |range| {
        let (first, last) = numbers(range);
        first.max(after.number().saturating_add(1))..=last
    });
    let before = info.ranges.iter().flat_map(move |range| {
        let (first, last) = numbers(range);
        first..=last.min(after.number().saturating_sub(1))
    });
    let free = |address: &Address| {
        Some(*address) != info.gateway && !info.exclude.iter().any(|range| range.contains(*address))
    };
    behind.chain(before).filter_map(move |number| Address::new(after.kind(), number)).filter(free)
}

/// How long a pool is not asked. Refused credentials are not sent often: phpIPAM locks out a client after ten.
fn pause(ready: &Ready, reasons: Reasons) -> Duration {
    if ready.good || ready.reason == reasons.denied { ASK } else { ASK_AGAIN }
}

fn hostname(claim: &ObjectName) -> String {
    format!("{}.{}", claim.name, claim.namespace)
}

/// A claim as another system sees it. Its key begins with the installation that the pool was made in.
pub(crate) fn external_claim(claim: &ObjectName, pool: &PoolObject, want: Want) -> ExternalClaim {
    let installation = pool.metadata.annotations.get(INSTALLATION).unwrap_or(&pool.metadata.uid);
    let key = format!("capi/{installation}/{}/{}", claim.namespace, claim.name);
    ExternalClaim { key, hostname: hostname(claim), want, naming: None }
}

/// The annotations of the object of an address.
fn annotations(given: &ExternalAddress, key: &str) -> Value {
    let mut annotations = serde_json::Map::from_iter([(EXTERNAL_KEY.to_owned(), Value::from(key))]);
    if !given.names.is_empty() {
        annotations.insert(NAMES.to_owned(), Value::from(given.names.join(",")));
    }
    if let Some(problem) = &given.name_problem {
        annotations.insert(NAME_PROBLEM.to_owned(), Value::from(problem.as_str()));
    }
    Value::Object(annotations)
}

/// The part of a patch that remembers the installation; empty if it is remembered or there is none to remember.
pub(crate) fn remember_installation(key: &PoolKey, object: &PoolObject) -> Value {
    if key.kind.is_external() && !object.metadata.annotations.contains_key(INSTALLATION) {
        json!({ INSTALLATION: object.metadata.uid })
    } else {
        json!({})
    }
}
