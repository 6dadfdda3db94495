//! [`Settings`]: the configuration of one provider, whatever its type.

mod domain_match;

use netstead_model::{Address, Capabilities, Ident, Marks, Name, OwnerId, RecordData, RecordType, Span};
use serde::{Deserialize, Serialize};

pub use self::domain_match::DomainMatch;
use crate::Grace;

/// The settings all DNS providers share. No secrets are among them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "the configuration file has these keys")]
pub struct Settings {
    /// The provider's name, `lan` of `[dns.lan]`.
    pub provider: Ident,
    /// The installation's id, part of every mark.
    pub owner: OwnerId,
    /// Names it answers for.
    pub domains: Vec<DomainMatch>,
    /// Names it never touches; looked at first.
    #[serde(default)]
    pub exclude_domains: Vec<DomainMatch>,
    /// Of names that a proxy answers for, only those on one of these entry points; empty means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entrypoints: Vec<String>,
    #[serde(default)]
    pub mode: Mode,
    /// Where names point, instead of the workload's own addresses.
    #[serde(default)]
    pub target: Option<ProviderTarget>,
    /// The target is found at run time (`public`, `interface`): a new one is an update, not a change of configuration.
    #[serde(default)]
    pub target_moves: bool,
    /// Only records of this type are made of addresses: `A`, `AAAA` or `CNAME`.
    #[serde(default, rename = "type")]
    pub kind: Option<RecordType>,
    /// Types that are written there; empty means all.
    #[serde(default)]
    pub types: Vec<RecordType>,
    /// Wildcards are written there.
    #[serde(default = "yes")]
    pub wildcard: bool,
    /// Something is written at the top of a zone or domain.
    #[serde(default = "yes")]
    pub apex: bool,
    /// A name outside the domains is alone in a zone of its own (`builtin`): to be the top of that means nothing.
    #[serde(default)]
    pub lone_zones: bool,
    #[serde(default = "default_ttl")]
    pub ttl: u32,
    /// How long something may be absent before its names go.
    #[serde(default = "default_grace")]
    pub grace: Span,
    /// The same for what was seen to end.
    #[serde(default = "default_ended_grace")]
    pub ended_grace: Span,
    #[serde(default)]
    pub breaker: Limits,
    /// Adopt equal records that are foreign.
    #[serde(default)]
    pub adopt: bool,
    /// Stand beside foreign values.
    #[serde(default)]
    pub share: bool,
    /// Keep PTR records where the server holds the reverse zone.
    #[serde(default = "yes")]
    pub reverse: bool,
    /// Mirror ownership on the server; off where it has no place for marks.
    #[serde(default = "yes")]
    pub marks: bool,
    /// The server can stand in front of what a name leads to.
    #[serde(default)]
    pub proxies: bool,
    /// The group it belongs to: several servers that shall hold the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<Ident>,
    /// The server holds one value of each type at a name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub one_value: bool,
    /// The HTTPS record that stands beside every A and AAAA, unless another one is asked for or there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub companion: Option<RecordData>,
    /// Types that the server itself cannot hold, whatever `types` says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unheld: Vec<RecordType>,
}

impl Settings {
    /// The defaults.
    pub fn new(provider: Ident, owner: OwnerId, domains: Vec<DomainMatch>) -> Self {
        Self {
            provider,
            owner,
            domains,
            exclude_domains: Vec::new(),
            entrypoints: Vec::new(),
            mode: Mode::default(),
            target: None,
            target_moves: false,
            kind: None,
            types: Vec::new(),
            wildcard: true,
            apex: true,
            lone_zones: false,
            ttl: default_ttl(),
            grace: default_grace(),
            ended_grace: default_ended_grace(),
            breaker: Limits::default(),
            adopt: false,
            share: false,
            reverse: true,
            marks: true,
            proxies: false,
            group: None,
            one_value: false,
            companion: None,
            unheld: Vec::new(),
        }
    }

    /// The settings as far as a server with these abilities can follow them.
    #[must_use]
    pub fn within(mut self, can: &Capabilities) -> Self {
        self.marks &= can.marks != Marks::None;
        (self.proxies, self.one_value) = (can.proxies, can.one_value);
        self.companion = can.companion.clone().map(RecordData::Https);
        let holds = |kind: &RecordType| can.types.contains(kind);
        self.unheld = RecordType::ALL.into_iter().filter(|kind| !holds(kind)).collect();
        let both: Vec<_> = self.types.iter().copied().filter(holds).collect();
        if self.types.is_empty() {
            self.types.clone_from(&can.types);
        } else if !both.is_empty() {
            // An empty list would mean every type.
            self.types = both;
        }
        self
    }

    /// Whether a name means this provider: its own, or that of its group.
    pub fn is_called(&self, name: &Ident) -> bool {
        self.provider == *name || self.group.as_ref() == Some(name)
    }

    /// How long what is gone may be missed.
    pub fn graces(&self) -> Grace {
        Grace { absent: self.grace, ended: self.ended_grace }
    }

    /// Whether `name` is this provider's: excludes first.
    pub fn answers_for(&self, name: &Name) -> bool {
        !self.exclude_domains.iter().any(|domain| domain.matches(name))
            && self.domains.iter().any(|domain| domain.matches(name))
    }

    /// Whether a name on these entry points of a proxy is this provider's. A name that is on all of them always is.
    pub fn is_reached_by(&self, entrypoints: &[String]) -> bool {
        self.entrypoints.is_empty()
            || entrypoints.is_empty()
            || entrypoints.iter().any(|entrypoint| self.entrypoints.contains(entrypoint))
    }

    /// Whether records of this type are written there.
    pub fn holds(&self, kind: RecordType) -> bool {
        self.types.is_empty() || self.types.contains(&kind)
    }
}

/// The mode of a provider: what it may change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Creates, changes and removes what is ours.
    #[default]
    Managed,
    /// Never removes.
    Additive,
    /// Only creates sets where there is none.
    CreateOnly,
    /// Foreign A, AAAA and CNAME records at names that workloads ask for are replaced.
    Authoritative,
    /// Plans and never writes.
    Observe,
}

/// Where a provider's names point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProviderTarget {
    Addresses(Vec<Address>),
    Name(Name),
}

/// When changes are parked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// So many changes of a zone always pass…
    pub changes: u32,
    /// …and more, up to this part of what is ours in the zone.
    pub percent: u32,
    /// The most in all zones together.
    pub total: u32,
    /// Over this time.
    pub window: Span,
}

impl Default for Limits {
    fn default() -> Self {
        Self { changes: 10, percent: 30, total: 200, window: Span::from_secs(600) }
    }
}

fn default_ttl() -> u32 {
    300
}

fn default_grace() -> Span {
    Span::from_secs(300)
}

fn default_ended_grace() -> Span {
    Span::from_secs(30)
}

fn yes() -> bool {
    true
}
