//! Objects of an IPAM system.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::ObjectKind;
use crate::{Ident, Key, ParseError};

/// The natural key of an object: the workload it was made for, and which part of that it is. As text it is
/// `address:docker:10.0.3.7@web-1`, the part before the `@`, and empty for the machine itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    pub kind: ObjectKind,
    pub source: Ident,
    pub workload: Key,
    /// The name of an interface, the text of an address; empty for a machine.
    pub part: String,
}

impl ObjectKey {
    pub fn new(kind: ObjectKind, source: &Ident, workload: &Key, part: impl Into<String>) -> Self {
        // An `@` would end the part too early.
        let part = part.into().replace('@', "_");
        Self { kind, source: source.clone(), workload: workload.clone(), part }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}@{}", self.kind, self.source, self.part, self.workload.as_str())
    }
}

impl FromStr for ObjectKey {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let wrong = || ParseError::new("key", text, None, "it looks like `address:docker:10.0.3.7@web-1`");
        let (kind, rest) = text.split_once(':').ok_or_else(wrong)?;
        let (source, rest) = rest.split_once(':').ok_or_else(wrong)?;
        let (part, workload) = rest.split_once('@').ok_or_else(wrong)?;
        Ok(Self {
            kind: kind.parse()?,
            source: source.parse()?,
            workload: workload.parse()?,
            part: part.into(),
        })
    }
}

impl Serialize for ObjectKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ObjectKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// The value of a field.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FieldValue {
    Text(String),
    Number(i64),
    /// Each element stands for itself: others may add theirs, as with tags.
    Set(BTreeSet<String>),
    /// Another object of ours.
    Ref(ObjectKey),
}

impl fmt::Display for FieldValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => number.fmt(f),
            Self::Set(set) => f.write_str(&set.iter().map(String::as_str).collect::<Vec<_>>().join(",")),
            Self::Ref(key) if key.part.is_empty() => f.write_str(key.workload.as_str()),
            Self::Ref(key) => f.write_str(&key.part),
        }
    }
}

/// Fields by name. A field that is not there is empty.
pub type Fields = BTreeMap<String, FieldValue>;

/// The mark of an object: the installation that made it, and for what.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ObjectMark {
    pub owner: String,
    pub key: ObjectKey,
}

/// An object that should exist, in the server's own fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectDraft {
    pub key: ObjectKey,
    pub fields: Fields,
}

/// An object as the server has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IpamObject {
    pub kind: ObjectKind,
    /// The server's own id.
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<ObjectMark>,
    #[serde(default)]
    pub fields: Fields,
}
