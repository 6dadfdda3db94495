//! Nodes in this process, which can be stopped and started again.

use std::{
    net::TcpListener,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use netstead_store::{
    Commit, Health, RaftOptions, RaftSecurity, RaftStore, Store, StoreError, Version,
    raft::{Role, Status},
};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

pub(crate) const SOON: Duration = Duration::from_secs(30);

pub(crate) fn secret() -> RaftSecurity {
    RaftSecurity::Secret("a secret of sixteen or more".into())
}

/// Many tests run at once on few processors: who is late there is not dead.
pub(crate) fn be_patient(options: &mut RaftOptions) {
    options.timeout = Duration::from_secs(20);
    options.timings.heartbeat = Duration::from_millis(200);
    options.timings.election = (Duration::from_secs(1), Duration::from_secs(2));
}

/// A free address; none of those that connections of this machine begin at, which come and go.
pub(crate) fn free_address() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = 10_000 + (std::process::id() * 37 + number * 7) % 20_000;
        let address = format!("127.0.0.1:{port}");
        if TcpListener::bind(&address).is_ok() {
            return address;
        }
    }
}

pub(crate) async fn alone(path: &Path) -> RaftStore {
    RaftStore::open(RaftOptions::new(path, free_address(), secret())).await.unwrap()
}

pub(crate) async fn put(store: &dyn Store, key: &str, value: &str) -> Result<Version, StoreError> {
    Ok(store.commit(Commit::new().put(key, value)).await?.version)
}

pub(crate) async fn until(check: impl AsyncFn() -> bool) {
    let work = async {
        while !check().await {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(SOON, work).await.expect("it should have come to pass");
}

#[derive(Debug)]
pub(crate) struct Cluster {
    dir: TempDir,
    options: Vec<RaftOptions>,
    nodes: Vec<Option<Arc<RaftStore>>>,
}

impl Cluster {
    pub(crate) async fn start(count: usize) -> Self {
        Self::start_with(count, |_| {}).await
    }

    pub(crate) async fn start_with(count: usize, adapt: impl Fn(&mut RaftOptions)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let addresses: Vec<String> = (0..count).map(|_| free_address()).collect();
        let options = addresses.iter().enumerate().map(|(number, address)| {
            let mut options = RaftOptions::new(dir.path().join(number.to_string()), address, secret());
            options.peers = addresses.iter().filter(|other| *other != address).cloned().collect();
            options.name = format!("node{number}");
            be_patient(&mut options);
            adapt(&mut options);
            options
        });
        let options: Vec<_> = options.collect();
        let mut cluster = Self { dir, options, nodes: (0..count).map(|_| None).collect() };
        for number in 0..count {
            cluster.restart(number).await;
        }
        cluster.leader().await;
        cluster
    }

    pub(crate) fn node(&self, number: usize) -> Arc<RaftStore> {
        Arc::clone(self.nodes[number].as_ref().expect("the node should run"))
    }

    pub(crate) fn running(&self) -> impl Iterator<Item = (usize, &Arc<RaftStore>)> {
        self.nodes.iter().enumerate().filter_map(|(number, node)| Some((number, node.as_ref()?)))
    }

    pub(crate) fn options(&mut self, number: usize) -> &mut RaftOptions {
        &mut self.options[number]
    }

    /// One more node, which is not started yet.
    pub(crate) fn add(&mut self, adapt: impl FnOnce(&mut RaftOptions)) -> usize {
        let number = self.options.len();
        let mut options =
            RaftOptions::new(self.dir.path().join(number.to_string()), free_address(), secret());
        options.name = format!("node{number}");
        be_patient(&mut options);
        adapt(&mut options);
        self.options.push(options);
        self.nodes.push(None);
        number
    }

    /// The node that leads, with a majority behind it and everybody's health good.
    pub(crate) async fn leader(&self) -> usize {
        let find = async {
            loop {
                let statuses: Vec<(usize, Status)> =
                    self.running().map(|(number, node)| (number, node.own_status())).collect();
                let leaders: Vec<_> =
                    statuses.iter().filter(|(_, status)| status.role == Role::Leader).collect();
                if let [(number, leader)] = leaders[..]
                    && statuses.iter().all(|(_, status)| status.leader == Some(leader.id))
                    && self.running().all(|(_, node)| node.health() == Health::Ready)
                {
                    return *number;
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        if let Ok(leader) = timeout(SOON, find).await {
            return leader;
        }
        for (number, node) in self.running() {
            eprintln!("{number}: {:?} {:?}", node.health(), node.own_status());
        }
        panic!("no node leads");
    }

    /// Starts nodes again that were closed.
    pub(crate) async fn revive(&mut self) {
        for number in 0..self.nodes.len() {
            let closed = Health::Failed { reason: "the store is closed".into() };
            if self.nodes[number].as_ref().is_none_or(|node| node.health() == closed) {
                self.restart(number).await;
            }
        }
    }

    pub(crate) async fn stop(&mut self, number: usize) {
        if let Some(node) = self.nodes[number].take() {
            node.close().await;
        }
    }

    /// Ends a node as a kill does: nothing is handed over. There must be no other handle on it.
    pub(crate) async fn kill(&mut self, number: usize) {
        let Some(node) = self.nodes[number].take() else { return };
        let mut health = node.health_changes();
        drop(Arc::into_inner(node).expect("somebody else has a handle"));
        let closed =
            |health: &Health| matches!(health, Health::Failed { reason } if reason.contains("closed"));
        let _ = timeout(SOON, health.wait_for(closed)).await.expect("it should end");
    }

    pub(crate) async fn restart(&mut self, number: usize) {
        self.stop(number).await;
        let node = RaftStore::open(self.options[number].clone()).await.unwrap();
        self.nodes[number] = Some(Arc::new(node));
    }

    pub(crate) fn wipe(&self, number: usize) {
        std::fs::remove_dir_all(&self.options[number].path).unwrap();
    }

    pub(crate) async fn close(mut self) {
        for number in 0..self.nodes.len() {
            self.stop(number).await;
        }
    }
}
