//! `[source.NAME]` with `type = "docker"`: containers and swarm services of one host.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use netstead_sources::{
    dialects::{DefaultRule, Dialect, Reader, TargetSpec, TraefikSettings},
    docker::{self, DockerHost, Mode, Tls},
    dynamic_target::TargetResolver,
};
use serde::Serialize;

use super::super::{Section, dynamic_target::LookupSettings};

/// One Docker host as the file has it. Every text was understood once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct DockerConfig {
    pub(crate) host: String,
    pub(crate) dialects: Vec<String>,
    pub(crate) mode: String,
    pub(crate) target: String,
    pub(crate) keep_stopped: bool,
    pub(crate) observe: bool,
    pub(crate) tls: Option<DockerTls>,
    /// How targets that move are found.
    #[serde(flatten)]
    pub(crate) finding: LookupSettings,
    /// What Traefik was told in its own configuration.
    #[serde(flatten)]
    pub(crate) traefik: TraefikKeys,
}

/// What the rules of Traefik's labels leave to its own configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct TraefikKeys {
    exposed_by_default: bool,
    entrypoints: Vec<String>,
    default_entrypoints: Vec<String>,
    default_rule: Option<DefaultRule>,
}

impl From<TraefikSettings> for TraefikKeys {
    fn from(settings: TraefikSettings) -> Self {
        let TraefikSettings { exposed_by_default, entrypoints, default_entrypoints, default_rule } = settings;
        Self { exposed_by_default, entrypoints, default_entrypoints, default_rule }
    }
}

impl From<TraefikKeys> for TraefikSettings {
    fn from(keys: TraefikKeys) -> Self {
        let TraefikKeys { exposed_by_default, entrypoints, default_entrypoints, default_rule } = keys;
        Self { exposed_by_default, entrypoints, default_entrypoints, default_rule }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct DockerTls {
    pub(crate) ca_file: Option<PathBuf>,
    pub(crate) client: Option<(PathBuf, PathBuf)>,
}

impl DockerConfig {
    /// A host of which nothing but its address is said.
    pub(crate) fn at(host: &DockerHost) -> Self {
        Self {
            host: host.to_string(),
            dialects: Dialect::ALL.iter().map(ToString::to_string).collect(),
            mode: "auto".into(),
            target: "auto".into(),
            keep_stopped: false,
            observe: false,
            tls: None,
            finding: LookupSettings::default(),
            traefik: TraefikSettings::default().into(),
        }
    }

    pub(crate) fn build(&self, places: Arc<dyn TargetResolver>) -> anyhow::Result<docker::Config> {
        let dialects: Result<Vec<Dialect>, _> = self.dialects.iter().map(|name| name.parse()).collect();
        Ok(docker::Config {
            host: self.host.parse()?,
            tls: self
                .tls
                .as_ref()
                .map(|tls| Tls { ca_file: tls.ca_file.clone(), client: tls.client.clone() }),
            mode: self.mode.parse()?,
            reader: Reader::new(dialects?).with_traefik(self.traefik.clone().into()),
            target: self.target.parse()?,
            keep_stopped: self.keep_stopped,
            observe: self.observe,
            places: Some(places),
        })
    }
}

pub(super) fn read(section: &mut Section<'_, '_>, dir: &Path) -> DockerConfig {
    let usual = DockerConfig::at(&section.parsed::<DockerHost>("host").unwrap_or_default());
    let mode = section.parsed::<Mode>("mode").and(section.text("mode")).map_or(usual.mode, str::to_owned);
    let dialects: Vec<Dialect> = section.list("dialects");
    let asked = section.origin_of("dialects").is_some();
    let target = target(section).unwrap_or(usual.target);
    let keep_stopped = section.flag("keep_stopped").unwrap_or_default();
    let observe = section.flag("observe").unwrap_or_default();
    let tls = tls(section, dir, &usual.host);
    let dialects = if asked { dialects.iter().map(ToString::to_string).collect() } else { usual.dialects };
    let (finding, traefik) = (LookupSettings::read(section), traefik(section));
    DockerConfig { host: usual.host, dialects, mode, target, keep_stopped, observe, tls, finding, traefik }
}

fn traefik(section: &mut Section<'_, '_>) -> TraefikKeys {
    let usual = TraefikSettings::default();
    TraefikKeys {
        exposed_by_default: section.flag("exposed_by_default").unwrap_or(usual.exposed_by_default),
        entrypoints: section.one_or_more("entrypoints"),
        default_entrypoints: section.one_or_more("default_entrypoints"),
        default_rule: section.parsed("default_rule"),
    }
}

fn target(section: &mut Section<'_, '_>) -> Option<String> {
    let target = section.parsed::<TargetSpec>("target")?;
    if matches!(target, TargetSpec::Name(_)) {
        section.wrong(
            "target",
            "a source points at addresses, `auto`, `host`, `network:NAME`, `public` or `interface:NAME`",
            Some("set a name at the provider, as `target` of its `[dns.NAME]`"),
        );
        return None;
    }
    section.text("target").map(str::to_owned)
}

/// TLS is on when it is asked for, or when a file of it is named.
fn tls(section: &mut Section<'_, '_>, dir: &Path, host: &str) -> Option<DockerTls> {
    let mut file = |key| section.text(key).map(|path| dir.join(path));
    let (ca_file, cert, key) = (file("ca_file"), file("client_cert"), file("client_key"));
    let client = match (cert, key) {
        (Some(cert), Some(key)) => Some((cert, key)),
        (Some(_), None) => {
            section.wrong("client_cert", "a certificate without its key", Some("set `client_key` too"));
            None
        }
        (None, Some(_)) => {
            section.wrong("client_key", "a key without its certificate", Some("set `client_cert` too"));
            None
        }
        (None, None) => None,
    };
    let asked = section.flag("tls");
    let on = asked.unwrap_or(ca_file.is_some() || client.is_some() || host_is_https(section));
    if !on {
        return None;
    }
    if !host.starts_with("tcp://") {
        let key = ["tls", "ca_file", "client_cert"].into_iter().find(|key| section.origin_of(key).is_some());
        section.wrong(key.unwrap_or("host"), "only a `tcp://` host speaks TLS", Some("leave it out"));
    }
    Some(DockerTls { ca_file, client })
}

fn host_is_https(section: &mut Section<'_, '_>) -> bool {
    section.text("host").is_some_and(|host| host.starts_with("https://"))
}
