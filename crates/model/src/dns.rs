//! [`DnsProvider`]: a DNS server as the engine sees it.

use std::{collections::BTreeSet, time::Duration};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{Name, RecordSet, RecordType};

/// What a server can do; one row of the capability table.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a column of the capability table")]
pub struct Capabilities {
    /// Types it can hold.
    pub types: Vec<RecordType>,
    /// It can hold the TXT records that mirror ownership.
    pub marks: bool,
    /// It refuses a late write by itself. Otherwise the epoch is checked right before each request.
    pub fenced: bool,
    /// All units of one request take effect together or not at all.
    pub atomic: bool,
    /// A value that others write between our read and our write survives.
    pub keeps_foreign: bool,
    /// It can stand in front of what a name leads to, and says of every set whether it does.
    pub proxies: bool,
}

/// A zone the server holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone {
    pub name: Name,
    /// Nothing changed while this is unchanged, as far as the server knows.
    pub serial: Option<u32>,
}

/// Everything in a zone, at one serial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZoneContent {
    pub serial: Option<u32>,
    pub sets: Vec<RecordSet>,
}

/// A change of one record set: what is expected to be there, and what shall be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetChange {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<RecordSet>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<RecordSet>,
}

/// All changes of one name, and of the mark that says the name is ours: a server takes them together, and bisection
/// never splits them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unit {
    pub name: Name,
    pub changes: Vec<SetChange>,
}

impl SetChange {
    /// The name whose set it changes.
    pub fn name(&self) -> Option<&Name> {
        self.after.as_ref().or(self.before.as_ref()).map(|set| &set.name)
    }
}

impl Unit {
    /// Every name it touches: its own, and that of its mark.
    pub fn names(&self) -> BTreeSet<&Name> {
        self.changes.iter().filter_map(SetChange::name).chain([&self.name]).collect()
    }

    /// The changes at its own name.
    pub fn own_changes(&self) -> impl Iterator<Item = &SetChange> {
        self.changes.iter().filter(|change| change.name() == Some(&self.name))
    }
}

/// Changes of one zone, and the place they have in the order of all changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteRequest {
    pub units: Vec<Unit>,
    pub fence: Fence,
}

/// Newer wins: a server that can check refuses a write whose fence is not above the last.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fence {
    /// The installation's id.
    pub owner: String,
    pub epoch: u64,
    pub generation: u64,
}

/// What became of one unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnitOutcome {
    Applied,
    /// The server has something else there than was expected. Plan again.
    Changed,
    /// The server rejects the change.
    Rejected {
        reason: String,
    },
}

/// Why a provider could not do what was asked: one variant per thing the engine does next.
///
/// Each message names the server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProviderError {
    #[error("{server} cannot be reached: {reason}")]
    Unreachable { server: String, reason: String },
    #[error("{server} asks to slow down")]
    Busy { server: String, retry_after: Option<Duration> },
    #[error("{server} refuses these credentials: {reason}")]
    Denied { server: String, reason: String },
    #[error("{server} does not hold the zone `{zone}`")]
    NoSuchZone { server: String, zone: Name },
    /// A newer write was there before.
    #[error("{server} refuses a late write to `{zone}`")]
    Late { server: String, zone: Name },
    /// It is not known whether the write took effect. Read before anything else.
    #[error("{server} did not say whether it took the change: {reason}")]
    Unknown { server: String, reason: String },
    /// What it said cannot be understood, or is incomplete.
    #[error("{server} gave an answer that cannot be used: {reason}")]
    Malformed { server: String, reason: String },
}

/// One configured DNS server.
#[async_trait]
pub trait DnsProvider: Send + Sync + std::fmt::Debug {
    /// `powerdns`, `rfc2136`, …
    fn kind(&self) -> &'static str;

    /// The server, for people and for finding two providers that mean the same one.
    fn server(&self) -> String;

    fn capabilities(&self) -> Capabilities;

    /// Makes ready what must be there before the first read. Called once by a node that leads; repeating it changes nothing.
    async fn prepare(&self) -> Result<(), ProviderError> {
        Ok(())
    }

    /// The zone it would make for a name that lies in none it holds. `None` on a server that makes no zones with their first
    /// record.
    fn zone_of(&self, name: &Name) -> Option<Name> {
        let _ = name;
        None
    }

    /// Whether every name has a zone, because zones come into being with their first record.
    fn makes_zones(&self) -> bool {
        false
    }

    /// The zones it holds that lie at, above or below `domains`, with their serials.
    async fn zones(&self, domains: &[Name]) -> Result<Vec<Zone>, ProviderError>;

    /// Everything in `zone`. What is not complete is an error, never a shorter list.
    async fn read(&self, zone: &Name) -> Result<ZoneContent, ProviderError>;

    /// Whether the server hands out no whole zones: then every read names what it is about.
    fn reads_by_name(&self) -> bool {
        false
    }

    /// What stands at `names` in `zone`, all at one serial. Where whole zones can be read, that is what happens.
    async fn read_names(&self, zone: &Name, names: &BTreeSet<Name>) -> Result<ZoneContent, ProviderError> {
        let _ = names;
        self.read(zone).await
    }

    /// Whether changes of `zone` would be taken, asked without changing anything. A server that has no way to ask says
    /// yes.
    async fn may_write(&self, zone: &Name) -> Result<(), ProviderError> {
        let _ = zone;
        Ok(())
    }

    /// What the server would make of a set: its own normalisation, so that it never shows as drift.
    fn adjust(&self, set: RecordSet) -> RecordSet {
        set
    }

    /// Epoch and generation of the newest write with this `owner` that the server knows of in `zone`. None where it keeps
    /// no fence, or has none yet. A store that was restored learns from it where to go on.
    async fn fence(&self, _zone: &Name, _owner: &str) -> Result<Option<(u64, u64)>, ProviderError> {
        Ok(None)
    }

    /// Applies units, each all or nothing, and says what became of each, in order. One bad unit does not stop the
    /// others. Repeating a write changes nothing.
    async fn write(&self, zone: &Name, request: &WriteRequest) -> Result<Vec<UnitOutcome>, ProviderError>;

    /// Whether the last write through this provider, and nothing else, moved the zone's serial from `before` to `after`:
    /// then what the zone holds is known and need not be read. One that cannot tell says no.
    fn moved_alone(&self, zone: &Name, before: u32, after: u32) -> bool {
        let _ = (zone, before, after);
        false
    }
}
