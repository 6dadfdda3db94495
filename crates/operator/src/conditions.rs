//! Conditions, in the form of Kubernetes and in the older one of Cluster API.

use jiff::Timestamp;
use serde_json::{Value, json};

/// The state of an object for people and for controllers: its condition `Ready`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ready {
    pub(crate) good: bool,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

const READY: &str = "Ready";
/// Longer messages are cut: the API server refuses those of more than 10,240 characters.
const LONGEST: usize = 4000;

impl Ready {
    pub(crate) fn yes(reason: &'static str) -> Self {
        Self { good: true, reason, message: String::new() }
    }

    pub(crate) fn no(reason: &'static str, message: impl Into<String>) -> Self {
        let mut message = message.into();
        if let Some((end, _)) = message.char_indices().nth(LONGEST) {
            message.truncate(end);
            message.push('…');
        }
        Self { good: false, reason, message }
    }

    fn status(&self) -> &'static str {
        if self.good { "True" } else { "False" }
    }

    /// Whether these conditions say the same about this generation.
    pub(crate) fn is_said_by(&self, conditions: &[Value], generation: i64) -> bool {
        let same = |one: &Value| {
            text(one, "status") == self.status()
                && text(one, "reason") == self.reason
                && text(one, "message") == self.message
                && one.get("observedGeneration").and_then(Value::as_i64) == Some(generation)
        };
        find(conditions).is_some_and(same)
    }

    /// These conditions with this one in place of the older. The time of its last change stays if its status does.
    pub(crate) fn among(&self, conditions: &[Value], generation: i64, now: Timestamp) -> Vec<Value> {
        let own = json!({
            "type": READY, "status": self.status(), "reason": self.reason, "message": self.message,
            "observedGeneration": generation, "lastTransitionTime": self.since(conditions, now),
        });
        replaced(conditions, own)
    }

    /// The same in the form of Cluster API before v1beta2: a good one has no reason, a bad one a severity.
    pub(crate) fn among_old(&self, conditions: &[Value], now: Timestamp) -> Vec<Value> {
        let since = self.since(conditions, now);
        let own = if self.good {
            json!({ "type": READY, "status": "True", "lastTransitionTime": since })
        } else {
            json!({ "type": READY, "status": "False", "severity": "Warning", "reason": self.reason,
                "message": self.message, "lastTransitionTime": since })
        };
        replaced(conditions, own)
    }

    fn since(&self, conditions: &[Value], now: Timestamp) -> Value {
        let before = find(conditions).filter(|before| text(before, "status") == self.status());
        let since = before.and_then(|before| before.get("lastTransitionTime")).cloned();
        since.unwrap_or_else(|| Value::from(now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()))
    }
}

fn find(conditions: &[Value]) -> Option<&Value> {
    conditions.iter().find(|one| text(one, "type") == READY)
}

fn replaced(conditions: &[Value], own: Value) -> Vec<Value> {
    let others = conditions.iter().filter(|one| text(one, "type") != READY).cloned();
    std::iter::once(own).chain(others).collect()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_changes_with_the_status_only() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let other = json!({ "type": "Other", "status": "True" });
        let full = Ready::no("PoolExhausted", "no address is free");
        let first = full.among(std::slice::from_ref(&other), 1, at(0));
        assert!(full.is_said_by(&first, 1) && !full.is_said_by(&first, 2));
        let second = Ready::no("AllocationFailed", "refused").among(&first, 1, at(9));
        let third = Ready::yes("AddressAllocated").among(&second, 2, at(20));
        let times =
            [&first, &second, &third].map(|all| text(find(all).unwrap(), "lastTransitionTime").to_owned());
        assert_eq!(times, ["1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "1970-01-01T00:00:20Z"]);
        assert_eq!((third.len(), third.last()), (2, Some(&other)));
    }

    #[test]
    fn a_message_is_never_too_long_for_the_server() {
        let long = Ready::no("InvalidSpec", "ä".repeat(20_000)).message;
        assert_eq!((long.chars().count(), long.ends_with("ä…")), (LONGEST + 1, true));
    }

    #[test]
    fn the_older_form_has_a_severity_for_what_is_bad_only() {
        let at = Timestamp::UNIX_EPOCH;
        assert_eq!(
            Ready::yes("AddressAllocated").among_old(&[], at),
            [json!({ "type": "Ready", "status": "True", "lastTransitionTime": "1970-01-01T00:00:00Z" })]
        );
        assert_eq!(
            Ready::no("PoolExhausted", "full").among_old(&[], at),
            [
                json!({ "type": "Ready", "status": "False", "severity": "Warning", "reason": "PoolExhausted", "message": "full",
                "lastTransitionTime": "1970-01-01T00:00:00Z" })
            ]
        );
    }
}
