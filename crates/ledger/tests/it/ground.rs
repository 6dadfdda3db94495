//! The store that tests stand on: memory, unless they are told otherwise.
//!
//! A test asks [`store`] for one that is new and empty. `stores.rs` runs the same tests again where that is a directory,
//! an etcd, or a cluster of nodes.

use std::{
    cell::RefCell,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};

use futures::future::join_all;

use netstead_store::{
    EtcdOptions, EtcdStore, FaultyStore, Health, LocalStore, MemoryStore, RaftOptions, RaftSecurity,
    RaftStore, Store, raft::Role,
};
use netstead_testkit::{Etcd, free_port};
use tempfile::TempDir;
use tokio::{
    runtime::{Builder, Runtime},
    time::sleep,
};

/// A place where stores can be made.
pub(crate) struct Ground {
    kind: Kind,
    made: AtomicU32,
}

enum Kind {
    Memory,
    Local(TempDir),
    Etcd(Etcd),
    Raft(Rafts),
}

/// Clusters of three nodes each, in a runtime of their own.
struct Rafts {
    dir: TempDir,
    runtime: Runtime,
    nodes: Mutex<Vec<Arc<dyn Store>>>,
}

thread_local! {
    static HERE: RefCell<Arc<Ground>> = RefCell::new(Ground::memory());
}

impl Ground {
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
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let dir = tempfile::tempdir().unwrap();
        Self::of(Kind::Raft(Rafts { dir, runtime, nodes: Mutex::default() }))
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
            Kind::Raft(rafts) => {
                let path = rafts.dir.path().join(number.to_string());
                let nodes = rafts.runtime.spawn(cluster(path)).await.unwrap();
                rafts.nodes.lock().unwrap().extend(nodes.iter().cloned());
                nodes.into_iter().take(count).collect()
            }
        }
    }

    /// Runs a test with its stores made here.
    pub fn stand(self: &Arc<Self>, test: impl FnOnce()) {
        let before = HERE.replace(self.clone());
        // The same lines are met on each store.
        insta::allow_duplicates! { test() };
        HERE.set(before);
        if let Kind::Raft(rafts) = &self.kind {
            let nodes = std::mem::take(&mut *rafts.nodes.lock().unwrap());
            rafts.runtime.block_on(join_all(nodes.iter().map(|node| node.close())));
        }
    }
}

/// Three new nodes, the one that leads first.
async fn cluster(path: PathBuf) -> Vec<Arc<dyn Store>> {
    let addresses = [0; 3].map(|_| format!("127.0.0.1:{}", free_port().unwrap()));
    let opened = addresses.iter().map(|address| {
        let security = RaftSecurity::Secret("a secret of sixteen or more".into());
        let mut options = RaftOptions::new(path.join(address), address, security);
        options.peers = addresses.iter().filter(|other| *other != address).cloned().collect();
        RaftStore::open(options)
    });
    let nodes = join_all(opened).await.into_iter().map(Result::unwrap);
    let mut nodes: Vec<_> = nodes.map(Arc::new).collect();
    for _ in 0..1000 {
        let ready = nodes.iter().all(|node| node.health() == Health::Ready);
        let leader = nodes.iter().position(|node| node.own_status().role == Role::Leader);
        if let Some(leader) = leader.filter(|_| ready) {
            nodes.swap(0, leader);
            return nodes.into_iter().map(|node| node as Arc<dyn Store>).collect();
        }
        sleep(Duration::from_millis(20)).await;
    }
    panic!("nobody leads the cluster");
}

/// A new and empty store.
pub(crate) async fn store() -> Arc<dyn Store> {
    let here = HERE.with_borrow(Clone::clone);
    here.handles(1).await.remove(0)
}

/// One that can be told to misbehave.
pub(crate) async fn faulty() -> Arc<FaultyStore> {
    Arc::new(FaultyStore::new(store().await))
}
