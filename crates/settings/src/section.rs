//! Takes typed values out of one table and reports what does not fit.

mod lists;

use std::{
    collections::BTreeMap,
    fmt::Display,
    ops::RangeInclusive,
    path::{Path, PathBuf},
    str::FromStr,
};

use crate::{
    problem::{Problems, ValueOrigin, nearest},
    secret::Secret,
    tree::{Entry, Node, Table, Value},
};

/// One table of the file, or an empty one if the file does not have it.
#[derive(Debug)]
pub struct Section<'t, 'p> {
    path: String,
    table: Option<&'t Table>,
    /// The place of the table's name, if it has one.
    header: Option<&'t ValueOrigin>,
    problems: &'p mut Problems,
}

impl<'t, 'p> Section<'t, 'p> {
    /// Looks at `table`, found at `path`; whatever is not in `known` is a problem.
    pub fn new(path: &str, table: Option<&'t Table>, known: &[&str], problems: &'p mut Problems) -> Self {
        let mut section = Self { path: path.to_owned(), table, header: None, problems };
        section.refuse_unknown(known, |_| Vec::new());
        section
    }

    /// A section with one value that no file has: a default is read like a value that is written.
    pub(crate) fn literal<T>(key: &str, value: Value, read: impl FnOnce(&mut Section<'_, '_>) -> T) -> T {
        let place = ValueOrigin::Nowhere;
        let node = Node { place: place.clone(), value };
        let entries = BTreeMap::from([(key.to_owned(), Entry { key: place.clone(), node })]);
        let table = Table { place, entries };
        let mut problems = Problems::new(Path::new(""), "");
        read(&mut Section { path: String::new(), table: Some(&table), header: None, problems: &mut problems })
    }

    /// With the place of its name, for problems of the table as a whole.
    #[must_use]
    pub fn named(self, header: &'t ValueOrigin) -> Self {
        Self { header: Some(header), ..self }
    }

    /// Reports the keys that are not in `known`. `elsewhere` says of a key which other kinds have it.
    pub fn refuse_unknown(&mut self, known: &[&str], elsewhere: impl Fn(&str) -> Vec<&'static str>) {
        for (key, entry) in self.table.into_iter().flat_map(|table| &table.entries) {
            if known.contains(&key.as_str()) {
                continue;
            }
            let whose = if self.path.is_empty() { String::new() } else { format!(" in `{}`", self.path) };
            let others = elsewhere(key);
            let hint = if others.is_empty() {
                nearest(key, known)
            } else {
                format!("only a table of type {} has it", others.join(" or "))
            };
            self.problems.add(&entry.key, format!("unknown key `{key}`{whose}"), Some(hint));
        }
    }

    /// A table of which any key may be there; [`Section::refuse_unknown`] is asked later, when its kind is known.
    pub fn open(path: &str, table: &'t Table, problems: &'p mut Problems) -> Self {
        Self { path: path.to_owned(), table: Some(table), header: None, problems }
    }

    /// The table `key`, which holds single values.
    pub fn section(&mut self, key: &str, known: &[&str]) -> Section<'t, '_> {
        let mut section = self.open_section(key);
        section.refuse_unknown(known, |_| Vec::new());
        section
    }

    /// The table `key`, of which any key may be there until its kind is known.
    pub fn open_section(&mut self, key: &str) -> Section<'t, '_> {
        let table = match self.node(key).map(|node| &node.value) {
            Some(Value::Table(table)) => Some(table),
            Some(other) => {
                self.wrong(key, &format!("a table is wanted here, and this is {}", other.noun()), None);
                None
            }
            None => None,
        };
        Section { path: self.path_of(key), table, header: None, problems: self.problems }
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// The tables in the table `key`, each under its name: `[pool.lan]`.
    pub fn tables(&mut self, key: &str) -> Vec<(&'t str, &'t ValueOrigin, &'t Table)> {
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

    /// The place of each value, for problems that show only when something is built.
    pub fn origins(&self) -> BTreeMap<String, String> {
        let entries = self.table.into_iter().flat_map(|table| &table.entries);
        entries.map(|(key, entry)| (key.clone(), self.problems.at(&entry.node.place))).collect()
    }

    /// Where the value of `key` stands, if it is there.
    pub fn origin_of(&self, key: &str) -> Option<&'t ValueOrigin> {
        self.node(key).map(|node| &node.place)
    }

    /// Where `key` stands, or the table if it has none.
    fn origin_or_table(&self, key: &str) -> Option<&'t ValueOrigin> {
        self.origin_of(key).or(self.table.map(|table| &table.place))
    }

    pub fn wrong(&mut self, key: &str, message: &str, hint: Option<&str>) {
        if let Some(place) = self.origin_or_table(key) {
            self.wrong_at(place, key, message, hint);
        }
    }

    /// Reports a problem of the table itself.
    pub fn wrong_table(&mut self, message: &str, hint: Option<&str>) {
        if let Some(table) = self.table {
            let place = self.header.unwrap_or(&table.place);
            self.problems.add(place, format!("{} {message}", self.path), hint.map(str::to_owned));
        }
    }

    /// The same for a part of the value.
    pub fn wrong_at(&mut self, place: &ValueOrigin, key: &str, message: &str, hint: Option<&str>) {
        let path = self.path_of(key);
        self.problems.add(place, format!("{path}: {message}"), hint.map(str::to_owned));
    }

    fn node(&self, key: &str) -> Option<&'t Node> {
        self.table?.entries.get(key).map(|entry| &entry.node)
    }

    fn mismatch(&mut self, key: &str, wanted: &str, value: &Value, hint: Option<&str>) {
        self.wrong(key, &format!("{wanted} is wanted here, and this is {}", value.noun()), hint);
    }

    pub fn text(&mut self, key: &str) -> Option<&'t str> {
        let node = self.node(key)?;
        match &node.value {
            Value::Text(text) | Value::Plain(text) if text.is_empty() => self.wrong(key, "it is empty", None),
            Value::Text(text) | Value::Plain(text) => return Some(text),
            other => self.mismatch(key, "text", other, None),
        }
        None
    }

    /// A text that must be there.
    pub fn needed(&mut self, key: &str, hint: &str) -> Option<&'t str> {
        if self.node(key).is_none() {
            self.wrong(key, "it is missing", Some(hint));
        }
        self.text(key)
    }

    /// A path; one that does not begin with `/` is relative to the file.
    pub fn path(&mut self, key: &str) -> Option<PathBuf> {
        let path = self.text(key)?;
        Some(self.problems.dir().join(path))
    }

    /// Paths, or one.
    pub fn paths(&mut self, key: &str) -> Vec<PathBuf> {
        let paths = self.one_or_more(key);
        paths.iter().map(|path| self.problems.dir().join(path)).collect()
    }

    /// Written out, `{ env = "NAME" }`, `{ file = "path" }` or `{ credential = "NAME" }`.
    pub fn secret(&mut self, key: &str) -> Option<Secret> {
        let Some(Node { value: Value::Table(table), .. }) = self.node(key) else {
            return self.text(key).map(|text| Secret::Value(text.to_owned()));
        };
        let mut inner = self.inner(key, table, &["env", "file", "credential"]);
        match (inner.text("env"), inner.path("file"), inner.text("credential")) {
            (Some(name), None, None) => return Some(Secret::Variable(name.to_owned())),
            (None, Some(path), None) => return Some(Secret::File(path)),
            (None, None, Some(name)) if !name.contains('/') && name != ".." => {
                return Some(Secret::Credential(name.to_owned()));
            }
            _ => {}
        }
        self.wrong(
            key,
            "a secret is in one place",
            Some("write `{ env = \"NAME\" }`, `{ file = \"/path\" }` or `{ credential = \"NAME\" }`"),
        );
        None
    }

    pub fn parsed<T: FromStr<Err: Display>>(&mut self, key: &str) -> Option<T> {
        match self.text(key)?.parse() {
            Ok(value) => Some(value),
            Err(error) => {
                self.wrong(key, &error.to_string(), None);
                None
            }
        }
    }

    /// As [`Section::parsed`], for types whose own errors say too little.
    pub fn parsed_or<T: FromStr>(&mut self, key: &str, hint: &str) -> Option<T> {
        let text = self.text(key)?;
        let parsed = text.parse().ok();
        if parsed.is_none() {
            self.wrong(key, &format!("`{text}` cannot be understood"), Some(hint));
        }
        parsed
    }

    pub fn choice(&mut self, key: &str, known: &[&'static str]) -> Option<&'static str> {
        let text = self.text(key)?;
        let found = known.iter().find(|known| **known == text).copied();
        if found.is_none() {
            self.wrong(key, &format!("`{text}` is not known here"), Some(&nearest(text, known)));
        }
        found
    }

    pub fn flag(&mut self, key: &str) -> Option<bool> {
        let node = self.node(key)?;
        match &node.value {
            Value::Bool(value) => return Some(*value),
            Value::Plain(text) if text == "true" || text == "1" => return Some(true),
            Value::Plain(text) if text == "false" || text == "0" => return Some(false),
            other => self.mismatch(key, "true or false", other, None),
        }
        None
    }

    pub fn number<T: TryFrom<i64>>(&mut self, key: &str, allowed: RangeInclusive<i64>) -> Option<T> {
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
