//! [`LoadBalancers`]: gives Services of type `LoadBalancer` addresses out of pools.
//!
//! 1. A Service names a class, and each of its IP families has a pool for that class.
//! 2. The pool is asked with a key that never changes, so the answer is the same after a restart and on another leader.
//! 3. The addresses go into the status of the Service. From there its names follow as for any other load balancer.
//! 4. A Service that is gone, or has another class, keeps its addresses for a grace; then they are released (`release.rs`).
//!
//! All of this happens while the engine tells the source about names, which only the leader's engine does. A node that no longer
//! leads cannot claim: its ledger refuses.

mod release;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use netstead_model::{
    Address, BackendClaim, BackendError, BackendErrorKind, BackendObject, Family, Ident, PoolBackend, Span,
    Want,
};
use netstead_wire::kubernetes::{KubernetesError, Resource};
use serde_json::{Value, json};
use tokio::time::timeout;
use tracing::{debug, info, warn};

use super::{
    kinds::{Body, service::BalancerWish},
    object::{ObjectName, Stored},
    reflector::Shared,
    reporting::{Condition, Event, ObjectStatus, Subject},
};

/// The annotation with the addresses that a Service wants.
const WANTED: &str = "netstead.io/load-balancer-ip";
const CONDITION: &str = "netstead.io/Address";
/// When something is tried again that failed.
const AGAIN: Duration = Duration::from_secs(10);
/// When a refusal may have passed: an address became free, or a role was mended.
const LATER: Duration = Duration::from_secs(30);
/// How often all claims are read anew, because a person may release one.
const READ_AGAIN: Duration = Duration::from_mins(5);
/// The pause after another writer was first. By then the watch has brought what it wrote. It doubles a few times.
const AFTER_CONFLICT: Duration = Duration::from_secs(1);
const DOUBLINGS: u32 = 6;
/// One go begins nothing new after this, so that the engine need not wait: it cuts off what takes 30 s.
const LONGEST: Duration = Duration::from_secs(10);
/// The most that one Service, one release or the list of all claims may take.
const LONGEST_STEP: Duration = Duration::from_secs(5);

/// Pools for the load balancers of a cluster, and the ledger that has them.
#[derive(Debug, Clone)]
pub struct LoadBalancerPools {
    pub pools: Vec<LoadBalancerPool>,
    pub backend: Arc<dyn PoolBackend>,
    /// The owner of the claims.
    pub owner: String,
}

/// A pool whose addresses Services of one class get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadBalancerPool {
    pub name: Ident,
    pub class: String,
    pub family: Family,
    /// How long the addresses of a Service that is gone are kept.
    pub grace: Span,
}

#[derive(Debug)]
pub(super) struct LoadBalancers {
    source: Ident,
    pools: LoadBalancerPools,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Services were looked at since the last of them changed.
    settled: bool,
    /// When something must be looked at again.
    again: Option<Duration>,
    /// When all claims were read.
    read: Option<Duration>,
    held: BTreeMap<PoolKey, Held>,
    /// The Service to begin with: a go that was cut off does not begin with the same ones again.
    next: Option<ObjectName>,
    /// Writes in a row that came after those of another writer.
    conflicts: u32,
    /// Rights that a person was told of.
    complained: BTreeSet<&'static str>,
}

/// The pool and the key in it.
type PoolKey = (Ident, String);

#[derive(Debug, Clone)]
struct Held {
    object: BackendObject,
    /// Since when no Service that is read wants it.
    unwanted: Option<Duration>,
    /// When the API server said that a Service has it all the same.
    used: Option<Duration>,
}

/// The Services that the source reads: those of its namespaces and with its labels.
#[derive(Debug)]
pub(super) struct SeenServices {
    pub(super) services: Vec<(Arc<Stored>, ObjectStatus)>,
    /// All of them are seen.
    pub(super) complete: bool,
}

/// A Service with a class of ours.
#[derive(Debug, Clone, Copy)]
struct Balanced<'a> {
    service: &'a Arc<Stored>,
    wish: &'a BalancerWish,
    status: &'a ObjectStatus,
}

/// One go over all Services. If it is cut off, something is left to do.
struct Go<'a> {
    balancers: &'a LoadBalancers,
    ended: bool,
}

impl Drop for Go<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.balancers.note_change();
        }
    }
}

/// Why a Service has not all of its addresses.
#[derive(Debug)]
struct Trouble {
    reason: &'static str,
    message: String,
}

impl Held {
    fn new(object: BackendObject) -> Self {
        Self { object, unwanted: None, used: None }
    }
}

impl LoadBalancers {
    pub(super) fn new(source: Ident, pools: LoadBalancerPools) -> Self {
        Self { source, pools, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Called when a Service changed, or Services can be seen again.
    pub(super) fn note_change(&self) {
        self.state().settled = false;
    }

    pub(super) fn is_due(&self, now: Duration) -> bool {
        let state = self.state();
        !state.settled || state.again.is_some_and(|again| again <= now)
    }

    /// Gives every Service what it wants, and takes back what no Service wants any more.
    pub(super) async fn work(&self, seen: &SeenServices, shared: &Shared) {
        {
            let mut state = self.state();
            state.settled = true;
            state.again = None;
        }
        let mut go = Go { balancers: self, ended: false };
        self.go_over(seen, shared).await;
        go.ended = true;
    }

    async fn go_over(&self, seen: &SeenServices, shared: &Shared) {
        let begun = shared.clock.monotonic();
        let read = timeout(LONGEST_STEP, self.read_claims(begun)).await;
        if let Err(error) = read.unwrap_or_else(|_| Err(BackendError::unavailable("it takes too long"))) {
            debug!(%error, "The pools of load balancers cannot be read now.");
            return self.try_again(begun + AGAIN);
        }
        let mut services: Vec<Balanced<'_>> =
            seen.services.iter().filter_map(|(service, status)| self.balanced(service, status)).collect();
        let keys = services.iter().flat_map(|one| self.keys(&one.service.name, one.wish));
        let wanted: BTreeSet<PoolKey> = keys.map(|(pool, key)| (pool.name.clone(), key)).collect();
        let next = self.state().next.clone();
        let first = services.iter().position(|one| Some(&one.service.name) == next.as_ref());
        services.rotate_left(first.unwrap_or_default());
        let mut rest = services.iter().peekable();
        while let Some(one) = rest.next() {
            let now = shared.clock.monotonic();
            if now.saturating_sub(begun) >= LONGEST {
                return self.try_again(now);
            }
            self.state().next = rest.peek().map(|after| after.service.name.clone());
            if timeout(LONGEST_STEP, self.serve(*one, shared)).await.is_err() {
                debug!(service = %one.service.name, "A Service takes too long, and is looked at later.");
                self.try_again(shared.clock.monotonic() + AGAIN);
            }
        }
        if seen.complete {
            self.release_unwanted(&wanted, shared, begun + LONGEST).await;
        }
    }

    /// A Service whose class a pool has.
    fn balanced<'a>(&self, service: &'a Arc<Stored>, status: &'a ObjectStatus) -> Option<Balanced<'a>> {
        let Body::Service(body) = &service.body else { return None };
        let wish = body.balancer_wish()?;
        let ours = self.pools.pools.iter().any(|pool| pool.class == wish.class);
        ours.then_some(Balanced { service, wish, status })
    }

    fn try_again(&self, at: Duration) {
        let mut state = self.state();
        state.again = Some(state.again.map_or(at, |again| again.min(at)));
    }

    /// The pool and the key of each family of a Service, as far as there is a pool.
    fn keys(&self, service: &ObjectName, wish: &BalancerWish) -> Vec<(&LoadBalancerPool, String)> {
        let mut keys = Vec::new();
        for family in &wish.families {
            let fits = |pool: &&LoadBalancerPool| pool.class == wish.class && pool.family == *family;
            if let Some(pool) = self.pools.pools.iter().find(fits) {
                keys.push((pool, format!("{}/{service}/{}", self.source, word(*family))));
            }
        }
        keys
    }

    /// Reads the claims of this cluster, unless they were read lately.
    async fn read_claims(&self, now: Duration) -> Result<(), BackendError> {
        if self.state().read.is_some_and(|read| now.saturating_sub(read) < READ_AGAIN) {
            return Ok(());
        }
        let prefix = format!("{}/", self.source);
        let mut held: BTreeMap<PoolKey, Held> = BTreeMap::new();
        for pool in &self.pools.pools {
            let mut after: Option<String> = None;
            loop {
                let page = self.pools.backend.list(pool.name.as_str(), &prefix, after.as_deref()).await?;
                for object in page.objects {
                    if object.holder.as_deref() == Some(self.pools.owner.as_str()) {
                        held.insert((pool.name.clone(), object.key.clone()), Held::new(object));
                    }
                }
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
        }
        let mut state = self.state();
        for (key, one) in &mut held {
            if let Some(known) = state.held.get(key) {
                (one.unwanted, one.used) = (known.unwanted, known.used);
            }
        }
        state.held = held;
        state.read = Some(now);
        Ok(())
    }

    /// Gets the addresses of one Service, and writes them into its status.
    async fn serve(&self, balanced: Balanced<'_>, shared: &Shared) {
        let Balanced { service, wish, .. } = balanced;
        let (mut addresses, mut trouble): (Vec<Address>, Option<Trouble>) = (Vec::new(), None);
        let wanted = wanted_addresses(service, wish);
        let keys = self.keys(&service.name, wish);
        for family in &wish.families {
            let Some((pool, key)) = keys.iter().find(|(pool, _)| pool.family == *family) else {
                let message =
                    format!("no pool with the class {} has {} addresses", wish.class, word(*family));
                trouble = trouble.or(Some(Trouble { reason: "NoPool", message }));
                continue;
            };
            let want = wanted.iter().copied().find(|address| family_of(*address) == Some(*family));
            match self.claim(pool, key, want).await {
                Ok(address) => addresses.push(address),
                Err(error) if error.kind.is_refusal() => {
                    // The address that it has stays, in its status too.
                    let place = (pool.name.clone(), key.clone());
                    addresses.extend(self.state().held.get(&place).map(|held| held.object.address));
                    let message = format!("pool {}: {error}", pool.name);
                    trouble = trouble.or(Some(Trouble { reason: reason(error.kind), message }));
                    self.try_again(shared.clock.monotonic() + LATER);
                }
                Err(error) => {
                    debug!(service = %service.name, %error, "An address for a Service is asked for later.");
                    return self.try_again(shared.clock.monotonic() + AGAIN);
                }
            }
        }
        self.write(balanced, &addresses, trouble, shared).await;
    }

    async fn claim(
        &self,
        pool: &LoadBalancerPool,
        key: &str,
        want: Option<Address>,
    ) -> Result<Address, BackendError> {
        let place = (pool.name.clone(), key.to_owned());
        if let Some(held) = self.state().held.get_mut(&place) {
            (held.unwanted, held.used) = (None, None);
            if want.is_none_or(|want| want == held.object.address) {
                return Ok(held.object.address);
            }
        }
        let claim = BackendClaim {
            pool: pool.name.to_string(),
            key: key.to_owned(),
            want: want.map_or(Want::Any, Want::Exact),
            length: None,
            note: "the load balancer of a Service".to_owned(),
        };
        let object = self.pools.backend.claim(&claim).await?;
        let address = object.address;
        info!(pool = %pool.name, key, %address, "A Service got an address.");
        self.state().held.insert(place, Held::new(object));
        Ok(address)
    }

    /// Writes addresses and condition of a Service, if its status does not show them.
    async fn write(
        &self,
        balanced: Balanced<'_>,
        addresses: &[Address],
        trouble: Option<Trouble>,
        shared: &Shared,
    ) {
        let Balanced { service, status, .. } = balanced;
        let Body::Service(body) = &service.body else { return };
        let texts: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        let condition = match trouble {
            Some(Trouble { reason, message }) => Condition { kind: CONDITION, good: false, reason, message },
            None => Condition { kind: CONDITION, good: true, reason: "Assigned", message: texts.join(", ") },
        };
        // An address that it has is not taken away because it cannot have another one too.
        let shows = texts.is_empty() || body.shows(&texts);
        if shows && status.has(&condition) {
            return;
        }
        let resource = services();
        let now = shared.clock.wall();
        let mut fresh = json!({ "conditions": status.conditions_with(&condition, None, now) });
        if !shows && let Some(fields) = fresh.as_object_mut() {
            let ingress: Vec<Value> = texts.iter().map(|ip| json!({ "ip": ip, "ipMode": "VIP" })).collect();
            fields.insert("loadBalancer".to_owned(), json!({ "ingress": ingress }));
        }
        let patch = status.patch(&fresh);
        let (namespace, name) = (service.name.namespace.as_str(), service.name.name.as_str());
        match shared.cluster.patch_status(&resource, namespace, name, &patch).await {
            Ok(()) | Err(KubernetesError::NotFound(_)) => {
                self.state().conflicts = 0;
                if !condition.good {
                    let subject =
                        Subject { resource, object: Arc::clone(service), status: None, silenced: false };
                    shared.reporting.add(Event::new(&subject, condition.reason, false, condition.message));
                }
            }
            Err(KubernetesError::Forbidden(said)) => {
                if self.state().complained.insert("patch") {
                    warn!(
                        reason = said,
                        "Addresses cannot be written: give the role `patch` on services/status."
                    );
                }
                self.try_again(shared.clock.monotonic() + LATER);
            }
            Err(KubernetesError::Conflict(said)) => {
                let conflicts = {
                    let mut state = self.state();
                    state.conflicts = state.conflicts.saturating_add(1);
                    state.conflicts
                };
                debug!(service = %service.name, said, "Another writer changed a Service: its status is written anew.");
                let pause = AFTER_CONFLICT * 2_u32.pow(conflicts.saturating_sub(1).min(DOUBLINGS));
                self.try_again(shared.clock.monotonic() + pause);
            }
            Err(error) => {
                debug!(service = %service.name, %error, "The address of a Service is written later.");
                self.try_again(shared.clock.monotonic() + AGAIN);
            }
        }
    }
}

fn services() -> Resource {
    Resource {
        group: String::new(),
        version: "v1".to_owned(),
        plural: "services".to_owned(),
        kind: "Service".to_owned(),
        namespaced: true,
    }
}

/// The addresses that a Service names: its annotation, or else its older field.
fn wanted_addresses(service: &Stored, wish: &BalancerWish) -> Vec<Address> {
    let annotated = service.annotations.get(WANTED).map(String::as_str);
    let text = annotated.unwrap_or(wish.wanted.as_str());
    let ips = crate::dialects::list::words(text).filter_map(|word| word.parse::<std::net::IpAddr>().ok());
    ips.map(Address::from).collect()
}

fn family_of(address: Address) -> Option<Family> {
    address.to_ip().map(|ip| if ip.is_ipv6() { Family::Ipv6 } else { Family::Ipv4 })
}

fn word(family: Family) -> &'static str {
    if family == Family::Ipv6 { "ipv6" } else { "ipv4" }
}

fn reason(kind: BackendErrorKind) -> &'static str {
    match kind {
        BackendErrorKind::Held => "AddressTaken",
        BackendErrorKind::NotHere => "AddressOutside",
        BackendErrorKind::Exhausted => "PoolFull",
        BackendErrorKind::NoSuchPool => "NoPool",
        _ => "AddressRefused",
    }
}
