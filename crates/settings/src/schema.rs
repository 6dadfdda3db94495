//! JSON Schema of a table, for editors.

use serde_json::{Map, Value as Json, json};

use crate::{
    key::{KeyDefault, KeyInfo, Shape},
    tree::Value,
};

/// The schema of a table with these keys. Only `required` is demanded: the rest may come from the environment.
pub fn object_schema(keys: &[KeyInfo], required: &[&str]) -> Json {
    let mut properties = Map::new();
    for key in keys {
        let mut schema = shape_schema(&key.shape);
        if let Some(object) = schema.as_object_mut() {
            object.insert("description".into(), Json::from(key.help.as_str()));
            if let KeyDefault::Value(value) = &key.default {
                object.insert("default".into(), json(value));
            }
        }
        properties.insert(key.name.to_owned(), schema);
    }
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

pub fn shape_schema(shape: &Shape) -> Json {
    match shape {
        Shape::Text | Shape::Path | Shape::Span => json!({ "type": "string" }),
        // As a remark: what editors know as `hostname` is stricter than DNS.
        Shape::Format(format) => json!({ "type": "string", "$comment": format }),
        Shape::Flag => json!({ "type": "boolean" }),
        Shape::Number { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Shape::Secret => {
            let place = |key: &str| {
                json!({
                    "type": "object",
                    "properties": { key: { "type": "string" } },
                    "required": [key],
                    "additionalProperties": false,
                })
            };
            json!({ "anyOf": [{ "type": "string" }, place("env"), place("file"), place("credential")] })
        }
        Shape::Choice(words) => json!({ "enum": words }),
        Shape::List(item) => json!({ "type": "array", "items": shape_schema(item) }),
        Shape::OneOrMore(item) => {
            let one = shape_schema(item);
            json!({ "anyOf": [one.clone(), { "type": "array", "items": one }] })
        }
        Shape::Pairs => json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        Shape::Table => json!({ "type": "object" }),
        Shape::Tables(keys) => {
            let properties: Map<String, Json> = keys
                .iter()
                .map(|key| {
                    let mut schema = shape_schema(&key.shape);
                    if let Some(object) = schema.as_object_mut() {
                        object.insert("description".into(), Json::from(key.help.as_str()));
                    }
                    (key.name.to_owned(), schema)
                })
                .collect();
            let required: Vec<_> = keys.iter().filter(|key| key.required).map(|key| key.name).collect();
            let table = json!({
                "type": "object", "properties": properties, "required": required, "additionalProperties": false,
            });
            json!({ "type": "array", "items": table })
        }
        Shape::AnyOf(shapes) => json!({ "anyOf": shapes.iter().map(shape_schema).collect::<Vec<_>>() }),
    }
}

fn json(value: &Value) -> Json {
    match value {
        Value::Text(text) | Value::Plain(text) | Value::Integer(Err(text)) => Json::from(text.as_str()),
        Value::Integer(Ok(number)) => Json::from(*number),
        Value::Bool(flag) => Json::from(*flag),
        Value::List(items) => items.iter().map(|item| json(&item.value)).collect(),
        Value::Float | Value::Date | Value::Table(_) => Json::Null,
    }
}
