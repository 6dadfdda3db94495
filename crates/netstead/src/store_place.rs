//! Which store is meant, and opening it.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use netstead_store::{EtcdOptions, EtcdStore, EtcdTls, LocalStore, MemoryStore, Store, StoreError};

use crate::{
    config::EtcdConfig,
    failure::Failure,
    state_dir::{make_private, variable},
};

/// The one store a command or server works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StorePlace {
    Memory,
    Local(PathBuf),
    Etcd(EtcdConfig),
}

impl fmt::Display for StorePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory"),
            Self::Local(dir) => write!(f, "local in {}", dir.display()),
            Self::Etcd(etcd) => write!(f, "etcd at {} below {}", etcd.endpoints.join(", "), etcd.prefix),
        }
    }
}

impl StorePlace {
    /// Whether other processes may work on the same store.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, Self::Etcd(_))
    }

    /// Opens it. A local one is for one process alone; in an etcd it is there for all that can reach it.
    pub(crate) async fn open(&self) -> anyhow::Result<Arc<dyn Store>> {
        match self {
            Self::Memory => Ok(Arc::new(MemoryStore::new())),
            Self::Local(dir) => open_local(dir).await,
            Self::Etcd(config) => open_etcd(config).await,
        }
    }

    /// As [`StorePlace::open`]; to look at a directory without a store would make one.
    pub(crate) async fn open_existing(&self) -> anyhow::Result<Arc<dyn Store>> {
        match self {
            Self::Memory => return Err(Failure::new("a store in memory ends with its server").into()),
            Self::Local(dir) if !holds_a_store(dir) => {
                let message = format!("there is no store in {}", dir.display());
                return Err(Failure::new(message).hint("name its directory with `--data-dir`").into());
            }
            Self::Local(_) | Self::Etcd(_) => {}
        }
        self.open().await
    }
}

/// The user's state directory may hold credentials and the id of a node, and no store.
fn holds_a_store(dir: &Path) -> bool {
    let of_a_store = |entry: std::io::Result<std::fs::DirEntry>| {
        let name = entry.map(|entry| entry.file_name()).unwrap_or_default();
        let name = name.to_string_lossy();
        !(name.is_empty() || name.contains("credentials") || name.starts_with("node-id"))
    };
    std::fs::read_dir(dir).is_ok_and(|mut entries| entries.any(of_a_store))
}

async fn open_local(dir: &Path) -> anyhow::Result<Arc<dyn Store>> {
    let wrong =
        |reason: String| Failure::new(format!("the store in {} cannot be opened: {reason}", dir.display()));
    make_private(dir)
        .map_err(|error| wrong(error.to_string()).hint("name another directory with `--data-dir`"))?;
    match LocalStore::open(dir).await {
        Ok(store) => Ok(Arc::new(store)),
        Err(error @ StoreError::Locked { .. }) => {
            let hint = "a server runs on it: talk to that one (leave out `--local`), or stop it first";
            Err(wrong(error.to_string()).hint(hint).into())
        }
        Err(error @ StoreError::Damaged { .. }) => {
            let hint = "restore a backup into another directory with `netstead store restore`";
            Err(wrong(error.to_string()).hint(hint).into())
        }
        Err(error) => Err(wrong(error.to_string()).into()),
    }
}

async fn open_etcd(config: &EtcdConfig) -> anyhow::Result<Arc<dyn Store>> {
    let read = |path: &Option<PathBuf>| match path {
        None => Ok(None),
        Some(path) => std::fs::read_to_string(path).map(Some).map_err(|error| {
            Failure::new(format!("{} of `[store]` cannot be read: {error}", path.display()))
        }),
    };
    let identity = read(&config.client_cert)?.zip(read(&config.client_key)?);
    let password = config.password.as_ref().map(|secret| secret.reveal(variable)).transpose()?;
    let options = EtcdOptions {
        prefix: config.prefix.clone(),
        user: config.user.clone().zip(password),
        tls: EtcdTls { ca: read(&config.ca_file)?, identity, server_name: config.server_name.clone() },
        timeout: config.timeout,
        ..EtcdOptions::new(config.endpoints.clone())
    };
    match EtcdStore::open(&options).await {
        Ok(store) => Ok(Arc::new(store)),
        Err(error) => {
            let hint = "check `endpoints` and the rest of `[store]`, and that etcd runs";
            Err(Failure::new(error.to_string()).hint(hint).into())
        }
    }
}
