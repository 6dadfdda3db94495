//! The configuration: one TOML file, overlaid by the environment.
//!
//! Everything is read with its place, and all that is wrong is told at once: file, line, column, and the nearest
//! real key to a mistyped one.

mod concat_keys;
mod dns;
mod domain;
mod dynamic_target;
mod environment;
mod find;
mod limits;
mod listen;
mod nameserver;
mod notify;
mod pool;
mod problem;
mod secret;
mod section;
mod source;
mod store;
mod text_index;
mod tree;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use netstead_model::{PoolSpec, Span};
use netstead_plan::Domains;
use serde::Serialize;

use self::{
    concat_keys::concat_keys,
    environment::Environment,
    problem::{Problems, ValueOrigin},
    section::Section,
    tree::Table,
};
pub(crate) use self::{
    dns::{DnsConfig, ServerConfig},
    dynamic_target::{DynamicTargetConfig, LookupMethod, LookupSettings},
    find::{FoundConfig, find},
    listen::Listen,
    nameserver::NameserverConfig,
    notify::{NotifyConfig, NotifyFormat},
    problem::Problem,
    secret::Secret,
    source::{SourceConfig, SourceKind},
    store::{BACKUPS, EtcdConfig, RaftConfig, RaftSecurityConfig, StoreConfig},
};
use crate::logging::{LogFilter, LogFormat};

/// Events are kept this long unless said otherwise.
const RETENTION: Span = Span::from_secs(400 * 24 * 3600);
const MAX_EVENTS: u64 = 1_000_000;
/// etcd keeps everything in memory.
const MAX_EVENTS_IN_ETCD: u64 = 100_000;

/// What was understood.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Config {
    pub(crate) store: StoreConfig,
    pub(crate) api: ApiConfig,
    pub(crate) log: LogConfig,
    pub(crate) ledger: LedgerConfig,
    pub(crate) nameserver: NameserverConfig,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) notify: Option<NotifyConfig>,
    #[serde(rename = "pool")]
    pub(crate) pools: Vec<PoolSpec>,
    #[serde(rename = "source")]
    pub(crate) sources: Vec<SourceConfig>,
    #[serde(rename = "dns")]
    pub(crate) providers: Vec<DnsConfig>,
    #[serde(rename = "domain")]
    pub(crate) domains: Domains,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct ApiConfig {
    pub(crate) listen: Listen,
    /// Further names the server is called by in URLs.
    pub(crate) hosts: Vec<String>,
    pub(crate) tls: Option<TlsConfig>,
    /// Most bytes of a request's body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_body: Option<u32>,
    /// Where probes are answered as by dnsweaver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) probes: Option<Listen>,
    /// Where other nodes on the same store find this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) advertise: Option<String>,
    /// Who signed their certificates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) peer_ca_file: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct TlsConfig {
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct LogConfig {
    pub(crate) level: Option<LogFilter>,
    pub(crate) format: Option<LogFormat>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct LedgerConfig {
    pub(crate) retention: Span,
    pub(crate) max_events: u64,
}

impl Config {
    /// All providers: those of the file, and the built-in one unless the file has such a one.
    pub(crate) fn all_providers(&self) -> Vec<DnsConfig> {
        let own = |provider: &DnsConfig| provider.server == ServerConfig::Builtin;
        let builtin = if self.providers.iter().any(own) { None } else { DnsConfig::builtin() };
        self.providers.iter().cloned().chain(builtin).collect()
    }
}

impl Default for LedgerConfig {
    fn default() -> Self {
        Self { retention: RETENTION, max_events: MAX_EVENTS }
    }
}

/// The tables of the file and their keys. Those of the second list are keyed by a name first: `pool.lan.network`.
pub(crate) const SECTIONS: [(&str, &[&str]); 6] = [
    ("store", store::KEYS),
    ("api", &["listen", "hosts", "tls_cert", "tls_key", "max_body", "probes", "advertise", "peer_ca_file"]),
    ("log", &["level", "format"]),
    ("ledger", &["retention", "max_events"]),
    ("nameserver", nameserver::KEYS),
    ("notify", notify::KEYS),
];
const NAMED: [(&str, &[&str]); 4] =
    [("pool", pool::KEYS), ("source", source::KEYS), ("dns", dns::KEYS), ("domain", domain::KEYS)];

/// Reads the file, if there is one, and what the environment sets on top of it. `own` are the `NETSTEAD_` names
/// that are not settings.
pub(crate) fn read(
    file: Option<(&Path, &str)>,
    environment: impl IntoIterator<Item = (String, String)>,
    own: &[String],
) -> Result<Config, Vec<Problem>> {
    let (path, text) = file.unwrap_or((Path::new(""), ""));
    read_into(Problems::new(path, text), path, text, environment, own)
}

/// The same for a text that somebody else sent: all checks but those that would look into files it names.
pub(crate) fn read_foreign(
    path: &Path,
    text: &str,
    environment: impl IntoIterator<Item = (String, String)>,
    own: &[String],
) -> Result<Config, Vec<Problem>> {
    let mut problems = Problems::new(path, text);
    problems.foreign = true;
    read_into(problems, path, text, environment, own)
}

fn read_into(
    mut problems: Problems,
    path: &Path,
    text: &str,
    environment: impl IntoIterator<Item = (String, String)>,
    own: &[String],
) -> Result<Config, Vec<Problem>> {
    let mut root = tree::parse(text, &mut problems);
    if problems.any() {
        // What is no TOML has no keys either; half of it would only give wrong advice.
        return problems.none_or(Config::default());
    }
    Environment::new(environment, own).overlay(&mut root, &mut problems);
    if !limits::check(&root, &mut problems) {
        return problems.none_or(Config::default());
    }
    let config = understand(&root, path.parent().unwrap_or(Path::new("")), &mut problems);
    problems.none_or(config)
}

fn understand(root: &Table, dir: &Path, problems: &mut Problems) -> Config {
    let names: Vec<_> = SECTIONS.iter().chain(&NAMED).map(|(name, _)| *name).collect();
    let mut top = Section::new("", Some(root), &names, problems);
    let tables = NAMED.map(|(section, _)| top.tables(section));
    let store = store::read(top.section("store", keys_of("store")), dir);
    let max_events = if matches!(store, StoreConfig::Etcd(_)) { MAX_EVENTS_IN_ETCD } else { MAX_EVENTS };
    let config = Config {
        store,
        api: api(top.section("api", keys_of("api")), dir),
        log: log(top.section("log", keys_of("log"))),
        ledger: ledger(top.section("ledger", keys_of("ledger")), max_events),
        nameserver: nameserver::read(top.section("nameserver", keys_of("nameserver"))),
        notify: notify::read(top.section("notify", keys_of("notify")), dir),
        ..Config::default()
    };
    let [pools, sources, providers, domains] = tables;
    let pools = each(pools, |name, place, table| pool::read(name, place, table, problems));
    pool::check_together(&pools, problems);
    let sources = each(sources, |name, place, table| source::read(name, place, table, dir, problems));
    source::check_together(&sources, problems);
    let providers = each(providers, |name, place, table| dns::read(name, place, table, dir, problems));
    dns::check_together(&providers, problems);
    let domains = each(domains, |name, place, table| domain::read(name, place, table, problems));
    domain::check_together(&domains, problems);
    Config {
        pools: without_origins(pools),
        sources: without_origins(sources),
        providers: without_origins(providers),
        domains: Domains(without_origins(domains)),
        ..config
    }
}

type Tables<'t> = Vec<(&'t str, &'t ValueOrigin, &'t Table)>;

fn each<T>(
    tables: Tables<'_>,
    mut read: impl FnMut(&str, &ValueOrigin, &Table) -> Option<T>,
) -> Vec<(&ValueOrigin, T)> {
    let read = |(name, place, table)| Some((place, read(name, place, table)?));
    tables.into_iter().filter_map(read).collect()
}

fn without_origins<T>(read: Vec<(&ValueOrigin, T)>) -> Vec<T> {
    read.into_iter().map(|(_, value)| value).collect()
}

fn keys_of(section: &str) -> &'static [&'static str] {
    SECTIONS.iter().find(|(name, _)| *name == section).map_or(&[], |(_, keys)| keys)
}

fn api(mut section: Section<'_, '_>, dir: &Path) -> ApiConfig {
    let listen = section.parsed("listen").unwrap_or_default();
    let hosts = section.texts("hosts");
    let (cert, key) = (section.text("tls_cert"), section.text("tls_key"));
    let tls = match (cert, key) {
        (Some(cert), Some(key)) => Some(TlsConfig { cert: dir.join(cert), key: dir.join(key) }),
        (Some(_), None) => {
            section.wrong("tls_cert", "a certificate without its key", Some("set `tls_key` too"));
            None
        }
        (None, Some(_)) => {
            section.wrong("tls_key", "a key without its certificate", Some("set `tls_cert` too"));
            None
        }
        (None, None) => None,
    };
    let max_body = section.number("max_body", 65_536..=1 << 30);
    let probes = section.parsed("probes");
    let advertise = section.text("advertise").map(|url| url.trim_end_matches('/').to_owned());
    if let Some(url) = &advertise
        && let Err(reason) = advertised(url)
    {
        section.wrong("advertise", &reason, Some("write `advertise = \"http://10.0.0.1:5301\"`"));
    }
    let peer_ca_file = section.text("peer_ca_file").map(|path| dir.join(path));
    ApiConfig { listen, hosts, tls, max_body, probes, advertise, peer_ca_file }
}

/// A URL that other machines can use.
fn advertised(text: &str) -> Result<(), String> {
    let url = reqwest::Url::parse(text).map_err(|error| format!("`{text}` is no URL: {error}"))?;
    let host = url.host_str().unwrap_or_default();
    let plain = url.path() == "/" && url.query().is_none() && url.username().is_empty();
    match url.scheme() {
        "http" | "https" if host == "0.0.0.0" || host == "[::]" => {
            Err(format!("nobody finds this node at `{host}`: name one of its addresses"))
        }
        "http" | "https" if plain && !host.is_empty() => Ok(()),
        _ => Err(format!("`{text}` is not the URL of a server: its scheme, host and port, and nothing else")),
    }
}

fn log(mut section: Section<'_, '_>) -> LogConfig {
    let level = section.parsed_or("level", "write `info`, or `info,netstead_store=debug`");
    let format = match section.choice("format", &["text", "json"]) {
        Some("json") => Some(LogFormat::Json),
        Some(_) => Some(LogFormat::Text),
        None => None,
    };
    LogConfig { level, format }
}

fn ledger(mut section: Section<'_, '_>, max_events: u64) -> LedgerConfig {
    let retention = section.parsed("retention").unwrap_or(RETENTION);
    let max_events = section.number("max_events", 1000..=1_000_000_000).unwrap_or(max_events);
    LedgerConfig { retention, max_events }
}
