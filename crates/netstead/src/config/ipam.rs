//! `[ipam.NAME]`: an IPAM system that is kept in line.
//!
//! The keys that all kinds share are read here; the rest belongs to the kind.

use netstead_model::{Ident, IpamCapabilities, IpamProvider, Span};
use netstead_plan::{
    Limits, Mode, OwnerId,
    ipam::{IpamScope, IpamSettings},
};
use netstead_settings::{
    Kinds, Parsed, Problems, Section, Settings as _, Table, ValueOrigin, choice,
    macros::{Json, Map},
    table,
};

use super::{DnsConfig, dns::Breaker, kind_table::KindTable};

pub(crate) type IpamKinds = Kinds<dyn IpamProvider, IpamCapabilities>;

/// Every kind of IPAM system.
pub(crate) fn kinds() -> IpamKinds {
    Kinds { section: "ipam", kinds: netstead_providers::ipam::KINDS.to_vec(), absent: &[] }
}

table! {
    /// Keys that `[ipam.NAME]` has for every kind.
    pub(super) struct CommonKeys {
        /// `managed`; `additive` never deletes; `create-only` never changes an object that is there; `observe` plans and never
        /// writes
        mode: ModeWord, default "managed";
        /// the only sources whose workloads are written there
        sources: Vec<Ident>, unset "all";
        /// whether claims whose address no workload has are written there, as reserved addresses
        claims: bool, default true;
        /// `named`: addresses that have a name, and all addresses of a workload whose hostname is a full name; `all`
        scope: ScopeWord, default "named";
        /// how long something may be absent before its objects are removed; two complete reports without it are needed
        grace: Span, default "5m";
        /// the same for something that was seen to end
        ended_grace: Span, default "30s";
        /// when removals wait for a person, in workloads: `{ changes = 10, percent = 30, total = 200, window = "10m" }`
        breaker: Breaker, unset "as shown";
        /// how often the system is looked at without a reason
        interval: Span, default "1m";
        /// the id in the marks of this provider
        owner: Option<Parsed<OwnerId>>, unset "the one it began with, or was recovered under";
        /// the name it had before, to carry over what is ours there
        was: Option<Ident>, unset;
    }
}

choice! {
    pub(super) enum ModeWord {
        Managed = "managed",
        Additive = "additive",
        CreateOnly = "create-only",
        Observe = "observe",
    }
}

choice! {
    pub(super) enum ScopeWord {
        Named = "named",
        All = "all",
    }
}

/// One IPAM system as the file has it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct IpamConfig {
    pub(crate) name: Ident,
    pub(crate) mode: Mode,
    pub(crate) sources: Vec<Ident>,
    pub(crate) claims: bool,
    pub(crate) scope: IpamScope,
    pub(crate) grace: Span,
    pub(crate) ended_grace: Span,
    pub(crate) breaker: Limits,
    pub(crate) interval: Span,
    pub(crate) owner: Option<OwnerId>,
    /// The name it had before.
    pub(crate) was: Option<Ident>,
    shown: Map<String, Json>,
    pub(crate) server: KindTable<dyn IpamProvider, IpamCapabilities>,
}

impl IpamConfig {
    /// As the plan wants it; `owner` is the installation's, unless the provider has one of its own.
    pub(crate) fn settings(&self, owner: &OwnerId) -> IpamSettings {
        let owner = self.owner.as_ref().unwrap_or(owner).clone();
        IpamSettings {
            mode: self.mode,
            sources: self.sources.clone(),
            claims: self.claims,
            scope: self.scope,
            grace: self.grace,
            ended_grace: self.ended_grace,
            breaker: self.breaker,
            ..IpamSettings::new(self.name.clone(), owner)
        }
    }
}

impl serde::Serialize for IpamConfig {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.server.shown_with(&self.name, &self.shown).serialize(serializer)
    }
}

/// The system of a table. None if the table cannot be one.
pub(super) fn read(
    name: &str,
    place: &ValueOrigin,
    table: &Table,
    problems: &mut Problems,
) -> Option<IpamConfig> {
    let ident: Ident = problems.name(place, name, None)?;
    let (kinds, path) = (kinds(), format!("ipam.{name}"));
    let mut section = Section::open(&path, table, problems).named(place);
    let kind = kinds.of(&mut section, name)?;
    let shared = CommonKeys::keys();
    super::refuse_unknown(&mut section, &kinds, kind, &shared);
    let keys = CommonKeys::read(&mut section);
    let server = KindTable::read(kind, &mut section, table, &shared);
    let (keys, server) = (keys?, server?);
    let mut shown = Map::new();
    keys.shown(&mut shown);
    let mode = match keys.mode {
        ModeWord::Managed => Mode::Managed,
        ModeWord::Additive => Mode::Additive,
        ModeWord::CreateOnly => Mode::CreateOnly,
        ModeWord::Observe => Mode::Observe,
    };
    let scope = match keys.scope {
        ScopeWord::Named => IpamScope::Named,
        ScopeWord::All => IpamScope::All,
    };
    Some(IpamConfig {
        name: ident,
        mode,
        sources: keys.sources,
        claims: keys.claims,
        scope,
        grace: keys.grace,
        ended_grace: keys.ended_grace,
        breaker: keys.breaker.limits(),
        interval: keys.interval,
        owner: keys.owner.map(|owner| owner.0),
        was: keys.was,
        shown,
        server,
    })
}

/// Reports tables that contradict each other.
pub(super) fn check_together(
    systems: &[(&ValueOrigin, IpamConfig)],
    providers: &[(&ValueOrigin, DnsConfig)],
    problems: &mut Problems,
) {
    for (number, (place, one)) in systems.iter().enumerate() {
        let name = &one.name;
        if providers.iter().any(|(_, other)| other.name == *name || other.common.group.as_ref() == Some(name))
        {
            let message = format!("ipam.{name} has the name of dns.{name}");
            let hint = "commands name a provider by its name alone: give one of them another";
            problems.add(place, message, Some(hint.into()));
        }
        if let Some((_, other)) =
            systems.iter().take(number).find(|(_, other)| other.server.is_same_server(&one.server))
        {
            let message = format!(
                "ipam.{} and ipam.{name} are the same system: they would undo each other's work",
                other.name
            );
            problems.add(place, message, Some("leave one of them out".into()));
        }
        if let Some(was) = &one.was
            && systems.iter().any(|(_, other)| other.name == *was)
        {
            let message = format!("ipam.{name}.was: ipam.{was} is still there");
            problems.add(place, message, Some("leave out `was`, or the other table".into()));
        }
    }
}
