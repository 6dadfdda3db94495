//! `type = "powerdns"`

use std::path::Path;

use netstead_model::Name;
use netstead_providers::{
    Tls,
    dns::{PowerDns, powerdns},
};
use serde::Serialize;

use super::{
    Section,
    tls::{self, TlsSettings},
};
use crate::config::Secret;

pub(super) const KEYS: &[&str] =
    &["url", "api_key", "server_id", "create_zones", "nameservers", "hostmaster"];

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct PowerDnsConfig {
    pub(crate) url: String,
    pub(crate) api_key: Secret,
    pub(crate) server_id: Option<String>,
    pub(crate) create_zones: bool,
    pub(crate) nameservers: Vec<Name>,
    pub(crate) hostmaster: Option<Name>,
    #[serde(flatten)]
    pub(crate) trust: TlsSettings,
}

impl PowerDnsConfig {
    /// With its key, wherever that was.
    pub(crate) fn with_key(&self, api_key: String) -> powerdns::Config {
        let mut config = powerdns::Config::new(&self.url, api_key.into());
        config.server_id = self.server_id.clone().unwrap_or(config.server_id);
        config.create_zones = self.create_zones;
        config.nameservers.clone_from(&self.nameservers);
        config.hostmaster.clone_from(&self.hostmaster);
        config.tls = self.trust.tls();
        config
    }
}

pub(super) fn read(section: &mut Section<'_, '_>, dir: &Path) -> Option<PowerDnsConfig> {
    let url = section.needed("url", "write `url = \"http://ns1:8081\"`");
    let api_key = section.secret("api_key", dir);
    if section.origin_of("api_key").is_none() {
        section.wrong("api_key", "it is missing", Some("write `api_key = { file = \"/run/secrets/pdns\" }`"));
    }
    let config = PowerDnsConfig {
        server_id: section.text("server_id").map(str::to_owned),
        create_zones: section.flag("create_zones").unwrap_or_default(),
        nameservers: section.list("nameservers"),
        hostmaster: section.parsed("hostmaster"),
        trust: tls::read(section, dir),
        url: url?.to_owned(),
        api_key: api_key?,
    };
    // The provider knows best what it can use; the key itself is read when it starts.
    let mut settings = config.with_key("of no matter".into());
    if section.is_foreign() {
        settings.tls = Tls::default();
    }
    if let Err(error) = PowerDns::new(settings) {
        section.wrong(error.key, &error.problem, None);
    }
    Some(config)
}
