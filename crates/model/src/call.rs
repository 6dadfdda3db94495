//! One call to a server, as metrics count it.

use std::{fmt::Debug, time::Duration};

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The server answered, and not with an error of its own.
    Answered,
    /// The server answered that it will not.
    Refused,
    /// No usable answer came.
    Failed,
}

impl Outcome {
    /// The value of the label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

/// One request and its answer; a repetition is a call of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// The operation: `GET`, `PATCH`, `transfer`, `update`, …
    pub operation: &'static str,
    pub outcome: Outcome,
    pub took: Duration,
}

/// Hears of every call when it has ended. It must return at once.
pub trait CallObserver: Send + Sync + Debug {
    fn called(&self, call: Call);
}

/// Counts nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoopObserver;

impl CallObserver for NoopObserver {
    fn called(&self, _: Call) {}
}
