//! Reading what is kept behind an `Arc` without an allocation that is thrown away at once.
//!
//! serde reads an `Arc` by way of a `Box`, and an `Arc<str>` by way of a `String` too. A ledger of a million claims reads
//! millions of them at its start.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Deserializer, de};

/// For `#[serde(deserialize_with)]` on an `Arc` of anything that has a size.
pub fn arc<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Arc<T>, D::Error> {
    T::deserialize(deserializer).map(Arc::new)
}

/// For `#[serde(deserialize_with)]` on an `Arc<str>`.
pub fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
    deserializer.deserialize_str(Text)
}

struct Text;

impl de::Visitor<'_> for Text {
    type Value = Arc<str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Arc<str>, E> {
        Ok(text.into())
    }
}
