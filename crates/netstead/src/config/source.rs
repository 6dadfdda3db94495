//! `[source.NAME]`: a place to look at what runs.

#[cfg(feature = "docker")]
pub(crate) mod docker;
mod hosts;
mod rules;
mod traefik;

use std::path::{Path, PathBuf};

use netstead_model::Ident;
use serde::Serialize;

pub(crate) use self::{rules::RuleKeys, traefik::TraefikConfig};
use super::{Problems, Section, ValueOrigin, concat_keys, dynamic_target, tree::Table};
use crate::discovery::Discovery;

/// The keys of all types, each once; what a type does not know is told when it is read.
pub(super) const KEYS: &[&str] = &concat_keys::<ALL>(&LISTS);
const LISTS: [&[&str]; 7] =
    [COMMON, rules::KEYS, hosts::KEYS, DOCKER_KEYS, SHARED, dynamic_target::KEYS, traefik::KEYS];
const ALL: usize = COMMON.len()
    + rules::KEYS.len()
    + hosts::KEYS.len()
    + SHARED.len()
    + dynamic_target::KEYS.len()
    + DOCKER_KEYS.len()
    + traefik::KEYS.len();
/// Of every source.
const COMMON: &[&str] = &["type", "was"];
/// Of Docker and of Traefik's files.
const SHARED: &[&str] = &["target", "entrypoints", "default_entrypoints"];
/// Also known to a build without Docker: it says what it lacks, not that the key is mistyped.
const DOCKER_KEYS: &[&str] = &[
    "host",
    "dialects",
    "mode",
    "keep_stopped",
    "observe",
    "exposed_by_default",
    "default_rule",
    "tls",
    "ca_file",
    "client_cert",
    "client_key",
];
const TYPES: [&str; 3] = ["hosts", "docker", "traefik"];
/// These are there without being configured.
const OWN: [&str; 2] = ["ledger", "manual"];

/// One source as the file has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct SourceConfig {
    pub(crate) name: Ident,
    /// What it was called before.
    pub(crate) was: Option<Ident>,
    #[serde(flatten)]
    pub(crate) kind: SourceKind,
    /// What it may ask for. It is no part of what is looked at, so another one needs no new look.
    #[serde(flatten)]
    pub(crate) rules: RuleKeys,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(crate) enum SourceKind {
    /// Names and addresses that a person wrote into a file.
    Hosts { path: PathBuf },
    /// Containers and swarm services of one Docker host.
    #[cfg(feature = "docker")]
    Docker(docker::DockerConfig),
    /// Traefik's dynamic configuration in files.
    Traefik(TraefikConfig),
}

impl SourceConfig {
    /// The source for what was found without being configured.
    #[cfg(feature = "docker")]
    pub(crate) fn discovered(found: &Discovery) -> Option<Self> {
        let Discovery::Docker(socket) = found else { return None };
        let host = netstead_sources::docker::DockerHost::Unix(socket.clone());
        let kind = SourceKind::Docker(docker::DockerConfig::at(&host));
        Some(Self { name: "docker".parse().ok()?, was: None, kind, rules: rules::defaults("docker") })
    }

    #[cfg(not(feature = "docker"))]
    pub(crate) fn discovered(_: &Discovery) -> Option<Self> {
        None
    }
}

/// The source, unless what is written cannot be one.
pub(super) fn read(
    name: &str,
    place: &ValueOrigin,
    table: &Table,
    dir: &Path,
    problems: &mut Problems,
) -> Option<SourceConfig> {
    let ident: Ident = problems.name(place, name, None)?;
    let path = format!("source.{name}");
    if OWN.contains(&name) {
        problems.add(place, format!("{path} is Netstead's own"), Some("give it another name".into()));
    }
    // `[source.docker]` says it already.
    let telling = TYPES.into_iter().find(|kind| *kind == name);
    let telling = telling.filter(|_| !table.entries.contains_key("type"));
    if telling.is_none() && !table.entries.contains_key("type") {
        problems.add(place, format!("{path} has no type"), Some("write `type = \"hosts\"`".into()));
    }
    let mut section = Section::new(&path, Some(table), KEYS, problems);
    let kind = match telling {
        Some(kind) => kind,
        None => section.choice("type", &TYPES)?,
    };
    let was = section.parsed("was");
    let rules = rules::read(&mut section, kind);
    let kind = if kind == "docker" {
        docker(&path, table, dir, problems)?
    } else if kind == "traefik" {
        let mut section = only(&path, table, kind, &[traefik::KEYS, SHARED, dynamic_target::KEYS], problems);
        SourceKind::Traefik(traefik::read(&mut section, dir)?)
    } else {
        let mut section = only(&path, table, kind, &[hosts::KEYS], problems);
        SourceKind::Hosts { path: hosts::read(&mut section, dir)? }
    };
    Some(SourceConfig { name: ident, was, kind, rules })
}

#[cfg(feature = "docker")]
#[expect(clippy::unnecessary_wraps, reason = "a build without Docker has none")]
fn docker(path: &str, table: &Table, dir: &Path, problems: &mut Problems) -> Option<SourceKind> {
    let mut section = only(path, table, "docker", &[DOCKER_KEYS, SHARED, dynamic_target::KEYS], problems);
    Some(SourceKind::Docker(docker::read(&mut section, dir)))
}

#[cfg(not(feature = "docker"))]
fn docker(path: &str, table: &Table, _: &Path, problems: &mut Problems) -> Option<SourceKind> {
    problems.add(&table.place, format!("{path}: this build of Netstead has no Docker in it"), None);
    None
}

/// The table, with a word about every key that belongs to another type.
fn only<'t, 'p>(
    path: &str,
    table: &'t Table,
    kind: &str,
    keys: &[&[&str]],
    problems: &'p mut Problems,
) -> Section<'t, 'p> {
    for (key, entry) in &table.entries {
        let key = key.as_str();
        let own = [COMMON, rules::KEYS].into_iter().chain(keys.iter().copied());
        if KEYS.contains(&key) && !own.flatten().any(|known| *known == key) {
            problems.add(&entry.key, format!("{path}: a source of type {kind} has no `{key}`"), None);
        }
    }
    Section::new(path, Some(table), KEYS, problems)
}

/// A former name is nobody's present one, and of one source only.
pub(super) fn check_together(sources: &[(&ValueOrigin, SourceConfig)], problems: &mut Problems) {
    for (number, (place, one)) in sources.iter().enumerate() {
        let Some(was) = &one.was else { continue };
        if sources.iter().any(|(_, other)| other.name == *was) {
            let message = format!("source.{}.was: source.{was} is still there", one.name);
            problems.add(place, message, Some("leave out `was`, or the other table".into()));
        }
        let earlier = sources.iter().take(number).find(|(_, other)| other.was.as_ref() == Some(was));
        if let Some((_, other)) = earlier {
            let message = format!("source.{}.was: source.{} was `{was}` before too", one.name, other.name);
            problems.add(place, message, Some("leave out one of them".into()));
        }
    }
}
