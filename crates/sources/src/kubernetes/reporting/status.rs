//! [`ObjectStatus`]: the status that an object has, and the one it shall have.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::verdict::Outcome;

const READY: &str = "Ready";

/// The part of a status that is ours to write, as the server has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::kubernetes) struct ObjectStatus {
    /// The version of the whole object: a patch that names it is refused if another writer was first.
    version: String,
    observed: i64,
    /// All of them: those of other controllers are written back as they are.
    conditions: Vec<Value>,
}

impl ObjectStatus {
    pub(in crate::kubernetes) fn of(status: &Value, version: &str) -> Self {
        let conditions = status.get("conditions").and_then(Value::as_array).cloned().unwrap_or_default();
        let observed = status.get("observedGeneration").and_then(Value::as_i64).unwrap_or_default();
        Self { version: version.to_owned(), observed, conditions }
    }

    fn condition(&self, kind: &str) -> Option<&Value> {
        self.conditions.iter().find(|one| text(one, "type") == kind)
    }

    /// Whether it has this condition already.
    pub(in crate::kubernetes) fn has(&self, condition: &Condition) -> bool {
        self.condition(condition.kind).is_some_and(|one| {
            (text(one, "status"), text(one, "reason"), text(one, "message"))
                == (condition.word(), condition.reason, condition.message.as_str())
        })
    }

    /// All conditions, with this one among them.
    pub(in crate::kubernetes) fn conditions_with(
        &self,
        condition: &Condition,
        generation: Option<i64>,
        now: Timestamp,
    ) -> Vec<Value> {
        let status = condition.word();
        let since = self.condition(condition.kind).filter(|one| text(one, "status") == status);
        let since = since.map(|one| text(one, "lastTransitionTime")).filter(|since| !since.is_empty());
        let mut own = json!({
            "type": condition.kind,
            "status": status,
            "reason": condition.reason,
            "message": condition.message,
            "lastTransitionTime": since.map_or_else(|| now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(), str::to_owned),
        });
        if let (Some(generation), Some(fields)) = (generation, own.as_object_mut()) {
            fields.insert("observedGeneration".to_owned(), Value::from(generation));
        }
        let others = self.conditions.iter().filter(|one| text(one, "type") != condition.kind).cloned();
        others.chain([own]).collect()
    }

    /// Whether it says this already.
    pub(super) fn shows(&self, generation: i64, outcome: &Outcome) -> bool {
        self.observed == generation && self.has(&ready(outcome))
    }

    /// A patch that makes it say so.
    pub(super) fn with(&self, generation: i64, outcome: &Outcome, now: Timestamp) -> Value {
        let conditions = self.conditions_with(&ready(outcome), Some(generation), now);
        self.patch(&json!({ "observedGeneration": generation, "conditions": conditions }))
    }

    /// A patch of the status that this one was made from, and of no other: a list of conditions replaces the whole list.
    pub(in crate::kubernetes) fn patch(&self, status: &Value) -> Value {
        json!({ "metadata": { "resourceVersion": self.version }, "status": status })
    }
}

/// A condition that is ours to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::kubernetes) struct Condition {
    pub(in crate::kubernetes) kind: &'static str,
    pub(in crate::kubernetes) good: bool,
    pub(in crate::kubernetes) reason: &'static str,
    pub(in crate::kubernetes) message: String,
}

impl Condition {
    fn word(&self) -> &'static str {
        if self.good { "True" } else { "False" }
    }
}

fn ready(outcome: &Outcome) -> Condition {
    let (good, reason) = (outcome.verdict.is_good(), outcome.verdict.word());
    Condition { kind: READY, good, reason, message: outcome.message.clone() }
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{super::verdict::Verdict, *};

    #[test]
    fn a_status_keeps_the_conditions_of_others_and_the_time_of_its_own() {
        let outcome = Outcome { verdict: Verdict::Published, message: "a.test at lan".to_owned() };
        let had = ObjectStatus::of(
            &json!({ "observedGeneration": 1, "conditions": [
                { "type": "Accepted", "status": "True" },
                { "type": "Ready", "status": "True", "reason": "Published", "message": "b.test at lan",
                  "lastTransitionTime": "2026-01-01T00:00:00Z" },
            ]}),
            "17",
        );
        assert!(!had.shows(2, &outcome));
        let now: Timestamp = "2026-02-01T00:00:00.5Z".parse().unwrap();
        let status = had.with(2, &outcome, now);
        assert_eq!(status["metadata"], json!({ "resourceVersion": "17" }));
        assert_eq!(
            status["status"]["conditions"],
            json!([
                { "type": "Accepted", "status": "True" },
                { "type": "Ready", "status": "True", "reason": "Published", "message": "a.test at lan",
                  "observedGeneration": 2, "lastTransitionTime": "2026-01-01T00:00:00Z" },
            ])
        );
        assert!(ObjectStatus::of(&status["status"], "18").shows(2, &outcome));
        let refused = Outcome { verdict: Verdict::Refused, message: "taken".to_owned() };
        assert_eq!(
            had.with(2, &refused, now)["status"]["conditions"][1]["lastTransitionTime"],
            "2026-02-01T00:00:00Z"
        );
    }
}
