//! The protocol's own JSON.

use std::collections::BTreeMap;

use netstead_model::{
    FieldValue, Fields, IpamObject, ObjectChange, ObjectKey, ObjectKind, ObjectMark, ObjectUnit, UnitOutcome,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Debug, Deserialize)]
pub(super) struct Listing {
    pub(super) objects: Vec<ListedObject>,
    #[serde(default)]
    pub(super) next: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ListedObject {
    kind: String,
    id: String,
    #[serde(default)]
    mark: Option<ListedMark>,
    #[serde(default)]
    fields: BTreeMap<String, Value>,
}

#[derive(Debug, Deserialize)]
struct ListedMark {
    owner: String,
    key: String,
}

impl ListedObject {
    /// The object. A mark that is not ours in form belongs to others.
    pub(super) fn read(self) -> Result<IpamObject, String> {
        let kind: ObjectKind =
            self.kind.parse().map_err(|error| format!("the kind of {}: {error}", self.id))?;
        let mark = self.mark.and_then(|mark| {
            Some(ObjectMark { owner: mark.owner, key: mark.key.parse::<ObjectKey>().ok()? })
        });
        let fields = self.fields.into_iter().filter_map(|(name, value)| Some((name, value_of(value)?)));
        Ok(IpamObject { kind, id: self.id, mark, fields: fields.collect() })
    }
}

/// A field. A value of another form is a text of others, which is never changed.
fn value_of(value: Value) -> Option<FieldValue> {
    match value {
        Value::Null => None,
        Value::String(text) if text.is_empty() => None,
        Value::String(text) => Some(FieldValue::Text(text)),
        Value::Array(list) if list.is_empty() => None,
        Value::Array(list) if list.iter().all(Value::is_string) => {
            Some(FieldValue::Set(list.iter().filter_map(Value::as_str).map(str::to_owned).collect()))
        }
        Value::Object(map) => {
            let key = map.get("ref").and_then(Value::as_str).and_then(|text| text.parse().ok());
            Some(key.map_or_else(|| FieldValue::Text(Value::Object(map).to_string()), FieldValue::Ref))
        }
        Value::Number(number) => Some(match number.as_i64() {
            Some(number) => FieldValue::Number(number),
            None => FieldValue::Text(number.to_string()),
        }),
        other => Some(FieldValue::Text(other.to_string())),
    }
}

fn sent(fields: &Fields) -> BTreeMap<&str, Value> {
    let value = |value: &FieldValue| match value {
        FieldValue::Text(text) => json!(text),
        FieldValue::Number(number) => json!(number),
        FieldValue::Set(set) => json!(set),
        FieldValue::Ref(key) => json!({ "ref": key.to_string() }),
    };
    fields.iter().map(|(name, field)| (name.as_str(), value(field))).collect()
}

#[derive(Debug, Serialize)]
pub(super) struct Changes<'a> {
    pub(super) owner: &'a str,
    pub(super) epoch: u64,
    pub(super) generation: u64,
    pub(super) units: Vec<SentUnit<'a>>,
}

#[derive(Debug, Serialize)]
pub(super) struct SentUnit<'a> {
    action: &'static str,
    kind: &'a ObjectKind,
    key: &'a ObjectKey,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    adopt: bool,
    before: BTreeMap<&'a str, Value>,
    after: BTreeMap<&'a str, Value>,
}

impl<'a> SentUnit<'a> {
    pub(super) fn new(unit: &'a ObjectUnit) -> Self {
        let none = BTreeMap::new;
        let (action, id, adopt, before, after) = match &unit.change {
            ObjectChange::Create { fields } => ("create", None, false, none(), sent(fields)),
            ObjectChange::Update { id, adopted, before, after } => {
                ("update", Some(id.as_str()), *adopted, sent(before), sent(after))
            }
            ObjectChange::Delete { id, before } => ("delete", Some(id.as_str()), false, sent(before), none()),
        };
        Self { action, kind: &unit.key.kind, key: &unit.key, id, adopt, before, after }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Outcomes {
    pub(super) outcomes: Vec<SentOutcome>,
}

#[derive(Debug, Deserialize)]
pub(super) struct SentOutcome {
    outcome: String,
    #[serde(default)]
    reason: String,
}

impl From<SentOutcome> for UnitOutcome {
    fn from(sent: SentOutcome) -> Self {
        match sent.outcome.as_str() {
            "applied" => Self::Applied,
            "changed" => Self::Changed,
            "rejected" if sent.reason.is_empty() => Self::Rejected { reason: "it gives no reason".into() },
            "rejected" => Self::Rejected { reason: sent.reason },
            "not_tried" => Self::NotTried,
            _ => Self::Unknown,
        }
    }
}
