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
    /// Something it asks for cannot be read. Nobody knows then what it no longer asks for, so all of that stays.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unclear: bool,
    /// The pool in which the address it has shall be recorded as a claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<Ident>,
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

/// What shall stand at a wished name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Content {
    /// The provider's target, or these addresses when it has none.
    Addresses(Vec<Address>),
    /// Exactly these values.
    Records { kind: RecordType, values: Vec<RecordData> },
}

/// How much a report says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum View {
    /// All there is. Only this can remove anything.
    Complete,
    /// Some of what there is.
    Partial { reason: String },
    /// Nothing could be seen.
    Failed { reason: String },
}

/// What one source saw in one look.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    pub source: Ident,
    pub view: View,
    /// When the look began.
    pub begun: Timestamp,
    pub workloads: Vec<Workload>,
    /// Workloads whose end was seen since the last report.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<Ended>,
}

/// A workload that ended, rather than being merely absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    pub id: Key,
    /// It was asked for by name (a released claim, a deleted record): its names go at once.
    pub asked: bool,
}
