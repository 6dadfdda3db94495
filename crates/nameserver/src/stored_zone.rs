//! What stands in the store, typed: one header per zone and one entry per record set.
//!
//! Every commit to a zone also replaces its header, on condition that it is still the one the writer read; so all
//! commits to a zone have an order, and [`Header::edit`] counts them. A change that needs several commits opens the
//! header with the first of them and puts entries that lie in the future ([`Entry::from`] above [`Header::visible`]),
//! each with what stood there before; the last commit moves `visible` up, and all of them are seen at once. A writer
//! that finds a header open takes the entries of the future back first. So a crash in between leaves nothing to see.

use netstead_model::{Name, RecordSet, RecordType, Values as Sorted};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

pub(crate) const PREFIX: &[u8] = b"dns/";
pub(crate) const ZONES: &str = "dns/zone/";
pub(crate) const SETS: &str = "dns/set/";

/// The version byte in front of every value this binary writes.
const FORMAT: u8 = b'1';

/// Where a zone stands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    /// One more with every commit to this zone.
    pub(crate) edit: u64,
    /// Entries from at most this edit are seen.
    pub(crate) visible: u64,
    pub(crate) serial: u32,
    /// Epoch and generation of the newest write.
    pub(crate) epoch: u64,
    pub(crate) generation: u64,
    /// A zone for single names, under no configured domain.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) lone: bool,
    /// A lone zone that has no record any more. Its place in the order of writes stays.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) empty: bool,
    /// A change of several commits is under way; its entries begin after `visible`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) open: bool,
}

/// One record set of a zone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// The edit of the header from which `set` is seen; until then it is `before`.
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
    /// What a reader of a zone sees whose header says `visible`.
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

/// Where a record set stands in its zone.
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

/// What a key of ours is about.
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

/// Reads a value back, or says for a log what is wrong with it.
pub(crate) fn decode<T: DeserializeOwned>(key: &[u8], value: &[u8]) -> Result<T, String> {
    let key = String::from_utf8_lossy(key);
    match value.split_first() {
        Some((&FORMAT, json)) => serde_json::from_slice(json).map_err(|error| format!("`{key}`: {error}")),
        _ => Err(format!("`{key}`: its format is not known to this version of Netstead; use a newer one")),
    }
}
