//! [`OwnerId`]: the id of an installation.

use std::{fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::ParseError;

/// The id that all marks of one installation carry: 1 to 32 lower case letters, digits and inner hyphens.
///
/// There is no default, and `default` is refused: two installations that share an id delete each other's names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnerId(Arc<str>);

impl OwnerId {
    const MAX: usize = 32;

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for OwnerId {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let wrong = |reason: &str| Err(ParseError::new("owner id", text, None, reason));
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if text.is_empty() || text.len() > Self::MAX || !text.bytes().all(plain) {
            return wrong("it has 1 to 32 lower case letters, digits and hyphens");
        }
        if text.starts_with('-') || text.ends_with('-') {
            return wrong("it begins or ends with a hyphen");
        }
        if text == "default" {
            return wrong("two installations would both have it");
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Display for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl Serialize for OwnerId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for OwnerId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}
