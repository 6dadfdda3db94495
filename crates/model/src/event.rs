//! [`Event`]: what happened in the ledger: by whom, when, what, before and after.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Address, Claim, Ident, Key, Pool, Range, serde_arc};

/// The kind of change of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    PoolCreated,
    PoolUpdated,
    PoolDeleted,
    Claimed,
    /// Labels, hostnames, description or time to live of a claim changed, of one that waits also whether it keeps its
    /// place; or the description of a reservation.
    Updated,
    /// Another owner took the claim over.
    Adopted,
    Released,
    Expired,
    /// The claim went to another key.
    Moved,
    Reserved,
    Unreserved,
    Waiting,
    /// A waiting claim left the queue without an address.
    Abandoned,
    /// Old events were removed.
    Trimmed,
    /// The ledger came out of a backup and hands out nothing by itself until it is resumed.
    Restored,
    Resumed,
    /// A backend has an address again that a claim had drawn from it.
    GivenBack,
}

impl EventKind {
    pub const ALL: [Self; 17] = [
        Self::PoolCreated,
        Self::PoolUpdated,
        Self::PoolDeleted,
        Self::Claimed,
        Self::Updated,
        Self::Adopted,
        Self::Released,
        Self::Expired,
        Self::Moved,
        Self::Reserved,
        Self::Unreserved,
        Self::Waiting,
        Self::Abandoned,
        Self::Trimmed,
        Self::Restored,
        Self::Resumed,
        Self::GivenBack,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PoolCreated => "pool-created",
            Self::PoolUpdated => "pool-updated",
            Self::PoolDeleted => "pool-deleted",
            Self::Claimed => "claimed",
            Self::Updated => "updated",
            Self::Adopted => "adopted",
            Self::Released => "released",
            Self::Expired => "expired",
            Self::Moved => "moved",
            Self::Reserved => "reserved",
            Self::Unreserved => "unreserved",
            Self::Waiting => "waiting",
            Self::Abandoned => "abandoned",
            Self::Trimmed => "trimmed",
            Self::Restored => "restored",
            Self::Resumed => "resumed",
            Self::GivenBack => "given-back",
        }
    }
}

/// The subject of an event, as it was or as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    #[serde(deserialize_with = "serde_arc::arc")]
    Claim(Arc<Claim>),
    Pool(Arc<Pool>),
    Reservation(Arc<Reservation>),
    Waiting(Arc<Waiting>),
}

/// A sub-range set aside: no generated claim gets it; its owner may claim single addresses of it by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    pub pool: Ident,
    pub key: Key,
    pub owner: Arc<str>,
    pub range: Range,
    pub since: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// A claim in the queue: it has no address yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// Its place in the queue: the sequence number under which it came.
    pub seq: u64,
    pub key: Key,
    pub owner: Arc<str>,
    /// The caller, for this owner or for itself; none in stores of versions that did not keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Arc<str>>,
    /// The id of the request that made it what it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Arc<str>>,
    /// Where it may be served from, in order.
    pub pools: Vec<Ident>,
    pub since: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<crate::Span>,
    #[serde(default)]
    pub details: crate::Details,
    /// It stays in the queue without its caller.
    #[serde(default)]
    pub keep: bool,
    /// In a pool with a backend: how the backend is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draw: Option<Box<crate::Draw>>,
}

/// An address that was seen in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    pub address: Address,
    pub vrf: Ident,
    pub source: Ident,
    pub since: Timestamp,
    /// A description for people: a workload's name, a MAC address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Ledger time in milliseconds at which it ends by itself; only a scan's sightings do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
}

/// One change of a holder or a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    pub seq: u64,
    pub at: Timestamp,
    /// The subject of the caller's token, or `netstead` for what the ledger does by itself.
    #[serde(deserialize_with = "serde_arc::text")]
    pub by: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Arc<str>>,
    pub what: EventKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Subject>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Subject>,
}

impl Subject {
    fn key(&self) -> Option<&Key> {
        match self {
            Self::Claim(claim) => Some(&claim.key),
            Self::Reservation(reservation) => Some(&reservation.key),
            Self::Waiting(waiting) => Some(&waiting.key),
            Self::Pool(_) => None,
        }
    }
}

impl Event {
    fn subjects(&self) -> impl Iterator<Item = &Subject> {
        self.after.iter().chain(&self.before)
    }

    pub fn pool(&self) -> Option<&Ident> {
        self.subjects().next().and_then(|subject| match subject {
            Subject::Claim(claim) => Some(&claim.pool),
            Subject::Pool(pool) => Some(pool.name()),
            Subject::Reservation(reservation) => Some(&reservation.pool),
            Subject::Waiting(waiting) => waiting.pools.first(),
        })
    }

    pub fn claim(&self) -> Option<&Arc<Claim>> {
        self.subjects()
            .find_map(|subject| if let Subject::Claim(claim) = subject { Some(claim) } else { None })
    }

    pub fn address(&self) -> Option<Address> {
        self.claim().map(|claim| claim.address)
    }

    /// Every key the event concerns; a move concerns two.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        let (before, after) =
            (self.before.as_ref().and_then(Subject::key), self.after.as_ref().and_then(Subject::key));
        before.into_iter().chain(after.filter(|after| before != Some(after)))
    }
}
