//! A struct that is the description of its table.

use crate::{
    key::{KeyDefault, KeyInfo},
    macros::{Json, Map},
    section::Section,
    setting::Setting,
};

/// A table of the file: its keys, how it is read, and what was read.
pub trait Settings: Sized {
    fn keys() -> Vec<KeyInfo>;

    /// Reads all keys, so that all that is wrong is reported. `None` if anything that is needed is wrong.
    fn read(section: &mut Section<'_, '_>) -> Option<Self>;

    /// Every key with its value; a secret says where it is, never what.
    fn shown(&self, into: &mut Map<String, Json>);
}

/// Makes a struct whose fields are the keys of a table. A key is spelled once: as the field.
///
/// After each type stands what the key is when it is not written: `required` with an example in TOML, `default` with a
/// value, or `unset` with a text that says what that means. `all` takes in the keys of another such struct.
///
/// ```
/// use netstead_settings::{Secret, table};
///
/// table! {
///     /// `[dns.NAME]` with `type = "example"`.
///     pub struct Config {
///         /// Address of the API.
///         url: String, required "\"http://ns1:8081\"";
///         /// Key sent with every request.
///         api_key: Secret, required "{ file = \"/run/secrets/key\" }";
///         /// The server's id in its own API.
///         server_id: String, default "localhost";
///         /// The mailbox in the SOA of new zones.
///         hostmaster: Option<String>, unset "`hostmaster` in the zone";
///     }
/// }
/// ```
#[macro_export]
macro_rules! table {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $(
                $(#[doc = $doc:literal])*
                $field:ident : $ty:ty , $how:ident $($arg:literal)? $([ $($item:literal),* ])? ;
            )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq)]
        $vis struct $name {
            $( $(#[doc = $doc])* pub $field: $ty ),*
        }

        impl $crate::Settings for $name {
            fn keys() -> Vec<$crate::KeyInfo> {
                let mut keys = Vec::new();
                $(
                    $crate::__keys!(
                        keys, $field, $ty, [$($doc),*], $how $($arg)? $([ $($item),* ])?
                    );
                )*
                keys
            }

            fn read(section: &mut $crate::Section<'_, '_>) -> Option<Self> {
                $(
                    let $field: Option<$ty> =
                        $crate::__read!(section, $field, $ty, $how $($arg)? $([ $($item),* ])?);
                )*
                Some(Self { $( $field: $field? ),* })
            }

            fn shown(&self, into: &mut $crate::macros::Map<String, $crate::macros::Json>) {
                $( $crate::__shown!(into, self.$field, $field, $how); )*
            }
        }

        impl ::std::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                let mut shown = $crate::macros::Map::new();
                $crate::Settings::shown(self, &mut shown);
                write!(f, "{} {}", stringify!($name), $crate::macros::Json::Object(shown))
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __default {
    (required $example:literal) => {
        $crate::KeyDefault::Required { example: $example }
    };
    (default $value:literal) => {
        $crate::KeyDefault::Value($crate::Value::from($value))
    };
    (default [ $($item:literal),* ]) => {
        $crate::KeyDefault::Value($crate::Value::list([ $( $crate::Value::from($item) ),* ]))
    };
    (unset $meaning:literal) => {
        $crate::KeyDefault::Unset { meaning: $meaning }
    };
    (unset) => {
        $crate::KeyDefault::Unset { meaning: "" }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __keys {
    ($keys:ident, $field:ident, $ty:ty, [$($doc:literal),*], all) => {
        $keys.extend(<$ty as $crate::Settings>::keys());
    };
    ($keys:ident, $field:ident, $ty:ty, [$($doc:literal),*], $($how:tt)+) => {
        $keys.push($crate::KeyInfo {
            name: stringify!($field),
            help: [$($doc),*].map(str::trim).join(" "),
            shape: <$ty as $crate::Setting>::shape(),
            default: $crate::__default!($($how)+),
        });
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __read {
    ($section:ident, $field:ident, $ty:ty, all) => {
        <$ty as $crate::Settings>::read($section)
    };
    ($section:ident, $field:ident, $ty:ty, $($how:tt)+) => {
        $crate::read_key($section, stringify!($field), &$crate::__default!($($how)+))
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __shown {
    ($into:ident, $value:expr, $field:ident, all) => {
        $crate::Settings::shown(&$value, $into)
    };
    ($into:ident, $value:expr, $field:ident, $how:ident) => {
        drop($into.insert(stringify!($field).to_owned(), $crate::Setting::shown(&$value)))
    };
}

/// Reads one key, or what it is when it is not written.
pub fn read_key<T: Setting>(
    section: &mut Section<'_, '_>,
    key: &'static str,
    default: &KeyDefault,
) -> Option<T> {
    if section.origin_of(key).is_some() {
        return T::read(section, key);
    }
    match default {
        KeyDefault::Required { example } => {
            section.wrong(key, "it is missing", Some(&format!("write `{key} = {example}`")));
            None
        }
        KeyDefault::Value(value) => Section::literal(key, value.clone(), |section| T::read(section, key)),
        KeyDefault::Unset { .. } => T::unset(),
    }
}
