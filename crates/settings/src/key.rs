//! The description of one key: name, shape, default, one line of help.

use crate::tree::Value;

/// One key of a table, as people are told of it.
#[derive(Debug, Clone)]
pub struct KeyInfo {
    pub name: &'static str,
    pub help: String,
    pub shape: Shape,
    pub default: KeyDefault,
}

/// The value a key has when it is not written.
#[derive(Debug, Clone)]
pub enum KeyDefault {
    /// It must be written; `example` is what a hint shows.
    Required { example: &'static str },
    /// This value.
    Value(Value),
    /// None, or one that follows from something else: the text says from what.
    Unset { meaning: &'static str },
}

/// The form of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    Text,
    /// Text in a format that JSON Schema knows: `uri`, `ipv4`, `hostname`.
    Format(&'static str),
    /// A length of time: `90s`, `10m`.
    Span,
    /// A path; one that does not begin with `/` is relative to the file.
    Path,
    Flag,
    Number {
        min: i64,
        max: i64,
    },
    /// Text, `{ env = … }`, `{ file = … }` or `{ credential = … }`.
    Secret,
    Choice(Vec<&'static str>),
    List(Box<Shape>),
    /// A list, or one value of it.
    OneOrMore(Box<Shape>),
    /// A table of texts.
    Pairs,
    /// A table with keys of its own, if they are known.
    Table,
    /// A list of tables with these keys: `[[source.NAME.custom]]`.
    Tables(Vec<InnerKey>),
    /// Any of these.
    AnyOf(Vec<Shape>),
}

/// One key of a table in a list of tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InnerKey {
    pub name: &'static str,
    pub help: String,
    pub shape: Shape,
    pub required: bool,
}

impl From<KeyInfo> for InnerKey {
    fn from(key: KeyInfo) -> Self {
        let required = key.is_required();
        Self { name: key.name, help: key.help, shape: key.shape, required }
    }
}

impl KeyInfo {
    pub fn is_required(&self) -> bool {
        matches!(self.default, KeyDefault::Required { .. })
    }
}
