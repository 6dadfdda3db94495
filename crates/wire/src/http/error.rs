//! [`HttpError`]: why a call gave nothing to work with.

use std::time::Duration;

use netstead_model::ProviderError;

/// Why a call gave nothing to work with. No message holds a secret of ours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// Nothing was changed. Ask again later.
    #[error("{server} cannot be reached: {reason}")]
    Unreachable { server: String, reason: String },
    /// 429 or 503. Nothing was changed; `retry_after` is at most [`super::LONGEST_RETRY_AFTER`].
    #[error("{server} asks to slow down")]
    Busy { server: String, retry_after: Option<Duration> },
    /// 401 or 403. A person must correct the credentials, or a session must be renewed.
    #[error("{server} refuses these credentials: {reason}")]
    Denied { server: String, status: u16, reason: String },
    /// Another status than the caller asked for. Nothing was changed.
    #[error("{server} answers {status}: {reason}")]
    Refused { server: String, status: u16, reason: String },
    /// It is not known whether a change took effect. Read before anything else.
    #[error("{server} did not say whether it took the change: {reason}")]
    Unknown { server: String, reason: String },
    /// The answer cannot be understood, is too large, or points elsewhere.
    #[error("{server} gave an answer that cannot be used: {reason}")]
    Malformed { server: String, reason: String },
}

impl From<HttpError> for ProviderError {
    fn from(error: HttpError) -> Self {
        match error {
            HttpError::Unreachable { server, reason } => Self::Unreachable { server, reason },
            HttpError::Busy { server, retry_after } => Self::Busy { server, retry_after },
            HttpError::Denied { server, reason, .. } => Self::Denied { server, reason },
            HttpError::Refused { server, status, reason } => {
                Self::Malformed { server, reason: format!("it answers {status}: {reason}") }
            }
            HttpError::Unknown { server, reason } => Self::Unknown { server, reason },
            HttpError::Malformed { server, reason } => Self::Malformed { server, reason },
        }
    }
}
