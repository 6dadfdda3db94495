//! [`ApiError`]: why a call gave nothing to work with.

use netstead_model::{BackendError, BackendErrorKind, ProviderError};

/// Why a call gave nothing to work with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ApiError {
    #[error(transparent)]
    Server(#[from] ProviderError),
    /// phpIPAM understood the request and said no.
    #[error("phpIPAM answers {code}: {message}")]
    Refused { code: u16, message: String },
}

impl ApiError {
    /// The error for a caller that expected no refusal.
    pub(crate) fn unexpected(self, server: &str) -> ProviderError {
        match self {
            Self::Server(error) => error,
            refused @ Self::Refused { .. } => {
                ProviderError::Malformed { server: server.to_owned(), reason: refused.to_string() }
            }
        }
    }

    /// The error of a pool backend.
    pub(crate) fn of_backend(self) -> BackendError {
        let (kind, message) = match &self {
            Self::Refused { code: 404, .. } => (BackendErrorKind::NoSuchPool, self.to_string()),
            // It failed half way, or refused: a look at the key will tell.
            Self::Refused { code: 500.., .. } => (BackendErrorKind::Unknown, self.to_string()),
            Self::Refused { .. } => (BackendErrorKind::Refused, self.to_string()),
            Self::Server(error @ ProviderError::Denied { .. }) => {
                (BackendErrorKind::Denied, error.to_string())
            }
            Self::Server(error) if error.may_have_acted() => (BackendErrorKind::Unknown, error.to_string()),
            Self::Server(error) => (BackendErrorKind::Unavailable, error.to_string()),
        };
        let error = BackendError::new(kind, message);
        match kind {
            BackendErrorKind::Denied => error
                .hint("look at user, password and app in phpIPAM; the app needs the permission Read / Write"),
            _ => error,
        }
    }
}
