//! `[store]`: where everything durable lives.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use netstead_model::Span;
use serde::Serialize;

use super::{Secret, Section};

/// The first three are of a local store; the rest only an etcd needs.
pub(super) const KEYS: &[&str] = &[
    "type",
    "path",
    "backups",
    "endpoints",
    "prefix",
    "user",
    "password",
    "ca_file",
    "client_cert",
    "client_key",
    "server_name",
    "timeout",
];

/// What only a local store has.
const LOCAL: &[&str] = &["path", "backups"];

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
    let kind = section.choice("type", &["local", "memory", "etcd"]);
    if kind == Some("etcd") {
        refuse(&mut section, LOCAL, "only a store in files on this machine has this");
        return StoreConfig::Etcd(etcd(&mut section, dir));
    }
    refuse(&mut section, KEYS.get(1 + LOCAL.len()..).unwrap_or_default(), "only a store in an etcd has this");
    if kind == Some("memory") {
        refuse(&mut section, LOCAL, "only a store in files on this machine has this");
        return StoreConfig::Memory;
    }
    let path = section.text("path").map(|path| dir.join(path));
    StoreConfig::Local { path, backups: section.number("backups", 0..=366).unwrap_or(BACKUPS) }
}

fn etcd(section: &mut Section<'_, '_>, dir: &Path) -> EtcdConfig {
    let mut endpoints = section.one_or_more("endpoints");
    if section.place_of("endpoints").is_none() {
        endpoints = vec!["http://127.0.0.1:2379".into()];
    }
    for url in &endpoints {
        if !url.starts_with("http://") && !url.starts_with("https://") {
            let told = format!("`{url}` is no URL of an etcd");
            section.wrong("endpoints", &told, Some("write `[\"http://127.0.0.1:2379\"]`"));
        }
    }
    let prefix = section.text("prefix").unwrap_or("/netstead/").to_owned();
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
    let timeout = section.parsed::<Span>("timeout").map_or(Duration::from_secs(5), Duration::from);
    if !(Duration::from_millis(100)..=Duration::from_mins(1)).contains(&timeout) {
        section.wrong("timeout", "it must be between 100 ms and 1 min", Some("write `timeout = \"5s\"`"));
    }
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

fn refuse(section: &mut Section<'_, '_>, keys: &[&str], why: &str) {
    for key in keys {
        if section.place_of(key).is_some() {
            section.wrong(key, why, Some("leave it out, or set another `type`"));
        }
    }
}
