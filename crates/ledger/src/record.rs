//! Keys and values of the ledger in the store, typed. `docs/reference/store.md` describes them.
//!
//! Keys are text, so that a listing can be read. A value is one version byte and JSON, so that it can get new fields that have
//! a default.

mod deleted_keys;
mod event_json;

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use netstead_model::{
    Address, Claim, ClaimId, Drawn, Event, Family, Ident, Key, Kind, Observation, Pool, Reservation, Waiting,
    serde_arc,
};
use netstead_store::Write;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

pub(crate) use self::event_json::{append_event, claim_in_slot, event_group};

/// Every key of the ledger begins with this.
pub const PREFIX: &str = "ledger/";
pub const HEAD_KEY: &str = "ledger/head";
pub(crate) const POOL: &str = "ledger/pool/";
pub(crate) const SLOT: &str = "ledger/addr/";
pub(crate) const RESERVED: &str = "ledger/reserved/";
pub(crate) const SEEN: &str = "ledger/seen/";
pub(crate) const WAIT: &str = "ledger/wait/";
pub(crate) const EVENT: &str = "ledger/event/";

/// The version byte in front of every value this binary writes.
pub const FORMAT: u8 = b'1';

/// The one key every commit replaces: where the ledger stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Drawn when the ledger is made, and anew when it is restored.
    pub ledger: u32,
    /// The number of the last event; a commit without events adds one too.
    pub seq: u64,
    pub epoch: u64,
    /// Drawn for each commit, so that its writer can tell whether it landed.
    pub batch: u64,
    /// Ledger time in milliseconds.
    pub time: u64,
    /// Restored from a backup and not resumed yet: nothing is generated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// Events before this number were trimmed.
    #[serde(default)]
    pub oldest: u64,
    /// The calendar by which events grow old; none before they were looked through for the first time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calendar: Option<Calendar>,
}

impl Head {
    /// Before there is a ledger.
    pub(crate) fn nowhere() -> Self {
        Self { ledger: 0, seq: 0, epoch: 0, batch: 0, time: 0, paused: false, oldest: 0, calendar: None }
    }
}

/// Wall time as the age of events follows it: after a jump forward no faster than [`Calendar::PACE`] times ledger time,
/// so that a clock that is a year ahead for an afternoon costs no year of history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calendar {
    pub at: Timestamp,
    /// Ledger time in milliseconds at which it was `at`.
    pub time: u64,
}

impl Calendar {
    /// How many times as fast as ledger time it may go: a day per hour.
    pub const PACE: u64 = 24;

    /// The calendar at ledger time `time`, when clocks show `wall`.
    #[must_use]
    pub fn turned(self, wall: Timestamp, time: u64) -> Self {
        let most = time.saturating_sub(self.time).saturating_mul(Self::PACE);
        let most = SignedDuration::from_millis(i64::try_from(most).unwrap_or(i64::MAX));
        Self { at: self.at.checked_add(most).unwrap_or(Timestamp::MAX).min(wall), time }
    }
}

/// A number space: one kind of number in one VRF. Prefixes have their own, because a pool may lie inside one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Space {
    pub vrf: Ident,
    pub kind: Kind,
    pub prefixes: bool,
}

impl Space {
    pub fn of(pool: &Pool) -> Option<Self> {
        let prefixes = pool.spec.family == Family::Prefix;
        Some(Self { vrf: pool.spec.vrf.clone(), kind: pool.spec.kind()?, prefixes })
    }

    fn tag(&self) -> &'static str {
        match (self.kind, self.prefixes) {
            (Kind::V4, false) => "4",
            (Kind::V6, false) => "6",
            (Kind::Mac, _) => "m",
            (Kind::V4, true) => "p4",
            (Kind::V6, true) => "p6",
        }
    }
}

/// One address that is, or was, held, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Slot {
    #[serde(deserialize_with = "serde_arc::arc")]
    Held(Arc<Claim>),
    #[serde(deserialize_with = "serde_arc::arc")]
    Rested(Arc<Rest>),
}

/// An address that was released. It stays until the address is held again: it says who had it last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rest {
    pub claim: ClaimId,
    pub pool: Ident,
    pub key: Key,
    #[serde(deserialize_with = "serde_arc::text")]
    pub owner: Arc<str>,
    pub address: Address,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u8>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fixed: bool,
    /// Ledger time of the release, in milliseconds.
    pub freed: u64,
    pub at: Timestamp,
    /// The backend's object, until the backend has it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drawn: Option<Box<Drawn>>,
}

impl Slot {
    pub fn address(&self) -> Address {
        match self {
            Self::Held(claim) => claim.address,
            Self::Rested(rest) => rest.address,
        }
    }

    pub fn length(&self) -> Option<u8> {
        match self {
            Self::Held(claim) => claim.length,
            Self::Rested(rest) => rest.length,
        }
    }

    pub fn pool(&self) -> &Ident {
        match self {
            Self::Held(claim) => &claim.pool,
            Self::Rested(rest) => &rest.pool,
        }
    }
}

/// Where a slot stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotKey {
    pub space: Space,
    pub number: u128,
    /// Only for prefixes.
    pub length: Option<u8>,
}

/// One stored thing in its new state; `None` removes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    Pool(Ident, Option<Arc<Pool>>),
    Slot(SlotKey, Option<Slot>),
    Reservation { pool: Ident, first: u128, value: Option<Arc<Reservation>> },
    Observation { vrf: Ident, address: Address, source: Ident, value: Option<Arc<Observation>> },
    Waiting(u64, Option<Arc<Waiting>>),
    Paused(bool),
}

impl Record {
    /// The key it stands under; the pause is part of the head.
    pub fn key(&self) -> Option<String> {
        match self {
            Self::Pool(name, _) => Some(format!("{POOL}{name}")),
            Self::Slot(place, _) => Some(slot_key(place)),
            Self::Reservation { pool, first, .. } => Some(format!("{RESERVED}{pool}/{first:032x}")),
            Self::Observation { vrf, address, source, .. } => {
                let space = Space { vrf: vrf.clone(), kind: address.kind(), prefixes: false };
                Some(format!("{SEEN}{vrf}/{}/{:032x}/{source}", space.tag(), address.number()))
            }
            Self::Waiting(seq, _) => Some(format!("{WAIT}{seq:016x}")),
            Self::Paused(_) => None,
        }
    }

    pub fn write(&self) -> Option<Write> {
        let key = self.key()?.into_bytes();
        let value = match self {
            Self::Pool(_, value) => value.as_ref().map(encode),
            Self::Slot(_, value) => value.as_ref().map(encode),
            Self::Reservation { value, .. } => value.as_ref().map(encode),
            Self::Observation { value, .. } => value.as_ref().map(encode),
            Self::Waiting(_, value) => value.as_ref().map(encode),
            Self::Paused(_) => None,
        };
        Some(match value {
            Some(value) => Write::Put(key, value),
            None => Write::Delete(key),
        })
    }

    /// Reads a stored value back; `None` for keys of the ledger that no Book is made of (the head, the events).
    pub fn decode(key: &[u8], value: &[u8]) -> Result<Option<Self>, Malformed> {
        let text = std::str::from_utf8(key).map_err(|_| Malformed::new(key, "its key is not text"))?;
        let record = if text.starts_with(POOL) {
            let pool: Arc<Pool> = decode(key, value)?;
            Self::Pool(pool.name().clone(), Some(pool))
        } else if text.starts_with(SLOT) {
            let slot: Slot = decode(key, value)?;
            let (vrf, prefixes) =
                space_of_key(text, SLOT).ok_or_else(|| Malformed::new(key, "its key is cut off"))?;
            let address = slot.address();
            let space = Space { vrf, kind: address.kind(), prefixes };
            let place = SlotKey { space, number: address.number(), length: slot.length() };
            if is_slot_key(text, &place) {
                // Nearly all there is, at a start: not worth writing the key anew only to compare it.
                return Ok(Some(Self::Slot(place, Some(slot))));
            }
            Self::Slot(place, Some(slot))
        } else if text.starts_with(RESERVED) {
            let value: Arc<Reservation> = decode(key, value)?;
            Self::Reservation {
                pool: value.pool.clone(),
                first: value.range.first().number(),
                value: Some(value),
            }
        } else if text.starts_with(SEEN) {
            let value: Arc<Observation> = decode(key, value)?;
            let (vrf, address, source) = (value.vrf.clone(), value.address, value.source.clone());
            Self::Observation { vrf, address, source, value: Some(value) }
        } else if text.starts_with(WAIT) {
            let value: Arc<Waiting> = decode(key, value)?;
            Self::Waiting(value.seq, Some(value))
        } else {
            return Ok(None);
        };
        if record.key().as_deref() != Some(text) {
            return Err(Malformed::new(key, "its value belongs under another key"));
        }
        Ok(Some(record))
    }

    /// The record that was removed from `key`; `None` for keys of the ledger that no Book is made of.
    pub fn removed(key: &[u8]) -> Result<Option<Self>, Malformed> {
        deleted_keys::record(key)
    }
}

fn slot_key(place: &SlotKey) -> String {
    use std::fmt::Write as _;
    let mut key = String::with_capacity(64);
    // Writing into a String cannot fail.
    let _ = write!(key, "{SLOT}{}/{}/{:032x}", place.space.vrf, place.space.tag(), place.number);
    if let Some(length) = place.length {
        let _ = write!(key, "-{length}");
    }
    key
}

/// Whether `key` is that of a single address, letter by letter as it would be written.
fn is_slot_key(key: &str, place: &SlotKey) -> bool {
    let rest = key.strip_prefix(SLOT).and_then(|rest| rest.strip_prefix(place.space.vrf.as_str()));
    let rest =
        rest.and_then(|rest| rest.strip_prefix('/')?.strip_prefix(place.space.tag())?.strip_prefix('/'));
    let digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    rest.is_some_and(|number| {
        place.length.is_none()
            && number.len() == 32
            && number.bytes().all(digit)
            && u128::from_str_radix(number, 16) == Ok(place.number)
    })
}

/// VRF and whether it is a space of prefixes, out of a key `<prefix><vrf>/<tag>/…`.
fn space_of_key(key: &str, prefix: &str) -> Option<(Ident, bool)> {
    let mut parts = key.strip_prefix(prefix)?.split('/');
    let vrf = parts.next()?.parse().ok()?;
    Some((vrf, parts.next()?.starts_with('p')))
}

/// All events of one commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventGroup {
    #[serde(deserialize_with = "arcs")]
    pub events: Vec<Arc<Event>>,
}

fn arcs<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<Arc<Event>>, D::Error> {
    let events: Vec<Event> = Vec::deserialize(deserializer)?;
    Ok(events.into_iter().map(Arc::new).collect())
}

/// Events stand under the number of the first of their commit.
pub fn event_key(first: u64) -> String {
    format!("{EVENT}{first:016x}")
}

/// The number of the first event under an event key.
pub fn event_seq(key: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(key).ok()?;
    u64::from_str_radix(text.strip_prefix(EVENT)?, 16).ok()
}

/// A stored value that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{key}`: {reason}")]
pub struct Malformed {
    pub key: String,
    pub reason: String,
}

impl Malformed {
    pub(crate) fn new(key: &[u8], reason: impl Into<String>) -> Self {
        Self { key: String::from_utf8_lossy(key).into_owned(), reason: reason.into() }
    }
}

pub fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(256);
    bytes.push(FORMAT);
    // Our own types have string keys and no failing serialiser; what could not be written would be refused at reading.
    let _ = serde_json::to_writer(&mut bytes, value);
    bytes
}

pub fn decode<T: DeserializeOwned>(key: &[u8], value: &[u8]) -> Result<T, Malformed> {
    match value.split_first() {
        Some((&FORMAT, json)) => {
            serde_json::from_slice(json).map_err(|error| Malformed::new(key, error.to_string()))
        }
        Some((version, _)) => Err(Malformed::new(
            key,
            format!(
                "its format `{}` is not known to this version of Netstead; use a newer one",
                char::from(*version)
            ),
        )),
        None => Err(Malformed::new(key, "its value is empty")),
    }
}
