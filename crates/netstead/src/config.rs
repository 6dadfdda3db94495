//! The configuration: one TOML file, overlaid by the environment.
//!
//! Every section describes its keys with `table!` beside the code that uses them; `layout` puts them together. Everything
//! that is wrong is reported at once: file, line, column, and the nearest real key to a mistyped one.

mod api;
mod backend;
mod dns;
mod domain;
mod external_dns;
mod find;
mod ipam;
mod kind_table;
pub(crate) mod layout;
mod limits;
mod listen;
mod load_balancer;
mod nameserver;
mod notify;
#[cfg(feature = "kubernetes")]
mod operator;
mod pool;
mod source;
mod store;
mod web;

#[cfg(test)]
mod tests;

use std::path::Path;

use netstead_api::KindNames;
use netstead_model::{PoolSpec, Span};
use netstead_plan::Domains;
use netstead_settings::{
    Environment, KeyInfo, Kind, Kinds, Number, Problems, Section, Setting, Settings, Table, ValueOrigin,
    choice, parse, table,
};
use serde::{Serialize, Serializer};

#[cfg(feature = "kubernetes")]
pub(crate) use self::operator::OperatorConfig;
pub(crate) use self::{
    api::ApiConfig,
    backend::BackendConfig,
    dns::DnsConfig,
    external_dns::ExternalDnsConfig,
    find::{FoundConfig, find},
    ipam::IpamConfig,
    listen::Listen,
    load_balancer::LoadBalancerConfig,
    nameserver::NameserverConfig,
    notify::{NotifyConfig, NotifyFormat},
    source::SourceConfig,
    store::{BACKUPS, EtcdConfig, RaftConfig, RaftSecurityConfig, StoreConfig},
    web::WebConfig,
};
use crate::logging::{LogFilter, LogFormat};
pub(crate) use netstead_settings::{Problem, Secret};

/// Events are kept this long unless the file says otherwise.
const RETENTION: Span = Span::from_secs(400 * 24 * 3600);
const MAX_EVENTS: u64 = 1_000_000;
/// etcd keeps everything in memory.
const MAX_EVENTS_IN_ETCD: u64 = 100_000;

/// The configuration as it was read.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Config {
    pub(crate) store: StoreConfig,
    pub(crate) api: ApiConfig,
    pub(crate) web: WebConfig,
    pub(crate) log: LogConfig,
    pub(crate) ledger: LedgerConfig,
    pub(crate) nameserver: NameserverConfig,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) notify: Option<NotifyConfig>,
    #[cfg(feature = "kubernetes")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) operator: Option<OperatorConfig>,
    #[serde(rename = "pool")]
    pub(crate) pools: Vec<PoolSpec>,
    /// Pools for the load balancers of clusters.
    #[serde(rename = "load_balancer", skip_serializing_if = "Vec::is_empty")]
    pub(crate) load_balancers: Vec<LoadBalancerConfig>,
    #[serde(rename = "backend", skip_serializing_if = "Vec::is_empty")]
    pub(crate) backends: Vec<BackendConfig>,
    #[serde(rename = "source")]
    pub(crate) sources: Vec<SourceConfig>,
    #[serde(rename = "dns")]
    pub(crate) providers: Vec<DnsConfig>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) ipam: Vec<IpamConfig>,
    #[serde(rename = "domain")]
    pub(crate) domains: Domains,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) external_dns: Vec<ExternalDnsConfig>,
    /// Allowed, and probably not meant; in the order of the file.
    #[serde(skip)]
    pub(crate) warnings: Vec<Problem>,
}

table! {
    struct LogKeys {
        /// `error`, `warn`, `info`, `debug`, `trace`, or per module: `info,netstead_store=debug`
        level: Option<LevelText>, unset "`info`";
        /// `text` or `json`
        format: Option<FormatWord>, unset "`text`";
    }
}

/// A log filter as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LevelText(LogFilter);

impl Setting for LevelText {
    fn shape() -> netstead_settings::Shape {
        netstead_settings::Shape::Text
    }

    fn read(section: &mut Section<'_, '_>, key: &str) -> Option<Self> {
        section.parsed_or(key, "write `info`, or `info,netstead_store=debug`").map(Self)
    }

    fn shown(&self) -> serde_json::Value {
        self.0.to_string().into()
    }
}

choice! {
    enum FormatWord {
        Text = "text",
        Json = "json",
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct LogConfig {
    pub(crate) level: Option<LogFilter>,
    pub(crate) format: Option<LogFormat>,
}

table! {
    struct LedgerKeys {
        /// how long events are kept; the newest of each address always is. A clock that jumps ahead is
        /// [believed slowly](store.md#events)
        retention: Span, default "400d";
        /// the most events that are kept; in an etcd, which has less room, `100000` unless set
        max_events: Option<Number<1000, 1_000_000_000>>, unset "`1000000`";
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct LedgerConfig {
    pub(crate) retention: Span,
    pub(crate) max_events: u64,
}

impl Config {
    /// Logs what is allowed and probably not meant.
    pub(crate) fn log_warnings(&self) {
        for warning in &self.warnings {
            tracing::warn!(at = warning.at, hint = warning.hint, "{}.", warning.message);
        }
    }

    /// All providers: those of the file, and the built-in one unless the file has such a one.
    pub(crate) fn all_providers(&self) -> Vec<DnsConfig> {
        let own = |provider: &DnsConfig| provider.server.kind.name == "builtin";
        let builtin = if self.providers.iter().any(own) { None } else { DnsConfig::builtin() };
        self.providers.iter().cloned().chain(builtin).collect()
    }
}

impl Default for LedgerConfig {
    fn default() -> Self {
        Self { retention: RETENTION, max_events: MAX_EVENTS }
    }
}

/// Names of all kinds of sources and providers, for the API.
pub(crate) fn kind_names() -> KindNames {
    let sources = source::kinds();
    let named = sources.kinds.iter().map(|kind| kind.name).chain(sources.absent.iter().copied());
    KindNames {
        sources: source::OWN.into_iter().chain([external_dns::KIND]).chain(named).collect(),
        providers: provider_kinds(),
    }
}

/// Names of all kinds of DNS servers and IPAM systems, each once.
fn provider_kinds() -> Vec<&'static str> {
    let mut names: Vec<_> = dns::kinds().kinds.iter().map(|kind| kind.name).collect();
    for kind in ipam::kinds().kinds {
        if !names.contains(&kind.name) {
            names.push(kind.name);
        }
    }
    names
}

/// Reads the file, if there is one, and what the environment sets on top of it. `own` are the `NETSTEAD_` names
/// that are not settings. No file or secret that it names is opened.
pub(crate) fn read(
    file: Option<(&Path, &str)>,
    environment: impl IntoIterator<Item = (String, String)>,
    own: &[String],
) -> Result<Config, Vec<Problem>> {
    let (path, text) = file.unwrap_or((Path::new(""), ""));
    let mut problems = Problems::new(path, text);
    let mut root = parse(text, &mut problems);
    if problems.any() {
        // What is no TOML has no keys either; half of it would only give wrong advice.
        return problems.none_or(Config::default()).map(|(config, _)| config);
    }
    let (plain, named) = (layout::plain_variables(), layout::named_variables());
    Environment::new(environment, own).overlay(&mut root, &plain, &named, &mut problems);
    if !limits::check(&root, &mut problems) {
        return problems.none_or(Config::default()).map(|(config, _)| config);
    }
    let config = understand(&root, &mut problems);
    problems.none_or(config).map(|(config, warnings)| Config { warnings, ..config })
}

fn understand(root: &Table, problems: &mut Problems) -> Config {
    let (plain, named) = (layout::plain_sections(), layout::named_sections());
    let names: Vec<_> =
        plain.iter().map(|section| section.name).chain(named.iter().map(|section| section.name)).collect();
    let mut top = Section::new("", Some(root), &names, problems);
    let [pools, backends, sources, providers, systems, domains, listeners] =
        ["pool", "backend", "source", "dns", "ipam", "domain", "external_dns"].map(|name| top.tables(name));
    let known = |name: &str| -> Vec<&'static str> {
        let section = plain.iter().find(|section| section.name == name);
        section.into_iter().flat_map(|section| &section.keys).map(|key| key.name).collect()
    };
    let store = store::read(top.open_section("store"));
    let max_events = if matches!(store, StoreConfig::Etcd(_)) { MAX_EVENTS_IN_ETCD } else { MAX_EVENTS };
    let config = Config {
        store,
        api: api::read(top.section("api", &known("api"))),
        web: web::read(top.section("web", &known("web"))),
        log: log(top.section("log", &known("log"))),
        ledger: ledger(top.section("ledger", &known("ledger")), max_events),
        nameserver: nameserver::read(top.section("nameserver", &known("nameserver"))),
        notify: notify::read(top.section("notify", &known("notify"))),
        #[cfg(feature = "kubernetes")]
        operator: operator::read(top.section("operator", &known("operator"))),
        ..Config::default()
    };
    let (mut specs, mut balancers) = (Vec::new(), Vec::new());
    for (place, (spec, balancer)) in
        each(pools, |name, place, table| pool::read(name, place, table, problems))
    {
        specs.push((place, spec));
        balancers.extend(balancer.map(|balancer| (place, balancer)));
    }
    let pools = specs;
    pool::check_together(&pools, problems);
    let backends = each(backends, |name, place, table| backend::read(name, place, table, problems));
    backend::check_pools(&pools, &backends, problems);
    let sources = each(sources, |name, place, table| source::read(name, place, table, problems));
    source::check_together(&sources, problems);
    load_balancer::check_together(&balancers, &sources, problems);
    let providers = each(providers, |name, place, table| dns::read(name, place, table, problems));
    let providers: Vec<(&ValueOrigin, DnsConfig)> = providers
        .into_iter()
        .flat_map(|(place, members)| members.into_iter().map(move |member| (place, member)))
        .collect();
    dns::check_together(&providers, problems);
    let systems = each(systems, |name, place, table| ipam::read(name, place, table, problems));
    ipam::check_together(&systems, &providers, problems);
    let domains = each(domains, |name, place, table| domain::read(name, place, table, problems));
    domain::check_together(&domains, problems);
    let listeners = each(listeners, |name, place, table| external_dns::read(name, place, table, problems));
    external_dns::check_together(&listeners, &sources, problems);
    Config {
        pools: without_places(pools),
        load_balancers: without_places(balancers),
        backends: without_places(backends),
        sources: without_places(sources),
        providers: without_places(providers),
        ipam: without_places(systems),
        domains: Domains(without_places(domains)),
        external_dns: without_places(listeners),
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

fn without_places<T>(read: Vec<(&ValueOrigin, T)>) -> Vec<T> {
    read.into_iter().map(|(_, value)| value).collect()
}

/// Reports keys that neither the kind nor its section has, and says which kinds have them.
fn refuse_unknown<B: ?Sized + 'static, C: 'static>(
    section: &mut Section<'_, '_>,
    kinds: &Kinds<B, C>,
    kind: &Kind<B, C>,
    shared: &[KeyInfo],
) {
    let own = kind.keys();
    let known: Vec<_> = shared.iter().chain(&own).map(|key| key.name).chain(["type"]).collect();
    section.refuse_unknown(&known, |key| kinds.having(key));
}

/// Reads an empty table.
fn read_literally<T>(path: &str, read: impl FnOnce(&mut Section<'_, '_>) -> Option<T>) -> Option<T> {
    let mut problems = Problems::new(Path::new(""), "");
    let table = Table { place: ValueOrigin::Nowhere, entries: std::collections::BTreeMap::new() };
    read(&mut Section::open(path, &table, &mut problems))
}

/// The place of a secret, never its value.
fn shown<T: Setting, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    value.shown().serialize(serializer)
}

/// The keys of a table in a table.
fn shown_keys<T: Settings, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    let mut keys = serde_json::Map::new();
    value.shown(&mut keys);
    keys.serialize(serializer)
}

type Connections = Number<1, 1_000_000>;

/// `max_connections` and `max_connections_per_peer` of a listener.
fn connection_limits(
    section: &mut Section<'_, '_>,
    in_all: Option<Connections>,
    per_peer: Option<Connections>,
) -> (Option<usize>, Option<usize>) {
    let (in_all, per_peer) = (in_all.map(Number::get::<usize>), per_peer.map(Number::get::<usize>));
    if let (Some(in_all), Some(per_peer)) = (in_all, per_peer)
        && per_peer > in_all
    {
        let message = format!("one peer cannot have {per_peer} connections when all together have {in_all}");
        section.wrong("max_connections_per_peer", &message, Some("raise `max_connections` as well"));
    }
    (in_all, per_peer)
}

fn log(mut section: Section<'_, '_>) -> LogConfig {
    let Some(keys) = LogKeys::read(&mut section) else { return LogConfig::default() };
    let format = keys.format.map(|format| match format {
        FormatWord::Json => LogFormat::Json,
        FormatWord::Text => LogFormat::Text,
    });
    LogConfig { level: keys.level.map(|level| level.0), format }
}

fn ledger(mut section: Section<'_, '_>, max_events: u64) -> LedgerConfig {
    let Some(keys) = LedgerKeys::read(&mut section) else { return LedgerConfig::default() };
    LedgerConfig { retention: keys.retention, max_events: keys.max_events.map_or(max_events, Number::get) }
}
