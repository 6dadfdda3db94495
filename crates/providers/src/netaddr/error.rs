//! [`NetaddrError`]: why the keyspace did not give what was asked.

use netstead_model::{BackendError, BackendErrorKind};
use netstead_wire::etcd::{describe_error, describe_first_error, never_left};
use tonic::{Code, Status};

/// Why the keyspace did not give what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NetaddrError {
    #[error("there is no range `{range}`")]
    NoRange { range: String },
    #[error("the range `{range}` is of the type `{found}`, not `{wanted}`")]
    OtherType { range: String, found: String, wanted: &'static str },
    #[error("the range `{range}` is damaged: {reason}")]
    Damaged { range: String, reason: String },
    #[error("the range `{range}` exists already")]
    RangeExists { range: String },
    #[error("the range `{range}` overlaps with {}", listed(others))]
    Overlaps { range: String, others: Vec<String> },
    #[error("the range `{range}` has {count} addresses in use, such as `{name}`")]
    InUse { range: String, name: String, count: usize },
    #[error("the name `{name}` has {address} in the range `{range}` already")]
    NameTaken { name: String, range: String, address: String },
    #[error("{address} belongs to `{name}` in the range `{range}`")]
    AddressTaken { address: String, range: String, name: String },
    #[error("{address} is in none of the ranges {}", listed(ranges))]
    Outside { address: String, ranges: Vec<String> },
    #[error("no address is free in {}", listed(ranges))]
    Full { ranges: Vec<String> },
    #[error("{reason}")]
    Invalid { reason: String },
    #[error("etcd at {url} does not allow it: {reason}")]
    Denied { url: String, reason: String },
    /// Nothing was done. With another lease it can be.
    #[error("etcd at {url} ended a lease of this process")]
    LeaseEnded { url: String },
    /// Nothing was done.
    #[error("etcd at {url}: {reason}")]
    Unavailable { url: String, reason: String },
    /// It may have been done.
    #[error("etcd at {url} gave no answer, and it may have been done: {reason}")]
    Unknown { url: String, reason: String },
}

fn listed(ranges: &[String]) -> String {
    ranges.iter().map(|range| format!("`{range}`")).collect::<Vec<_>>().join(", ")
}

impl NetaddrError {
    /// The error of a request that changes nothing.
    pub(super) fn of_reading(url: &str, status: &Status) -> Self {
        let url = url.to_owned();
        let reason = describe_first_error(describe_error(status), &url);
        match status.code() {
            Code::PermissionDenied | Code::Unauthenticated => Self::Denied { url, reason },
            Code::InvalidArgument if status.message().contains("user name is empty") => {
                Self::Denied { url, reason }
            }
            Code::InvalidArgument => Self::Invalid { reason },
            _ => Self::Unavailable { url, reason },
        }
    }

    /// The error of a request that may have changed something.
    pub(super) fn of_writing(url: &str, status: &Status) -> Self {
        if status.code() == Code::NotFound && status.message().contains("lease not found") {
            return Self::LeaseEnded { url: url.to_owned() };
        }
        match Self::of_reading(url, status) {
            Self::Unavailable { url, reason } => {
                let full = status.message().contains("database space exceeded");
                if never_left(status) || full {
                    Self::Unavailable { url, reason }
                } else {
                    Self::Unknown { url, reason }
                }
            }
            other => other,
        }
    }

    /// Whether etcd decided. Otherwise it did not answer.
    pub fn is_refusal(&self) -> bool {
        !matches!(self, Self::Unavailable { .. } | Self::Unknown { .. } | Self::LeaseEnded { .. })
    }
}

impl From<NetaddrError> for BackendError {
    fn from(error: NetaddrError) -> Self {
        let kind = match &error {
            NetaddrError::NoRange { .. } => BackendErrorKind::NoSuchPool,
            NetaddrError::NameTaken { .. } | NetaddrError::AddressTaken { .. } => BackendErrorKind::Held,
            NetaddrError::Outside { .. } => BackendErrorKind::NotHere,
            NetaddrError::Full { .. } => BackendErrorKind::Exhausted,
            NetaddrError::Denied { .. } => BackendErrorKind::Denied,
            NetaddrError::Unavailable { .. } | NetaddrError::LeaseEnded { .. } => {
                BackendErrorKind::Unavailable
            }
            NetaddrError::Unknown { .. } => BackendErrorKind::Unknown,
            _ => BackendErrorKind::Refused,
        };
        let made = Self::new(kind, error.to_string());
        match error {
            NetaddrError::NoRange { range } => made
                .fact("pool", range)
                .hint("`backend_pool` is the key prefix of a range, with its last slash: `/ranges/lan/`"),
            NetaddrError::Denied { .. } => {
                made.hint("look at `username`, `password` and the certificates of the backend")
            }
            NetaddrError::AddressTaken { address, .. } | NetaddrError::Outside { address, .. } => {
                made.fact("address", address)
            }
            _ => made,
        }
    }
}
