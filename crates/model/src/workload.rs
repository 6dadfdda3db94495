//! [`Workload`]: what runs, as the sources see it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Address, Ident, Key, Name, RecordData, RecordType};

/// Something that runs. Its id is stable across moves and restarts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workload {
    pub id: Key,
    pub source: Ident,
    /// `container`, `service`, `vm`, `host`, `claim`, `record`, …: for people.
    pub kind: String,
    pub name: String,
    /// The owner of a claim; other workloads have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<Name>,
    /// Those that a dialect reads, as the platform has them; nothing is checked.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<Interface>,
    /// The names it asks for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wishes: Vec<Wish>,
    /// Why something about it gave no name, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub why_not: Vec<String>,
    /// Something about it cannot be read: a label, an agent that hangs, a node that is offline. It is unknown then what it
    /// no longer asks for, so all of that stays. One unclear workload does not make its scope Partial.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unclear: bool,
    /// The names made of its own host name are its alone: of several such workloads that are called alike, the one that was
    /// created first has the name. Others, as containers behind one name, share theirs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sole_name: bool,
    /// The pool in which the address it has shall be recorded as a claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<Ident>,
    /// When the platform made it; never from a label. Of workloads that ask for a name which none of them has yet, the one
    /// that was created first gets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<Timestamp>,
    /// The namespace it lives in, where the platform has such.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Boxed: most workloads of a large house are claims and records, which have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<Box<Facts>>,
}

impl Workload {
    /// A workload without names, addresses and facts.
    pub fn new(source: Ident, id: Key, kind: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            id,
            source,
            kind: kind.into(),
            name: name.into(),
            owner: None,
            hostname: None,
            labels: BTreeMap::new(),
            tags: Vec::new(),
            interfaces: Vec::new(),
            wishes: Vec::new(),
            why_not: Vec::new(),
            unclear: false,
            sole_name: false,
            pool: None,
            created: None,
            namespace: None,
            facts: None,
        }
    }

    /// Its facts; all unknown where it has none.
    pub fn facts(&self) -> &Facts {
        self.facts.as_deref().unwrap_or(&Facts::UNKNOWN)
    }
}

/// Facts of the platform about a workload, for people and for IPAM systems. No name is made of them. Tags are
/// [`Workload::tags`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// The machine it runs on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u32>,
    /// In bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// In bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<u64>,
    /// The platform's own word: `running`, `paused`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comments: Option<String>,
}

impl Facts {
    const UNKNOWN: Self = Self {
        node: None,
        cluster: None,
        cpus: None,
        memory: None,
        disk: None,
        status: None,
        comments: None,
    };

    /// As a workload keeps them: nothing if none is known.
    pub fn known(self) -> Option<Box<Self>> {
        (self != Self::UNKNOWN).then(|| Box::new(self))
    }
}

/// One network interface of a workload.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<Address>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<Address>,
    /// Its addresses mean something on the workload's own machine alone: they are shown, and nothing is made of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub local: bool,
    /// The workload says itself how its addresses are called: `[domain]` tables make no name for those that its main wishes
    /// name, except shared ones.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mapped: bool,
}

/// A name a workload asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "independent things that labels say")]
pub struct Wish {
    pub name: Name,
    pub content: Content,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<u32>,
    /// Only these providers; empty means every one whose domains match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub providers: Vec<Ident>,
    /// Where the wish comes from, for `explain`: `hostname of claim web-1`.
    pub reason: String,
    /// Adopt an equal record that is foreign.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adopt: bool,
    /// Stand beside foreign values.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub share: bool,
    /// The address's PTR shall be this name: its claim's first hostname, or the workload's own name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub main: bool,
    /// Its addresses are not the workload's own but those of a place that many share: the machine it runs on, a proxy,
    /// the public address. None of them gets its name as PTR.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub borrowed: bool,
    /// Those addresses are found out while Netstead runs (`public`, `interface`): new ones are one change, however many
    /// names follow.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub moves: bool,
    /// Whether a provider that can stand in front of the target shall do so; none leaves that to the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxied: Option<bool>,
    /// The entry points of a proxy under which the name is reached; empty means all. A provider may want only some of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entrypoints: Vec<String>,
}

/// The content of a wished name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Content {
    /// The provider's target, or these addresses when it has none.
    Addresses(Vec<Address>),
    /// Exactly these values.
    Records { kind: RecordType, values: Vec<RecordData> },
}
