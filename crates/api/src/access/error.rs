//! Errors of tokens: why one was not made, or not accepted.

use jiff::Timestamp;
use netstead_store::StoreError;

/// Why tokens could not be read or changed: one variant per thing the caller does next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AccessError {
    /// Ask for another one.
    #[error("{field}: {reason}")]
    Invalid { field: &'static str, reason: String },
    /// Look at the list.
    #[error("there is no token `{id}`")]
    NoSuchToken { id: String },
    #[error("there is no session `{id}`")]
    NoSuchSession { id: String },
    /// Make a token for the user.
    #[error("no token is valid for `{subject}`; `netstead token create {subject} --role read` makes one")]
    NoSuchSubject { subject: String },
    /// Ask for another link.
    #[error("this login link was used before; `netstead web` makes a new one")]
    LinkUsed,
    /// A person must act.
    #[error("the token `{id}` cannot be read: {reason}")]
    Damaged { id: String, reason: String },
    #[error("the tokens cannot be reached")]
    Store(#[from] StoreError),
}

/// Why a request is not let in. None of these repeats what was presented.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Denied {
    #[error("this needs a token: send `Authorization: Bearer nst_…`; `netstead token create` makes one")]
    Missing,
    #[error("what was sent is not a token of Netstead; they look like `nst_<id>_<secret>`")]
    Malformed,
    #[error("this token is not known here; it may have been revoked")]
    Unknown,
    #[error("this session has ended: log in again")]
    SessionEnded,
    #[error("this login link was used, or is older than a minute; `netstead web` makes a new one")]
    LinkEnded,
    #[error("this token expired at {at:.0}; `netstead token create` makes a new one")]
    Expired { at: Timestamp },
}
