//! `[source.NAME]`: a place to look at what runs.

use netstead_model::{Ident, Source};
use netstead_settings::{Kinds, Problems, Section, Settings as _, Table, Value, ValueOrigin, table};

use super::kind_table::KindTable;
use crate::discovery::Discovery;

pub(crate) type SourceKinds = Kinds<dyn Source, ()>;

/// Every kind of source.
pub(crate) fn kinds() -> SourceKinds {
    Kinds { section: "source", kinds: netstead_sources::KINDS.to_vec(), absent: netstead_sources::ABSENT }
}

/// These are there without being configured.
const OWN: [&str; 2] = ["ledger", "manual"];

table! {
    /// What `[source.NAME]` says whatever its kind.
    pub(super) struct CommonKeys {
        /// the name it had before, to carry over what it brought
        was: Option<Ident>, unset;
    }
}

/// One source as the file has it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SourceConfig {
    pub(crate) name: Ident,
    /// The name it had before.
    pub(crate) was: Option<Ident>,
    pub(crate) table: KindTable<dyn Source, ()>,
}

impl serde::Serialize for SourceConfig {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut shared = netstead_settings::macros::Map::new();
        CommonKeys { was: self.was.clone() }.shown(&mut shared);
        self.table.shown_with(&self.name, &shared).serialize(serializer)
    }
}

impl SourceConfig {
    /// The source for what was found without being configured.
    pub(crate) fn discovered(found: &Discovery) -> Option<Self> {
        let host = found.docker_host()?;
        let table = KindTable::of(kinds().find("docker")?, vec![("host", Value::from(host.as_str()))])?;
        Some(Self { name: Ident::from_static("docker"), was: None, table })
    }
}

/// The source, unless what is written cannot be one.
pub(super) fn read(
    name: &str,
    place: &ValueOrigin,
    table: &Table,
    problems: &mut Problems,
) -> Option<SourceConfig> {
    let ident: Ident = problems.name(place, name, None)?;
    let path = format!("source.{name}");
    if OWN.contains(&name) {
        problems.add(place, format!("{path} is Netstead's own"), Some("give it another name".into()));
    }
    let kinds = kinds();
    let mut section = Section::open(&path, table, problems).named(place);
    let kind = kinds.of(&mut section, name)?;
    let shared = CommonKeys::keys();
    super::refuse_unknown(&mut section, &kinds, kind, &shared);
    let common = CommonKeys::read(&mut section);
    let table = KindTable::read(kind, &mut section, table, &shared);
    Some(SourceConfig { name: ident, was: common?.was, table: table? })
}

/// Refuses a former name that is the present one of another source, or the former one of two.
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
