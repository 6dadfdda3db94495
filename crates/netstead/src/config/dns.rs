//! `[dns.NAME]`: a DNS server that is kept in line.
//!
//! The keys that all types share are read here; what is left belongs to the type.

mod common;
mod conflicts;
mod powerdns;
mod rfc2136;
mod tls;

use std::path::Path;

use netstead_model::Ident;
use serde::Serialize;

pub(super) use self::conflicts::check as check_together;
pub(crate) use self::{common::Common, powerdns::PowerDnsConfig, rfc2136::Rfc2136Config};
use super::{Problems, Section, ValueOrigin, concat_keys, tree::Table};

const TYPES: [&str; 3] = ["builtin", "powerdns", "rfc2136"];

/// All keys of all types, for the environment.
pub(super) const KEYS: &[&str] = &concat_keys::<ALL>(&LISTS);
const LISTS: [&[&str]; 4] = [common::KEYS, powerdns::KEYS, tls::KEYS, rfc2136::KEYS];
const ALL: usize = common::KEYS.len() + powerdns::KEYS.len() + tls::KEYS.len() + rfc2136::KEYS.len();

/// One provider as the file has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct DnsConfig {
    pub(crate) name: Ident,
    #[serde(flatten)]
    pub(crate) common: Common,
    #[serde(flatten)]
    pub(crate) server: ServerConfig,
}

/// What it speaks to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(crate) enum ServerConfig {
    /// Netstead's own nameserver.
    Builtin,
    PowerDns(PowerDnsConfig),
    Rfc2136(Rfc2136Config),
}

impl ServerConfig {
    /// Whether both mean one server, whatever else is said about it.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        conflicts::same_server(self, other)
    }
}

impl DnsConfig {
    /// What there is without any configuration: the nameserver of this installation holds every name.
    pub(crate) fn builtin() -> Option<Self> {
        let name = "builtin".parse().ok()?;
        Some(Self { name, common: Common::everything()?, server: ServerConfig::Builtin })
    }
}

/// The provider, unless what is written cannot be one.
pub(super) fn read(
    name: &str,
    place: &ValueOrigin,
    table: &Table,
    dir: &Path,
    problems: &mut Problems,
) -> Option<DnsConfig> {
    let ident: Ident = problems.name(place, name, None)?;
    let path = format!("dns.{name}");
    let kind = kind(&path, place, table, problems)?;
    let own = match kind {
        "powerdns" => [powerdns::KEYS, tls::KEYS].concat(),
        "rfc2136" => rfc2136::KEYS.to_vec(),
        _ => Vec::new(),
    };
    let known = [common::KEYS, &own].concat();
    let mut section = Section::new(&path, Some(table), &known, problems);
    let common = common::read(&mut section, kind == "builtin");
    let server = match kind {
        "powerdns" => powerdns::read(&mut section, dir).map(ServerConfig::PowerDns),
        "rfc2136" => rfc2136::read(&mut section, dir).map(ServerConfig::Rfc2136),
        _ => Some(ServerConfig::Builtin),
    };
    Some(DnsConfig { name: ident, common: common?, server: server? })
}

/// The type decides what the other keys mean, so nothing else is looked at without it.
fn kind(path: &str, place: &ValueOrigin, table: &Table, problems: &mut Problems) -> Option<&'static str> {
    if !table.entries.contains_key("type") {
        let known = TYPES.map(|kind| format!("`type = \"{kind}\"`")).join(", ");
        problems.add(place, format!("{path} has no type"), Some(format!("write one of {known}")));
    }
    Section::new(path, Some(table), KEYS, problems).choice("type", &TYPES)
}
