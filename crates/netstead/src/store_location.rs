//! [`StoreLocation`]: which store is meant, and how it is opened.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use netstead_store::{
    EtcdOptions, EtcdStore, Health, LocalReader, LocalStore, MemoryStore, RaftOptions, RaftSecurity,
    RaftStore, Store, StoreError, etcd, raft::node_address,
};
use netstead_wire::files;
use tokio::time::timeout;

use crate::{
    config::{EtcdConfig, RaftConfig, RaftSecurityConfig, Secret},
    failure::Failure,
    restore_mark::{self, RestoreMark, is_mark},
    state_dir::variable,
};

/// How long a command waits for the other nodes of a cluster that is not there yet.
const OTHERS: Duration = Duration::from_secs(10);

/// The hint when another process has the store.
const IN_USE: &str = "a server runs on it: stop it first";

/// Adds the hint for a command with `--local`: ask the server that has the store.
pub(crate) fn with_server_hint(error: anyhow::Error) -> anyhow::Error {
    match error.downcast::<Failure>() {
        Ok(failure) if failure.advises(IN_USE) => failure
            .hint("a server runs on it: talk to that one (leave out `--local`), or stop it first")
            .into(),
        Ok(failure) => failure.into(),
        Err(error) => error,
    }
}

/// Adds the hint for a command that does the work of a server: the server that has the store can do it.
pub(crate) fn with_apply_hint(error: anyhow::Error) -> anyhow::Error {
    match error.downcast::<Failure>() {
        Ok(failure) if failure.advises(IN_USE) => failure
            .hint("a server runs on it: `netstead apply` has it look and act now, `netstead plan` shows what it would do")
            .into(),
        Ok(failure) => failure.into(),
        Err(error) => error,
    }
}

/// The one store a command or server works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoreLocation {
    Memory,
    Local(PathBuf),
    Etcd(EtcdConfig),
    Raft(RaftConfig),
}

impl fmt::Display for StoreLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory"),
            Self::Local(dir) => write!(f, "local in {}", dir.display()),
            Self::Etcd(etcd) => write!(f, "etcd at {} below {}", etcd.endpoints.join(", "), etcd.prefix),
            Self::Raft(raft) => {
                let dir = raft.path.as_deref().unwrap_or(Path::new("."));
                write!(f, "raft at {} in {}", raft.advertise.as_ref().unwrap_or(&raft.listen), dir.display())
            }
        }
    }
}

impl StoreLocation {
    /// Whether other processes may work on the same store.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, Self::Etcd(_) | Self::Raft(_))
    }

    /// Whether what is in this store is among the keys of `other`, as far as their addresses tell.
    pub(crate) fn is_within(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Etcd(inner), Self::Etcd(outer)) => {
                inner.prefix.starts_with(&format!("{}{}", outer.prefix, etcd::KEYS))
                    && inner.endpoints.iter().any(|endpoint| outer.endpoints.contains(endpoint))
            }
            _ => false,
        }
    }

    /// Whether other machines are among those who work on it, as far as its addresses tell.
    pub(crate) fn is_remote(&self) -> bool {
        let hosts: Vec<&str> = match self {
            Self::Memory | Self::Local(_) => return false,
            Self::Etcd(etcd) => etcd.endpoints.iter().map(String::as_str).collect(),
            Self::Raft(raft) => {
                let own = raft.advertise.as_ref().unwrap_or(&raft.listen);
                raft.peers.iter().chain(&raft.join).chain([own]).map(String::as_str).collect()
            }
        };
        hosts.into_iter().any(|address| !is_here(address))
    }

    /// As the command line has it: a node of a cluster may be told whom to join.
    pub(crate) fn joining(self, join: Option<&str>) -> anyhow::Result<Self> {
        match (self, join) {
            (place, None) => Ok(place),
            (Self::Raft(_), Some(join)) if node_address(join).is_none() => {
                let hint = "write `--join 10.0.0.1:5302`, or the URL of its API";
                Err(Failure::new(format!("`--join`: `{join}` is no address of a node")).hint(hint).into())
            }
            (Self::Raft(raft), Some(join)) => {
                Ok(Self::Raft(RaftConfig { join: Some(join.to_owned()), ..raft }))
            }
            (place, Some(_)) => {
                let message =
                    format!("`--join` is for a store that nodes keep together, and this one is {place}");
                Err(Failure::new(message).hint("set `type = \"raft\"` in `[store]`").into())
            }
        }
    }

    /// Opens it for one command. A local one is for one process alone; in an etcd it is there for all that can reach it.
    pub(crate) async fn open(&self) -> anyhow::Result<Arc<dyn Store>> {
        self.whole(self.open_as_it_is(Some(OTHERS)).await?).await
    }

    /// Opens it, be it half restored. With `patience` a node of a cluster waits to be in one, at most for so long.
    async fn open_as_it_is(&self, patience: Option<Duration>) -> anyhow::Result<Arc<dyn Store>> {
        match self {
            Self::Memory => Ok(Arc::new(MemoryStore::new())),
            Self::Local(dir) => open_local(dir).await,
            Self::Etcd(config) => open_etcd(config).await,
            Self::Raft(config) => Ok(open_raft(config, patience).await?),
        }
    }

    /// Opens a store that everything is to be restored or moved into, and marks its directory as half filled.
    pub(crate) async fn open_to_fill(&self) -> anyhow::Result<(Arc<dyn Store>, Option<RestoreMark>)> {
        let mark = match self.dir() {
            Some(dir) => Some(
                RestoreMark::set(dir, holds_a_store(dir))
                    .map_err(|error| Failure::new(format!("{} cannot be used: {error}", dir.display())))?,
            ),
            None => None,
        };
        match self.open_as_it_is(Some(OTHERS)).await {
            Ok(store) => Ok((store, mark)),
            Err(error) => {
                // Another process that fills it too owns what is there.
                let in_use = error.downcast_ref::<Failure>().is_some_and(|failure| failure.advises(IN_USE));
                if let Some(mark) = mark.filter(|_| !in_use) {
                    mark.undo();
                }
                Err(error)
            }
        }
    }

    /// The directory that this process keeps it in.
    fn dir(&self) -> Option<&Path> {
        match self {
            Self::Memory | Self::Etcd(_) => None,
            Self::Local(dir) => Some(dir),
            Self::Raft(raft) => raft.path.as_deref(),
        }
    }

    /// Refuses a store whose directory a restore left before it had written anything.
    async fn whole(&self, store: Arc<dyn Store>) -> anyhow::Result<Arc<dyn Store>> {
        if let Some(dir) = self.dir()
            && let Err(error) = restore_mark::check(dir, &*store).await
        {
            store.close().await;
            return Err(error);
        }
        Ok(store)
    }

    /// As [`StoreLocation::open`]; a node of a cluster may be in none yet.
    pub(crate) async fn open_to_serve(&self) -> anyhow::Result<Arc<dyn Store>> {
        self.whole(self.open_as_it_is(None).await?).await
    }

    /// Opens a local store to read it once, whatever state it is in.
    pub(crate) async fn read_local(dir: &Path) -> anyhow::Result<LocalReader> {
        if !holds_a_store(dir) {
            return Err(no_store_in(dir).into());
        }
        LocalReader::open(dir).await.map_err(|error| {
            let locked = matches!(error, StoreError::Locked { .. });
            let failure = Failure::new(format!("the store in {} cannot be read: {error}", dir.display()));
            if locked { failure.hint(IN_USE).into() } else { failure.into() }
        })
    }

    /// As [`StoreLocation::open`], but fails where no store exists: opening an empty directory would make one.
    pub(crate) async fn open_existing(&self) -> anyhow::Result<Arc<dyn Store>> {
        match self {
            Self::Memory => return Err(Failure::new("a store in memory ends with its server").into()),
            Self::Local(dir) if !holds_a_store(dir) => return Err(no_store_in(dir).into()),
            Self::Raft(RaftConfig { path: Some(dir), .. }) if !holds_a_store(dir) => {
                let message = format!("there is no node of a cluster in {}", dir.display());
                return Err(Failure::new(message).hint("name its directory as `path` of `[store]`").into());
            }
            Self::Local(_) | Self::Etcd(_) | Self::Raft(_) => {}
        }
        self.open().await
    }
}

fn no_store_in(dir: &Path) -> Failure {
    Failure::new(format!("there is no store in {}", dir.display()))
        .hint("name its directory with `--data-dir`; `netstead run` makes a new one")
}

/// Whether an address, as `10.0.0.1:5302` or as a URL, is of loopback.
fn is_here(address: &str) -> bool {
    let address = address.split_once("://").map_or(address, |(_, rest)| rest);
    let address = address.split('/').next().unwrap_or_default();
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let ip = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
}

/// The user's state directory may hold credentials and the id of a node, and no store.
fn holds_a_store(dir: &Path) -> bool {
    let of_a_store = |entry: std::io::Result<std::fs::DirEntry>| {
        let name = entry.map(|entry| entry.file_name()).unwrap_or_default();
        let name = name.to_string_lossy();
        !(name.is_empty() || name.contains("credentials") || name.starts_with("node-id") || is_mark(&name))
    };
    std::fs::read_dir(dir).is_ok_and(|mut entries| entries.any(of_a_store))
}

async fn open_local(dir: &Path) -> anyhow::Result<Arc<dyn Store>> {
    let wrong =
        |reason: String| Failure::new(format!("the store in {} cannot be opened: {reason}", dir.display()));
    files::create_private_dir(dir)
        .map_err(|error| wrong(error.to_string()).hint("name another directory with `--data-dir`"))?;
    match LocalStore::open(dir).await {
        Ok(store) => Ok(Arc::new(store)),
        Err(error @ StoreError::Locked { .. }) => Err(wrong(error.to_string()).hint(IN_USE).into()),
        Err(error @ StoreError::Damaged { .. }) => {
            let hint = "if only history is damaged, `netstead store backup --local --leave-out-damaged FILE` writes \
                        everything else; restore FILE, or the newest whole backup, into another directory with `netstead \
                        store restore`";
            Err(wrong(error.to_string()).hint(hint).into())
        }
        Err(error) => Err(wrong(error.to_string()).into()),
    }
}

fn reveal(key: &str, secret: &Secret) -> anyhow::Result<String> {
    let value =
        secret.reveal_with(&variable).map_err(|problem| Failure::new(format!("store.{key}: {problem}")))?;
    Ok(value.expose().to_owned())
}

/// Begins to be a node of the cluster. One that is in none yet waits for the others, at most for `patience`.
async fn open_raft(config: &RaftConfig, patience: Option<Duration>) -> anyhow::Result<Arc<RaftStore>> {
    let dir = config.path.clone().unwrap_or_default();
    files::create_private_dir(&dir)
        .map_err(|error| Failure::new(format!("{} cannot be used: {error}", dir.display())))?;
    let security = match &config.security {
        RaftSecurityConfig::Secret { secret } => RaftSecurity::Secret(reveal("secret", secret)?),
        RaftSecurityConfig::Files { ca_file, cert_file, key_file } => RaftSecurity::Tls {
            ca: read_file(ca_file)?,
            cert: read_file(cert_file)?,
            key: read_file(key_file)?,
        },
        RaftSecurityConfig::Missing => return Err(Failure::new("nodes must know each other").into()),
    };
    let name = crate::node::machine_name();
    let options = RaftOptions {
        advertise: config.advertise.clone(),
        peers: config.peers.clone(),
        join: config.join.clone(),
        timeout: config.timeout,
        name,
        ..RaftOptions::new(&dir, &config.listen, security)
    };
    match RaftStore::open(options).await {
        Ok(store) => {
            let Some(patience) = patience else { return Ok(Arc::new(store)) };
            let fresh = !store.own_status().is_in_a_cluster();
            if timeout(patience, store.joined()).await.is_err() {
                let reason = match store.health() {
                    Health::Failed { reason } => reason,
                    Health::Ready => "it is in no cluster yet".to_owned(),
                };
                store.close().await;
                let message = format!("the node in {} is in no cluster: {reason}", dir.display());
                let hint =
                    "start the others too, or leave `peers` out: then it begins a cluster that they can join";
                return Err(Failure::new(message).hint(hint).into());
            }
            if fresh {
                // A node that just joined learns in a moment which node leads.
                let mut health = store.health_changes();
                let _ = timeout(config.timeout * 2, health.wait_for(|health| *health == Health::Ready)).await;
            }
            Ok(Arc::new(store))
        }
        Err(error @ StoreError::Locked { .. }) => Err(Failure::new(error.to_string()).hint(IN_USE).into()),
        Err(error @ StoreError::Damaged { .. }) => {
            let hint = "with the same configuration and an empty directory it gets everything from the others; only a \
                        cluster of one node needs a backup";
            Err(Failure::new(error.to_string()).hint(hint).into())
        }
        Err(error) => {
            Err(Failure::new(error.to_string()).hint("see `docs/guide/raft.md`, or the guide online").into())
        }
    }
}

fn read_file(path: &Path) -> Result<String, Failure> {
    files::read_text(path, files::MOST_OF_PEM)
        .map_err(|error| Failure::new(format!("{} of `[store]` cannot be read: {error}", path.display())))
}

async fn open_etcd(config: &EtcdConfig) -> anyhow::Result<Arc<dyn Store>> {
    let password = config.password.as_ref().map(|secret| reveal("password", secret)).transpose()?;
    let options = EtcdOptions {
        prefix: config.prefix.clone(),
        user: config.user.clone().zip(password),
        tls: config.tls.clone(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_loopback_is_here() {
        for here in
            ["127.0.0.1:5302", "[::1]:5302", "localhost:5302", "http://127.0.0.1:2379", "https://localhost"]
        {
            assert!(is_here(here), "{here}");
        }
        for far in ["10.0.0.1:5302", "0.0.0.0:5302", "[::]:5302", "n1.test:5302", "https://etcd.test:2379/"] {
            assert!(!is_here(far), "{far}");
        }
    }
}
