//! [`open_enum`]: an enum of the API that keeps values it does not know.

use std::fmt;

use serde::de::{Error, Visitor};
use utoipa::openapi::{
    ObjectBuilder, RefOr,
    schema::{Schema, Type},
};

/// Defines enums whose JSON is one of the given texts.
///
/// A newer server may send a value that this build does not know. Such a value becomes `Unknown` with the text, is shown
/// as that text and is sent back as that text, so an older client never fails on it. In the `OpenAPI` document the type is
/// a string with the known texts as its `enum`.
macro_rules! open_enum {
    ($($(#[doc = $doc:literal])+ $name:ident { $($(#[$of_variant:meta])* $variant:ident = $text:literal,)+ })+) => {$(
        $(#[doc = $doc])+
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$of_variant])* $variant,)+
            /// A value of a newer server, as it came.
            Unknown(Box<str>),
        }

        impl $name {
            /// All values that this build knows.
            pub const KNOWN: &'static [Self] = &[$(Self::$variant),+];

            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)+
                    Self::Unknown(text) => text,
                }
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    $($text => Self::$variant,)+
                    other => Self::Unknown(other.into()),
                }
            }
        }

        impl std::str::FromStr for $name {
            type Err = std::convert::Infallible;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Ok(text.into())
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str($crate::types::open_enum::TextVisitor(|text| Self::from(text)))
            }
        }

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                $crate::types::open_enum::schema(&[$($text),+], concat!($($doc),+))
            }
        }

        impl utoipa::ToSchema for $name {}
    )+};
}

pub(super) use open_enum;

/// Reads a text without copying it first.
pub(super) struct TextVisitor<T>(pub(super) fn(&str) -> T);

impl<T> Visitor<'_> for TextVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        Ok((self.0)(text))
    }
}

/// A string that is one of `texts`, or any string if there are none.
pub(super) fn schema(texts: &[&'static str], doc: &str) -> RefOr<Schema> {
    let known = (!texts.is_empty()).then(|| texts.iter().copied());
    let one_of = ObjectBuilder::new().schema_type(Type::String).enum_values(known);
    one_of.description(Some(doc.trim())).build().into()
}
