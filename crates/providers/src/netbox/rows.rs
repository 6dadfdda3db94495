//! Values as NetBox's lists have them: choices are objects with a `value`, relations are objects with an `id` and a name, and
//! numbers may be texts.

use netstead_model::Address;
use serde_json::{Map, Value};

use crate::phpipam::Marks;

/// One object of an answer.
pub(crate) type Row = Map<String, Value>;

/// A text; nothing is an empty text.
pub(crate) fn text_of(row: &Row, name: &str) -> String {
    match row.get(name) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    }
}

/// A choice, whether it is a value or an object with one.
pub(crate) fn choice(row: &Row, name: &str) -> String {
    match row.get(name) {
        Some(Value::Object(choice)) => text_of(choice, "value"),
        _ => text_of(row, name),
    }
}

/// The id of a relation, or the number of a field.
pub(crate) fn id_of(row: &Row, name: &str) -> Option<u64> {
    match row.get(name)? {
        Value::Object(related) => number(related.get("id")?),
        value => number(value),
    }
}

/// The name of a relation.
pub(crate) fn name_of(row: &Row, name: &str) -> String {
    match row.get(name) {
        Some(Value::Object(related)) => text_of(related, "name"),
        _ => String::new(),
    }
}

/// A relation for people, with its id: `web-1 (id 7)`.
pub(crate) fn label_of(row: &Row, name: &str) -> Option<String> {
    let related = row.get(name)?.as_object()?;
    let shown =
        [text_of(related, "display"), text_of(related, "name")].into_iter().find(|text| !text.is_empty());
    Some(format!("{} (id {})", shown.unwrap_or_default(), text_of(related, "id")))
}

/// The objects of a list in an object.
pub(crate) fn list_of<'a>(row: &'a Row, name: &str) -> impl Iterator<Item = &'a Row> + use<'a> {
    row.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
}

/// Our marks in a custom field.
pub(crate) fn marks_of(row: &Row, field: &str) -> Marks {
    let custom = row.get("custom_fields").and_then(|custom| custom.get(field));
    Marks::read(custom.and_then(Value::as_str).unwrap_or_default())
}

/// `10.0.3.7/24` in two parts.
pub(crate) fn address_and_length(text: &str) -> Option<(Address, u8)> {
    let (address, length) = text.split_once('/')?;
    let address: std::net::IpAddr = address.parse().ok()?;
    Some((address.into(), length.parse().ok()?))
}

fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn choices_relations_and_numbers_are_read_in_every_form() {
        let row = json!({ "status": { "value": "active", "label": "Active" }, "old": "offline", "vcpus": "2.00",
            "vm": { "id": 7, "name": "web", "display": "web" }, "plain": 8, "none": null,
            "custom_fields": { "netstead_key": "[netstead-claim own/lan/x]" } });
        let row = row.as_object().unwrap();
        assert_eq!((choice(row, "status"), choice(row, "old")), ("active".into(), "offline".into()));
        assert_eq!((id_of(row, "vm"), id_of(row, "plain"), id_of(row, "none")), (Some(7), Some(8), None));
        assert_eq!((name_of(row, "vm"), label_of(row, "vm")), ("web".into(), Some("web (id 7)".into())));
        assert_eq!(marks_of(row, "netstead_key").claim.as_deref(), Some("own/lan/x"));
        assert_eq!(marks_of(row, "other"), Marks::default());
        assert_eq!(address_and_length("10.0.3.7/24"), Some(("10.0.3.7".parse().unwrap(), 24)));
        assert_eq!(address_and_length("10.0.3.7"), None);
    }
}
