//! [`Envelope`]: the form of every answer.

use netstead_wire::http::Reply;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::text::clean;

/// The envelope of every answer.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Envelope {
    #[serde(default)]
    code: Option<Value>,
    #[serde(default)]
    success: Option<Value>,
    #[serde(default)]
    pub(crate) message: Option<Value>,
    #[serde(default)]
    pub(crate) id: Option<Value>,
    #[serde(default)]
    pub(crate) data: Option<Value>,
}

impl Envelope {
    /// The status that it says; a success that says no success is an error.
    pub(super) fn status(&self, reply: &Reply) -> Option<u16> {
        let said = match self.code.as_ref()? {
            Value::Number(number) => number.as_u64().and_then(|number| u16::try_from(number).ok())?,
            Value::String(text) => text.parse().ok()?,
            _ => return None,
        };
        let success = match self.success.as_ref()? {
            Value::Bool(is) => *is,
            Value::String(text) => text == "true" || text == "1",
            Value::Number(number) => number.as_u64() == Some(1),
            _ => return None,
        };
        let status = if (200..300).contains(&said) { reply.status.as_u16() } else { said };
        Some(if !success && (200..300).contains(&status) { 500 } else { status })
    }

    pub(super) fn text(&self) -> String {
        match &self.message {
            Some(Value::String(text)) => clean(text),
            Some(other) => other.to_string(),
            None => "it gives no reason".to_owned(),
        }
    }

    /// The id of a created object, a text.
    pub(crate) fn made(&self) -> Option<String> {
        match self.id.as_ref()? {
            Value::String(text) => text.parse::<u64>().ok().map(|number| number.to_string()),
            Value::Number(number) => number.as_u64().map(|number| number.to_string()),
            _ => None,
        }
    }

    /// The rows of a list; a single row is a list of one.
    pub(super) fn rows(self) -> Option<Vec<Map<String, Value>>> {
        let row = |value: Value| match value {
            Value::Object(row) => Some(row),
            _ => None,
        };
        match self.data? {
            Value::Array(rows) => rows.into_iter().map(row).collect(),
            Value::Object(one) => Some(vec![one]),
            _ => None,
        }
    }
}
