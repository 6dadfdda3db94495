//! `[store]`: where everything durable lives.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use netstead_model::Span;
use serde::Serialize;

use super::{Secret, Section};

const LOCAL: &str = "a store in files on this machine";
const ETCD: &str = "a store in an etcd";
const RAFT: &str = "a store that nodes keep together";

/// Which kinds of store have each key, besides `type`.
const KINDS: [(&str, &[&str]); 17] = [
    ("path", &[LOCAL, RAFT]),
    ("backups", &[LOCAL]),
    ("endpoints", &[ETCD]),
    ("prefix", &[ETCD]),
    ("user", &[ETCD]),
    ("password", &[ETCD]),
    ("ca_file", &[ETCD, RAFT]),
    ("client_cert", &[ETCD]),
    ("client_key", &[ETCD]),
    ("server_name", &[ETCD]),
    ("timeout", &[ETCD, RAFT]),
    ("listen", &[RAFT]),
    ("peers", &[RAFT]),
    ("advertise", &[RAFT]),
    ("secret", &[RAFT]),
    ("cert_file", &[RAFT]),
    ("key_file", &[RAFT]),
];

#[expect(clippy::indexing_slicing, reason = "a place that is not there would be an error of the compiler")]
pub(super) const KEYS: &[&str] = &{
    let mut keys = ["type"; KINDS.len() + 1];
    let mut at = 0;
    while at < KINDS.len() {
        keys[at + 1] = KINDS[at].0;
        at += 1;
    }
    keys
};

/// Of how many days backups are kept, unless said otherwise.
pub(crate) const BACKUPS: usize = 7;

/// Where everything durable lives.
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
        secret: Secret,
    },
    Files {
        ca_file: PathBuf,
        cert_file: PathBuf,
        key_file: PathBuf,
    },
    /// Something is wrong, and said.
    Missing,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct EtcdConfig {
    pub(crate) endpoints: Vec<String>,
    pub(crate) prefix: String,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<Secret>,
    pub(crate) ca_file: Option<PathBuf>,
    pub(crate) client_cert: Option<PathBuf>,
    pub(crate) client_key: Option<PathBuf>,
    pub(crate) server_name: Option<String>,
    pub(crate) timeout: Duration,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self::Local { path: None, backups: BACKUPS }
    }
}

pub(super) fn read(mut section: Section<'_, '_>, dir: &Path) -> StoreConfig {
    let kind = section.choice("type", &["local", "memory", "etcd", "raft"]).unwrap_or("local");
    let ours = match kind {
        "etcd" => ETCD,
        "raft" => RAFT,
        "memory" => "",
        _ => LOCAL,
    };
    for (key, kinds) in KINDS.iter().filter(|(_, kinds)| !kinds.contains(&ours)) {
        if section.origin_of(key).is_some() {
            let told = format!("only {} has this", kinds.join(" or "));
            section.wrong(key, &told, Some("leave it out, or set another `type`"));
        }
    }
    match kind {
        "etcd" => StoreConfig::Etcd(etcd(&mut section, dir)),
        "raft" => StoreConfig::Raft(raft(&mut section, dir)),
        "memory" => StoreConfig::Memory,
        _ => {
            let path = section.text("path").map(|path| dir.join(path));
            StoreConfig::Local { path, backups: section.number("backups", 0..=366).unwrap_or(BACKUPS) }
        }
    }
}

fn raft(section: &mut Section<'_, '_>, dir: &Path) -> RaftConfig {
    let address = |section: &mut Section<'_, '_>, key| {
        let text = section.text(key).map(str::to_owned)?;
        if let Err(why) = reachable(&text) {
            section.wrong(key, &why, Some("write it as `10.0.0.1:5302`"));
        }
        Some(text)
    };
    let listen = address(section, "listen");
    if section.origin_of("listen").is_none() {
        section.wrong(
            "listen",
            "the other nodes must know where this one listens",
            Some("write `listen = \"10.0.0.1:5302\"`, with this machine's own address"),
        );
    }
    let listen = listen.unwrap_or_default();
    let advertise = address(section, "advertise");
    let everywhere = |text: &str| ["0.0.0.0:", "[::]:"].iter().any(|all| text.starts_with(all));
    if advertise.as_deref().is_some_and(everywhere) {
        let hint = "write the one under which the others reach it: `advertise = \"10.0.0.1:5302\"`";
        section.wrong("advertise", "this is every address of a machine, and the others need one", Some(hint));
    }
    if everywhere(&listen) && advertise.is_none() {
        let hint = "set `advertise = \"10.0.0.1:5302\"` to the address under which the others reach it";
        section.wrong("listen", "the other nodes cannot reach this one at every address", Some(hint));
    }
    let peers = if section.origin_of("peers").is_some() { section.one_or_more("peers") } else { Vec::new() };
    for peer in &peers {
        if let Err(why) = reachable(peer) {
            section.wrong("peers", &why, Some("write them as `[\"10.0.0.2:5302\", \"10.0.0.3:5302\"]`"));
        }
    }
    let is_this_one = |peer: &String| *peer == listen || advertise.as_ref() == Some(peer);
    if !peers.is_empty() && peers.iter().all(is_this_one) {
        let hint = "name the others, or leave it out: then this node begins a cluster that others can join";
        section.wrong("peers", "it names nobody but this node", Some(hint));
    }
    RaftConfig {
        path: section.text("path").map(|path| dir.join(path)),
        listen,
        peers,
        advertise,
        security: raft_security(section, dir),
        timeout: timeout(section),
        join: None,
    }
}

fn raft_security(section: &mut Section<'_, '_>, dir: &Path) -> RaftSecurityConfig {
    let secret = section.secret("secret", dir);
    let mut file = |key| section.text(key).map(|path| dir.join(path));
    let files = (file("ca_file"), file("cert_file"), file("key_file"));
    match (secret, files) {
        (Some(secret), (None, None, None)) => RaftSecurityConfig::Secret { secret },
        (None, (Some(ca_file), Some(cert_file), Some(key_file))) => {
            RaftSecurityConfig::Files { ca_file, cert_file, key_file }
        }
        (Some(_), _) => {
            section.wrong(
                "secret",
                "nodes know each other by a secret or by certificates",
                Some("leave one out"),
            );
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

fn timeout(section: &mut Section<'_, '_>) -> Duration {
    let timeout = section.parsed::<Span>("timeout").map_or(Duration::from_secs(5), Duration::from);
    if !(Duration::from_millis(100)..=Duration::from_mins(1)).contains(&timeout) {
        section.wrong("timeout", "it must be between 100 ms and 1 min", Some("write `timeout = \"5s\"`"));
    }
    timeout
}

fn etcd(section: &mut Section<'_, '_>, dir: &Path) -> EtcdConfig {
    let mut endpoints = section.one_or_more("endpoints");
    if section.origin_of("endpoints").is_none() {
        endpoints = vec!["http://127.0.0.1:2379".into()];
    }
    for url in &endpoints {
        if !url.starts_with("http://") && !url.starts_with("https://") {
            let told = format!("`{url}` is no URL of an etcd");
            section.wrong("endpoints", &told, Some("write `[\"http://127.0.0.1:2379\"]`"));
        }
    }
    // With and without a slash at its end it is the same place.
    let prefix = section.text("prefix").unwrap_or("/netstead/");
    let prefix = if prefix.ends_with('/') { prefix.to_owned() } else { format!("{prefix}/") };
    if prefix.trim_matches('/').is_empty() {
        section.wrong("prefix", "it would be all of etcd", Some("write `prefix = \"/netstead/\"`"));
    }
    let user = section.text("user").map(str::to_owned);
    let password = section.secret("password", dir);
    match (&user, &password) {
        (Some(_), None) => {
            section.wrong("user", "a user without a password", Some("set `password` too"));
        }
        (None, Some(_)) => {
            section.wrong("password", "a password without a user", Some("set `user` too"));
        }
        _ => {}
    }
    let mut file = |key| section.text(key).map(|path| dir.join(path));
    let (ca_file, client_cert, client_key) = (file("ca_file"), file("client_cert"), file("client_key"));
    match (&client_cert, &client_key) {
        (Some(_), None) => {
            section.wrong("client_cert", "a certificate without its key", Some("set `client_key` too"));
        }
        (None, Some(_)) => {
            section.wrong("client_key", "a key without its certificate", Some("set `client_cert` too"));
        }
        _ => {}
    }
    let timeout = timeout(section);
    EtcdConfig {
        endpoints,
        prefix,
        user,
        password,
        ca_file,
        client_cert,
        client_key,
        server_name: section.text("server_name").map(str::to_owned),
        timeout,
    }
}
