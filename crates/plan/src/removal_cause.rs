//! [`Cause`]: why a value is removed.

use serde::{Deserialize, Serialize};

/// Why a value that is ours is no longer desired. The order is that of caution: a value with several reasons goes by
/// the most careful of their causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    /// Asked for by name: a released claim, a deleted record, a person's command.
    Asked,
    /// A person took it over, and what is asked for takes its place.
    Adopted,
    /// The provider's own target is another one now (`public`, `interface`).
    Target,
    /// The workload has another value in its place.
    Updated,
    /// Another workload has the name now.
    Conflict,
    /// The end of the workload was seen.
    Ended,
    /// The workload was absent beyond grace, or stopped asking for the value that long ago.
    Absent,
    /// The configuration changed.
    Config,
    /// A rule does not let its workload have it any more.
    Refused,
    /// Ownership was recovered, or the workload is not known at all.
    Unknown,
}

impl Cause {
    /// Whether the last value of a set may go for it.
    pub fn may_empty(self) -> bool {
        matches!(self, Self::Asked | Self::Ended | Self::Absent)
    }

    /// Whether a person must agree whatever the count.
    pub fn always_parked(self) -> bool {
        matches!(self, Self::Config | Self::Refused | Self::Unknown)
    }

    /// Whether the breaker counts it.
    pub fn counted(self) -> bool {
        matches!(self, Self::Updated | Self::Conflict | Self::Ended | Self::Absent)
    }
}
