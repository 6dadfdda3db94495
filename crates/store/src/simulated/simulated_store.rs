//! The store as one process has it.

use std::{
    future::pending,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use async_trait::async_trait;
use tokio::{
    sync::{oneshot, watch},
    time::{sleep, timeout},
};

use super::{Network, World, message_queue::Direction, server::Lead};
use crate::{
    Commit, Committed, Entry, Epoch, Health, Snapshot, Store, StoreError, Version, Watch,
    memory::MemorySnapshot, watch::channel,
};

/// The pause between two looks whether the lead is free.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// One process' way to the store of a [`Network`].
#[derive(Debug)]
pub struct SimulatedStore {
    way: Arc<Line>,
    health: Arc<watch::Sender<Health>>,
    leading: Arc<Mutex<Option<Version>>>,
    keeping: AtomicBool,
}

/// A caller and its connection.
#[derive(Debug)]
struct Line {
    network: Network,
    machine: usize,
    process: u64,
    closed: AtomicBool,
}

/// Why there is no answer.
enum Silence {
    /// The question was never sent.
    Refused,
    /// None came in time.
    Lost,
}

impl SimulatedStore {
    pub(super) fn new(network: Network, machine: usize, process: u64) -> Self {
        let way = Arc::new(Line { network, machine, process, closed: AtomicBool::new(false) });
        let health = Arc::new(watch::Sender::new(Health::Ready));
        Self { way, health, leading: Arc::default(), keeping: AtomicBool::new(false) }
    }

    fn fence(&self) -> Option<Version> {
        *self.leading.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    /// Sends a question and waits for the answer.
    async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut World) -> T + Send + 'static,
    ) -> Result<T, Silence> {
        let (answer, answered) = oneshot::channel();
        {
            let mut world = self.network.lock();
            let chances = world.weather.refused;
            if self.closed.load(Relaxed) || world.dice.hits(chances) {
                return Err(Silence::Refused);
            }
            let machine = self.machine;
            let there = Box::new(move |world: &mut World| {
                let value = work(world);
                let back = Box::new(move |_: &mut World| drop(answer.send(value)));
                world.send(machine, Direction::Back, back);
            });
            world.send(machine, Direction::There, there);
        }
        // Who lost the question or the answer does not know: only time tells.
        let work = async {
            match answered.await {
                Ok(value) => value,
                Err(_) => pending().await,
            }
        };
        timeout(self.network.patience, work).await.map_err(|_| Silence::Lost)
    }

    /// As [`Line::ask`] for what changes nothing.
    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut World) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        self.ask(work).await.map_err(|_| unavailable("the store does not answer"))
    }
}

fn unavailable(reason: &str) -> StoreError {
    StoreError::Unavailable { reason: reason.into() }
}

#[async_trait]
impl Store for SimulatedStore {
    async fn get(&self, key: &[u8]) -> Result<Option<Entry>, StoreError> {
        let (machine, key) = (self.way.machine, key.to_vec());
        self.way.read(move |world| world.read(machine, &key)).await
    }

    async fn snapshot(&self) -> Result<Arc<dyn Snapshot>, StoreError> {
        let machine = self.way.machine;
        let (keys, revision) = self.way.read(move |world| world.view(machine)).await?;
        Ok(Arc::new(FarSnapshot { way: Arc::clone(&self.way), keys: MemorySnapshot { keys }, revision }))
    }

    async fn own_snapshot(&self) -> Result<Arc<dyn Snapshot>, StoreError> {
        let keys = self.way.network.lock().server.copy(self.way.machine);
        Ok(Arc::new(MemorySnapshot { keys }))
    }

    async fn commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        commit.validate()?;
        let (machine, fence) = (self.way.machine, self.fence());
        let work = move |world: &mut World| {
            let fence = fence.filter(|_| world.rules.fenced);
            world.commit(machine, commit, fence)
        };
        match self.way.ask(work).await {
            Ok(outcome) => outcome,
            Err(Silence::Refused) => Err(unavailable("the store cannot be reached")),
            Err(Silence::Lost) => {
                Err(StoreError::Unknown { reason: "the store did not answer in time".into() })
            }
        }
    }

    async fn watch(&self, prefix: &[u8]) -> Result<Watch, StoreError> {
        let (watcher, watch) = channel(prefix);
        let Line { machine, process, .. } = *self.way;
        self.way.read(move |world| world.server.watch(machine, process, watcher)).await?;
        Ok(watch)
    }

    async fn lead(&self) -> Result<Epoch, StoreError> {
        let Line { machine, process, .. } = *self.way;
        loop {
            if let Some(Lead { epoch, fence }) =
                self.way.read(move |world| world.lead(machine, process)).await??
            {
                *self.leading.lock().unwrap_or_else(PoisonError::into_inner) = Some(fence);
                self.health.send_replace(Health::Ready);
                if !self.keeping.swap(true, Relaxed) {
                    let (way, health) = (Arc::downgrade(&self.way), Arc::clone(&self.health));
                    tokio::spawn(keep_lease_alive(way, health));
                }
                return Ok(Epoch(epoch));
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    fn health(&self) -> Health {
        self.health.borrow().clone()
    }

    fn health_changes(&self) -> watch::Receiver<Health> {
        self.health.subscribe()
    }

    async fn close(&self) {
        self.way.closed.store(true, Relaxed);
        let mut world = self.way.network.lock();
        world.server.end_watches(self.way.process);
        world.server.resign(self.way.process);
        self.health.send_replace(Health::Failed { reason: "the store is closed".into() });
    }
}

/// Keeps the lease while the process lives, and says so when it was lost.
async fn keep_lease_alive(way: Weak<Line>, health: Arc<watch::Sender<Health>>) {
    loop {
        let Some(way) = way.upgrade().filter(|way| !way.closed.load(Relaxed)) else { return };
        let pause = way.network.lock().rules.lease.unwrap_or(Duration::from_secs(3)) / 3;
        let process = way.process;
        let asked = way.read(move |world| world.renew(process)).await;
        drop(way);
        if matches!(asked, Ok(false)) {
            health.send_if_modified(|health| {
                let fine = *health == Health::Ready;
                *health = Health::Failed { reason: "another Netstead leads this store now".into() };
                fine
            });
        }
        sleep(pause).await;
    }
}

/// A moment of the store that is read over the network, page by page.
#[derive(Debug)]
struct FarSnapshot {
    way: Arc<Line>,
    keys: MemorySnapshot,
    revision: u64,
}

impl FarSnapshot {
    async fn still_there(&self) -> Result<(), StoreError> {
        let revision = self.revision;
        if self.way.read(move |world| world.server.is_compacted(revision)).await? {
            return Err(unavailable("the moment was compacted meanwhile: begin anew"));
        }
        Ok(())
    }
}

#[async_trait]
impl Snapshot for FarSnapshot {
    async fn get(&self, key: &[u8]) -> Result<Option<Entry>, StoreError> {
        self.still_there().await?;
        self.keys.get(key).await
    }

    async fn range(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        self.still_there().await?;
        self.keys.range(prefix, after, limit).await
    }

    async fn range_back(
        &self,
        prefix: &[u8],
        before: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        self.still_there().await?;
        self.keys.range_back(prefix, before, limit).await
    }
}
