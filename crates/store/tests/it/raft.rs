//! The store that nodes keep together: the contract, and what becomes of it when nodes stop, lose their disk or come anew.

mod cluster;
mod faults;
mod kill;
mod members;
mod rates;
mod rejected_peers;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use netstead_store::{
    Commit, Committed, EPOCH_KEY, Entry, Epoch, Health, RaftStore, Snapshot, Store, StoreError, Watch,
    contract,
};
use tempfile::tempdir;
use tokio::{
    sync::Mutex,
    time::{sleep, timeout},
};

use self::cluster::{Cluster, SOON, alone, put, until};

#[tokio::test(flavor = "multi_thread")]
async fn one_node_keeps_the_contract() {
    let dir = tempdir().unwrap();
    let count = AtomicU32::new(0);
    let make = async || {
        let path = dir.path().join(count.fetch_add(1, Ordering::Relaxed).to_string());
        Arc::new(alone(&path).await) as Arc<dyn Store>
    };
    contract::all(make).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_node_is_durable() {
    let dir = tempdir().unwrap();
    contract::durable(async || Arc::new(alone(dir.path()).await) as Arc<dyn Store>).await;
}

/// A handle on one node of a cluster that stays, for checks that close what they get.
#[derive(Debug)]
struct Handle {
    store: Arc<RaftStore>,
    leader: Arc<RaftStore>,
    /// Only who watches has to see the end; starting a node anew for each check takes long.
    watched: AtomicBool,
}

#[async_trait]
impl Store for Handle {
    async fn get(&self, key: &[u8]) -> Result<Option<Entry>, StoreError> {
        self.store.get(key).await
    }

    async fn snapshot(&self) -> Result<Arc<dyn Snapshot>, StoreError> {
        self.store.snapshot().await
    }

    async fn own_snapshot(&self) -> Result<Arc<dyn Snapshot>, StoreError> {
        self.store.own_snapshot().await
    }

    async fn commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        self.store.commit(commit).await
    }

    async fn watch(&self, prefix: &[u8]) -> Result<Watch, StoreError> {
        self.watched.store(true, Ordering::Relaxed);
        self.store.watch(prefix).await
    }

    /// Only the node that leads the cluster leads.
    async fn lead(&self) -> Result<Epoch, StoreError> {
        self.leader.lead().await
    }

    fn health(&self) -> Health {
        self.store.health()
    }

    fn health_changes(&self) -> tokio::sync::watch::Receiver<Health> {
        self.store.health_changes()
    }

    async fn close(&self) {
        if self.watched.load(Ordering::Relaxed) {
            self.store.close().await;
        }
    }
}

/// Removes every key. Who led before is refused once, and follows then.
async fn clear(store: &RaftStore) {
    loop {
        let entries = store.snapshot().await.unwrap().range(b"", None, 100).await.unwrap();
        if entries.is_empty() {
            let _ = store.commit(Commit::new()).await;
            return;
        }
        let commit = entries.into_iter().fold(Commit::new(), |commit, entry| commit.delete(entry.key));
        match store.commit(commit).await {
            Ok(_) | Err(StoreError::Refused { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// The whole contract through the node that is so many places after the one that leads.
async fn keep_the_contract(after: usize) {
    let cluster = Mutex::new(Cluster::start(3).await);
    let make = async || {
        let mut cluster = cluster.lock().await;
        cluster.revive().await;
        let leader = cluster.leader().await;
        clear(&cluster.node(leader)).await;
        let store = cluster.node((leader + after) % 3);
        let leader = cluster.node(leader);
        Arc::new(Handle { store, leader, watched: AtomicBool::new(false) }) as Arc<dyn Store>
    };
    contract::all(make).await;
    cluster.into_inner().close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn three_nodes_keep_the_contract_through_the_one_that_leads() {
    keep_the_contract(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn three_nodes_keep_the_contract_through_one_that_follows() {
    keep_the_contract(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lead_follows_the_cluster_and_a_late_leader_can_commit_nothing() {
    let mut cluster = Cluster::start(3).await;
    let first = cluster.leader().await;
    assert_eq!(cluster.node(first).lead().await.unwrap(), Epoch(1));
    put(&*cluster.node(first), "a", "1").await.unwrap();
    let waiting: Vec<_> = (0..3)
        .filter(|node| *node != first)
        .map(|node| {
            let store = cluster.node(node);
            tokio::spawn(async move { (node, store.lead().await) })
        })
        .collect();
    sleep(Duration::from_millis(500)).await;
    assert!(waiting.iter().all(|waiting| !waiting.is_finished()), "one leads already");

    cluster.stop(first).await;
    let second = cluster.leader().await;
    let mut led = None;
    for waiting in waiting {
        if let Ok(Ok((node, epoch))) = timeout(Duration::from_secs(15), waiting).await {
            led = Some((node, epoch.unwrap()));
        }
    }
    assert_eq!(led, Some((second, Epoch(2))));

    // The first one comes back and knows nothing of that: its handle is a new one, so it has no fence.
    cluster.restart(first).await;
    let old = cluster.node(first);
    until(async || old.get(b"a").await.is_ok()).await;
    let fenced = cluster.node(second);
    assert_eq!(fenced.get(EPOCH_KEY).await.unwrap().unwrap().value, b"2");
    assert_eq!(fenced.lead().await.unwrap(), Epoch(3), "who leads may raise it again");
    put(&*fenced, "a", "2").await.unwrap();
    // Another process raises it without the leader's knowledge.
    old.commit(Commit::new().put(EPOCH_KEY, "4")).await.unwrap();
    let late = fenced.commit(Commit::new().put("a", "late")).await;
    assert!(matches!(&late, Err(StoreError::Refused { key }) if key == EPOCH_KEY), "{late:?}");
    cluster.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_node_reads_what_any_node_wrote() {
    let cluster = Cluster::start(3).await;
    for number in 0..60 {
        let writer = cluster.node(number % 3);
        put(&*writer, "a", &number.to_string()).await.unwrap();
        let reader = cluster.node((number + 1) % 3);
        let read = timeout(SOON, reader.get(b"a")).await.unwrap().unwrap().unwrap();
        assert_eq!(read.value, number.to_string().as_bytes());
    }
    cluster.close().await;
}
