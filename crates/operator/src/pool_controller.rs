//! Carries out what pools need: their finalizer, their status, and the wait for the last address of one that is being deleted.

use std::{sync::Arc, time::Duration};

use netstead_wire::kubernetes::KubernetesError;
use serde_json::{Value, json};
use tracing::{debug, info};

use crate::{
    claim_controller::Again,
    conditions::Ready,
    events::EventKind,
    external::ExternalState,
    external_controller::remember_installation,
    object::{PROTECT_POOL, PoolKey, PoolObject},
    pool_index::Counts,
    shared::Shared,
    world::{Pool, World},
};

/// The status of a pool is written this often at most.
const PACE: Duration = Duration::from_secs(1);

/// How many addresses an event names.
const MOST_NAMED: usize = 20;

/// The next thing to do for a pool.
#[derive(Debug)]
enum PoolStep {
    Rest,
    Wait(Duration),
    AddFinalizer(Arc<PoolObject>),
    RemoveFinalizer(Arc<PoolObject>),
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
}

impl World {
    fn next_of_pool(&mut self, key: &PoolKey, now: Duration) -> PoolStep {
        let admitted = |object: &PoolObject| self.admits(&object.metadata.labels);
        let object = self.pools.get(key).and_then(|pool| pool.object.clone());
        let Some(object) = object.filter(|object| admitted(object)) else { return PoolStep::Rest };
        let Some(pool) = self.pools.get_mut(key) else { return PoolStep::Rest };
        let metadata = &object.metadata;
        if metadata.is_paused() {
            return PoolStep::Rest;
        }
        if metadata.is_deleting() && !pool.index.is_in_use() {
            let ours = metadata.has_finalizer(PROTECT_POOL);
            return if ours { PoolStep::RemoveFinalizer(object) } else { PoolStep::Rest };
        }
        if !metadata.is_deleting() && !metadata.has_finalizer(PROTECT_POOL) {
            return PoolStep::AddFinalizer(object);
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
        let network = pool.external.as_ref().and_then(ExternalState::network);
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

impl PoolStatus {
    /// The fields of the in-cluster provider, and the conditions and counts beside them.
    fn to_json(&self, before: &Value, now: jiff::Timestamp) -> Value {
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
        let Counts { total, used, free, out_of_range, .. } = self.counts;
        let shown = |count: u128| i64::try_from(count).unwrap_or(i64::MAX);
        json!({ "total": shown(total), "used": shown(used), "free": shown(free), "outOfRange": shown(out_of_range) })
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
            && ["total", "used", "free", "outOfRange"].into_iter().all(same)
            && conditions.is_some_and(|conditions| self.ready.is_said_by(conditions, self.generation))
    }
}

impl Shared {
    pub(crate) async fn reconcile_pool(&self, key: &PoolKey) -> Result<Again, KubernetesError> {
        let resource = key.kind.resource();
        let asks_again = if key.kind.is_external() { self.refresh_external(key).await? } else { None };
        let step = self.world().next_of_pool(key, self.clock.monotonic());
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
                let version = &object.metadata.resource_version;
                self.api.patch(&resource, &key.name, version, finalizers(&object, false)).await?;
                info!(pool = %key, "A pool was let go: none of its addresses is held.");
                Ok(None)
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
