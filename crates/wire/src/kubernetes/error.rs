//! [`KubernetesError`]: why a call to an API server came to nothing.

use std::{error::Error, time::Duration};

use kube::core::Status;

/// Longer messages of a server are cut.
const LONGEST: usize = 300;

/// Why a call came to nothing: one variant for each thing the caller does next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KubernetesError {
    /// A person must mend the settings or the kubeconfig.
    #[error("{0}")]
    Settings(String),
    #[error("the API server cannot be reached: {0}")]
    Unreachable(String),
    #[error("the API server does not answer within {} s", .0.as_secs())]
    Slow(Duration),
    #[error("the API server refuses these credentials")]
    Unauthorized,
    /// The role lacks a right.
    #[error("{0}")]
    Forbidden(String),
    /// There is no such kind or object.
    #[error("{0}")]
    NotFound(String),
    /// The version that was asked for is forgotten: list again.
    #[error("the API server no longer has this version")]
    Expired,
    /// Another writer was first: read again.
    #[error("{0}")]
    Conflict(String),
    /// The server has too much to do.
    #[error("the API server is busy: {0}")]
    Busy(String),
    #[error("the API server answers {status}: {message}")]
    Rejected { status: u16, message: String },
    #[error("the API server answers what cannot be read: {0}")]
    Malformed(String),
}

impl KubernetesError {
    pub(super) fn of_status(status: &Status) -> Self {
        let message = short(if status.message.is_empty() { &status.reason } else { &status.message });
        match status.code {
            401 => Self::Unauthorized,
            403 => Self::Forbidden(message),
            404 => Self::NotFound(message),
            409 => Self::Conflict(message),
            410 => Self::Expired,
            429 | 503 | 504 => Self::Busy(message),
            status => Self::Rejected { status, message },
        }
    }
}

impl From<kube::Error> for KubernetesError {
    fn from(error: kube::Error) -> Self {
        match &error {
            kube::Error::Api(status) => Self::of_status(status),
            kube::Error::SerdeError(error) => Self::Malformed(short(&error.to_string())),
            kube::Error::Auth(_) => Self::Settings(chain(&error)),
            _ => Self::Unreachable(chain(&error)),
        }
    }
}

/// The innermost causes of an error say what happened; the outer ones only which crate saw it.
pub(super) fn chain(error: &dyn Error) -> String {
    let mut texts = vec![error.to_string()];
    let mut inner = error.source();
    while let Some(error) = inner {
        texts.push(error.to_string());
        inner = error.source();
    }
    // An error that repeats its cause in its own words is left out.
    let last = texts.pop().unwrap_or_default();
    let before = texts.pop().filter(|text| !text.contains(&last) && texts.len() > 1);
    short(&before.map_or(last.clone(), |before| format!("{before}: {last}")))
}

fn short(text: &str) -> String {
    let mut out: String = text.chars().take(LONGEST).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(LONGEST).is_some() {
        out.push('…');
    }
    out
}
