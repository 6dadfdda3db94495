//! A table as it was written, for telling whether it changed.

use std::{collections::BTreeMap, fmt::Write as _};

use sha2::{Digest as _, Sha256};

use crate::{
    key::{KeyDefault, KeyInfo, Shape},
    tree::{Table, Value},
};

/// The keys of a table with their values, sorted; keys that say their default are left out, and so are `skipped` ones.
///
/// A new key or a new default of a later version changes nothing here, so a table that was not touched stays equal. A secret
/// that is written out is hashed. A form that is stored is hashed once more, with the installation's own id.
pub fn written_form(table: &Table, keys: &[KeyInfo], skipped: &[&str]) -> String {
    let mut form = String::new();
    for (name, entry) in &table.entries {
        let info = keys.iter().find(|info| info.name == name);
        if skipped.contains(&name.as_str()) || info.is_some_and(|info| is_default(info, &entry.node.value)) {
            continue;
        }
        let secret = info.is_some_and(|info| info.shape == Shape::Secret);
        let value = if secret { hashed(&entry.node.value) } else { canonical(&entry.node.value) };
        let _ = writeln!(form, "{name}={value}");
    }
    form
}

fn is_default(info: &KeyInfo, value: &Value) -> bool {
    matches!(&info.default, KeyDefault::Value(default) if canonical(default) == canonical(value))
}

fn hashed(value: &Value) -> String {
    match value {
        Value::Text(text) | Value::Plain(text) => {
            let hash = Sha256::digest(text);
            hash.iter().fold(String::from("sha256:"), |mut hex, byte| {
                let _ = write!(hex, "{byte:02x}");
                hex
            })
        }
        place => canonical(place),
    }
}

/// The value in one spelling: what a variable sets and what the file says are alike.
fn canonical(value: &Value) -> String {
    match value {
        Value::Text(text) | Value::Plain(text) => text.clone(),
        Value::Integer(number) => number.as_ref().map_or_else(Clone::clone, ToString::to_string),
        Value::Bool(flag) => flag.to_string(),
        Value::Float | Value::Date => String::new(),
        Value::List(items) => items.iter().map(|item| canonical(&item.value)).collect::<Vec<_>>().join(","),
        Value::Table(table) => {
            let pairs: BTreeMap<_, _> =
                table.entries.iter().map(|(name, entry)| (name, canonical(&entry.node.value))).collect();
            let pairs: Vec<_> = pairs.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
            format!("{{{}}}", pairs.join(","))
        }
    }
}
