//! `[store]`: where everything durable is kept.

use std::{path::PathBuf, time::Duration};

use netstead_model::Span;
use netstead_settings::{KeyInfo, Number, OneOrMore, Secret, Section, Settings as _, table};
use netstead_wire::Tls;
use serde::Serialize;

use super::{shown, shown_keys};

/// Describes the keys of one type.
type KeysOf = fn() -> Vec<KeyInfo>;

/// The types of store with their keys.
pub(super) const TYPES: [(&str, KeysOf); 4] =
    [("local", LocalKeys::keys), ("memory", Vec::new), ("etcd", EtcdKeys::keys), ("raft", RaftKeys::keys)];

/// Backups of this many days are kept, unless the file says otherwise.
pub(crate) const BACKUPS: usize = 7;

table! {
    struct LocalKeys {
        /// the directory of a local store; `--data-dir` goes before it
        path: Option<PathBuf>, unset "the state directory, below";
        /// of how many days a [backup](store.md#backups) is kept in `backups/` in the directory; `0` for none
        backups: Number<0, 366>, default 7;
    }
}

table! {
    struct EtcdKeys {
        /// URLs of the members; any that answers will do
        endpoints: OneOrMore<String>, default ["http://127.0.0.1:2379"];
        /// all keys are below this; nothing else is touched
        prefix: String, default "/netstead/";
        /// the user of Netstead in etcd
        user: Option<String>, unset "none";
        /// the password of `user`, a secret
        password: Option<Secret>, unset "none";
        tls: Tls, all;
        /// how long one request to one member may take
        timeout: Span, default "5s";
    }
}

table! {
    struct RaftKeys {
        /// the directory of this node
        path: Option<PathBuf>, unset "`raft` in the state directory";
        /// where this node listens to the others, address and port
        listen: Option<String>, unset "must be set";
        /// where the others reach it
        advertise: Option<String>, unset "the address of `listen`";
        /// the other nodes of a new cluster; looked at until this node is in one
        peers: OneOrMore<String>, unset "none: a cluster of one, or `--join`";
        /// a text of 16 characters or more that all nodes have, a secret; messages between nodes are authenticated with it, not
        /// encrypted
        secret: Option<Secret>, unset "none";
        /// PEM of the authority that signed the certificates of all nodes
        ca_file: Option<PathBuf>, unset "none";
        /// PEM of this node's certificate, which is for the host by which the others reach it
        cert_file: Option<PathBuf>, unset "none";
        /// PEM of its key
        key_file: Option<PathBuf>, unset "none";
        /// how long a read or a change may wait for a majority, elections included
        timeout: Span, default "5s";
    }
}

/// Where everything durable is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(crate) enum StoreConfig {
    /// Files on this machine; in the user's state directory unless a path is given.
    Local {
        path: Option<PathBuf>,
        /// Of how many days backups are kept beside it.
        backups: usize,
    },
    /// Nothing is durable: for trying things out.
    Memory,
    /// In an etcd that others may use as well.
    Etcd(EtcdConfig),
    /// Kept by this node and others together.
    Raft(RaftConfig),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct RaftConfig {
    /// In the user's state directory unless given.
    pub(crate) path: Option<PathBuf>,
    pub(crate) listen: String,
    pub(crate) peers: Vec<String>,
    pub(crate) advertise: Option<String>,
    pub(crate) security: RaftSecurityConfig,
    pub(crate) timeout: Duration,
    /// A node of the cluster to join; from the command line.
    #[serde(skip)]
    pub(crate) join: Option<String>,
}

/// How nodes know each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(crate) enum RaftSecurityConfig {
    Secret {
        #[serde(serialize_with = "shown")]
        secret: Secret,
    },
    Files {
        ca_file: PathBuf,
        cert_file: PathBuf,
        key_file: PathBuf,
    },
    /// A problem was reported.
    Missing,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct EtcdConfig {
    pub(crate) endpoints: Vec<String>,
    pub(crate) prefix: String,
    pub(crate) user: Option<String>,
    #[serde(serialize_with = "shown")]
    pub(crate) password: Option<Secret>,
    #[serde(flatten, serialize_with = "shown_keys")]
    pub(crate) tls: Tls,
    pub(crate) timeout: Duration,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self::Local { path: None, backups: BACKUPS }
    }
}

pub(super) fn read(mut section: Section<'_, '_>) -> StoreConfig {
    let kind = section.choice("type", &TYPES.map(|(name, _)| name)).unwrap_or("local");
    let own = TYPES.iter().find(|(name, _)| *name == kind).map_or_else(Vec::new, |(_, keys)| keys());
    let known: Vec<_> = own.iter().map(|key| key.name).chain(["type"]).collect();
    section.refuse_unknown(&known, |key| {
        let has = |keys: KeysOf| keys().iter().any(|info| info.name == key);
        TYPES.into_iter().filter(|(_, keys)| has(*keys)).map(|(name, _)| name).collect()
    });
    let read = match kind {
        "etcd" => etcd(&mut section).map(StoreConfig::Etcd),
        "raft" => raft(&mut section).map(StoreConfig::Raft),
        "memory" => Some(StoreConfig::Memory),
        _ => LocalKeys::read(&mut section)
            .map(|keys| StoreConfig::Local { path: keys.path, backups: keys.backups.get() }),
    };
    read.unwrap_or_default()
}

fn raft(section: &mut Section<'_, '_>) -> Option<RaftConfig> {
    let keys = RaftKeys::read(section)?;
    for (key, text) in [("listen", keys.listen.as_ref()), ("advertise", keys.advertise.as_ref())] {
        if let Some(Err(why)) = text.map(|text| reachable(text)) {
            section.wrong(key, &why, Some("write it as `10.0.0.1:5302`"));
        }
    }
    if keys.listen.is_none() {
        let hint = "write `listen = \"10.0.0.1:5302\"`, with this machine's own address";
        section.wrong("listen", "the other nodes must know where this one listens", Some(hint));
    }
    let listen = keys.listen.clone().unwrap_or_default();
    let everywhere = |text: &str| ["0.0.0.0:", "[::]:"].iter().any(|all| text.starts_with(all));
    if keys.advertise.as_deref().is_some_and(everywhere) {
        let hint = "write the one under which the others reach it: `advertise = \"10.0.0.1:5302\"`";
        section.wrong("advertise", "this is every address of a machine, and the others need one", Some(hint));
    }
    if everywhere(&listen) && keys.advertise.is_none() {
        let hint = "set `advertise = \"10.0.0.1:5302\"` to the address under which the others reach it";
        section.wrong("listen", "the other nodes cannot reach this one at every address", Some(hint));
    }
    for peer in &*keys.peers {
        if let Err(why) = reachable(peer) {
            section.wrong("peers", &why, Some("write them as `[\"10.0.0.2:5302\", \"10.0.0.3:5302\"]`"));
        }
    }
    let is_this_one = |peer: &String| *peer == listen || keys.advertise.as_ref() == Some(peer);
    if !keys.peers.is_empty() && keys.peers.iter().all(is_this_one) {
        let hint = "name the others, or leave it out: then this node begins a cluster that others can join";
        section.wrong("peers", "it names no node but this one", Some(hint));
    }
    Some(RaftConfig {
        security: raft_security(section, &keys),
        timeout: timeout(section, keys.timeout),
        path: keys.path,
        listen,
        peers: keys.peers.0,
        advertise: keys.advertise,
        join: None,
    })
}

fn raft_security(section: &mut Section<'_, '_>, keys: &RaftKeys) -> RaftSecurityConfig {
    let files = (keys.ca_file.clone(), keys.cert_file.clone(), keys.key_file.clone());
    match (keys.secret.clone(), files) {
        (Some(secret), (None, None, None)) => RaftSecurityConfig::Secret { secret },
        (None, (Some(ca_file), Some(cert_file), Some(key_file))) => {
            RaftSecurityConfig::Files { ca_file, cert_file, key_file }
        }
        (Some(_), _) => {
            let problem = "nodes know each other by a secret or by certificates";
            section.wrong("secret", problem, Some("leave one out"));
            RaftSecurityConfig::Missing
        }
        (None, _) => {
            let hint = "set `secret = { file = \"/etc/netstead/cluster-secret\" }`, the same on all nodes, or \
                        `ca_file`, `cert_file` and `key_file`";
            section.wrong("secret", "nodes must know each other", Some(hint));
            RaftSecurityConfig::Missing
        }
    }
}

/// Whether this is a host and a port.
fn reachable(text: &str) -> Result<(), String> {
    let parts = text.rsplit_once(':').filter(|(host, _)| !host.is_empty());
    match parts.map(|(_, port)| port.parse::<u16>()) {
        Some(Ok(port)) if port > 0 => Ok(()),
        _ => Err(format!("`{text}` is no address with a port")),
    }
}

fn timeout(section: &mut Section<'_, '_>, timeout: Span) -> Duration {
    let timeout = Duration::from(timeout);
    if !(Duration::from_millis(100)..=Duration::from_mins(1)).contains(&timeout) {
        section.wrong("timeout", "it must be between 100 ms and 1 min", Some("write `timeout = \"5s\"`"));
    }
    timeout
}

fn etcd(section: &mut Section<'_, '_>) -> Option<EtcdConfig> {
    let keys = EtcdKeys::read(section)?;
    for url in &*keys.endpoints {
        if !url.starts_with("http://") && !url.starts_with("https://") {
            let told = format!("`{url}` is no URL of an etcd");
            section.wrong("endpoints", &told, Some("write `[\"http://127.0.0.1:2379\"]`"));
        }
    }
    // With and without a slash at its end it is the same place.
    let prefix = if keys.prefix.ends_with('/') { keys.prefix } else { format!("{}/", keys.prefix) };
    if prefix.trim_matches('/').is_empty() {
        section.wrong("prefix", "it would be all of etcd", Some("write `prefix = \"/netstead/\"`"));
    }
    for (key, missing, problem, is_wrong) in [
        ("user", "password", "a user without a password", keys.user.is_some() && keys.password.is_none()),
        ("password", "user", "a password without a user", keys.user.is_none() && keys.password.is_some()),
    ] {
        if is_wrong {
            section.wrong(key, problem, Some(&format!("set `{missing}` too")));
        }
    }
    if let Err(error) = keys.tls.check() {
        section.wrong(error.key, &error.problem, error.hint.as_deref());
    }
    Some(EtcdConfig {
        endpoints: keys.endpoints.0,
        prefix,
        user: keys.user,
        password: keys.password,
        tls: keys.tls,
        timeout: timeout(section, keys.timeout),
    })
}
