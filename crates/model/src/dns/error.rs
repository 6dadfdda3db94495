//! [`ProviderError`]: why a server did not do what was asked.

use std::time::Duration;

use crate::Name;

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
    /// A newer write was there before, or another node leads.
    #[error("{server} refuses a late write to `{zone}`")]
    Late { server: String, zone: Name },
    /// Another node leads, so nothing more is sent.
    #[error("{server} gets no more changes from this node: another node leads")]
    Deposed { server: String },
    /// The time that one pass may write is over. The next pass plans anew and goes on.
    #[error("{server} has not taken all changes within the time of one pass")]
    OutOfTime { server: String },
    /// It is not known whether the write took effect. Read before anything else.
    #[error("{server} did not say whether it took the change: {reason}")]
    Unknown { server: String, reason: String },
    /// Its answer cannot be understood, or is incomplete.
    #[error("{server} gave an answer that cannot be used: {reason}")]
    Malformed { server: String, reason: String },
}

impl ProviderError {
    /// Whether a write that ended so may have changed something.
    pub fn may_have_acted(&self) -> bool {
        matches!(self, Self::Unknown { .. } | Self::Malformed { .. })
    }
}
