//! Pools: what there is to hand out, and by which rules.

use std::{fmt, str::FromStr};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Address, Cidr, ClaimId, Ident, Kind, Labels, Name, ParseError, Range, Span, Upstream};

/// The family of a pool: the kind of its addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    Ipv4,
    Ipv6,
    Mac,
    /// Child prefixes of an asked length, IPv4 or IPv6.
    Prefix,
}

/// Which of the free addresses goes first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    #[default]
    Lowest,
    /// The one after the last that was handed out, round and round.
    Next,
    Random,
    /// The lowest one that was ever freed, at once; else a pointer that only grows. Knows no cooldown.
    FreedFirst,
}

/// The origin of a pool, which says how it may be changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    #[default]
    Api,
    /// It stands in the configuration file and is read-only elsewhere.
    File,
}

/// The description of a pool as a person gives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PoolSpec {
    pub name: Ident,
    pub family: Family,
    #[serde(default = "default_vrf")]
    pub vrf: Ident,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Cidr>,
    /// The ranges to hand out. Empty means the whole network.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<Range>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<Range>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<Address>,
    /// Hand out network and broadcast addresses too.
    #[serde(default, skip_serializing_if = "is_false")]
    pub use_reserved: bool,
    /// Length of a child prefix when the claim names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<Name>,
    #[serde(default)]
    pub order: Order,
    #[serde(default = "default_cooldown")]
    pub cooldown: Span,
    #[serde(default = "default_cooldown_min")]
    pub cooldown_min: Span,
    #[serde(default = "yes")]
    pub sticky: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_per_owner: Option<u32>,
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The backend that the addresses come from; without one the ledger hands them out itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<Box<Upstream>>,
}

/// A pool as the ledger keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    pub spec: PoolSpec,
    /// The sequence number of its last change; what an `ETag` is made of.
    pub version: u64,
    pub created: Timestamp,
    #[serde(default)]
    pub origin: Origin,
    /// The prefix claim this pool lies in, which cannot be released while the pool exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<ClaimId>,
    /// It is being deleted: nothing is handed out any more.
    #[serde(default, skip_serializing_if = "is_false")]
    pub closing: bool,
}

/// A problem of a pool: the field, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct PoolError {
    pub field: &'static str,
    pub reason: String,
}

pub const DEFAULT_COOLDOWN: Span = Span::from_secs(600);
pub const DEFAULT_COOLDOWN_MIN: Span = Span::from_secs(60);
/// Most ranges, and most exclusions, one pool may have.
pub const MOST_RANGES: usize = 256;

fn default_cooldown() -> Span {
    DEFAULT_COOLDOWN
}
fn default_cooldown_min() -> Span {
    DEFAULT_COOLDOWN_MIN
}
fn yes() -> bool {
    true
}
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_false(value: &bool) -> bool {
    !value
}

/// The VRF of everything that names none.
pub fn default_vrf() -> Ident {
    Ident::default_vrf()
}

impl PoolSpec {
    /// A pool of `family` with every rule at its default and nothing to hand out yet.
    pub fn new(name: Ident, family: Family) -> Self {
        Self {
            name,
            family,
            vrf: default_vrf(),
            network: None,
            ranges: Vec::new(),
            exclude: Vec::new(),
            gateway: None,
            use_reserved: false,
            length: None,
            domain: None,
            order: Order::default(),
            cooldown: DEFAULT_COOLDOWN,
            cooldown_min: DEFAULT_COOLDOWN_MIN,
            sticky: true,
            max_per_owner: None,
            labels: Labels::default(),
            description: None,
            upstream: None,
        }
    }

    /// The number space the pool lies in, or nothing if it names no address at all.
    pub fn kind(&self) -> Option<Kind> {
        match self.family {
            Family::Ipv4 => Some(Kind::V4),
            Family::Ipv6 => Some(Kind::V6),
            Family::Mac => Some(Kind::Mac),
            Family::Prefix => {
                let written = self.network.map(|n| n.first());
                written.or_else(|| self.ranges.first().map(Range::first)).map(Address::kind)
            }
        }
    }

    /// The addresses of the pool: its ranges, or its network when it names none.
    pub fn extent(&self) -> Vec<Range> {
        if self.ranges.is_empty() {
            self.network.map(Range::from).into_iter().collect()
        } else {
            self.ranges.clone()
        }
    }

    /// Why the pool never hands out `address` although it lies in its extent.
    pub fn withheld(&self, address: Address) -> Option<&'static str> {
        if self.gateway == Some(address) {
            return Some("it is the gateway");
        }
        if self.exclude.iter().any(|range| range.contains(address)) {
            return Some("it is excluded");
        }
        if self.reserved().contains(&address) {
            return Some("it is a network or broadcast address");
        }
        None
    }

    /// Network and broadcast addresses of the network, or of each range that was written as a network.
    fn reserved(&self) -> Vec<Address> {
        if self.use_reserved || matches!(self.family, Family::Mac | Family::Prefix) {
            return Vec::new();
        }
        let networks: Vec<Cidr> = match self.network {
            Some(network) => vec![network],
            None => self.ranges.iter().filter_map(Range::cidr).collect(),
        };
        let mut reserved = Vec::new();
        for network in networks {
            let host_bits = network.first().kind().bits() - network.len();
            if host_bits < 2 {
                continue;
            }
            reserved.push(network.first());
            if network.first().kind() == Kind::V4 {
                reserved.push(network.last());
            }
        }
        reserved
    }

    /// The addresses that can be handed out: disjoint, in order, without exclusions, gateway and reserved addresses. Ranges that
    /// touch are one: a prefix may lie over their seam.
    pub fn usable(&self) -> Vec<Range> {
        let mut holes: Vec<Range> = self.exclude.clone();
        holes.extend(self.gateway.into_iter().chain(self.reserved()).map(Range::single));
        let mut usable = Range::joined(self.extent());
        for hole in holes {
            usable = usable.into_iter().flat_map(|range| range.without(hole)).collect();
        }
        usable
    }

    /// Checks everything that can be known without looking at other pools.
    pub fn check(&self) -> Result<(), PoolError> {
        let wrong = |field, reason: String| Err(PoolError { field, reason });
        let Some(kind) = self.kind() else {
            return wrong("ranges", "the pool names no address: give `ranges`, or a `network`".into());
        };
        if self.extent().is_empty() {
            return wrong("ranges", "the pool names no address: give `ranges`, or a `network`".into());
        }
        if self.family == Family::Prefix && kind == Kind::Mac {
            return wrong(
                "family",
                "a prefix pool hands out IPv4 or IPv6 prefixes, not MAC addresses".into(),
            );
        }
        self.check_fields(kind)?;
        self.check_length(kind)?;
        if self.usable().is_empty() {
            return wrong("exclude", "nothing is left to hand out".into());
        }
        if self.cooldown_min > self.cooldown
            && self.cooldown != Span::ZERO
            && self.cooldown_min != DEFAULT_COOLDOWN_MIN
        {
            return wrong(
                "cooldown_min",
                format!("`{}` is longer than the cooldown `{}`", self.cooldown_min, self.cooldown),
            );
        }
        if self.max_per_owner == Some(0) {
            return wrong("max_per_owner", "0 would let nobody claim: leave it out for no limit".into());
        }
        if self.description.as_ref().is_some_and(|text| text.chars().count() > 1000) {
            return wrong("description", "it is longer than 1000 characters".into());
        }
        Ok(())
    }

    fn check_fields(&self, kind: Kind) -> Result<(), PoolError> {
        let wrong = |field, reason: String| Err(PoolError { field, reason });
        if self.ranges.len() > MOST_RANGES {
            return wrong(
                "ranges",
                format!("{} ranges, and at most {MOST_RANGES} are allowed", self.ranges.len()),
            );
        }
        if self.exclude.len() > MOST_RANGES {
            return wrong(
                "exclude",
                format!("{} ranges, and at most {MOST_RANGES} are allowed", self.exclude.len()),
            );
        }
        if let Some(network) = self.network.filter(|n| n.first().kind() != kind) {
            return wrong(
                "network",
                format!("`{network}` is not of the family of the pool ({})", self.family),
            );
        }
        for (field, ranges) in [("ranges", &self.ranges), ("exclude", &self.exclude)] {
            if let Some(range) = ranges.iter().find(|range| range.first().kind() != kind) {
                return wrong(field, format!("`{range}` is not of the family of the pool ({})", self.family));
            }
        }
        let mut sorted = self.ranges.clone();
        sorted.sort_unstable();
        for pair in sorted.windows(2) {
            if let [one, other] = pair
                && one.overlaps(*other)
            {
                return wrong("ranges", format!("`{one}` and `{other}` overlap"));
            }
        }
        if let Some(network) = self.network {
            let network = Range::from(network);
            let outside = |r: &&Range| !(network.contains(r.first()) && network.contains(r.last()));
            if let Some(range) = self.ranges.iter().find(outside) {
                return wrong("ranges", format!("`{range}` is not inside the network `{network}`"));
            }
        }
        if let Some(gateway) = self.gateway {
            if gateway.kind() != kind || kind == Kind::Mac {
                return wrong(
                    "gateway",
                    format!("`{gateway}` is not of the family of the pool ({})", self.family),
                );
            }
            if let Some(network) = self.network.filter(|network| !network.contains(gateway)) {
                return wrong("gateway", format!("`{gateway}` is not inside the network `{network}`"));
            }
        }
        Ok(())
    }

    fn check_length(&self, kind: Kind) -> Result<(), PoolError> {
        let wrong = |reason: String| Err(PoolError { field: "length", reason });
        match (self.family, self.length) {
            (Family::Prefix, Some(length)) if length > kind.bits() => {
                wrong(format!("/{length} is longer than the {} bits of an address", kind.bits()))
            }
            (Family::Prefix, Some(length)) => {
                let fits = self.usable().iter().flat_map(Range::cidrs).any(|block| block.len() <= length);
                if fits { Ok(()) } else { wrong(format!("no /{length} fits into the pool")) }
            }
            (_, Some(_)) => wrong("only a prefix pool has a length".into()),
            (_, None) => Ok(()),
        }
    }
}

impl Pool {
    pub fn name(&self) -> &Ident {
        &self.spec.name
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ipv4 => "ipv4",
            Self::Ipv6 => "ipv6",
            Self::Mac => "mac",
            Self::Prefix => "prefix",
        })
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Lowest => "lowest",
            Self::Next => "next",
            Self::Random => "random",
            Self::FreedFirst => "freed-first",
        })
    }
}

impl FromStr for Order {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        [Self::Lowest, Self::Next, Self::Random, Self::FreedFirst]
            .into_iter()
            .find(|order| order.to_string() == text)
            .ok_or_else(|| {
                ParseError::new("order", text, None, "use `lowest`, `next`, `random` or `freed-first`")
            })
    }
}

impl FromStr for Family {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        [Self::Ipv4, Self::Ipv6, Self::Mac, Self::Prefix]
            .into_iter()
            .find(|family| family.to_string() == text)
            .ok_or_else(|| ParseError::new("family", text, None, "use `ipv4`, `ipv6`, `mac` or `prefix`"))
    }
}
