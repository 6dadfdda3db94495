//! Releases the addresses of Services that are gone.
//!
//! A Service that is not among those that are read may be gone, or have lost a label that the source selects by, or be in a
//! namespace that is no longer read. So the API server is asked before each release, and only a Service that does not exist,
//! or that no longer asks for this address, loses it:
//!
//! 1. The Service leaves the list.
//! 2. The grace passes.
//! 3. The Service is read by its name.
//! 4. Its address is released, or the Service is read again later.

use std::{collections::BTreeSet, time::Duration};

use netstead_model::{BackendErrorKind, BackendObject, GivenBack};
use netstead_wire::kubernetes::KubernetesError;
use tokio::time::timeout;
use tracing::{debug, info, warn};

use super::{
    super::{
        kinds::service,
        object::{Object, ObjectName},
        reflector::Shared,
    },
    AGAIN, LATER, LONGEST_STEP, LoadBalancers, PoolKey, services,
};

impl LoadBalancers {
    /// Releases what no Service has wanted for the grace of its pool. Nothing new is begun after `until`.
    pub(super) async fn release_unwanted(
        &self,
        wanted: &BTreeSet<PoolKey>,
        shared: &Shared,
        until: Duration,
    ) {
        let now = shared.clock.monotonic();
        let mut over: Vec<(PoolKey, BackendObject)> = Vec::new();
        {
            let mut state = self.state();
            let mut next: Option<Duration> = None;
            for (key, held) in state.held.iter_mut().filter(|(key, _)| !wanted.contains(*key)) {
                let Some(pool) = self.pools.pools.iter().find(|pool| pool.name == key.0) else { continue };
                let end = *held.unwanted.get_or_insert(now) + Duration::from(pool.grace);
                let end = held.used.map_or(end, |used| end.max(used + LATER));
                if end <= now {
                    over.push((key.clone(), held.object.clone()));
                } else {
                    next = Some(next.map_or(end, |next| next.min(end)));
                }
            }
            drop(state);
            if let Some(next) = next {
                self.try_again(next);
            }
        }
        for (key, object) in over {
            let now = shared.clock.monotonic();
            if now >= until {
                return self.try_again(now);
            }
            let step = timeout(LONGEST_STEP, self.release_unless_used(&key, &object, shared));
            if let Err(pause) = step.await.unwrap_or(Err(AGAIN)) {
                self.try_again(shared.clock.monotonic() + pause);
            }
        }
    }

    /// Releases an address, unless a Service has it. If that is not known, returns when to try again.
    async fn release_unless_used(
        &self,
        place: &PoolKey,
        object: &BackendObject,
        shared: &Shared,
    ) -> Result<(), Duration> {
        let (pool, key) = place;
        match self.is_used(place, shared).await {
            Ok(false) => {}
            Ok(true) => {
                let mut state = self.state();
                let Some(held) = state.held.get_mut(place) else { return Ok(()) };
                if held.used.replace(shared.clock.monotonic()).is_none() {
                    info!(%pool, key, address = %object.address, "A Service that is not read any more keeps its address.");
                }
                return Err(LATER);
            }
            Err(KubernetesError::Forbidden(said)) => {
                if self.state().complained.insert("get") {
                    warn!(
                        reason = said,
                        "Addresses of Services that are gone cannot be released: give the role `get` on services."
                    );
                }
                return Err(LATER);
            }
            Err(error) => {
                debug!(%pool, key, %error, "It is not known whether a Service is gone.");
                return Err(AGAIN);
            }
        }
        match self.pools.backend.release(pool.as_str(), object).await {
            Ok(GivenBack::Done | GivenBack::AlreadyGone) => {
                info!(%pool, key, address = %object.address, "The address of a Service that is gone is released.");
            }
            Err(error) if error.kind == BackendErrorKind::NoSuchPool => {}
            Err(error) => {
                debug!(%pool, key, %error, "An address is released later.");
                return Err(AGAIN);
            }
        }
        self.state().held.remove(place);
        Ok(())
    }

    /// Whether a Service asks for this address, whether it is read or not.
    async fn is_used(&self, place: &PoolKey, shared: &Shared) -> Result<bool, KubernetesError> {
        // A key that is not of this form was not made here.
        let Some(name) = self.service_of(&place.1) else { return Ok(true) };
        let path = services().object_path(Some(&name.namespace), &name.name);
        let object: Object = match shared.cluster.get(&path).await {
            Ok(object) => object,
            Err(KubernetesError::NotFound(_)) => return Ok(false),
            Err(error) => return Err(error),
        };
        let service = service::read(&object).map_err(KubernetesError::Malformed)?;
        let keys = service.balancer_wish().map(|wish| self.keys(&name, wish)).unwrap_or_default();
        Ok(keys.iter().any(|(pool, key)| (&pool.name, key) == (&place.0, &place.1)))
    }

    /// The Service in a key: `SOURCE/NAMESPACE/SERVICE/FAMILY`.
    fn service_of(&self, key: &str) -> Option<ObjectName> {
        let rest = key.strip_prefix(self.source.as_str())?.strip_prefix('/')?;
        let (name, _) = rest.rsplit_once('/')?;
        let (namespace, name) = name.split_once('/')?;
        Some(ObjectName::new(namespace, name))
    }
}
