//! Kinds of objects, in the words of the system that holds them.

use std::{borrow::Cow, fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::ParseError;

/// The kind of an object, in the provider's own word: `machine`, `interface`, `mac`, `address`. It has lower case letters,
/// digits and `-`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKind(Cow<'static, str>);

impl ObjectKind {
    pub const MACHINE: Self = Self::new("machine");
    pub const INTERFACE: Self = Self::new("interface");
    pub const ADDRESS: Self = Self::new("address");

    /// A kind that the program names.
    pub const fn new(word: &'static str) -> Self {
        Self(Cow::Borrowed(word))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for ObjectKind {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if text.is_empty() || text.len() > 32 || !text.bytes().all(plain) {
            let why = "it has 1 to 32 lower case letters, digits and `-`";
            return Err(ParseError::new("kind", text, None, why));
        }
        Ok(Self(Cow::Owned(text.to_owned())))
    }
}

impl Serialize for ObjectKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ObjectKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// The meaning of a kind for the guards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ObjectRole {
    /// It stands for the workload itself. Its removal counts.
    Machine,
    Interface,
    /// It stands for one address, whose text is the part of its key. Its removal counts, and only one workload has it.
    Address,
    /// Anything else that belongs to a workload.
    Other,
}

/// One kind that a system holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectType {
    pub kind: ObjectKind,
    pub role: ObjectRole,
    /// The fields that two objects of the kind cannot share, all together: objects of others are recognised by them.
    pub unique: &'static [&'static str],
    /// Fields that are written. Others are left out of plans; empty means all.
    pub fields: Vec<Cow<'static, str>>,
}

impl ObjectType {
    /// A kind with these fields.
    pub fn new(
        kind: ObjectKind,
        role: ObjectRole,
        unique: &'static [&'static str],
        fields: &[&'static str],
    ) -> Self {
        Self { kind, role, unique, fields: fields.iter().map(|field| Cow::Borrowed(*field)).collect() }
    }

    pub fn has_field(&self, name: &str) -> bool {
        self.fields.is_empty() || self.fields.iter().any(|field| field == name)
    }
}
