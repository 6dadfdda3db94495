//! Rules that refuse names and records to a workload, no matter which workload holds the name.

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
};

use netstead_model::{Ident, Name, RecordType, Workload};

use crate::{DomainMatch, Domains, MOST_NAMES, Settings, SourceRules, marks::is_mark};

/// So many names of a workload that asks for too many are explained one by one.
const MOST_TOLD: usize = 16;

/// The rules for the names of one source on one provider.
pub(super) struct NameRules<'a> {
    pub(super) settings: &'a Settings,
    pub(super) domains: &'a Domains,
    /// The zones of the server.
    pub(super) zones: &'a BTreeSet<Name>,
    pub(super) source: &'a SourceRules,
}

impl NameRules<'_> {
    /// Why a record of this type at `name` is refused: the end of a sentence.
    pub(super) fn refuse(&self, source: &Ident, name: &Name, kind: RecordType) -> Option<Arc<str>> {
        if is_mark(name.as_str()).is_some() {
            return Some("that is the name of an ownership mark, which only Netstead itself writes".into());
        }
        if kind == RecordType::Ns && self.is_zone(name) {
            return Some("the NS records at the top of a zone are its server's own".into());
        }
        let top = !(self.source.apex && self.settings.apex) && (self.is_zone(name) || self.is_domain(name));
        if let Some(why) = self.source.refuse(source, name, kind, top) {
            return Some(why.into());
        }
        let provider = &self.settings.provider;
        if !self.settings.wildcard && name.is_wildcard() {
            return Some(format!("`wildcard = false` in [dns.{provider}]").into());
        }
        (top && !self.settings.apex).then(|| format!("`apex = false` in [dns.{provider}]").into())
    }

    /// Whether `name` is the top of a zone of the server.
    fn is_zone(&self, name: &Name) -> bool {
        self.zones.contains(name) || self.settings.lone_zones && self.is_domain(name)
    }

    /// Whether `name` is a domain that the configuration names.
    fn is_domain(&self, name: &Name) -> bool {
        let is = |domain: &DomainMatch| matches!(domain, DomainMatch::Domain(domain) if domain == name);
        self.settings.domains.iter().any(is) || self.domains.0.iter().any(|rule| rule.domain == *name)
    }
}

/// Counts the names that one workload asks for.
pub(super) struct NameCount<'a> {
    workload: &'a Workload,
    limited: bool,
    names: HashSet<&'a Name>,
    why: Option<Arc<str>>,
    told: usize,
}

impl<'a> NameCount<'a> {
    pub(super) fn new(workload: &'a Workload, source: &SourceRules) -> Self {
        let limited = source.labels && workload.wishes.len() > MOST_NAMES;
        Self { workload, limited, names: HashSet::new(), why: None, told: 0 }
    }

    /// Why `name` is one too many, if it is.
    pub(super) fn surplus(&mut self, name: &'a Name) -> Option<Arc<str>> {
        if !self.limited || self.names.contains(name) {
            return None;
        }
        if self.names.len() < MOST_NAMES {
            self.names.insert(name);
            return None;
        }
        let why = || -> Arc<str> {
            let all: HashSet<&Name> = self.workload.wishes.iter().map(|wish| &wish.name).collect();
            format!("it asks for {} names, and labels give at most {MOST_NAMES}", all.len()).into()
        };
        Some(self.why.get_or_insert_with(why).clone())
    }

    /// Whether the next refused name is explained by itself.
    pub(super) fn is_told(&mut self) -> bool {
        self.told += 1;
        self.told <= MOST_TOLD
    }

    /// The reason for the names that were not.
    pub(super) fn untold(self) -> Option<String> {
        let more = self.told.checked_sub(MOST_TOLD).filter(|more| *more > 0)?;
        self.why.map(|why| format!("{why}: {more} more are refused"))
    }
}
