//! `type = "rfc2136"`

use std::path::Path;

use netstead_model::Name;
use netstead_providers::dns::{Rfc2136, rfc2136};
use serde::Serialize;

use super::Section;
use crate::config::Secret;

pub(super) const KEYS: &[&str] = &["servers", "tsig_name", "tsig_algorithm", "tsig_secret", "read", "zones"];

/// Stands for a key that is read later: 64 bytes in base64.
const ANY_KEY: &str =
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==";

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Rfc2136Config {
    pub(crate) servers: Vec<String>,
    pub(crate) tsig_name: Option<String>,
    pub(crate) tsig_algorithm: Option<String>,
    pub(crate) tsig_secret: Option<Secret>,
    /// Each name is asked for, because transfers are not allowed.
    pub(crate) by_query: bool,
    pub(crate) zones: Vec<Name>,
}

impl Rfc2136Config {
    /// With its key, wherever that was.
    pub(crate) fn with_key(&self, key: Option<String>) -> rfc2136::Config {
        let mut config = rfc2136::Config::new(self.servers.iter().cloned());
        config.tsig_name.clone_from(&self.tsig_name);
        config.tsig_algorithm = self.tsig_algorithm.clone().unwrap_or(config.tsig_algorithm);
        config.tsig_secret = key.map(Into::into);
        config.read = if self.by_query { rfc2136::Read::Query } else { rfc2136::Read::Transfer };
        config.zones.clone_from(&self.zones);
        config
    }
}

pub(super) fn read(section: &mut Section<'_, '_>, dir: &Path) -> Option<Rfc2136Config> {
    if section.origin_of("servers").is_none() {
        section.wrong("servers", "it is missing", Some("write `servers = [\"ns1.example.com\"]`"));
        return None;
    }
    let config = Rfc2136Config {
        servers: section.texts("servers"),
        tsig_name: section.text("tsig_name").map(str::to_owned),
        tsig_algorithm: section.text("tsig_algorithm").map(str::to_owned),
        tsig_secret: section.secret("tsig_secret", dir),
        by_query: section.choice("read", &["transfer", "query"]) == Some("query"),
        zones: section.list("zones"),
    };
    let key = config.tsig_secret.as_ref().map(|secret| match secret {
        Secret::Value(value) => value.clone(),
        Secret::Variable(_) | Secret::File(_) => ANY_KEY.to_owned(),
    });
    if let Err(error) = Rfc2136::new(config.with_key(key)) {
        section.wrong(error.key, &error.problem, None);
    }
    Some(config)
}
