//! The file as a tree in which every value knows its place.

use std::collections::BTreeMap;

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use crate::problem::{Problems, ValueOrigin};

/// Tables in tables deeper than this are a mistake.
const DEEPEST: usize = 16;

#[derive(Debug, Clone)]
pub struct Node {
    pub place: ValueOrigin,
    pub value: Value,
}

#[derive(Debug, Clone)]
pub enum Value {
    Text(String),
    /// As written if it is more than 64 bits.
    Integer(Result<i64, String>),
    Float,
    Bool(bool),
    Date,
    List(Vec<Node>),
    Table(Table),
    /// From the environment: it becomes whatever is wanted.
    Plain(String),
}

#[derive(Debug, Clone)]
pub struct Table {
    pub place: ValueOrigin,
    pub entries: BTreeMap<String, Entry>,
}

#[derive(Debug, Clone)]
pub struct Entry {
    pub key: ValueOrigin,
    pub node: Node,
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Integer(Ok(number))
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Bool(flag)
    }
}

impl Value {
    /// A list that no file has.
    pub fn list(items: impl IntoIterator<Item = Self>) -> Self {
        let node = |value| Node { place: ValueOrigin::Nowhere, value };
        Self::List(items.into_iter().map(node).collect())
    }

    /// As in "… is wanted here, and this is …".
    pub fn noun(&self) -> &'static str {
        match self {
            Self::Text(_) | Self::Plain(_) => "text",
            Self::Integer(_) => "a number",
            Self::Float => "a number with a fraction",
            Self::Bool(_) => "true or false",
            Self::Date => "a date",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

/// Reads the whole file. Reports what is not TOML, and reads the rest all the same.
pub fn parse(text: &str, problems: &mut Problems) -> Table {
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        let place = ValueOrigin::File(error.span().unwrap_or(0..0));
        problems.add(&place, error.message().replace('\n', "; "), None);
    }
    let place = ValueOrigin::File(document.span());
    table(place, document.get_ref(), 0, problems)
}

fn table(place: ValueOrigin, table: &DeTable<'_>, depth: usize, problems: &mut Problems) -> Table {
    let mut entries = BTreeMap::new();
    for (key, value) in table {
        let place = ValueOrigin::File(key.span());
        let node = node(value, depth + 1, problems);
        entries.insert(key.get_ref().to_string(), Entry { key: place, node });
    }
    Table { place, entries }
}

fn node(value: &Spanned<DeValue<'_>>, depth: usize, problems: &mut Problems) -> Node {
    let place = ValueOrigin::File(value.span());
    if depth > DEEPEST {
        problems.add(&place, format!("this is nested more than {DEEPEST} deep"), None);
        return Node { place, value: Value::Date };
    }
    let value = match value.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => {
            let (digits, radix) = (number.as_str(), number.radix());
            Value::Integer(i64::from_str_radix(digits, radix).map_err(|_| digits.to_owned()))
        }
        DeValue::Float(_) => Value::Float,
        DeValue::Boolean(value) => Value::Bool(*value),
        DeValue::Datetime(_) => Value::Date,
        DeValue::Array(items) => {
            Value::List(items.iter().map(|item| node(item, depth + 1, problems)).collect())
        }
        DeValue::Table(inner) => Value::Table(table(place.clone(), inner, depth, problems)),
    };
    Node { place, value }
}
