//! `[source.NAME]`: a place to look at what runs.

use std::path::{Path, PathBuf};

use netstead_model::Ident;
use serde::Serialize;

use super::{Place, Problems, Section, tree::Table};

pub(super) const KEYS: &[&str] = &["type", "path"];
const TYPES: [&str; 1] = ["hosts"];
/// These are there without being configured.
const OWN: [&str; 2] = ["ledger", "manual"];

/// One source as the file has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct SourceConfig {
    pub(crate) name: Ident,
    #[serde(flatten)]
    pub(crate) kind: SourceKind,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(crate) enum SourceKind {
    /// Names and addresses that a person wrote into a file.
    Hosts { path: PathBuf },
}

/// The source, unless what is written cannot be one.
pub(super) fn read(
    name: &str,
    place: &Place,
    table: &Table,
    dir: &Path,
    problems: &mut Problems,
) -> Option<SourceConfig> {
    let ident: Ident = match name.parse() {
        Ok(ident) => ident,
        Err(error) => {
            problems.add(place, error.to_string(), None);
            return None;
        }
    };
    let path = format!("source.{name}");
    if OWN.contains(&name) {
        problems.add(place, format!("{path} is Netstead's own"), Some("give it another name".into()));
    }
    if !table.entries.contains_key("type") {
        problems.add(place, format!("{path} has no type"), Some("write `type = \"hosts\"`".into()));
    }
    let mut section = Section::new(&path, Some(table), KEYS, problems);
    section.choice("type", &TYPES)?;
    let file = section.needed("path", "write `path = \"/etc/netstead/hosts\"`")?;
    Some(SourceConfig { name: ident, kind: SourceKind::Hosts { path: dir.join(file) } })
}
