//! What a source may ask for: keys that every type has.

use netstead_model::RecordType;
use netstead_plan::{DomainMatch, SourceRules};
use serde::Serialize;

use super::Section;

pub(super) const KEYS: &[&str] = &["domains", "types", "wildcard", "apex"];

/// The limits of one source as the file has them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct RuleKeys {
    domains: Vec<DomainMatch>,
    types: Vec<RecordType>,
    wildcard: bool,
    apex: bool,
    /// Workloads say by themselves what they want.
    #[serde(skip)]
    labels: bool,
}

impl From<SourceRules> for RuleKeys {
    fn from(rules: SourceRules) -> Self {
        let SourceRules { labels, domains, types, wildcard, apex } = rules;
        Self { domains, types, wildcard, apex, labels }
    }
}

impl From<RuleKeys> for SourceRules {
    fn from(keys: RuleKeys) -> Self {
        let RuleKeys { domains, types, wildcard, apex, labels } = keys;
        Self { labels, domains, types, wildcard, apex }
    }
}

/// The defaults of a type of source.
pub(super) fn defaults(kind: &str) -> RuleKeys {
    if kind == "hosts" { SourceRules::default().into() } else { SourceRules::for_labels().into() }
}

pub(super) fn read(section: &mut Section<'_, '_>, kind: &str) -> RuleKeys {
    let mut rules = defaults(kind);
    for key in ["domains", "types"] {
        if section.origin_of(key).is_some() && section.texts(key).is_empty() {
            section.wrong(key, "it names none", Some("leave it out"));
        }
    }
    rules.domains = section.list("domains");
    if section.origin_of("types").is_some() {
        rules.types = section.list("types");
    }
    if rules.labels && rules.types.contains(&RecordType::Ns) {
        let hint = "leave it out; `netstead record set` and sources of type `hosts` do";
        section.wrong("types", "labels never write NS records", Some(hint));
    }
    rules.wildcard = section.flag("wildcard").unwrap_or(rules.wildcard);
    rules.apex = section.flag("apex").unwrap_or(rules.apex);
    rules
}
