//! [`Shared`]: all that reflectors and workers of one run have in common.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use netstead_model::Clock;
use tokio::sync::Notify;

use crate::{
    ExternalPools,
    api::Api,
    metrics::Metrics,
    naming::OwnerKinds,
    work_queue::WorkQueue,
    world::{WorkKey, World},
};

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) api: Api,
    pub(crate) clock: Arc<dyn Clock>,
    /// The only namespace that is looked at; all without it.
    pub(crate) namespace: Option<String>,
    world: Mutex<World>,
    pub(crate) queue: WorkQueue<WorkKey>,
    /// A reflector has listed its objects.
    pub(crate) synced: Notify,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) external: Arc<dyn ExternalPools>,
    pub(crate) owner_kinds: OwnerKinds,
}

impl Shared {
    pub(crate) fn new(
        api: Api,
        clock: Arc<dyn Clock>,
        namespace: Option<String>,
        world: World,
        external: Arc<dyn ExternalPools>,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            api,
            namespace,
            world: Mutex::new(world),
            queue: WorkQueue::new(Arc::clone(&clock)),
            clock,
            synced: Notify::new(),
            metrics,
            external,
            owner_kinds: OwnerKinds::default(),
        }
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
