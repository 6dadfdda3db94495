//! The key that a variable means.

use std::fmt;

use super::{NamedKeys, PlainKeys, VariableKey};
use crate::tree::{Table, Value};

/// The key that a variable sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Meaning {
    pub(super) section: &'static str,
    /// The name of the table, if the section has named ones.
    pub(super) table: Option<String>,
    pub(super) key: &'static str,
    /// The variable names a file with the value.
    pub(super) file: bool,
}

impl fmt::Display for Meaning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.", self.section)?;
        if let Some(table) = &self.table {
            write!(f, "{table}.")?;
        }
        f.write_str(self.key)
    }
}

/// Every key of the file, as it stands, that a variable can mean. `rest` is its name in lower case, without the prefix.
pub(super) fn meanings(rest: &str, root: &Table, plain: &[PlainKeys], named: &[NamedKeys]) -> Vec<Meaning> {
    let mut found = Vec::new();
    for section in plain {
        let Some(text) = after(rest, section.section) else { continue };
        let meaning = |(key, file)| Meaning { section: section.section, table: None, key, file };
        found.extend(key_called(text, &section.keys).map(meaning));
    }
    for section in named {
        let Some(text) = after(rest, section.section) else { continue };
        for (name, table) in tables(root, section.section) {
            let Some(key) = after(text, &flat(name)) else { continue };
            let keys = keys_of(section, name, table);
            let meaning =
                |(key, file)| Meaning { section: section.section, table: Some(name.to_owned()), key, file };
            found.extend(key_called(key, &keys).map(meaning));
        }
    }
    found
}

/// The table that a variable makes.
pub(super) fn new_table(rest: &str, named: &[NamedKeys]) -> Option<Meaning> {
    let section = named.iter().find(|section| after(rest, section.section).is_some())?;
    let text = after(rest, section.section)?;
    let of = |keys: &[VariableKey]| {
        // The longest key first: `a_cooldown_min` is `cooldown_min` of `a`.
        let mut found: Vec<(&'static str, bool, usize)> = Vec::new();
        for key in keys {
            let ends = |end: &str| text.strip_suffix(end)?.strip_suffix('_').filter(|name| !name.is_empty());
            let file = format!("{}_file", key.name);
            if let Some(name) = ends(key.name) {
                found.push((key.name, false, name.len()));
            } else if let Some(name) = ends(&file).filter(|_| key.secret) {
                found.push((key.name, true, name.len()));
            }
        }
        let (key, file, length) = found.into_iter().min_by_key(|(_, _, length)| *length)?;
        let table = text.get(..length)?.to_owned();
        Some(Meaning { section: section.section, table: Some(table), key, file })
    };
    let all: Vec<_> = section.kinds.iter().flat_map(|(_, keys)| keys.iter().copied()).collect();
    of(&section.shared).or_else(|| of(&all))
}

fn after<'t>(text: &'t str, word: &str) -> Option<&'t str> {
    text.strip_prefix(word)?.strip_prefix('_')
}

/// The key of this name; with `_file` behind it, the secret of this name.
fn key_called(text: &str, keys: &[VariableKey]) -> Option<(&'static str, bool)> {
    if let Some(key) = keys.iter().find(|key| key.name == text) {
        return Some((key.name, false));
    }
    let secret = text.strip_suffix("_file")?;
    keys.iter().find(|key| key.secret && key.name == secret).map(|key| (key.name, true))
}

fn tables<'t>(root: &'t Table, section: &str) -> impl Iterator<Item = (&'t str, &'t Table)> {
    let section = match root.entries.get(section).map(|entry| &entry.node.value) {
        Some(Value::Table(table)) => Some(table),
        _ => None,
    };
    section.into_iter().flat_map(|table| &table.entries).filter_map(|(name, entry)| match &entry.node.value {
        Value::Table(table) => Some((name.as_str(), table)),
        _ => None,
    })
}

/// The keys of a table: the shared ones and those of its kind, or of all kinds while that is not known.
fn keys_of(section: &NamedKeys, name: &str, table: &Table) -> Vec<VariableKey> {
    let kind = match table.entries.get("type").map(|entry| &entry.node.value) {
        Some(Value::Text(kind) | Value::Plain(kind)) => kind.as_str(),
        _ => name,
    };
    let mut keys = section.shared.clone();
    match section.kinds.iter().find(|(known, _)| *known == kind) {
        Some((_, own)) => keys.extend(own),
        None => keys.extend(section.kinds.iter().flat_map(|(_, own)| own)),
    }
    keys
}

/// A name as a variable has it: lower case, with `_` for every other sign.
fn flat(name: &str) -> String {
    name.to_ascii_lowercase().replace(['-', '.'], "_")
}
