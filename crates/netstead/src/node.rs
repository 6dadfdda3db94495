//! [`Node`]: this process as one of the nodes that share a store: its id, its name, and the URL it advertises.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    net::SocketAddr,
    path::Path,
    sync::Arc,
};

use anyhow::Context as _;
use netstead_api::cluster::{self, Cluster, ClusterError, FORMAT, Member};
use netstead_model::{Clock as _, SystemClock};
use netstead_store::{Snapshot, Store};
use netstead_wire::files;
use tracing::warn;

use crate::{
    config::ApiConfig,
    failure::Failure,
    state_dir::{state_dir, variable},
    store_location::StoreLocation,
};

/// Bytes of a file with an id, with room for what a person may have left there.
const MOST_OF_ID: u64 = 1024;
/// So many nodes of one user may run on one machine.
const MOST: usize = 16;

/// The other processes that may use the same store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SharedWith {
    /// There are none.
    None,
    /// Other processes, as far as is known on this machine only.
    Here,
    /// Those on other machines.
    Far,
}

impl SharedWith {
    pub(crate) fn at(place: &StoreLocation) -> Self {
        match (place.is_shared(), place.is_remote()) {
            (false, _) => Self::None,
            (true, false) => Self::Here,
            (true, true) => Self::Far,
        }
    }
}

/// The identity of this node. Its id is its own for as long as this value lives.
#[derive(Debug)]
pub(crate) struct Node {
    id: String,
    _lock: Option<File>,
}

impl Node {
    /// The id that is kept beside the data; one is drawn if there is none yet.
    pub(crate) fn of(place: &StoreLocation, store: &dyn Store) -> Self {
        if let Some(members) = store.membership() {
            // It has an id already, drawn with its directory.
            return Self { id: members.id().to_string(), _lock: None };
        }
        let dir = match place {
            StoreLocation::Memory | StoreLocation::Raft(_) => return Self::with_temporary_id(),
            StoreLocation::Local(dir) => dir.clone(),
            StoreLocation::Etcd(_) => state_dir(&variable),
        };
        match Self::with_stored_id(&dir) {
            Ok(node) => node,
            Err(error) => {
                let dir = dir.display();
                warn!(%dir, error = format!("{error:#}"), "The id of this node cannot be kept; after a restart it is another node.");
                Self::with_temporary_id()
            }
        }
    }

    fn with_temporary_id() -> Self {
        Self { id: random_id(), _lock: None }
    }

    fn with_stored_id(dir: &Path) -> anyhow::Result<Self> {
        files::create_private_dir(dir)?;
        for number in 1..=MOST {
            let name = if number == 1 { "node-id".to_owned() } else { format!("node-id.{number}") };
            let path = dir.join(name);
            files::close_to_others(&path)?;
            let mut file =
                files::private().read(true).write(true).create(true).truncate(false).open(&path)?;
            // Another node of this user on this machine is another node.
            if file.try_lock().is_err() {
                continue;
            }
            let mut id = String::new();
            (&mut file).take(MOST_OF_ID).read_to_string(&mut id)?;
            let mut id = id.trim().to_owned();
            if !is_id(&id) {
                id = random_id();
                file.set_len(0)?;
                std::io::Seek::rewind(&mut file)?;
                writeln!(file, "{id}")?;
                file.sync_all()?;
            }
            return Ok(Self { id, _lock: Some(file) });
        }
        anyhow::bail!("{MOST} nodes run from it already")
    }

    /// Goes among the others.
    pub(crate) async fn join(&self, store: &Arc<dyn Store>, url: String) -> anyhow::Result<Cluster> {
        let now = SystemClock.wall();
        let me = Member {
            id: self.id.clone(),
            name: machine_name(),
            url,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            format: format(),
            since: now,
            seen: now,
        };
        Cluster::open(Arc::clone(store), SystemClock::shared(), me).await.map_err(refused)
    }
}

/// The highest format of the store that this program understands. Tests let a debug build take itself for another version.
pub(crate) fn format() -> u32 {
    let pretended = if cfg!(debug_assertions) { variable("PRETEND_STORE_FORMAT") } else { None };
    pretended.and_then(|number| number.parse().ok()).unwrap_or(FORMAT)
}

/// Refuses a store that only a newer program understands.
pub(crate) async fn check_format(snapshot: &dyn Snapshot) -> anyhow::Result<()> {
    cluster::check_format(snapshot, format()).await.map_err(advised)
}

/// A program that is too old says what to do.
pub(crate) fn advised(error: ClusterError) -> anyhow::Error {
    let advice = matches!(error, ClusterError::TooOld { .. })
        .then(|| Failure::new(error.to_string()).hint("start the version that the other nodes have"));
    let error = anyhow::Error::from(error);
    match advice {
        Some(advice) => error.context(advice),
        None => error,
    }
}

/// Why a node could not go among the others, or stay there.
pub(crate) fn refused(error: ClusterError) -> anyhow::Error {
    match error {
        ClusterError::TooOld { .. } => advised(error),
        error => anyhow::Error::from(error).context("the other nodes cannot be heard of"),
    }
}

/// Where other nodes find this one: what was said, else where it listens.
pub(crate) fn advertised(api: &ApiConfig, address: SocketAddr, others: SharedWith) -> String {
    if let Some(url) = &api.advertise {
        return url.clone();
    }
    let scheme = if api.tls.is_some() { "https" } else { "http" };
    let host = api.listen.to_string();
    let host = host.rsplit_once(':').map(|(host, _)| host).unwrap_or_default();
    if !address.ip().is_unspecified() {
        // A name that it listens on may be the one in its certificate.
        let named = host.parse::<std::net::IpAddr>().is_err() && !host.starts_with('[');
        let host = if named { host.to_owned() } else { SocketAddr::new(address.ip(), 0).to_string() };
        let host = if named { host } else { host.trim_end_matches(":0").to_owned() };
        let url = format!("{scheme}://{host}:{}", address.port());
        if others == SharedWith::Far && address.ip().is_loopback() {
            warn!(
                url,
                "This node tells the others to find it on loopback, where they find only themselves, and cannot send it \
                 what only a leader can do; set `[api] listen` to an address of this machine, or `[api] advertise`."
            );
        }
        return url;
    }
    let url = format!("{scheme}://{}:{}", machine_name(), address.port());
    if others != SharedWith::None {
        warn!(
            url,
            "This node listens everywhere and tells the others to find it here; if they cannot, set `[api] advertise`, \
             as in `advertise = \"http://10.0.0.1:5301\"`."
        );
    }
    url
}

/// The host in a URL, under which others may call this server.
pub(crate) fn host_of(url: &str) -> Option<String> {
    reqwest::Url::parse(url).ok()?.host_str().map(str::to_owned)
}

/// The name of this machine, for people.
pub(crate) fn machine_name() -> String {
    let name = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| "localhost".to_owned())
}

fn random_id() -> String {
    format!("{:012x}", rand::random::<u64>() >> 16)
}

fn is_id(text: &str) -> bool {
    text.len() == 12 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The client for the other nodes.
pub(crate) fn peers(api: &ApiConfig) -> anyhow::Result<cluster::Peers> {
    cluster::Peers::new(api.peer_ca_file.clone()).context("other nodes cannot be talked to")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_keeps_its_id_and_two_at_once_are_two() {
        let dir = tempfile::tempdir().unwrap();
        let first = Node::with_stored_id(dir.path()).unwrap();
        let second = Node::with_stored_id(dir.path()).unwrap();
        assert_ne!(first.id, second.id);
        let (one, other) = (first.id.clone(), second.id.clone());
        drop((first, second));
        // A program that another test starts just now may hold the locks until it runs.
        let again = |id: &str| {
            let node = || Some(Node::with_stored_id(dir.path()).unwrap()).filter(|node| node.id == id);
            netstead_testkit::wait_until(std::time::Duration::from_secs(5), node)
        };
        let first = again(&one);
        assert!(first.is_some() && again(&other).is_some());
    }

    #[test]
    fn others_are_told_where_it_listens_unless_it_says_otherwise() {
        let told = |listen: &str, address: &str, advertise: Option<&str>| {
            let api = ApiConfig {
                listen: listen.parse().unwrap(),
                advertise: advertise.map(str::to_owned),
                ..ApiConfig::default()
            };
            advertised(&api, address.parse().unwrap(), SharedWith::None)
        };
        assert_eq!(told("10.0.0.1:5301", "10.0.0.1:5301", None), "http://10.0.0.1:5301");
        assert_eq!(told("[::1]:0", "[::1]:77", None), "http://[::1]:77");
        assert_eq!(told("n1.test:5301", "10.0.0.1:5301", None), "http://n1.test:5301");
        assert_eq!(told("0.0.0.0:5301", "0.0.0.0:5301", Some("https://n1.test")), "https://n1.test");
        assert!(told("0.0.0.0:5301", "0.0.0.0:5301", None).ends_with(":5301"));
    }
}
