//! `[source.NAME]`: a place to look at what runs.

use netstead_model::{Ident, RecordType, Source};
use netstead_plan::{DomainMatch, SourceRules};
use netstead_settings::{
    Kinds, Parsed, Problems, Section, Settings as _, Table, Value, ValueOrigin,
    macros::{Json, Map},
    table,
};
use netstead_sources::{SourceKind, SourceTraits};

use super::kind_table::KindTable;
use crate::docker_discovery::Discovery;

pub(crate) type SourceKinds = Kinds<dyn Source, SourceTraits>;

/// Every kind of source.
pub(crate) fn kinds() -> SourceKinds {
    Kinds { section: "source", kinds: netstead_sources::KINDS.to_vec(), absent: netstead_sources::ABSENT }
}

/// These are there without being configured.
pub(super) const OWN: [&str; 2] = ["ledger", "manual"];

table! {
    /// Keys that `[source.NAME]` has for every kind.
    pub(super) struct CommonKeys {
        /// the only names it may ask for: a domain with all below, a glob, or a `/regex/`
        domains: Option<Vec<Parsed<DomainMatch>>>, unset "all";
        /// the only record types it may ask for; labels never write `NS`
        types: Option<Vec<RecordType>>, unset "all for `hosts`; of labels `A`, `AAAA`, `CNAME`, `SRV`, `TXT`, `HTTPS`, `SVCB`";
        /// whether it may ask for wildcard names
        wildcard: Option<bool>, unset "`true` for `hosts`, else `false`";
        /// whether it may ask for names that are a domain's own
        apex: Option<bool>, unset "`true` for `hosts`, else `false`";
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
    /// The names and types it may ask for. They are no part of what is looked at, so other ones need no new look.
    pub(crate) rules: SourceRules,
    shown: Map<String, Json>,
    pub(crate) table: KindTable<dyn Source, SourceTraits>,
}

impl serde::Serialize for SourceConfig {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.table.shown_with(&self.name, &self.shown).serialize(serializer)
    }
}

impl SourceConfig {
    /// The source for what was found without being configured.
    pub(crate) fn discovered(found: &Discovery) -> Option<Self> {
        let host = found.docker_host()?;
        let kind = kinds().find("docker")?;
        let table = KindTable::of(kind, vec![("host", Value::from(host.as_str()))])?;
        let rules = default_rules(kind);
        Some(Self { name: Ident::from_static("docker"), was: None, rules, shown: Map::new(), table })
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
    let common = common?;
    let mut shown = Map::new();
    common.shown(&mut shown);
    let rules = rules(&mut section, kind, &common);
    Some(SourceConfig { name: ident, was: common.was, rules, shown, table: table? })
}

/// The rules of a kind of source whose table says nothing of them.
fn default_rules(kind: &SourceKind) -> SourceRules {
    if (kind.capabilities)().labels { SourceRules::for_labels() } else { SourceRules::default() }
}

fn rules(section: &mut Section<'_, '_>, kind: &SourceKind, keys: &CommonKeys) -> SourceRules {
    let mut rules = default_rules(kind);
    for key in ["domains", "types"] {
        if section.origin_of(key).is_some() && section.texts(key).is_empty() {
            section.wrong(key, "it names none", Some("leave it out"));
        }
    }
    rules.domains = keys.domains.iter().flatten().map(|domain| domain.0.clone()).collect();
    rules.types = keys.types.clone().unwrap_or(rules.types);
    if rules.labels && rules.types.contains(&RecordType::Ns) {
        let hint = "leave it out; `netstead record set` and sources of type `hosts` do";
        section.wrong("types", "labels never write NS records", Some(hint));
    }
    rules.wildcard = keys.wildcard.unwrap_or(rules.wildcard);
    rules.apex = keys.apex.unwrap_or(rules.apex);
    rules
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
