//! Takes typed values out of one table and tells what does not fit.

mod lists;

use std::{fmt::Display, ops::RangeInclusive, path::Path, str::FromStr};

use super::{
    Problems, Secret, ValueOrigin,
    problem::nearest,
    tree::{Node, Table, Value},
};

/// One table of the file, or an empty one if the file does not have it.
#[derive(Debug)]
pub(super) struct Section<'t, 'p> {
    path: String,
    table: Option<&'t Table>,
    problems: &'p mut Problems,
}

impl<'t, 'p> Section<'t, 'p> {
    /// Looks at `table`, found at `path`; whatever is not in `known` is a problem.
    pub(super) fn new(
        path: &str,
        table: Option<&'t Table>,
        known: &[&str],
        problems: &'p mut Problems,
    ) -> Self {
        for (key, entry) in table.into_iter().flat_map(|table| &table.entries) {
            if !known.contains(&key.as_str()) {
                let whose = if path.is_empty() { String::new() } else { format!(" in `{path}`") };
                problems.add(&entry.key, format!("unknown key `{key}`{whose}"), Some(nearest(key, known)));
            }
        }
        Self { path: path.to_owned(), table, problems }
    }

    /// The table `key`, which holds single values.
    pub(super) fn section(&mut self, key: &str, known: &[&str]) -> Section<'t, '_> {
        let table = match self.node(key).map(|node| &node.value) {
            Some(Value::Table(table)) => Some(table),
            Some(other) => {
                self.wrong(key, &format!("a table is wanted here, and this is {}", other.noun()), None);
                None
            }
            None => None,
        };
        let path = self.path_of(key);
        Section::new(&path, table, known, self.problems)
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// The tables in the table `key`, each under its name: `[pool.lan]`.
    pub(super) fn tables(&mut self, key: &str) -> Vec<(&'t str, &'t ValueOrigin, &'t Table)> {
        let mut tables = Vec::new();
        let named = match self.node(key).map(|node| &node.value) {
            Some(Value::Table(table)) => table,
            Some(_) => {
                self.wrong(key, "this is no table of tables", Some(&format!("write `[{key}.NAME]`")));
                return tables;
            }
            None => return tables,
        };
        for (name, entry) in &named.entries {
            if let Value::Table(table) = &entry.node.value {
                tables.push((name.as_str(), &entry.key, table));
            } else {
                let message = format!("`{key}.{name}` is no table");
                self.problems.add(&entry.key, message, Some(format!("write `[{key}.NAME]` above it")));
            }
        }
        tables
    }

    /// Whether files that the text names must not be looked at: somebody else sent it.
    pub(super) fn is_foreign(&self) -> bool {
        self.problems.foreign
    }

    /// Where the value of `key` stands, if it is there.
    pub(super) fn origin_of(&self, key: &str) -> Option<&'t ValueOrigin> {
        self.node(key).map(|node| &node.place)
    }

    /// Where `key` stands, or the table if it has none.
    fn origin_or_table(&self, key: &str) -> Option<&'t ValueOrigin> {
        self.origin_of(key).or(self.table.map(|table| &table.place))
    }

    pub(super) fn wrong(&mut self, key: &str, message: &str, hint: Option<&str>) {
        if let Some(place) = self.origin_or_table(key) {
            self.wrong_at(place, key, message, hint);
        }
    }

    /// The same for a part of the value.
    pub(super) fn wrong_at(&mut self, place: &ValueOrigin, key: &str, message: &str, hint: Option<&str>) {
        let path = self.path_of(key);
        self.problems.add(place, format!("{path}: {message}"), hint.map(str::to_owned));
    }

    fn node(&self, key: &str) -> Option<&'t Node> {
        self.table?.entries.get(key).map(|entry| &entry.node)
    }

    fn mismatch(&mut self, key: &str, wanted: &str, value: &Value, hint: Option<&str>) {
        self.wrong(key, &format!("{wanted} is wanted here, and this is {}", value.noun()), hint);
    }

    pub(super) fn text(&mut self, key: &str) -> Option<&'t str> {
        let node = self.node(key)?;
        match &node.value {
            Value::Text(text) | Value::Plain(text) if text.is_empty() => self.wrong(key, "it is empty", None),
            Value::Text(text) | Value::Plain(text) => return Some(text),
            other => self.mismatch(key, "text", other, None),
        }
        None
    }

    /// A text that must be there.
    pub(super) fn needed(&mut self, key: &str, hint: &str) -> Option<&'t str> {
        if self.node(key).is_none() {
            self.wrong(key, "it is missing", Some(hint));
        }
        self.text(key)
    }

    /// Written out, `{ env = "NAME" }` or `{ file = "path" }`.
    pub(super) fn secret(&mut self, key: &str, dir: &Path) -> Option<Secret> {
        let Some(Node { value: Value::Table(table), .. }) = self.node(key) else {
            return self.text(key).map(|text| Secret::Value(text.to_owned()));
        };
        let mut inner = self.inner(key, table, &["env", "file"]);
        match (inner.text("env"), inner.text("file")) {
            (Some(name), None) => return Some(Secret::Variable(name.to_owned())),
            (None, Some(path)) => return Some(Secret::File(dir.join(path))),
            _ => {}
        }
        self.wrong(
            key,
            "a secret is in one place",
            Some("write `{ env = \"NAME\" }` or `{ file = \"/path\" }`"),
        );
        None
    }

    pub(super) fn parsed<T: FromStr<Err: Display>>(&mut self, key: &str) -> Option<T> {
        match self.text(key)?.parse() {
            Ok(value) => Some(value),
            Err(error) => {
                self.wrong(key, &error.to_string(), None);
                None
            }
        }
    }

    /// As [`Section::parsed`], for types whose own errors help nobody.
    pub(super) fn parsed_or<T: FromStr>(&mut self, key: &str, hint: &str) -> Option<T> {
        let text = self.text(key)?;
        let parsed = text.parse().ok();
        if parsed.is_none() {
            self.wrong(key, &format!("`{text}` cannot be understood"), Some(hint));
        }
        parsed
    }

    pub(super) fn choice(&mut self, key: &str, known: &[&'static str]) -> Option<&'static str> {
        let text = self.text(key)?;
        let found = known.iter().find(|known| **known == text).copied();
        if found.is_none() {
            self.wrong(key, &format!("`{text}` is not known here"), Some(&nearest(text, known)));
        }
        found
    }

    pub(super) fn flag(&mut self, key: &str) -> Option<bool> {
        let node = self.node(key)?;
        match &node.value {
            Value::Bool(value) => return Some(*value),
            Value::Plain(text) if text == "true" || text == "1" => return Some(true),
            Value::Plain(text) if text == "false" || text == "0" => return Some(false),
            other => self.mismatch(key, "true or false", other, None),
        }
        None
    }

    /// `max_connections` and `max_connections_per_peer` of a listener.
    pub(super) fn connections(&mut self) -> (Option<usize>, Option<usize>) {
        let allowed = 1..=1_000_000;
        let in_all: Option<usize> = self.number("max_connections", allowed.clone());
        let per_peer = self.number("max_connections_per_peer", allowed);
        if let (Some(in_all), Some(per_peer)) = (in_all, per_peer)
            && per_peer > in_all
        {
            let message =
                format!("one peer cannot have {per_peer} connections when all together have {in_all}");
            self.wrong("max_connections_per_peer", &message, Some("raise `max_connections` as well"));
        }
        (in_all, per_peer)
    }

    pub(super) fn number<T: TryFrom<i64>>(&mut self, key: &str, allowed: RangeInclusive<i64>) -> Option<T> {
        let node = self.node(key)?;
        let number = match &node.value {
            Value::Integer(number) => number.clone(),
            Value::Plain(text) => text.parse().map_err(|_| text.clone()),
            other => {
                self.mismatch(key, "a number", other, None);
                return None;
            }
        };
        let fits =
            number.as_ref().ok().filter(|number| allowed.contains(number)).and_then(|n| T::try_from(*n).ok());
        if fits.is_none() {
            let shown = number.map_or_else(|text| text, |number| number.to_string());
            let range = format!("it is a number from {} to {}", allowed.start(), allowed.end());
            self.wrong(key, &format!("`{shown}` is out of range"), Some(&range));
        }
        fits
    }
}
