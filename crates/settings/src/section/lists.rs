//! Lists and tables of values.

use std::{collections::BTreeMap, fmt::Display, str::FromStr};

use super::{Section, Table, Value, ValueOrigin};

impl<'t> Section<'t, '_> {
    pub fn texts(&mut self, key: &str) -> Vec<String> {
        self.items(key).into_iter().map(|(text, _)| text).collect()
    }

    /// A list of texts, or just one.
    pub fn one_or_more(&mut self, key: &str) -> Vec<String> {
        match self.node(key).map(|node| &node.value) {
            Some(Value::Text(text)) => vec![text.clone()],
            _ => self.texts(key),
        }
    }

    /// The values of a list, whatever they are.
    pub fn values(&mut self, key: &str) -> Vec<(&'t ValueOrigin, Value)> {
        let Some(node) = self.node(key) else { return Vec::new() };
        match &node.value {
            Value::Plain(text) => {
                split(text).map(|part| (&node.place, Value::Plain(part.to_owned()))).collect()
            }
            Value::List(nodes) => nodes.iter().map(|node| (&node.place, node.value.clone())).collect(),
            other => {
                self.mismatch(key, "a list", other, None);
                Vec::new()
            }
        }
    }

    /// A table that stands in the value of `key`.
    pub fn inner<'i>(&mut self, key: &str, table: &'i Table, known: &[&str]) -> Section<'i, '_> {
        let path = self.path_of(key);
        Section::new(&path, Some(table), known, self.problems)
    }

    pub fn list<T: FromStr<Err: Display>>(&mut self, key: &str) -> Vec<T> {
        let mut list = Vec::new();
        for (text, place) in self.items(key) {
            match text.parse() {
                Ok(value) => list.push(value),
                Err(error) => self.problems.add(place, format!("{}.{key}: {error}", self.path), None),
            }
        }
        list
    }

    /// As [`Section::list`], where one value may stand without its brackets.
    pub fn parsed_one_or_more<T: FromStr<Err: Display>>(&mut self, key: &str) -> Vec<T> {
        if let Some(Value::Text(_)) = self.node(key).map(|node| &node.value) {
            return self.parsed(key).into_iter().collect();
        }
        self.list(key)
    }

    fn items(&mut self, key: &str) -> Vec<(String, &'t ValueOrigin)> {
        let Some(node) = self.node(key) else { return Vec::new() };
        match &node.value {
            Value::Plain(text) => split(text).map(|part| (part.to_owned(), &node.place)).collect(),
            Value::List(nodes) => {
                let mut items = Vec::new();
                for node in nodes {
                    match &node.value {
                        Value::Text(text) => items.push((text.clone(), &node.place)),
                        other => {
                            let message = format!(
                                "{}.{key}: text is wanted here, and this is {}",
                                self.path,
                                other.noun()
                            );
                            self.problems.add(&node.place, message, None);
                        }
                    }
                }
                items
            }
            other => {
                let example = if let Value::Text(text) = other {
                    format!("write `[\"{text}\"]`")
                } else {
                    String::new()
                };
                self.mismatch(key, "a list", other, Some(example.as_str()).filter(|hint| !hint.is_empty()));
                Vec::new()
            }
        }
    }

    /// A table of texts; from the environment `a=b,c=d`.
    pub fn pairs(&mut self, key: &str) -> BTreeMap<String, String> {
        let mut pairs = BTreeMap::new();
        let Some(node) = self.node(key) else { return pairs };
        match &node.value {
            Value::Plain(text) => {
                for part in split(text) {
                    match part.split_once('=') {
                        Some((name, value)) => {
                            drop(pairs.insert(name.trim().to_owned(), value.trim().to_owned()));
                        }
                        None => {
                            self.wrong(
                                key,
                                &format!("`{part}` has no `=`"),
                                Some("write `site=ams,env=dev`"),
                            );
                        }
                    }
                }
            }
            Value::Table(table) => {
                for (name, entry) in &table.entries {
                    match &entry.node.value {
                        Value::Text(text) => drop(pairs.insert(name.clone(), text.clone())),
                        other => {
                            let message = format!(
                                "{}.{key}.{name}: text is wanted here, and this is {}",
                                self.path,
                                other.noun()
                            );
                            self.problems.add(&entry.node.place, message, None);
                        }
                    }
                }
            }
            other => self.mismatch(key, "a table", other, Some("write `{ site = \"ams\" }`")),
        }
        pairs
    }
}

fn split(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty())
}
