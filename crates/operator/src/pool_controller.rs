//! Carries out what pools need: their finalizer, their status, and the wait for the last address of one that is being deleted.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use netstead_wire::kubernetes::{KubernetesError, Listing, Page, Selection};
use serde_json::{Value, json};
use tracing::{debug, info};

use crate::{
    claim_controller::Again,
    conditions::Ready,
    events::EventKind,
    external::ExternalState,
    external_controller::remember_installation,
    object::{AddressObject, COOLING, PROTECT_POOL, PoolKey, PoolObject},
    pool_index::Counts,
    reflector::PAGE,
    shared::Shared,
    world::{Pool, WorkKey, World},
};

/// The status of a pool is written this often at most.
const PACE: Duration = Duration::from_secs(1);

/// Rests that are over are taken out of the annotation this often, if nothing else is written into it.
const TIDY: Duration = Duration::from_secs(10);

/// How many addresses an event names.
const MOST_NAMED: usize = 20;

/// The next thing to do for a pool.
#[derive(Debug)]
enum PoolStep {
    Rest,
    Wait(Duration),
    AddFinalizer(Arc<PoolObject>),
    RemoveFinalizer(Arc<PoolObject>),
    /// Write down which addresses rest; the claims that had them are released afterwards.
    WriteCooling(Arc<PoolObject>, String),
    WriteStatus(Arc<PoolObject>, Box<PoolStatus>),
}

/// The status of a pool as it is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PoolStatus {
    counts: Counts,
    ready: Ready,
    generation: i64,
    /// Gateway and length of the network, of a pool in another system.
    network: Option<(String, String)>,
}

/// The status that was written last. A definition that is not ours may not have all of its fields, so what the server shows is
/// not compared alone.
#[derive(Debug, Default)]
pub(crate) struct WrittenStatus {
    status: Option<PoolStatus>,
    at: Option<Duration>,
    /// The object that it was written on.
    uid: String,
    cooling_at: Option<Duration>,
}

impl World {
    fn next_of_pool(&mut self, key: &PoolKey, now: Duration, wall: Timestamp) -> PoolStep {
        let admitted = |object: &PoolObject| self.admits(&object.metadata.labels);
        let object = self.pools.get(key).and_then(|pool| pool.object.clone());
        let Some(object) = object.filter(|object| admitted(object)) else { return PoolStep::Rest };
        let Some(pool) = self.pools.get_mut(key) else { return PoolStep::Rest };
        let metadata = &object.metadata;
        pool.index.warm_up(wall);
        if metadata.is_paused() {
            return PoolStep::Rest;
        }
        // A pool that was moved is in use elsewhere by now.
        if metadata.is_deleting() && (!pool.is_in_use() || metadata.is_deleted_for_move()) {
            let ours = metadata.has_finalizer(PROTECT_POOL);
            return if ours { PoolStep::RemoveFinalizer(object) } else { PoolStep::Rest };
        }
        if !metadata.is_deleting() && !metadata.has_finalizer(PROTECT_POOL) {
            return PoolStep::AddFinalizer(object);
        }
        if let Some(step) = pool.cooling_step(&object, now) {
            return step;
        }
        let ready = match &pool.problem {
            _ if metadata.is_deleting() => {
                Ready::no("Deleting", "addresses of the pool are held; it stays until they are released")
            }
            problem => match (&pool.external, problem) {
                (Some(external), _) => external.ready.clone(),
                // It was not asked yet.
                (None, _) if key.kind.is_external() => return PoolStep::Rest,
                (None, Some(problem)) => Ready::no("InvalidSpec", problem),
                (None, None) => Ready::yes("PoolReady"),
            },
        };
        let network =
            pool.external.as_ref().filter(|_| key.kind.has_one_network()).and_then(ExternalState::network);
        let status = PoolStatus { counts: pool.counts(), ready, generation: metadata.generation, network };
        let written = &pool.written;
        let same = written.uid == metadata.uid && written.status.as_ref() == Some(&status);
        if same || status.is_shown_by(&object.status) {
            return PoolStep::Rest;
        }
        if let Some(at) = written.at
            && now.saturating_sub(at) < PACE
        {
            return PoolStep::Wait(PACE.saturating_sub(now.saturating_sub(at)));
        }
        pool.written.at = Some(now);
        PoolStep::WriteStatus(object, Box::new(status))
    }
}

impl Pool {
    /// Writes down rests that began, at most once a second, and takes out those that are over.
    fn cooling_step(&mut self, object: &Arc<PoolObject>, now: Duration) -> Option<PoolStep> {
        let wanted = self.index.cooling();
        if object.metadata.is_deleting() || *wanted == self.written_cooling {
            return None;
        }
        let is_tidying = self.written_cooling.has_all_of(wanted) && !wanted.is_empty();
        let pace = if is_tidying { TIDY } else { PACE };
        let since = self.written.cooling_at.map(|at| now.saturating_sub(at));
        if let Some(since) = since.filter(|since| *since < pace) {
            // A status that is due does not wait for it.
            return (!is_tidying).then(|| PoolStep::Wait(pace.saturating_sub(since)));
        }
        let text = wanted.text();
        self.written.cooling_at = Some(now);
        Some(PoolStep::WriteCooling(Arc::clone(object), text))
    }

    /// When a rest ends next.
    fn next_end_of_rest(&self, wall: Timestamp) -> Again {
        let left = self.index.cooling().next()?.saturating_sub(wall.as_second());
        Some(Duration::from_secs(u64::try_from(left).unwrap_or_default().max(1)))
    }
}

impl PoolStatus {
    /// The fields of the in-cluster provider, and the conditions and counts beside them.
    fn to_json(&self, before: &Value, now: Timestamp) -> Value {
        let none = Vec::new();
        let conditions = before.get("conditions").and_then(Value::as_array).unwrap_or(&none);
        let mut status = json!({
            "ipAddresses": self.addresses(),
            "conditions": self.ready.among(conditions, self.generation, now),
        });
        if let (Some((gateway, mask)), Some(fields)) = (&self.network, status.as_object_mut()) {
            fields.insert("gateway".to_owned(), Value::from(gateway.as_str()));
            fields.insert("mask".to_owned(), Value::from(mask.as_str()));
        }
        status
    }

    fn addresses(&self) -> Value {
        let Counts { total, used, free, out_of_range, cooling, .. } = self.counts;
        let shown = |count: u128| i64::try_from(count).unwrap_or(i64::MAX);
        json!({ "total": shown(total), "used": shown(used), "free": shown(free), "outOfRange": shown(out_of_range),
            "cooling": shown(cooling) })
    }

    fn is_shown_by(&self, status: &Value) -> bool {
        let conditions = status.get("conditions").and_then(Value::as_array);
        let counts = status.get("ipAddresses").cloned().unwrap_or_default();
        let wanted = self.addresses();
        // A zero may be left out.
        let same = |field: &str| {
            let number = |value: &Value| value.get(field).and_then(Value::as_i64).unwrap_or_default();
            number(&counts) == number(&wanted)
        };
        let shown = |field: &str| status.get(field).and_then(Value::as_str).unwrap_or_default();
        let network = self.network.as_ref();
        network.is_none_or(|(gateway, mask)| shown("gateway") == gateway && shown("mask") == mask)
            && counts.is_object()
            && ["total", "used", "free", "outOfRange", "cooling"].into_iter().all(same)
            && conditions.is_some_and(|conditions| self.ready.is_said_by(conditions, self.generation))
    }
}

impl Shared {
    pub(crate) async fn reconcile_pool(&self, key: &PoolKey) -> Result<Again, KubernetesError> {
        let resource = key.kind.resource();
        // A pool that is not to be touched may still be asked for claims that are ours.
        let asks = key.kind.is_external() && {
            let world = self.world();
            let pool = world.pool(key);
            let is_ours = |object: &Arc<PoolObject>| world.admits(&object.metadata.labels);
            pool.is_some_and(|pool| {
                pool.object.as_ref().is_some_and(is_ours) || pool.claims().next().is_some()
            })
        };
        let asks_again = if asks { self.refresh_external(key).await? } else { None };
        let (step, asks_again, woken) = {
            let (now, wall) = (self.clock.monotonic(), self.clock.wall());
            let mut world = self.world();
            let step = world.next_of_pool(key, now, wall);
            let pool = world.pools.get_mut(key);
            let woken = pool.as_ref().map_or_else(Again::default, |pool| pool.next_end_of_rest(wall));
            let again = asks_again.into_iter().chain(woken).min();
            let woken = pool.map(|pool| pool.index.take_woken()).unwrap_or_default();
            (step, again, woken)
        };
        self.queue.add_all(woken.into_iter().map(WorkKey::Claim));
        self.measure(key);
        let finalizers = |object: &PoolObject, ours: bool| {
            let others = object.metadata.finalizers.iter().filter(|one| *one != PROTECT_POOL).cloned();
            let all: Vec<String> = others.chain(ours.then(|| PROTECT_POOL.to_owned())).collect();
            json!({ "metadata": { "finalizers": all } })
        };
        match step {
            PoolStep::Rest => Ok(asks_again),
            PoolStep::Wait(pause) => Ok(Some(pause)),
            PoolStep::AddFinalizer(object) => {
                let version = &object.metadata.resource_version;
                let mut patch = finalizers(&object, true);
                if let Some(metadata) = patch.get_mut("metadata").and_then(Value::as_object_mut) {
                    metadata.insert("annotations".to_owned(), remember_installation(key, &object));
                }
                self.api.patch(&resource, &key.name, version, patch).await.map(|()| asks_again)
            }
            PoolStep::RemoveFinalizer(object) => {
                let moves = object.metadata.is_deleted_for_move();
                if key.kind.is_external()
                    && !moves
                    && let Some(again) = self.give_back_unseen(key).await
                {
                    return Ok(Some(again));
                }
                if !moves && self.is_held_at_server(key).await? {
                    return Ok(Some(PACE));
                }
                let version = &object.metadata.resource_version;
                self.api.patch(&resource, &key.name, version, finalizers(&object, false)).await?;
                info!(pool = %key, "A pool was let go: none of its addresses is held.");
                Ok(None)
            }
            PoolStep::WriteCooling(object, text) => {
                let value = Some(text).filter(|text| !text.is_empty());
                let patch = json!({ "metadata": { "annotations": { COOLING: value } } });
                let version = &object.metadata.resource_version;
                let fresh: PoolObject = self.api.patch_to(&resource, &key.name, version, patch).await?;
                // The status comes next, and the releases that waited for this.
                let wake = {
                    let mut world = self.world();
                    let known = world
                        .pool(key)
                        .and_then(|pool| pool.object.as_ref())
                        .map(|pool| pool.metadata.version());
                    if known.is_some_and(|known| known < fresh.metadata.version()) {
                        world.put_pool(key, fresh)
                    } else {
                        vec![WorkKey::Pool(key.clone())]
                    }
                };
                self.queue.add_all(wake);
                Ok(asks_again)
            }
            PoolStep::WriteStatus(object, status) => {
                let patch = json!({ "status": status.to_json(&object.status, self.clock.wall()) });
                // Without a version: the numbers of the last writer count.
                self.api.patch_status(&resource, &key.name, "", patch).await?;
                let before = {
                    let mut world = self.world();
                    let Some(pool) = world.pools.get_mut(key) else { return Ok(None) };
                    pool.written.uid.clone_from(&object.metadata.uid);
                    pool.written.status.replace((*status).clone())
                };
                self.tell_of_change(key, &object, before.as_ref(), &status).await;
                Ok(asks_again)
            }
        }
    }

    /// Whether the API server has an address of the pool now. A watch may be late, and a pool that is let go does not come back.
    async fn is_held_at_server(&self, key: &PoolKey) -> Result<bool, KubernetesError> {
        let namespace = Some(key.name.namespace.clone()).filter(|_| key.kind.is_namespaced());
        let selection = Selection { namespace, labels: None };
        let mut next: Option<String> = None;
        loop {
            let listing = Listing { limit: PAGE, next: next.as_deref() };
            let page: Page<AddressObject> =
                self.api.cluster.list(&crate::api::addresses(), &selection, &listing).await?;
            if page.items.iter().any(|address| address.pool().as_ref() == Some(key)) {
                return Ok(true);
            }
            if page.metadata.next.is_empty() {
                return Ok(false);
            }
            next = Some(page.metadata.next);
        }
    }

    /// Makes an event of what a person should know of a pool.
    async fn tell_of_change(
        &self,
        key: &PoolKey,
        object: &PoolObject,
        before: Option<&PoolStatus>,
        now: &PoolStatus,
    ) {
        let resource = key.kind.resource();
        let subject = (&resource, &object.metadata);
        if !now.ready.good && before.is_none_or(|before| before.ready != now.ready) {
            self.event(subject, EventKind::Warning, now.ready.reason, &now.ready.message).await;
        }
        let is_full = |status: &PoolStatus| status.counts.free == 0 && status.counts.total > 0;
        if is_full(now) && before.is_some_and(|before| !is_full(before)) {
            let message = format!("all {} addresses are held", now.counts.total);
            self.event(subject, EventKind::Warning, "PoolExhausted", &message).await;
        }
        if before.is_some_and(|before| before.counts.out_of_range < now.counts.out_of_range) {
            let outside = self.world().pool(key).map(|pool| pool.index.outside()).unwrap_or_default();
            let some: Vec<String> = outside.iter().take(MOST_NAMED).map(ToString::to_string).collect();
            let more = outside.len().saturating_sub(some.len());
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let message = format!("held, and not in the pool any more: {}{more}", some.join(", "));
            self.event(subject, EventKind::Warning, "OutOfRange", &message).await;
        }
        debug!(pool = %key, counts = ?now.counts, "The status of a pool was written.");
    }

    fn measure(&self, key: &PoolKey) {
        let counts = {
            let world = self.world();
            let pool = world.pool(key).filter(|pool| pool.object.is_some());
            pool.map(Pool::counts)
        };
        self.metrics.pool(key, counts);
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        PoolKind,
        object::{AddressObject, ObjectName},
    };

    use super::*;

    fn object<T: serde::de::DeserializeOwned>(value: Value) -> T {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn the_status_of_a_pool_is_written_once_a_second_at_most() {
        let kind = PoolKind::InClusterIpPool;
        let key = PoolKey { kind, name: ObjectName::new("shop", "lan") };
        let mut world = World::new(vec![kind], None);
        let pool = json!({
            "metadata": { "name": "lan", "namespace": "shop", "uid": "u", "resourceVersion": "1", "finalizers": [PROTECT_POOL] },
            "spec": { "addresses": ["10.0.0.0/16"], "prefix": 16 },
        });
        world.put_pool(&key, object(pool));
        let wall = Timestamp::UNIX_EPOCH;
        let (mut written, mut seen) = (Vec::new(), 0_u64);
        // An address every 10 ms, and the pool is looked at after each.
        for number in 0..1000_u64 {
            let now = Duration::from_millis(number * 10);
            let address = json!({
                "metadata": { "name": format!("a{number}"), "namespace": "shop", "resourceVersion": "2" },
                "spec": { "address": format!("10.0.{}.{}", 1 + number / 200, 1 + number % 200), "claimRef": { "name": "x" },
                    "poolRef": { "apiGroup": crate::kinds::GROUP, "kind": kind.as_str(), "name": "lan" } },
            });
            world.put_address(object::<AddressObject>(address));
            seen += 1;
            match world.next_of_pool(&key, now, wall) {
                PoolStep::WriteStatus(_, status) => written.push((now, status.counts.used)),
                PoolStep::Wait(pause) => {
                    let next = written.last().map(|(at, _)| *at + PACE);
                    assert_eq!(Some(now + pause), next);
                }
                step => panic!("{step:?}"),
            }
        }
        assert_eq!((written.len(), seen), (10, 1000));
        assert!(
            written
                .iter()
                .zip(written.iter().skip(1))
                .all(|(one, next)| next.0.saturating_sub(one.0) >= PACE)
        );
        // Each has the numbers of its moment.
        assert_eq!(written.last().map(|(_, used)| *used), Some(901));
    }
}
