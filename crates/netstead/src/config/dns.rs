//! `[dns.NAME]`: a DNS server that is kept in line.
//!
//! The keys that all kinds share are read here; what is left belongs to the kind.

mod common;
mod conflicts;

use netstead_model::{Capabilities, DnsProvider, Ident};
use netstead_settings::{Kinds, Problems, Section, Settings as _, Table, ValueOrigin};

pub(crate) use self::common::Common;
pub(super) use self::{common::CommonKeys, conflicts::check as check_together};
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
    /// What there is without any configuration: the nameserver of this installation holds every name.
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

/// The provider, unless what is written cannot be one.
pub(super) fn read(
    name: &str,
    place: &ValueOrigin,
    table: &Table,
    problems: &mut Problems,
) -> Option<DnsConfig> {
    let ident: Ident = problems.name(place, name, None)?;
    let kinds = kinds();
    let mut section = Section::open(&format!("dns.{name}"), table, problems).named(place);
    let kind = kinds.of(&mut section, name)?;
    let shared = CommonKeys::keys();
    super::refuse_unknown(&mut section, &kinds, kind, &shared);
    let common = common::read(&mut section, kind.name == "builtin");
    let server = KindTable::read(kind, &mut section, table, &shared);
    Some(DnsConfig { name: ident, common: common?, server: server? })
}
