//! All records of one type at one name.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Values;
use crate::{Name, RecordData, RecordType};

/// All values of one type at one name, with the time to live they share.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "Stored")]
pub struct RecordSet {
    pub name: Name,
    #[serde(rename = "type")]
    pub kind: RecordType,
    pub ttl: u32,
    pub values: Values,
    /// Whether the server is a proxy in front of the target; none where no server could be, or where that is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxied: Option<bool>,
}

impl RecordSet {
    /// The set of those `values` that are of type `kind`: others cannot be part of it.
    pub fn new(name: Name, kind: RecordType, ttl: u32, values: impl IntoIterator<Item = RecordData>) -> Self {
        let values = values.into_iter().filter(|value| value.kind() == kind).collect();
        Self { name, kind, ttl, values, proxied: None }
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

/// The lines of a zone file, without a line end after the last.
impl fmt::Display for RecordSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, value) in self.values.iter().enumerate() {
            let line_end = if index == 0 { "" } else { "\n" };
            write!(f, "{line_end}{}. {} IN {} {value}", self.name, self.ttl, self.kind)?;
        }
        Ok(())
    }
}

/// As it is stored, before it is known that all values are of its type.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    name: Name,
    #[serde(rename = "type")]
    kind: RecordType,
    ttl: u32,
    values: Values,
    #[serde(default)]
    proxied: Option<bool>,
}

impl TryFrom<Stored> for RecordSet {
    type Error = String;

    fn try_from(stored: Stored) -> Result<Self, String> {
        let Stored { name, kind, ttl, values, proxied } = stored;
        match values.iter().find(|value| value.kind() != kind) {
            Some(value) => Err(format!("the {} value `{value}` is in a set of type {kind}", value.kind())),
            None => Ok(Self { name, kind, ttl, values, proxied }),
        }
    }
}
