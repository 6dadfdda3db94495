//! The engines, started anew for each round.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use netstead_store::{
    EtcdOptions, EtcdStore, LocalStore, RaftOptions, RaftSecurity, RaftStore, Store, raft::Role,
};
use netstead_testkit::{Etcd, EtcdHost, free_port};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    Local,
    Etcd {
        members: usize,
    },
    /// Three nodes on one disk, all in this process.
    Raft,
}

pub const ENGINES: &[Engine] =
    &[Engine::Local, Engine::Etcd { members: 1 }, Engine::Etcd { members: 3 }, Engine::Raft];

/// One that runs, and in which stores can be opened.
#[derive(Debug)]
pub enum RunningEngine {
    Local(PathBuf),
    Etcd(Etcd),
    /// And those that do not lead, which must live as well.
    Raft(PathBuf, Mutex<Vec<Arc<RaftStore>>>),
}

impl Engine {
    pub fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Etcd { members: 1 } => "etcd-1",
            Self::Etcd { .. } => "etcd-3",
            Self::Raft => "raft-3",
        }
    }

    /// With its files in `dir`, so that all are measured on the same disk.
    pub fn start(self, dir: &Path) -> RunningEngine {
        match self {
            Self::Local => RunningEngine::Local(dir.to_owned()),
            Self::Etcd { members } => {
                let place = EtcdHost { disk: Some(dir.to_owned()), ..EtcdHost::default() };
                let flags = ["--auto-compaction-mode=revision", "--auto-compaction-retention=10000"];
                RunningEngine::Etcd(Etcd::start_at(&vec![place; members], "http", &flags).expect("an etcd"))
            }
            Self::Raft => RunningEngine::Raft(dir.to_owned(), Mutex::default()),
        }
    }
}

impl RunningEngine {
    /// An empty store.
    pub async fn open(&self, name: &str) -> Arc<dyn Store> {
        match self {
            Self::Local(dir) => Arc::new(LocalStore::open(&dir.join(name)).await.expect("a store")),
            Self::Etcd(etcd) => {
                let options =
                    EtcdOptions { prefix: format!("/{name}/"), ..EtcdOptions::new(etcd.endpoints()) };
                Arc::new(EtcdStore::open(&options).await.expect("a store"))
            }
            Self::Raft(dir, nodes) => {
                self.end().await;
                let started = raft(&dir.join(name)).await;
                let leader = Arc::clone(elected(&started).await);
                *nodes.lock().expect("nobody panics") = started;
                leader
            }
        }
    }

    /// Ends everything but the store itself.
    pub async fn end(&self) {
        let Self::Raft(_, nodes) = self else { return };
        let nodes = std::mem::take(&mut *nodes.lock().expect("nobody panics"));
        for node in nodes {
            node.close().await;
        }
    }
}

async fn raft(dir: &Path) -> Vec<Arc<RaftStore>> {
    let places: Vec<String> = (0..3).map(|_| format!("127.0.0.1:{}", free_port().expect("a port"))).collect();
    let open = places.iter().map(|own| {
        let security = RaftSecurity::Secret("for the bench and nothing else".into());
        let mut options = RaftOptions::new(dir.join(own.replace(':', "-")), own, security);
        options.peers = places.iter().filter(|place| *place != own).cloned().collect();
        async { Arc::new(RaftStore::open(options).await.expect("a node")) }
    });
    futures::future::join_all(open).await
}

async fn elected(nodes: &[Arc<RaftStore>]) -> &Arc<RaftStore> {
    loop {
        if let Some(leader) = nodes.iter().find(|node| node.own_status().role == Role::Leader) {
            return leader;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
