//! The store that tests stand on: memory, unless they are told otherwise.
//!
//! A test asks [`store`] for one that is new and empty. `stores.rs` runs the same tests again where that is a directory,
//! an etcd, or a cluster of nodes.

mod raft_clusters;

use std::{
    cell::RefCell,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
};

use netstead_store::{EtcdOptions, EtcdStore, FaultyStore, LocalStore, MemoryStore, Store};
use netstead_testkit::Etcd;
use tempfile::TempDir;

use self::raft_clusters::RaftClusters;

/// A place where stores can be made.
pub(crate) struct StoreFactory {
    kind: Kind,
    made: AtomicU32,
}

enum Kind {
    Memory,
    Local(TempDir),
    Etcd(Etcd),
    Raft(RaftClusters),
}

thread_local! {
    static HERE: RefCell<Arc<StoreFactory>> = RefCell::new(StoreFactory::memory());
}

impl StoreFactory {
    fn of(kind: Kind) -> Arc<Self> {
        Arc::new(Self { kind, made: AtomicU32::new(0) })
    }

    pub fn memory() -> Arc<Self> {
        Self::of(Kind::Memory)
    }

    pub fn local() -> Arc<Self> {
        Self::of(Kind::Local(tempfile::tempdir().unwrap()))
    }

    /// `None`, and the test is skipped, where there is no etcd.
    pub fn etcd(members: usize) -> Option<Arc<Self>> {
        Some(Self::of(Kind::Etcd(Etcd::start(members)?)))
    }

    pub fn raft() -> Arc<Self> {
        Self::of(Kind::Raft(RaftClusters::new()))
    }

    /// One new and empty store.
    pub async fn store(&self) -> Arc<dyn Store> {
        self.handles(1).await.remove(0)
    }

    /// One new and empty store, as so many processes have it.
    pub async fn handles(&self, count: usize) -> Vec<Arc<dyn Store>> {
        let number = self.made.fetch_add(1, Relaxed);
        match &self.kind {
            Kind::Memory => {
                std::iter::repeat_n(Arc::new(MemoryStore::new()) as Arc<dyn Store>, count).collect()
            }
            Kind::Local(dir) => {
                // Only one process can have it, with everything in it.
                let store = LocalStore::open(&dir.path().join(number.to_string())).await.unwrap();
                std::iter::repeat_n(Arc::new(store) as Arc<dyn Store>, count).collect()
            }
            Kind::Etcd(etcd) => {
                let prefix = format!("/test/{number}/");
                let options = EtcdOptions { prefix, ..EtcdOptions::new(etcd.endpoints()) };
                let mut stores: Vec<Arc<dyn Store>> = Vec::new();
                for _ in 0..count {
                    stores.push(Arc::new(EtcdStore::open(&options).await.unwrap()));
                }
                stores
            }
            Kind::Raft(rafts) => rafts.handles(count).await,
        }
    }

    /// Runs a test with its stores made here.
    pub fn run_test(self: &Arc<Self>, test: impl FnOnce()) {
        let _back = RestoreFactory(HERE.replace(self.clone()));
        // The same lines are met on each store.
        insta::allow_duplicates! { test() };
    }
}

/// Where the thread stood before. A test that fails goes back there too: what a thread still has when it ends, it
/// cannot close any more.
struct RestoreFactory(Arc<StoreFactory>);

impl Drop for RestoreFactory {
    fn drop(&mut self) {
        HERE.set(self.0.clone());
    }
}

/// A new and empty store.
pub(crate) async fn store() -> Arc<dyn Store> {
    let here = HERE.with_borrow(Clone::clone);
    here.store().await
}

/// One that can be told to misbehave.
pub(crate) async fn faulty() -> Arc<FaultyStore> {
    Arc::new(FaultyStore::new(store().await))
}

/// Whether stores take no time here, so that the time of a test may stand still until all tasks wait.
pub(crate) fn is_timeless() -> bool {
    HERE.with_borrow(|here| matches!(here.kind, Kind::Memory))
}

/// The first line of a test whose time is paused: where stores take real time, it goes by.
pub(crate) fn let_time_pass() {
    if !is_timeless() {
        tokio::time::resume();
    }
}
