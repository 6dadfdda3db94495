//! The engines, started anew for each round.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use netstead_store::{EtcdOptions, EtcdStore, LocalStore, Store};
use netstead_testkit::{Etcd, EtcdPlace};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    Local,
    Etcd { members: usize },
}

pub const ENGINES: &[Engine] = &[Engine::Local, Engine::Etcd { members: 1 }, Engine::Etcd { members: 3 }];

/// One that runs, and in which stores can be opened.
#[derive(Debug)]
pub enum Below {
    Local(PathBuf),
    Etcd(Etcd),
}

impl Engine {
    pub fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Etcd { members: 1 } => "etcd-1",
            Self::Etcd { .. } => "etcd-3",
        }
    }

    /// With its files in `dir`, so that all are measured on the same disk.
    #[expect(clippy::unused_async, reason = "others take their time to start")]
    pub async fn start(self, dir: &Path) -> Below {
        match self {
            Self::Local => Below::Local(dir.to_owned()),
            Self::Etcd { members } => {
                let place = EtcdPlace { disk: Some(dir.to_owned()), ..EtcdPlace::default() };
                let flags = ["--auto-compaction-mode=revision", "--auto-compaction-retention=10000"];
                Below::Etcd(Etcd::start_at(&vec![place; members], "http", &flags).expect("an etcd"))
            }
        }
    }
}

impl Below {
    /// An empty store.
    pub async fn open(&self, name: &str) -> Arc<dyn Store> {
        match self {
            Self::Local(dir) => Arc::new(LocalStore::open(&dir.join(name)).await.expect("a store")),
            Self::Etcd(etcd) => {
                let options =
                    EtcdOptions { prefix: format!("/{name}/"), ..EtcdOptions::new(etcd.endpoints()) };
                Arc::new(EtcdStore::open(&options).await.expect("a store"))
            }
        }
    }

    #[expect(clippy::unused_async, reason = "others take their time to end")]
    pub async fn end(self) {}
}
