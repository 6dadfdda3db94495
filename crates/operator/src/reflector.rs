//! [`Reflector`]: keeps the objects of one kind in the [`World`] as the API server has them, by a list and a watch.
//!
//! 1. All objects are listed, in pages, as of one version.
//! 2. Changes after that version are watched. A watch that ends goes on from the last version that was seen.
//! 3. A version that the server has forgotten (410) leads back to step 1.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::StreamExt as _;
use netstead_wire::kubernetes::{KubernetesError, Listing, Page, Resource, Selection, Watched};
use serde::de::DeserializeOwned;
use tokio::time::sleep;
use tracing::{debug, info, warn};

use crate::{
    object::{AddressObject, Claim, ClusterObject, Metadata, ObjectName, PoolKey, PoolObject},
    shared::Shared,
    world::{WorkKey, World},
};

/// How many objects are listed at once.
pub(crate) const PAGE: u32 = 500;
/// How often a kind that is not there is looked for.
const LOOK_AGAIN: Duration = Duration::from_secs(10);
/// The pause after a failure: it doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// An object with metadata.
pub(crate) trait Reflected: DeserializeOwned + Clone + Send + 'static {
    fn metadata(&self) -> &Metadata;
}

macro_rules! reflected {
    ($($object:ty),*) => {
        $(impl Reflected for $object {
            fn metadata(&self) -> &Metadata {
                &self.metadata
            }
        })*
    };
}

reflected!(Claim, AddressObject, ClusterObject, PoolObject);

type Put<T> = Box<dyn Fn(&mut World, T) -> Vec<WorkKey> + Send + Sync>;
type Remove = Box<dyn Fn(&mut World, &ObjectName) -> Vec<WorkKey> + Send + Sync>;

pub(crate) struct Reflector<T> {
    resource: Resource,
    selection: Selection,
    shared: Arc<Shared>,
    put: Put<T>,
    remove: Remove,
    /// Without it nothing can work.
    required: bool,
    /// Objects that were put and not removed.
    known: HashSet<ObjectName>,
    state: Arc<ReflectorState>,
}

/// The part of a reflector that others see.
#[derive(Debug)]
pub(crate) struct ReflectorState {
    pub(crate) plural: String,
    synced: AtomicBool,
}

impl ReflectorState {
    /// Whether the objects were listed once.
    pub(crate) fn is_synced(&self) -> bool {
        self.synced.load(Ordering::Acquire)
    }
}

impl<T: Reflected> Reflector<T> {
    fn new(shared: &Arc<Shared>, resource: Resource, put: Put<T>, remove: Remove) -> Self {
        let state = ReflectorState { plural: resource.plural.clone(), synced: AtomicBool::new(false) };
        let namespace = shared.namespace.clone().filter(|_| resource.namespaced);
        Self {
            resource,
            selection: Selection { namespace, labels: None },
            shared: Arc::clone(shared),
            put,
            remove,
            required: false,
            known: HashSet::new(),
            state: Arc::new(state),
        }
    }

    pub(crate) fn state(&self) -> Arc<ReflectorState> {
        Arc::clone(&self.state)
    }

    /// Goes on until it is dropped.
    pub(crate) async fn run(mut self) {
        let mut pause = FIRST_PAUSE;
        loop {
            match self.round(&mut pause).await {
                Ok(()) => {}
                Err(KubernetesError::Expired) => debug!(plural = self.state.plural, "The list begins anew."),
                Err(KubernetesError::NotFound(_)) if !self.required => {
                    self.replace(Vec::new());
                    sleep(LOOK_AGAIN).await;
                }
                Err(error) => {
                    let plural = self.state.plural.as_str();
                    warn!(plural, %error, retry_in = ?pause, "Objects cannot be seen.");
                    sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    async fn round(&mut self, pause: &mut Duration) -> Result<(), KubernetesError> {
        let mut version = self.list().await?;
        *pause = FIRST_PAUSE;
        loop {
            let begun = self.shared.clock.monotonic();
            match self.watch(&mut version).await {
                Ok(()) => *pause = FIRST_PAUSE,
                Err(error @ (KubernetesError::Expired | KubernetesError::NotFound(_))) => return Err(error),
                Err(error) => {
                    info!(plural = self.state.plural, %error, "A watch broke.");
                    sleep(*pause).await;
                    *pause = (*pause * 2).min(LONGEST_PAUSE);
                }
            }
            // A server that ends every watch at once must not keep a core busy.
            if self.shared.clock.monotonic().saturating_sub(begun) < FIRST_PAUSE {
                sleep(FIRST_PAUSE).await;
            }
        }
    }

    async fn list(&mut self) -> Result<String, KubernetesError> {
        let mut objects = Vec::new();
        let mut next: Option<String> = None;
        loop {
            let listing = Listing { limit: PAGE, next: next.as_deref() };
            let page: Page<T> =
                self.shared.api.cluster.list(&self.resource, &self.selection, &listing).await?;
            objects.extend(page.items);
            if page.metadata.next.is_empty() {
                self.replace(objects);
                return Ok(page.metadata.resource_version);
            }
            next = Some(page.metadata.next);
        }
    }

    fn replace(&mut self, objects: Vec<T>) {
        let mut wake = Vec::new();
        {
            let mut world = self.shared.world();
            let mut gone = std::mem::take(&mut self.known);
            for object in objects {
                let name = object.metadata().key();
                gone.remove(&name);
                self.known.insert(name);
                wake.extend((self.put)(&mut world, object));
            }
            for name in gone {
                wake.extend((self.remove)(&mut world, &name));
            }
        }
        self.state.synced.store(true, Ordering::Release);
        self.shared.queue.add_all(wake);
        self.shared.synced.notify_waiters();
    }

    async fn watch(&mut self, version: &mut String) -> Result<(), KubernetesError> {
        let mut events = self.shared.api.cluster.watch::<T>(&self.resource, &self.selection, version).await?;
        while let Some(event) = events.next().await {
            let wake = match event? {
                Watched::Bookmark(mark) => {
                    *version = mark;
                    continue;
                }
                Watched::Changed(object) => {
                    version.clone_from(&object.metadata().resource_version);
                    self.known.insert(object.metadata().key());
                    (self.put)(&mut self.shared.world(), object)
                }
                Watched::Deleted(object) => {
                    version.clone_from(&object.metadata().resource_version);
                    let name = object.metadata().key();
                    self.known.remove(&name);
                    (self.remove)(&mut self.shared.world(), &name)
                }
            };
            self.shared.queue.add_all(wake);
        }
        Ok(())
    }
}

pub(crate) fn claims(shared: &Arc<Shared>) -> Reflector<Claim> {
    let put = |world: &mut World, claim: Claim| {
        if world.admits(&claim.metadata.labels) {
            world.put_claim(claim)
        } else {
            world.remove_claim(&claim.metadata.key())
        }
    };
    let remove = |world: &mut World, name: &ObjectName| world.remove_claim(name);
    let reflector = Reflector::new(shared, crate::api::claims(), Box::new(put), Box::new(remove));
    Reflector { required: true, ..reflector }
}

/// Addresses of every pool are seen, whatever their labels: each of them holds its address. So those of a pool of the whole
/// cluster are seen in all namespaces.
pub(crate) fn addresses(shared: &Arc<Shared>, everywhere: bool) -> Reflector<AddressObject> {
    let put = |world: &mut World, object: AddressObject| world.put_address(object);
    let remove = |world: &mut World, name: &ObjectName| world.remove_address(name);
    let reflector = Reflector::new(shared, crate::api::addresses(), Box::new(put), Box::new(remove));
    let namespace = reflector.selection.namespace.clone().filter(|_| !everywhere);
    Reflector { required: true, selection: Selection { namespace, labels: None }, ..reflector }
}

pub(crate) fn clusters(shared: &Arc<Shared>) -> Reflector<ClusterObject> {
    let put = |world: &mut World, cluster: ClusterObject| world.put_cluster(&cluster);
    let remove = |world: &mut World, name: &ObjectName| world.remove_cluster(name);
    Reflector::new(shared, crate::api::clusters(), Box::new(put), Box::new(remove))
}

pub(crate) fn pools(shared: &Arc<Shared>, kind: crate::PoolKind) -> Reflector<PoolObject> {
    let put = move |world: &mut World, pool: PoolObject| {
        let key = PoolKey { kind, name: pool.metadata.key() };
        world.put_pool(&key, pool)
    };
    let remove =
        move |world: &mut World, name: &ObjectName| world.remove_pool(&PoolKey { kind, name: name.clone() });
    Reflector::new(shared, kind.resource(), Box::new(put), Box::new(remove))
}
