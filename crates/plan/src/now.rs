//! [`Now`]: the time of a pass.

use jiff::Timestamp;
use netstead_model::Span;
use serde::{Deserialize, Serialize};

/// The time, as an argument: guards count in engine time, people read timestamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Now {
    /// Milliseconds of engine time; it only grows, and stands still while no node leads.
    pub millis: u64,
    pub at: Timestamp,
}

impl Now {
    /// How long ago `millis` was.
    pub fn since(self, millis: u64) -> Span {
        Span::from_millis(self.millis.saturating_sub(millis))
    }
}

/// A span for people: whole seconds from one second on.
pub(crate) fn spoken(span: Span) -> String {
    let millis = span.as_millis();
    if millis < 1000 { span.to_string() } else { Span::from_secs(millis / 1000).to_string() }
}
