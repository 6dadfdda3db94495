//! [`Kind`]: the type of an attribute.

use super::value::{Object, Value};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    Bool,
    Number,
    Text,
    List(Box<Kind>),
    Set(Box<Kind>),
    Map(Box<Kind>),
    Object(Vec<(&'static str, Kind)>),
}

impl Kind {
    pub fn list_of(kind: Self) -> Self {
        Self::List(Box::new(kind))
    }

    pub fn set_of(kind: Self) -> Self {
        Self::Set(Box::new(kind))
    }

    pub fn map_of(kind: Self) -> Self {
        Self::Map(Box::new(kind))
    }

    /// As the protocol writes types.
    pub fn json(&self) -> serde_json::Value {
        use serde_json::json;
        match self {
            Self::Bool => json!("bool"),
            Self::Number => json!("number"),
            Self::Text => json!("string"),
            Self::List(of) => json!(["list", of.json()]),
            Self::Set(of) => json!(["set", of.json()]),
            Self::Map(of) => json!(["map", of.json()]),
            Self::Object(fields) => {
                let fields: serde_json::Map<_, _> =
                    fields.iter().map(|(name, kind)| ((*name).to_owned(), kind.json())).collect();
                json!(["object", fields])
            }
        }
    }

    /// As the documents write types.
    pub fn words(&self) -> String {
        match self {
            Self::Bool => "Boolean".into(),
            Self::Number => "Number".into(),
            Self::Text => "String".into(),
            Self::List(of) => format!("List of {}", of.words()),
            Self::Set(of) => format!("Set of {}", of.words()),
            Self::Map(of) => format!("Map of {}", of.words()),
            Self::Object(_) => "Object".into(),
        }
    }

    /// A value of stored JSON. Attributes of an object that this type does not know are dropped, and missing ones are null.
    ///
    /// # Errors
    ///
    /// The words say which part does not fit.
    pub fn from_json(&self, json: &serde_json::Value) -> Result<Value, String> {
        use serde_json::Value as Json;
        Ok(match (self, json) {
            (_, Json::Null) => Value::Null,
            (Self::Bool, Json::Bool(value)) => Value::Bool(*value),
            // Earlier kinds of state wrote everything as text.
            (Self::Bool, Json::String(text)) if text == "true" || text == "false" => {
                Value::Bool(text == "true")
            }
            (Self::Number, Json::Number(number)) => number
                .as_i64()
                .map(Value::Int)
                .or_else(|| number.as_f64().map(Value::Float))
                .unwrap_or(Value::Null),
            (Self::Number, Json::String(text)) => {
                number(text).ok_or_else(|| format!("`{text}` is no number"))?
            }
            (Self::Text, Json::String(text)) => Value::Text(text.clone()),
            (Self::List(of) | Self::Set(of), Json::Array(items)) => {
                Value::List(items.iter().map(|item| of.from_json(item)).collect::<Result<_, _>>()?)
            }
            (Self::Map(of), Json::Object(items)) => Value::Map(
                items
                    .iter()
                    .map(|(key, item)| Ok((key.clone(), of.from_json(item)?)))
                    .collect::<Result<_, String>>()?,
            ),
            (Self::Object(fields), Json::Object(items)) => {
                let mut object = Object::new();
                for (name, kind) in fields {
                    let value = items.get(*name).map_or(Ok(Value::Null), |item| kind.from_json(item));
                    object.insert((*name).to_owned(), value.map_err(|error| format!("{name}: {error}"))?);
                }
                Value::Map(object)
            }
            (kind, json) => return Err(format!("`{json}` is no {}", kind.words())),
        })
    }
}

/// A number in decimal text, which is how the protocol sends what no machine number can hold.
pub(super) fn number(text: &str) -> Option<Value> {
    text.parse().map(Value::Int).or_else(|_| text.parse().map(Value::Float)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_object_loses_what_the_type_does_not_know_and_gets_null_for_what_it_lacks() {
        let kind = Kind::Object(vec![("name", Kind::Text), ("size", Kind::Number), ("on", Kind::Bool)]);
        let read = kind.from_json(&serde_json::json!({"name": "a", "size": "12", "old": 1})).unwrap();
        let expected: Object =
            [("name".into(), "a".into()), ("size".into(), Value::Int(12)), ("on".into(), Value::Null)].into();
        assert_eq!(read, Value::Map(expected));
        let wrong = kind.from_json(&serde_json::json!({"name": []})).unwrap_err();
        assert_eq!(wrong, "name: `[]` is no String");
    }
}
