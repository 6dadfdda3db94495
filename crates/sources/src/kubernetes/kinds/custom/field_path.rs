//! [`FieldPath`]: a field of an object, as `spec.servers[].hosts[]`.

use std::{fmt, str::FromStr};

use netstead_model::ParseError;
use netstead_settings::TextShape;
use serde_json::Value;

use crate::kubernetes::object::Object;

/// Keys with dots between. `[]` after a key means every element of a list, `[?Ready]` every element whose condition of that type
/// is true, and `["a.b/c"]` a key with dots in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldPath {
    text: String,
    root: Root,
    steps: Vec<Step>,
}

/// The parts of an object that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Root {
    Annotations,
    Labels,
    Spec,
    Status,
    Data,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Key(String),
    Each,
    /// Elements whose condition of this type is true.
    EachWith(String),
}

impl FieldPath {
    /// The texts at the path, in the order of the object. A list of texts at its end is all of them.
    pub(super) fn texts(&self, object: &Object) -> Vec<String> {
        let part = match self.root {
            Root::Spec => &object.spec,
            Root::Status => &object.status,
            Root::Data => &object.data,
            Root::Annotations => return self.entry(&object.metadata.annotations),
            Root::Labels => return self.entry(&object.metadata.labels),
        };
        let mut found: Vec<&Value> = vec![part];
        for step in &self.steps {
            found = found.into_iter().flat_map(|value| step.of(value)).collect();
        }
        let mut texts = Vec::new();
        for value in found {
            match value {
                Value::String(text) => texts.push(text.clone()),
                Value::Array(items) => {
                    texts.extend(items.iter().filter_map(Value::as_str).map(str::to_owned));
                }
                _ => {}
            }
        }
        texts.retain(|text| !text.trim().is_empty());
        texts
    }

    fn entry(&self, map: &std::collections::BTreeMap<String, String>) -> Vec<String> {
        let Some(Step::Key(key)) = self.steps.first() else { return Vec::new() };
        map.get(key)
            .into_iter()
            .flat_map(|text| crate::dialects::list::words(text))
            .map(str::to_owned)
            .collect()
    }
}

impl Step {
    fn of<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        match self {
            Self::Key(key) => value.get(key).into_iter().collect(),
            Self::Each => value.as_array().into_iter().flatten().collect(),
            Self::EachWith(condition) => {
                value.as_array().into_iter().flatten().filter(|one| is_true(one, condition)).collect()
            }
        }
    }
}

/// Whether the condition of this type is true in `conditions` of a status.
pub(super) fn is_true(status: &Value, condition: &str) -> bool {
    let conditions = status.get("conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|one| {
        one.get("type").and_then(Value::as_str) == Some(condition)
            && one.get("status").and_then(Value::as_str) == Some("True")
    })
}

impl FromStr for FieldPath {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let refuse = |reason: &str| Err(ParseError::new("field path", text, None, reason));
        // kubectl's form: `{.spec.host}`.
        let inner = text.trim().trim_start_matches('{').trim_end_matches('}').trim_start_matches('$');
        let Some(steps) = steps(inner.trim_start_matches('.')) else {
            return refuse("write keys with dots between, as in `spec.servers[].hosts[]`");
        };
        let mut steps = steps.into_iter();
        let mut next = || match steps.next() {
            Some(Step::Key(key)) => Some(key),
            _ => None,
        };
        let root = match next().as_deref() {
            Some("spec") => Root::Spec,
            Some("status") => Root::Status,
            Some("data") => Root::Data,
            Some("metadata") => match next().as_deref() {
                Some("annotations") => Root::Annotations,
                Some("labels") => Root::Labels,
                _ => {
                    return refuse(
                        "of `metadata` it is `metadata.annotations[\"KEY\"]` or `metadata.labels[\"KEY\"]`",
                    );
                }
            },
            _ => return refuse("it begins with `spec`, `status`, `data` or `metadata`"),
        };
        let steps: Vec<Step> = steps.collect();
        if matches!(root, Root::Annotations | Root::Labels) && !matches!(steps.as_slice(), [Step::Key(_)]) {
            return refuse("one annotation or label is named: `metadata.annotations[\"KEY\"]`");
        }
        if steps.is_empty() {
            return refuse("it names no field: `spec.host`");
        }
        Ok(Self { text: text.trim().to_owned(), root, steps })
    }
}

/// The steps of a path; none if it cannot be read.
fn steps(mut text: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    while !text.is_empty() {
        if let Some(rest) = text.strip_prefix('[') {
            let (inner, rest) = match rest.strip_prefix('"') {
                Some(quoted) => {
                    let (key, rest) = quoted.split_once("\"]")?;
                    steps.push(Step::Key(Some(key.to_owned()).filter(|key| !key.is_empty())?));
                    (None, rest)
                }
                None => rest.split_once(']').map(|(inner, rest)| (Some(inner), rest))?,
            };
            match inner {
                None => {}
                Some("" | "*") => steps.push(Step::Each),
                Some(inner) => {
                    let condition = inner.strip_prefix('?').filter(|name| is_key(name))?;
                    steps.push(Step::EachWith(condition.to_owned()));
                }
            }
            text = match rest.strip_prefix('.') {
                Some("") => return None,
                Some(after) => after,
                None if rest.is_empty() || rest.starts_with('[') => rest,
                None => return None,
            };
            continue;
        }
        let end = text.find(['.', '[']).unwrap_or(text.len());
        let (key, rest) = text.split_at(end);
        if !is_key(key) {
            return None;
        }
        steps.push(Step::Key(key.to_owned()));
        text = match rest.strip_prefix('.') {
            Some("") => return None,
            Some(after) => after,
            None => rest,
        };
    }
    Some(steps)
}

fn is_key(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '/'))
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl TextShape for FieldPath {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_finds_texts_in_lists_conditions_and_annotations() {
        let object: Object = serde_json::from_value(serde_json::json!({
            "metadata": { "annotations": { "example.com/hosts": "d.test, e.test" }, "labels": { "host": "f.test" } },
            "spec": { "servers": [{ "hosts": ["a.test", "b.test"] }, { "hosts": ["c.test"], "port": 80 }, {}] },
            "status": { "ingress": [
                { "host": "good", "conditions": [{ "type": "Admitted", "status": "True" }] },
                { "host": "bad", "conditions": [{ "type": "Admitted", "status": "False" }] },
            ]},
        }))
        .unwrap();
        let cases: [(&str, &[&str]); 10] = [
            ("spec.servers[].hosts[]", &["a.test", "b.test", "c.test"]),
            ("spec.servers[*].hosts", &["a.test", "b.test", "c.test"]),
            ("{.spec.servers[*].hosts[*]}", &["a.test", "b.test", "c.test"]),
            ("spec.servers[].port", &[]),
            ("spec.nothing.here", &[]),
            ("status.ingress[].host", &["good", "bad"]),
            ("status.ingress[?Admitted].host", &["good"]),
            ("metadata.annotations[\"example.com/hosts\"]", &["d.test", "e.test"]),
            ("metadata.labels.host", &["f.test"]),
            ("spec[\"servers\"][].hosts", &["a.test", "b.test", "c.test"]),
        ];
        for (path, texts) in cases {
            assert_eq!(path.parse::<FieldPath>().unwrap().texts(&object), texts, "{path}");
        }
        for wrong in [
            "",
            "spec",
            "host",
            "spec.",
            "spec..a",
            "spec.a[",
            "spec.a[0]",
            "metadata.name",
            "spec.a[]b",
            "metadata.labels",
        ] {
            assert!(wrong.parse::<FieldPath>().is_err(), "{wrong}");
        }
    }
}
