//! [`Refusal`] and [`LedgerError`]: why the ledger did not do what was asked.

use std::sync::Arc;

use jiff::Timestamp;
use netstead_model::{Address, BackendErrorKind, ClaimId, Ident, Key, Span};

/// A decision against a request: nothing changed. One variant per thing the caller does next.
///
/// Each message names the subject and says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    #[error("there is no pool `{pool}`")]
    NoSuchPool { pool: Ident },
    #[error("no pool matches `{selector}`")]
    NothingSelected { selector: String },
    #[error("a pool `{pool}` exists already, with other settings; use `pool update`")]
    PoolExists { pool: Ident },
    #[error("`{key}` holds nothing in pool `{pool}`")]
    NoSuchClaim { pool: Ident, key: Key },
    #[error("{address} is held by `{key}` of `{owner}` in pool `{pool}`")]
    AddressHeld { address: String, pool: Ident, key: Key, owner: Arc<str> },
    #[error(
        "`{key}` in pool `{pool}` belongs to `{owner}`, who holds {address} with it; use another key, or adopt it"
    )]
    KeyHeld { pool: Ident, key: Key, owner: Arc<str>, address: String },
    #[error(
        "`{key}` holds {held} in pool `{pool}` and not {asked}; release it first, because someone may be using {held}"
    )]
    HoldsAnother { pool: Ident, key: Key, held: String, asked: String },
    #[error("pool `{pool}` has no free address{}", resting_now(*resting, *next_free))]
    Exhausted { pool: Ident, resting: u128, next_free: Option<Span> },
    #[error("{address} rests for {} more, since the claim `{key}` of `{owner}` ended; wait, or force it", whole(*left))]
    Resting { address: String, key: Key, owner: Arc<str>, left: Span },
    #[error("{address} was seen in use by `{source_name}` since {since:.0}{}; adopt it if it is yours", note.as_deref().map(|n| format!(" ({n})")).unwrap_or_default())]
    Observed { address: String, source_name: Ident, since: Timestamp, note: Option<String> },
    #[error("{address} is not in pool `{pool}`")]
    NotInPool { address: String, pool: Ident },
    #[error("pool `{pool}` never hands out {address}: {reason}")]
    Withheld { address: String, pool: Ident, reason: &'static str },
    #[error("{address} is reserved for `{key}` of `{owner}` in pool `{pool}`")]
    Reserved { address: String, pool: Ident, key: Key, owner: Arc<str> },
    #[error(
        "{address} is reserved for `{key}` of `{owner}` in pool `{pool}`, and only a caller who may write can force it"
    )]
    ForceDenied { address: String, pool: Ident, key: Key, owner: Arc<str> },
    #[error(
        "`{owner}` holds {held} addresses of pool `{pool}`, which allows {most} per owner; release one first"
    )]
    QuotaReached { pool: Ident, owner: Arc<str>, held: u32, most: u32 },
    #[error("the ranges of pool `{pool}` and of pool `{other}` overlap at {at}, and both are in VRF `{vrf}`")]
    Overlap { pool: Ident, other: Ident, vrf: Ident, at: String },
    #[error("{address}, held by `{key}` of `{owner}`, would fall outside pool `{pool}`; release it first")]
    WouldStrand { pool: Ident, address: String, key: Key, owner: Arc<str> },
    #[error("pool `{pool}` has {} and {}; release them, or force it with a reason", count(*claims, "claim"), count(*reservations, "reservation"))]
    PoolInUse { pool: Ident, claims: u64, reservations: u64 },
    #[error("{address} carries pool `{pool}`; delete that pool first")]
    CarriesPool { address: String, pool: Ident },
    #[error("pool `{pool}` is being deleted; delete it again if that came to a halt")]
    PoolClosing { pool: Ident },
    #[error("pool `{pool}` is in the configuration file; change it there")]
    ReadOnly { pool: Ident },
    #[error("pool `{pool}` changed meanwhile: it has version {is} and not {asked}; look at it again")]
    VersionMismatch { pool: Ident, is: u64, asked: u64 },
    #[error("the claim {id} of `{key}` is gone; {now}")]
    AlreadyGone { key: Key, id: ClaimId, now: &'static str },
    #[error("`{key}` of `{owner}` in pool `{pool}` is not yours")]
    NotYours { pool: Ident, key: Key, owner: Arc<str> },
    #[error("`{owner}` already waits for an address for `{key}` in pool `{pool}`; use another key")]
    WaitingForOther { pool: Ident, key: Key, owner: Arc<str> },
    #[error(
        "this ledger was restored from a backup and hands out no address by itself until `netstead resume`; exact claims work"
    )]
    Paused,
    /// A backend refused the claim.
    #[error("backend `{backend}` of pool `{pool}`: {message}")]
    Backend { pool: Ident, backend: Ident, kind: BackendErrorKind, message: String },
    /// One of several commands that were sent as one; nothing of them was done.
    #[error("entry {place}, `{key}`: {refusal}")]
    Entry {
        /// Counted from 0, as in the list that was sent.
        place: usize,
        key: Key,
        refusal: Box<Refusal>,
    },
    #[error("{field}: {reason}")]
    Invalid { field: &'static str, reason: String },
}

/// Why an answer could not be given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// It is not known whether it was done.
    #[error("it is unknown whether this was done ({reason}): ask again with the same key")]
    Unknown { reason: String },
    /// Nothing was done.
    #[error("the ledger cannot answer now: {reason}; nothing was changed")]
    Unavailable { reason: String },
    /// Nothing was done: another process decides.
    #[error("another Netstead leads this store now; nothing was changed")]
    NotLeading,
    /// The request's deadline passed before the ledger came to it. Nothing was done.
    #[error("the deadline of the request has passed; nothing was changed")]
    TooLate,
    /// The asked sequence number, or cursor, is of another ledger or older than what is kept.
    #[error("{reason}; start again from a list")]
    Gone { reason: String },
    /// Everything in this store was moved to another one.
    #[error("this store was moved to {to} at {at:.0} and is sealed; set `[store]` to the new one")]
    Moved { to: String, at: Timestamp },
    /// The store was being filled, from a backup or from another store, and holds a part only.
    #[error("{reason}")]
    Unfinished { reason: String },
    /// The stored data cannot be understood. A person must act.
    #[error("the stored ledger is damaged: {reason}; run `netstead store check`")]
    Damaged { reason: String },
}

impl LedgerError {
    /// Why nothing was done, without saying so.
    pub(crate) fn cause(&self) -> String {
        match self {
            Self::Unavailable { reason } => reason.clone(),
            Self::NotLeading => "another Netstead leads this store now".into(),
            Self::TooLate => "the deadline of the request has passed".into(),
            other => other.to_string(),
        }
    }
}

/// The addresses that a full pool will have again, and when.
fn resting_now(resting: u128, next_free: Option<Span>) -> String {
    let next = next_free.filter(|next| !next.is_zero()).map(whole);
    match (resting, next) {
        (0, _) => ", and none is resting".into(),
        (1, None) => "; 1 is resting".into(),
        (1, Some(next)) => format!("; 1 is resting, and free in {next}"),
        (_, None) => format!("; {resting} are resting"),
        (_, Some(next)) => format!("; {resting} are resting, and the next is free in {next}"),
    }
}

/// As people count: in whole seconds, never too few.
fn whole(span: Span) -> Span {
    Span::from_secs(span.as_millis().div_ceil(1000))
}

fn count(number: u64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

impl Refusal {
    pub(crate) fn invalid(field: &'static str, reason: impl Into<String>) -> Self {
        Self::Invalid { field, reason: reason.into() }
    }

    pub(crate) fn exhausted(pool: &Ident, resting: u128, next_free: Option<Span>) -> Self {
        Self::Exhausted { pool: pool.clone(), resting, next_free }
    }

    /// The address, as an error shows it.
    pub(crate) fn shown(address: Address, length: Option<u8>) -> String {
        length.map_or_else(|| address.to_string(), |length| format!("{address}/{length}"))
    }
}
