//! [`RequestBudget`]: how many requests a server allows.

use std::time::Duration;

/// The requests of some time that a server allows, and those that were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestBudget {
    /// Requests in the last `window`.
    pub made: usize,
    pub limit: usize,
    pub window: Duration,
    /// How long no request is made, because the budget is spent or the server asked for a rest.
    pub wait: Option<Duration>,
}
