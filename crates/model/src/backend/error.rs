//! [`BackendError`]: why a pool backend did not do what was asked.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

/// The caller's next step after a backend's error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BackendErrorKind {
    /// Another holder has the address. Ask for another address.
    Held,
    /// The address is not one that the pool hands out. Ask for another address.
    NotHere,
    /// No address is free. Ask again later.
    Exhausted,
    /// The request can never work as it is.
    Refused,
    /// The credentials do not allow it. A person must change them.
    Denied,
    NoSuchPool,
    /// Nothing was done. Ask again later.
    Unavailable,
    /// The request may have been done. Look the key up before asking again.
    Unknown,
}

impl BackendErrorKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::NotHere => "not-here",
            Self::Exhausted => "exhausted",
            Self::Refused => "refused",
            Self::Denied => "denied",
            Self::NoSuchPool => "no-such-pool",
            Self::Unavailable => "unavailable",
            Self::Unknown => "unknown",
        }
    }

    /// Whether the backend decided. Otherwise it did not answer.
    pub const fn is_refusal(self) -> bool {
        !matches!(self, Self::Unavailable | Self::Unknown)
    }
}

impl fmt::Display for BackendErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A backend's error: a kind for programs, a sentence for people, facts, and a next step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct BackendError {
    pub kind: BackendErrorKind,
    pub message: String,
    pub facts: BTreeMap<String, String>,
    pub hint: Option<String>,
}

impl BackendError {
    pub fn new(kind: BackendErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), facts: BTreeMap::new(), hint: None }
    }

    /// Nothing was done; ask again later.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(BackendErrorKind::Unavailable, message)
    }

    /// The request may have been done.
    pub fn unknown(message: impl Into<String>) -> Self {
        Self::new(BackendErrorKind::Unknown, message)
    }

    #[must_use]
    pub fn fact(mut self, name: &str, value: impl fmt::Display) -> Self {
        self.facts.insert(name.to_owned(), value.to_string());
        self
    }

    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}
