//! Zones in the store: one header per zone (`dns/zone/...`) and one entry per record set (`dns/set/...`).
//!
//! Every commit to a zone replaces its header, on condition that the header is still the one the writer read. So all commits
//! to a zone have an order, counted by [`Header::edit`], and two writers never mix their changes.
//!
//! A change that is too large for one commit is written in several and seen at once:
//!
//! 1. The header has `edit` 10 and `visible` 10. A change of 250 sets needs three commits.
//! 2. Commit 1: `edit` 11, `open`. Each entry has [`Entry::from`] 11, the new set, and the set `before`. Readers see `before`,
//!    because 11 is above `visible`.
//! 3. Commit 2: `edit` 12, more entries with `from` 11.
//! 4. Commit 3: `edit` 13, the last entries, `visible` 13, not `open`, a new serial. All entries are now at or below
//!    `visible`: every reader sees the whole change from this commit on.
//! 5. Entries of removed sets are deleted. No reader has seen them since step 4.
//!
//! A writer that crashes after step 3 leaves the header open:
//!
//! 6. The next writer finds `open`. It puts every entry above `visible` back to its `before`, closes the header, and begins
//!    its own change. Readers saw the same sets all the time.
//!
//! If two writers overlap, the commits of the second change the header's version: the next commit of the first is refused, and
//! it starts again from a new snapshot.

use netstead_model::{Name, RecordSet, RecordType, Values as Sorted};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

pub(crate) const PREFIX: &[u8] = b"dns/";
pub(crate) const ZONES: &str = "dns/zone/";
pub(crate) const SETS: &str = "dns/set/";

/// The version byte in front of every value this binary writes.
const FORMAT: u8 = b'1';

/// The state of a zone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    /// Counts the commits to this zone.
    pub(crate) edit: u64,
    /// Readers see entries whose `from` is at most this.
    pub(crate) visible: u64,
    pub(crate) serial: u32,
    /// The fence: epoch and generation of the newest write. A write below it is refused as late.
    pub(crate) epoch: u64,
    pub(crate) generation: u64,
    /// A zone for single names, under no configured domain.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) lone: bool,
    /// A lone zone that has no record any more. The header stays, because it has the fence.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) empty: bool,
    /// A change of several commits is under way; its entries begin after `visible`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) open: bool,
}

/// One record set of a zone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Readers see `set` once the header's `visible` reaches this, and `before` until then.
    pub(crate) from: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) set: Option<Values>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) before: Option<Values>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Values {
    pub(crate) ttl: u32,
    pub(crate) values: Sorted,
}

impl Entry {
    /// The values that a reader sees, given the header's `visible`.
    pub(crate) fn visible_values(&self, visible: u64) -> Option<&Values> {
        if self.from <= visible { self.set.as_ref() } else { self.before.as_ref() }
    }
}

impl Values {
    pub(crate) fn of(set: &RecordSet) -> Self {
        Self { ttl: set.ttl, values: set.values.clone() }
    }

    pub(crate) fn to_set(&self, slot: &Slot) -> RecordSet {
        RecordSet::new(slot.name.clone(), slot.kind, self.ttl, self.values.iter().cloned())
    }
}

/// The place of a record set in its zone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Slot {
    pub(crate) name: Name,
    pub(crate) kind: RecordType,
}

pub(crate) fn zone_key(zone: &Name) -> Vec<u8> {
    format!("{ZONES}{zone}").into_bytes()
}

pub(crate) fn zone_prefix(zone: &Name) -> Vec<u8> {
    format!("{SETS}{zone}/").into_bytes()
}

pub(crate) fn name_prefix(zone: &Name, name: &Name) -> Vec<u8> {
    format!("{SETS}{zone}/{name}/").into_bytes()
}

pub(crate) fn set_key(zone: &Name, slot: &Slot) -> Vec<u8> {
    format!("{SETS}{zone}/{}/{}", slot.name, slot.kind).into_bytes()
}

/// A parsed key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoredKey {
    Header(Name),
    Set(Name, Slot),
}

pub(crate) fn parse_key(key: &[u8]) -> Option<StoredKey> {
    let text = std::str::from_utf8(key).ok()?;
    if let Some(zone) = text.strip_prefix(ZONES) {
        return zone.parse().ok().map(StoredKey::Header);
    }
    let mut parts = text.strip_prefix(SETS)?.split('/');
    let zone = parts.next()?.parse().ok()?;
    let slot = Slot { name: parts.next()?.parse().ok()?, kind: parts.next()?.parse().ok()? };
    parts.next().is_none().then_some(StoredKey::Set(zone, slot))
}

pub(crate) fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    let mut bytes = vec![FORMAT];
    // Our own types have string keys and no failing serialiser; what could not be written would be refused at reading.
    let _ = serde_json::to_writer(&mut bytes, value);
    bytes
}

/// Decodes a value. The error is a sentence for a log.
pub(crate) fn decode<T: DeserializeOwned>(key: &[u8], value: &[u8]) -> Result<T, String> {
    let key = String::from_utf8_lossy(key);
    match value.split_first() {
        Some((&FORMAT, json)) => serde_json::from_slice(json).map_err(|error| format!("`{key}`: {error}")),
        _ => Err(format!("`{key}`: its format is not known to this version of Netstead; use a newer one")),
    }
}
