//! `type = "traefik"`: Traefik's dynamic configuration in files.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use netstead_model::Span;
use netstead_sources::{
    dialects::TargetSpec,
    dynamic_target::TargetResolver,
    traefik::{Config, FilePattern},
};
use serde::Serialize;

use super::{super::dynamic_target::LookupSettings, Section};

pub(super) const KEYS: &[&str] = &["paths", "pattern", "poll"];

/// What is looked at when nothing tells that it changed, and how often at most.
const POLL: Span = Span::from_secs(60);
const MOST_OFTEN: Span = Span::from_secs(1);

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct TraefikConfig {
    paths: Vec<PathBuf>,
    pattern: Vec<FilePattern>,
    pub(crate) poll: Span,
    entrypoints: Vec<String>,
    default_entrypoints: Vec<String>,
    target: Option<TargetSpec>,
    /// How a target that moves is found.
    #[serde(flatten)]
    pub(crate) finding: LookupSettings,
}

impl TraefikConfig {
    /// Where they are, for people.
    pub(crate) fn paths_text(&self) -> String {
        let paths: Vec<_> = self.paths.iter().map(|path| path.display().to_string()).collect();
        paths.join(" ")
    }

    pub(crate) fn source(&self, places: Arc<dyn TargetResolver>) -> Config {
        Config {
            paths: self.paths.clone(),
            patterns: self.pattern.clone(),
            entrypoints: self.entrypoints.clone(),
            default_entrypoints: self.default_entrypoints.clone(),
            target: self.target.clone(),
            places: Some(places),
        }
    }
}

pub(super) fn read(section: &mut Section<'_, '_>, dir: &Path) -> Option<TraefikConfig> {
    let paths: Vec<PathBuf> = section.one_or_more("paths").iter().map(|path| dir.join(path)).collect();
    if paths.is_empty() {
        section.wrong("paths", "it is missing", Some("write `paths = [\"/etc/traefik/dynamic\"]`"));
        return None;
    }
    let pattern: Vec<FilePattern> =
        if section.origin_of("pattern").is_some() { section.list("pattern") } else { FilePattern::usual() };
    let poll = section.parsed("poll").unwrap_or(POLL);
    if poll < MOST_OFTEN {
        section.wrong("poll", "it is under a second", Some("write `1s` or more"));
    }
    Some(TraefikConfig {
        paths,
        pattern,
        poll,
        entrypoints: section.one_or_more("entrypoints"),
        default_entrypoints: section.one_or_more("default_entrypoints"),
        target: target(section),
        finding: LookupSettings::read(section),
    })
}

/// Addresses, one name, or a place that moves: what can be known of a router in a file.
fn target(section: &mut Section<'_, '_>) -> Option<TargetSpec> {
    let text = section.one_or_more("target").join(",");
    if text.is_empty() {
        return None;
    }
    match text.parse() {
        Ok(TargetSpec::Source | TargetSpec::Host | TargetSpec::Network(_)) => {
            let hint = "write addresses, one name, `public` or `interface:NAME`";
            section.wrong("target", "files know no such target", Some(hint));
            None
        }
        Ok(target) => Some(target),
        Err(error) => {
            section.wrong("target", &error.to_string(), None);
            None
        }
    }
}
