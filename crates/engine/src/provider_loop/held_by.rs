//! [`HeldBy`]: the reason why changes of a pass were not written.

use std::fmt;

use crate::pause::Pause;

/// Reason why changes of a plan wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeldBy {
    /// The process runs with `--dry-run`.
    DryRun,
    /// The provider has `mode = "observe"`.
    Observe,
    Pause(Pause),
    /// The server rejected them a short time ago.
    Rejected,
}

impl fmt::Display for HeldBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DryRun => f.write_str("the server runs with --dry-run"),
            Self::Observe => f.write_str("mode is `observe`"),
            Self::Pause(pause) => write!(f, "{pause}; `{}` ends that", pause.resume_command()),
            Self::Rejected => f.write_str("the server rejected them, and they are tried again later"),
        }
    }
}
