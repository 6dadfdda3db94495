//! [`Claim`]: a key that holds an address, and how to ask for one.

use std::{fmt, str::FromStr, sync::Arc};

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::{Address, Cidr, Drawn, Ident, Key, Labels, Name, ParseError, Selector, Span, serde_arc};

/// The id of one claim. No later claim ever shares it, not even after a restore: it is made of the id of the ledger
/// that gave it, which a restore draws anew, and of a sequence number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClaimId {
    pub ledger: u32,
    pub seq: u64,
}

/// An address (or a prefix) that a key holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    pub id: ClaimId,
    pub pool: Ident,
    pub key: Key,
    #[serde(deserialize_with = "serde_arc::text")]
    pub owner: Arc<str>,
    pub address: Address,
    /// The length of the prefix, when the pool hands out prefixes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u8>,
    /// The caller named the address; otherwise it was generated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fixed: bool,
    pub since: Timestamp,
    /// How long the claim lives without being renewed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Span>,
    /// Behind a pointer because most claims have none, and there may be millions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Box<Details>>,
    /// The backend's object, when the pool has a backend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drawn: Option<Box<Drawn>>,
}

/// Details of a claim beside its address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Details {
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hostnames: Vec<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// The names of a claim, with the reason they are what they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimNames {
    pub names: Vec<Name>,
    pub reason: &'static str,
    /// It has no name although its pool has a domain, and a person would expect one.
    pub lacks: bool,
}

impl Claim {
    pub fn details(&self) -> &Details {
        static NONE: Details = Details { labels: Labels::NONE, hostnames: Vec::new(), description: None };
        self.details.as_deref().unwrap_or(&NONE)
    }

    /// The held prefix, if it is one.
    pub fn prefix(&self) -> Option<Cidr> {
        Cidr::new(self.address, self.length?).ok()
    }

    /// The held address or prefix as people write it: `10.0.3.50`, `52:54:00:00:00:01`, `fd00:2:0:1::/64`.
    pub fn held(&self) -> String {
        self.prefix().map_or_else(|| self.address.to_string(), |prefix| prefix.to_string())
    }

    /// Its names in a pool of this domain.
    pub fn names(&self, domain: Option<&Name>) -> ClaimNames {
        ClaimNames::of(&self.key, &self.details().hostnames, self.length.is_some(), domain)
    }
}

impl ClaimNames {
    /// The hostnames, else the key if that is a host label, else none. Names without a dot get the pool's domain.
    pub fn of(key: &Key, hostnames: &[Name], prefix: bool, domain: Option<&Name>) -> Self {
        let qualified = |name: &Name| match domain {
            Some(domain) if !name.as_str().contains('.') => Name::join(name.as_str(), domain).ok(),
            _ => Some(name.clone()),
        };
        if !hostnames.is_empty() {
            let names: Vec<Name> = hostnames.iter().filter_map(qualified).collect();
            return Self { names, reason: "its hostnames", lacks: false };
        }
        let none = |reason| Self { names: Vec::new(), reason, lacks: false };
        if prefix {
            return none("a prefix has no name");
        }
        let Some(domain) = domain else { return none("the pool has no domain") };
        if crate::name::is_host_label(key.as_str()).is_err() {
            let none = none("its key is not a host label and it has no hostname");
            // A key with a path is made by a program, for something that has its name from elsewhere.
            return Self { lacks: !key.as_str().contains('/'), ..none };
        }
        match Name::join(key.as_str(), domain) {
            Ok(name) => Self { names: vec![name], reason: "its key is a host label", lacks: false },
            Err(_) => Self { lacks: true, ..none("its key and the domain are too long together") },
        }
    }
}

/// Where a claim may be served from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PoolChoice {
    /// One pool, or several in order: the first with room wins. The key is unique over all of them.
    Pools(Vec<Ident>),
    /// The pools whose labels match, in order of name.
    Select(Selector),
}

/// Which address is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Want {
    #[default]
    Any,
    /// This one or none.
    Exact(Address),
    /// This one if it can be had, else any.
    Prefer(Address),
}

/// A request for an address. Asking again with the same key returns the same address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRequest {
    pub key: Key,
    pub from: PoolChoice,
    pub want: Want,
    /// Length of the prefix asked for, in a prefix pool.
    pub length: Option<u8>,
    /// A `None` leaves the value as it is when the claim exists already.
    pub ttl: Option<Span>,
    pub labels: Option<Labels>,
    pub hostnames: Option<Vec<Name>>,
    pub description: Option<String>,
    /// Take over what is there: another owner's claim of this key, or an address that was observed.
    pub adopt: bool,
    /// Take an address that still rests; who may write takes one that is reserved, too.
    pub force: bool,
    /// Wait this long for an address when there is none.
    pub wait: Option<Span>,
    /// Stay in the queue when the caller goes away.
    pub keep: bool,
}

impl ClaimRequest {
    /// Any address of `pool` for `key`.
    pub fn any(pool: Ident, key: Key) -> Self {
        Self {
            key,
            from: PoolChoice::Pools(vec![pool]),
            want: Want::Any,
            length: None,
            ttl: None,
            labels: None,
            hostnames: None,
            description: None,
            adopt: false,
            force: false,
            wait: None,
            keep: false,
        }
    }
}

/// The outcome of a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Released {
    Done(Arc<Claim>),
    /// The named claim ended earlier, or never was. Nothing was touched.
    AlreadyGone,
}

/// A claim by its key, and by its id when the caller wants no other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRef {
    pub pool: Ident,
    pub key: Key,
    pub id: Option<ClaimId>,
}

impl fmt::Display for ClaimId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:08x}-{}", self.ledger, self.seq))
    }
}

impl FromStr for ClaimId {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let wrong = || ParseError::new("claim id", text, None, "it looks like `1f0c22ab-17`");
        let (ledger, seq) = text.split_once('-').ok_or_else(wrong)?;
        let plain = |part: &str| !part.starts_with('+');
        if ledger.len() != 8 || !plain(ledger) || !plain(seq) {
            return Err(wrong());
        }
        let ledger = u32::from_str_radix(ledger, 16).map_err(|_| wrong())?;
        Ok(Self { ledger, seq: seq.parse().map_err(|_| wrong())? })
    }
}

impl Serialize for ClaimId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ClaimId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <std::borrow::Cow<'de, str>>::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}
