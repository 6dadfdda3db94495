//! Limits of the names and records a source may ask for.

use netstead_model::{Ident, Name, RecordType};
use serde::{Deserialize, Serialize};

use crate::DomainMatch;

/// The most names that the labels of one workload give.
pub const MOST_NAMES: usize = 256;

/// Record types that labels write without more consent. MX, CAA and PTR speak for a whole domain or network, and NS
/// hands a part of it over to another server.
const LABEL_TYPES: [RecordType; 7] = [
    RecordType::A,
    RecordType::Aaaa,
    RecordType::Cname,
    RecordType::Srv,
    RecordType::Txt,
    RecordType::Https,
    RecordType::Svcb,
];

/// Limits of one source. The default is for what people declare (hosts files, records, claims): none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SourceRules {
    /// Workloads say by themselves what they want, in labels or rules: never NS, and at most [`MOST_NAMES`] names each.
    pub labels: bool,
    /// Names it may ask for; empty means all.
    pub domains: Vec<DomainMatch>,
    /// Types it may write; empty means all.
    pub types: Vec<RecordType>,
    /// It may ask for wildcards.
    pub wildcard: bool,
    /// It may ask for the top of a zone or domain.
    pub apex: bool,
}

impl Default for SourceRules {
    fn default() -> Self {
        Self { labels: false, domains: Vec::new(), types: Vec::new(), wildcard: true, apex: true }
    }
}

impl SourceRules {
    /// The defaults of sources that read labels.
    pub fn for_labels() -> Self {
        Self { labels: true, types: LABEL_TYPES.to_vec(), wildcard: false, apex: false, ..Self::default() }
    }

    /// Why `source` may not write this: the rest of a sentence, with what would allow it. `top` says whether the name is
    /// the top of a zone or domain.
    pub(crate) fn refuse(&self, source: &Ident, name: &Name, kind: RecordType, top: bool) -> Option<String> {
        if self.labels && kind == RecordType::Ns {
            return Some("labels never write NS records; `netstead record set` does".into());
        }
        if !self.domains.is_empty() && !self.domains.iter().any(|domain| domain.matches(name)) {
            return Some(format!("it matches none of the `domains` of [source.{source}]"));
        }
        if !self.types.is_empty() && !self.types.contains(&kind) {
            return Some(format!("{kind} is not among the `types` of [source.{source}]"));
        }
        if !self.wildcard && name.is_wildcard() {
            return Some(format!("a wildcard needs `wildcard = true` in [source.{source}]"));
        }
        (top && !self.apex)
            .then(|| format!("the top of a zone or domain needs `apex = true` in [source.{source}]"))
    }
}
