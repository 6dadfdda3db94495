//! `[dns.NAME]`: a DNS server that is kept in line.
//!
//! The keys that all kinds share are read here; what is left belongs to the kind.

mod common;
mod conflicts;
mod group;

use netstead_model::{Capabilities, DnsProvider, Ident};
use netstead_settings::{Kinds, Problems, Section, Settings as _, Table, ValueOrigin};

pub(crate) use self::common::Common;
pub(super) use self::{
    common::{Breaker, CommonKeys},
    conflicts::check as check_together,
};
use super::kind_table::KindTable;

pub(crate) type DnsKinds = Kinds<dyn DnsProvider, Capabilities>;

/// Every kind of DNS server.
pub(crate) fn kinds() -> DnsKinds {
    let mut kinds = vec![&netstead_nameserver::builtin::KIND];
    kinds.extend(netstead_providers::dns::KINDS);
    Kinds { section: "dns", kinds, absent: &[] }
}

/// One provider as the file has it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DnsConfig {
    pub(crate) name: Ident,
    pub(crate) common: Common,
    pub(crate) server: KindTable<dyn DnsProvider, Capabilities>,
}

impl DnsConfig {
    /// The provider without any configuration: the nameserver of this installation holds every name.
    pub(crate) fn builtin() -> Option<Self> {
        let name = Ident::from_static("builtin");
        let server = KindTable::empty(kinds().find("builtin")?)?;
        Some(Self { name, common: Common::everything()?, server })
    }
}

impl serde::Serialize for DnsConfig {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.server.shown_with(&self.name, &self.common.shown).serialize(serializer)
    }
}

/// The providers of a table: one, or as many as `urls` names. None if what is written cannot be one.
pub(super) fn read(
    name: &str,
    place: &ValueOrigin,
    table: &Table,
    problems: &mut Problems,
) -> Option<Vec<DnsConfig>> {
    let ident: Ident = problems.name(place, name, None)?;
    let kinds = kinds();
    let path = format!("dns.{name}");
    let mut section = Section::open(&path, table, problems).named(place);
    let kind = kinds.of(&mut section, name)?;
    let shared = CommonKeys::keys();
    super::refuse_unknown(&mut section, &kinds, kind, &shared);
    let common = common::read(&mut section, kind.name == "builtin");
    if section.origin_of("urls").is_none() {
        let server = KindTable::read(kind, &mut section, table, &shared);
        return Some(vec![DnsConfig { name: ident, common: common?, server: server? }]);
    }
    let urls = section.texts("urls");
    let problem = if !kind.keys().iter().any(|key| key.name == "url") {
        Some((format!("a server of type `{}` has no `url`", kind.name), "make one table for each server"))
    } else if section.origin_of("url").is_some() {
        Some(("`url` is there too".to_owned(), "write all servers into `urls`"))
    } else if urls.is_empty() {
        Some(("it names none".to_owned(), "write `urls = [\"http://ns1:8081\", \"http://ns2:8081\"]`"))
    } else {
        None
    };
    if let Some((problem, hint)) = problem {
        section.wrong("urls", &problem, Some(hint));
        return None;
    }
    let mut members = Vec::new();
    for url in &urls {
        let Some(member) = group::member_name(name, url) else {
            let mut section = Section::open(&path, table, problems).named(place);
            section.wrong(
                "urls",
                &format!("no name can be made of `{url}`"),
                Some("use a shorter host name"),
            );
            continue;
        };
        let table = group::table_of(table, url);
        let mut section = Section::open(&path, &table, problems).named(place);
        let server = KindTable::read(kind, &mut section, &table, &shared);
        if let (Some(common), Some(server)) = (&common, server) {
            let mut common = common.clone();
            common.group = Some(ident.clone());
            // A table that had one server goes on with the first of them.
            common.was = common.was.or_else(|| Some(ident.clone())).filter(|_| members.is_empty());
            members.push(DnsConfig { name: member, common, server });
        }
    }
    Some(members)
}
