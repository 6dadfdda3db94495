//! Reads JSON of Proxmox VE, in which numbers are text, flags are numbers, and lists are `null`.

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::Value;

/// Text, also if it is written as a number; `null` is none.
pub(super) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::String(text) if !text.is_empty() => Some(text),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    })
}

/// A number, also if it is written as text.
pub(super) fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(number_of(&Value::deserialize(deserializer)?))
}

/// `1`, `"1"`, `true`; everything else is no.
pub(super) fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(is_set(&Value::deserialize(deserializer)?))
}

/// A list whose unreadable elements are left out; `null` is an empty one.
pub(super) fn list<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    Ok(list_of(Value::deserialize(deserializer)?))
}

pub(super) fn list_of<T: DeserializeOwned>(value: Value) -> Vec<T> {
    let Value::Array(items) = value else { return Vec::new() };
    items.into_iter().filter_map(|item| serde_json::from_value(item).ok()).collect()
}

pub(super) fn number_of(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64().or_else(|| whole(number.as_f64()?)),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

fn is_set(value: &Value) -> bool {
    match value {
        Value::Bool(set) => *set,
        Value::Number(number) => number.as_u64() == Some(1),
        Value::String(text) => matches!(text.as_str(), "1" | "true" | "on" | "yes"),
        _ => false,
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
fn whole(number: f64) -> Option<u64> {
    (0.0..1e18).contains(&number).then_some(number as u64)
}
