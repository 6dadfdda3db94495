//! The kinds of sources and providers, by the names they have in the configuration.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::open_enum;

/// Defines types for the name of a kind.
///
/// The kinds are listed where they are implemented, and nowhere else, so these are plain texts. The server that knows all
/// of them puts their names into its `OpenAPI` document as the `enum` of the type.
macro_rules! kind_names {
    ($($(#[doc = $doc:literal])+ $name:ident)+) => {$(
        $(#[doc = $doc])+
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Box<str>);

        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                *self.0 == *other
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(open_enum::TextVisitor(|text| Self::from(text)))
            }
        }

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                open_enum::schema(&[], concat!($($doc),+))
            }
        }

        impl utoipa::ToSchema for $name {}
    )+};
}

kind_names! {
    /// Type of a source of names; `unknown` if the source is no longer configured.
    SourceKind
    /// Type of a DNS provider.
    ProviderKind
}

impl SourceKind {
    /// Name for the kind of a source that is no longer configured.
    pub const DETACHED: &'static str = "unknown";

    pub fn detached() -> Self {
        Self::DETACHED.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_read_shown_and_sent_back_as_it_came() {
        let read: ProviderKind = serde_json::from_str("\"jsonfile\"").unwrap();
        assert_eq!(read, ProviderKind::from("jsonfile"));
        assert_eq!(format!("{read:>10}|"), "  jsonfile|");
        assert_eq!(serde_json::to_string(&read).unwrap(), "\"jsonfile\"");
        let wrong = serde_json::from_str::<SourceKind>("7").unwrap_err().to_string();
        assert_eq!(wrong, "invalid type: integer `7`, expected a string at line 1 column 1");
    }
}
