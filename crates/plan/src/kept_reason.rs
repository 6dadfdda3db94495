//! Why something stays.

use std::{fmt, sync::Arc};

use netstead_model::Span;
use serde::{Deserialize, Serialize};

use crate::{Now, now::spoken};

/// Why a value stays although nothing asks for it, or nothing may.
///
/// A grace is kept as data: the plan is the same whenever it is made, and [`KeptReason::at`] words it for the moment at
/// which it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum KeptReason {
    /// The workload is no longer seen.
    Absent {
        /// Engine time from which its absence counts.
        absent_from: u64,
        grace: Span,
    },
    /// The workload was seen to end.
    Ended {
        /// Engine time.
        ended: u64,
        grace: Span,
    },
    /// Anything that does not depend on time: one sentence without its full stop.
    Text(Arc<str>),
}

impl KeptReason {
    /// The end of a sentence, as it is true at `now`.
    pub fn at(&self, now: Now) -> String {
        match self {
            Self::Text(text) => text.to_string(),
            Self::Absent { absent_from, grace } => {
                let absent = now.since(*absent_from);
                let next = if absent >= *grace { ", goes with the next look" } else { "" };
                format!("absent {}, grace {}{next}", spoken(absent), spoken(*grace))
            }
            Self::Ended { ended, grace } => {
                format!("ended {} ago, grace {}", spoken(now.since(*ended)), spoken(*grace))
            }
        }
    }
}

/// Without a time: what it waits for, and not for how long it has.
impl fmt::Display for KeptReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Absent { grace, .. } => write!(f, "absent, grace {}", spoken(*grace)),
            Self::Ended { grace, .. } => write!(f, "ended, grace {}", spoken(*grace)),
        }
    }
}

impl From<&str> for KeptReason {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for KeptReason {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn a_grace_is_worded_for_the_moment_it_is_shown_at() {
        let at = |millis| Now { millis, at: Timestamp::UNIX_EPOCH };
        let absent = KeptReason::Absent { absent_from: 1_000, grace: Span::from_secs(5) };
        assert_eq!(absent.at(at(1_612)), "absent 612ms, grace 5s");
        assert_eq!(absent.at(at(4_000)), "absent 3s, grace 5s");
        assert_eq!(absent.at(at(6_500)), "absent 5s, grace 5s, goes with the next look");
        let ended = KeptReason::Ended { ended: 1_000, grace: Span::from_secs(30) };
        assert_eq!(ended.at(at(11_000)), "ended 10s ago, grace 30s");
        assert_eq!(
            (absent.to_string(), ended.to_string()),
            ("absent, grace 5s".into(), "ended, grace 30s".into())
        );
        for reason in [absent, ended, KeptReason::from("the mode is additive")] {
            let json = serde_json::to_string(&reason).unwrap();
            assert_eq!(serde_json::from_str::<KeptReason>(&json).unwrap(), reason, "{json}");
        }
    }
}
