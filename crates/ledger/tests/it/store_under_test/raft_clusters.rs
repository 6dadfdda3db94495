//! Clusters of three nodes that are emptied and used again: to start one takes longer than most tests do.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};

use async_trait::async_trait;
use futures::future::join_all;
use netstead_store::{
    Commit, Committed, Entry, Epoch, Health, Membership, RaftOptions, RaftSecurity, RaftStore, Snapshot,
    Store, StoreError, Watch, raft::Role,
};
use netstead_testkit::free_port;
use tempfile::TempDir;
use tokio::{
    runtime::{Builder, Runtime},
    sync::watch,
    time::sleep,
};

type Nodes = Vec<Arc<RaftStore>>;

/// All clusters there are, in a runtime of their own.
pub(crate) struct RaftClusters {
    free: Arc<Mutex<Vec<Nodes>>>,
    started: AtomicU32,
    runtime: Runtime,
    dir: TempDir,
}

impl RaftClusters {
    pub fn new() -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let dir = tempfile::tempdir().unwrap();
        Self { free: Arc::default(), started: AtomicU32::new(0), runtime, dir }
    }

    /// An empty cluster of this test alone, through so many of its nodes; the leader is the first.
    pub async fn handles(&self, count: usize) -> Vec<Arc<dyn Store>> {
        let free = self.free.lock().unwrap().pop();
        let path = self.dir.path().join(self.started.fetch_add(1, Relaxed).to_string());
        let ready = async move {
            let nodes = match free {
                Some(nodes) => nodes,
                None => start(path).await,
            };
            let nodes = leader_first(nodes).await;
            clear(&nodes).await;
            nodes
        };
        let nodes = self.runtime.spawn(ready).await.unwrap();
        let lease = Arc::new(Lease { nodes: nodes.clone(), free: self.free.clone() });
        let handle = |node| Arc::new(Handle { node, _lease: lease.clone() }) as Arc<dyn Store>;
        nodes.into_iter().take(count).map(handle).collect()
    }
}

impl Drop for RaftClusters {
    fn drop(&mut self) {
        let nodes: Nodes = self.free.lock().unwrap().drain(..).flatten().collect();
        self.runtime.block_on(join_all(nodes.iter().map(|node| node.close())));
    }
}

async fn start(path: PathBuf) -> Nodes {
    let addresses = [0; 3].map(|_| format!("127.0.0.1:{}", free_port().unwrap()));
    let opened = addresses.iter().map(|address| {
        let security = RaftSecurity::Secret("a secret of sixteen or more".into());
        let mut options = RaftOptions::new(path.join(address), address, security);
        options.peers = addresses.iter().filter(|other| *other != address).cloned().collect();
        // Many tests run at once on few processors: who is late there is not dead.
        options.timeout = Duration::from_secs(20);
        options.timings.heartbeat = Duration::from_millis(200);
        options.timings.election = (Duration::from_secs(1), Duration::from_secs(2));
        RaftStore::open(options)
    });
    join_all(opened).await.into_iter().map(|node| Arc::new(node.unwrap())).collect()
}

async fn leader_first(mut nodes: Nodes) -> Nodes {
    for _ in 0..3000 {
        let ready = nodes.iter().all(|node| node.health() == Health::Ready);
        let leader = nodes.iter().position(|node| node.own_status().role == Role::Leader);
        if let Some(leader) = leader.filter(|_| ready) {
            nodes.swap(0, leader);
            return nodes;
        }
        sleep(Duration::from_millis(20)).await;
    }
    panic!("no node leads the cluster");
}

/// Removes every key, after which no node leads the ledger.
async fn clear(nodes: &[Arc<RaftStore>]) {
    loop {
        let entries = nodes[0].snapshot().await.unwrap().range(b"", None, 100).await.unwrap();
        if entries.is_empty() {
            break;
        }
        let commit = entries.into_iter().fold(Commit::new(), |commit, entry| commit.delete(entry.key));
        match nodes[0].commit(commit).await {
            Ok(_) | Err(StoreError::Refused { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    // Who led is refused once, because the epoch is gone, and follows then.
    for node in nodes {
        let _ = node.commit(Commit::new()).await;
    }
}

/// A cluster in use. Another test can have it when the last handle is gone.
struct Lease {
    nodes: Nodes,
    free: Arc<Mutex<Vec<Nodes>>>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.free.lock().unwrap().push(std::mem::take(&mut self.nodes));
    }
}

/// A node of a cluster that stays, whatever a test does.
struct Handle {
    node: Arc<RaftStore>,
    _lease: Arc<Lease>,
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.node.fmt(f)
    }
}

#[async_trait]
impl Store for Handle {
    async fn get(&self, key: &[u8]) -> Result<Option<Entry>, StoreError> {
        self.node.get(key).await
    }

    async fn snapshot(&self) -> Result<Arc<dyn Snapshot>, StoreError> {
        self.node.snapshot().await
    }

    async fn own_snapshot(&self) -> Result<Arc<dyn Snapshot>, StoreError> {
        self.node.own_snapshot().await
    }

    async fn commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        self.node.commit(commit).await
    }

    async fn watch(&self, prefix: &[u8]) -> Result<Watch, StoreError> {
        self.node.watch(prefix).await
    }

    async fn lead(&self) -> Result<Epoch, StoreError> {
        self.node.lead().await
    }

    fn health(&self) -> Health {
        self.node.health()
    }

    fn health_changes(&self) -> watch::Receiver<Health> {
        self.node.health_changes()
    }

    fn membership(&self) -> Option<&dyn Membership> {
        self.node.membership()
    }

    /// The nodes serve the next test.
    async fn close(&self) {}
}
