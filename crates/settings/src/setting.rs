//! Types that a key can have.

use std::{collections::BTreeMap, fmt::Display, net::SocketAddr, ops::Deref, path::PathBuf, str::FromStr};

use netstead_model::{Address, Cidr, Ident, Name, Range, RecordType, Span};
use serde_json::Value as Json;
use url::Url;

use crate::{key::Shape, section::Section, table::Settings, tree::Value};

/// A type that one key of a table can have.
pub trait Setting: Sized {
    fn shape() -> Shape;

    /// Reads the value of `key`, which is written. Reports what is wrong with it and gives `None`.
    fn read(section: &mut Section<'_, '_>, key: &str) -> Option<Self>;

    /// The value when the key is not written and has no default. `None` for types that must have a value.
    fn unset() -> Option<Self> {
        None
    }

    /// The value for people and programs; a secret says where it is, never what.
    fn shown(&self) -> Json;
}

impl<T: Setting> Setting for Option<T> {
    fn shape() -> Shape {
        T::shape()
    }

    fn read(section: &mut Section<'_, '_>, key: &str) -> Option<Self> {
        T::read(section, key).map(Some)
    }

    fn unset() -> Option<Self> {
        Some(None)
    }

    fn shown(&self) -> Json {
        self.as_ref().map_or(Json::Null, Setting::shown)
    }
}

impl Setting for String {
    fn shape() -> Shape {
        Shape::Text
    }

    fn read(section: &mut Section<'_, '_>, key: &str) -> Option<Self> {
        section.text(key).map(str::to_owned)
    }

    fn shown(&self) -> Json {
        Json::from(self.as_str())
    }
}

impl Setting for bool {
    fn shape() -> Shape {
        Shape::Flag
    }

    fn read(section: &mut Section<'_, '_>, key: &str) -> Option<Self> {
        section.flag(key)
    }

    fn shown(&self) -> Json {
        Json::from(*self)
    }
}

/// A path as written; [`Section::path`] makes it relative to the file.
impl Setting for PathBuf {
    fn shape() -> Shape {
        Shape::Path
    }

    fn read(section: &mut Section<'_, '_>, key: &str) -> Option<Self> {
        section.path(key)
    }

    fn shown(&self) -> Json {
        Json::from(self.display().to_string())
    }
}

/// Lists of texts that are read one by one, each with its own place.
impl<T: FromStr<Err: Display> + Display + TextShape> Setting for Vec<T> {
    fn shape() -> Shape {
        Shape::List(Box::new(T::text_shape()))
    }

    fn read(section: &mut Section<'_, '_>, key: &str) -> Option<Self> {
        Some(section.list(key))
    }

    fn unset() -> Option<Self> {
        Some(Self::new())
    }

    fn shown(&self) -> Json {
        self.iter().map(|item| Json::from(item.to_string())).collect()
    }
}

/// The shape of a type that is written as text.
pub trait TextShape {
    fn text_shape() -> Shape {
        Shape::Text
    }
}

impl TextShape for String {}

macro_rules! text_settings {
    ($($ty:ty => $shape:expr),* $(,)?) => {$(
        impl TextShape for $ty {
            fn text_shape() -> Shape {
                $shape
            }
        }

        impl Setting for $ty {
            fn shape() -> Shape {
                $shape
            }

            fn read(section: &mut Section<'_, '_>, key: &str) -> Option<Self> {
                section.parsed(key)
            }

            fn shown(&self) -> Json {
                Json::from(self.to_string())
            }
        }
    )*};
}

text_settings! {
    Name => Shape::Format("hostname"),
    Ident => Shape::Text,
    Span => Shape::Span,
    Address => Shape::Text,
    Cidr => Shape::Text,
    Range => Shape::Text,
    RecordType => Shape::Text,
    SocketAddr => Shape::Text,
    Url => Shape::Format("uri"),
}

/// A type of another crate that is written as text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Parsed<T>(pub T);

impl<T> Deref for Parsed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: FromStr<Err: Display> + Display> Setting for Parsed<T> {
    fn shape() -> Shape {
        Shape::Text
    }

    fn read(section: &mut Section<'_, '_>, key: &str) -> Option<Self> {
        section.parsed(key).map(Self)
    }

    fn shown(&self) -> Json {
        Json::from(self.0.to_string())
    }
}

impl<T> TextShape for Parsed<T> {}

impl<T: FromStr> FromStr for Parsed<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        text.parse().map(Self)
    }
}

impl<T: Display> Display for Parsed<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// One value, or a list of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OneOrMore<T>(pub Vec<T>);

impl<T> Deref for OneOrMore<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T: FromStr<Err: Display> + Display + TextShape> Setting for OneOrMore<T> {
    fn shape() -> Shape {
        Shape::OneOrMore(Box::new(T::text_shape()))
    }

    fn read(section: &mut Section<'_, '_>, key: &str) -> Option<Self> {
        Some(Self(section.parsed_one_or_more(key)))
    }

    fn unset() -> Option<Self> {
        Some(Self(Vec::new()))
    }

    fn shown(&self) -> Json {
        self.0.iter().map(|item| Json::from(item.to_string())).collect()
    }
}

/// Paths, or one; those that do not begin with `/` are relative to the file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Paths(pub Vec<PathBuf>);

impl Deref for Paths {
    type Target = [PathBuf];

    fn deref(&self) -> &[PathBuf] {
        &self.0
    }
}

impl Setting for Paths {
    fn shape() -> Shape {
        Shape::OneOrMore(Box::new(Shape::Path))
    }

    fn read(section: &mut Section<'_, '_>, key: &str) -> Option<Self> {
        Some(Self(section.paths(key)))
    }

    fn unset() -> Option<Self> {
        Some(Self::default())
    }

    fn shown(&self) -> Json {
        self.0.iter().map(Setting::shown).collect()
    }
}

/// A list of tables with the same keys: `[[source.NAME.custom]]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tables<T>(pub Vec<T>);

impl<T> Deref for Tables<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T: Settings> Setting for Tables<T> {
    fn shape() -> Shape {
        Shape::Tables(T::keys().into_iter().map(Into::into).collect())
    }

    fn read(section: &mut Section<'_, '_>, key: &str) -> Option<Self> {
        let known: Vec<&'static str> = T::keys().iter().map(|key| key.name).collect();
        let mut tables = Vec::new();
        for (place, value) in section.values(key) {
            match &value {
                Value::Table(table) => tables.extend(T::read(&mut section.inner(key, table, &known))),
                other => {
                    let told = format!("a table is wanted here, and this is {}", other.noun());
                    section.wrong_at(place, key, &told, Some(&format!("write tables: `{key} = [{{ … }}]`")));
                }
            }
        }
        Some(Self(tables))
    }

    fn unset() -> Option<Self> {
        Some(Self(Vec::new()))
    }

    fn shown(&self) -> Json {
        let shown = |table: &T| {
            let mut keys = serde_json::Map::new();
            table.shown(&mut keys);
            Json::Object(keys)
        };
        self.0.iter().map(shown).collect()
    }
}

/// A whole number from `MIN` to `MAX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Number<const MIN: i64, const MAX: i64>(i64);

impl<const MIN: i64, const MAX: i64> Number<MIN, MAX> {
    /// The value, or the nearest one that is allowed.
    pub fn nearest(value: i64) -> Self {
        Self(value.clamp(MIN, MAX))
    }

    /// As any type that `MAX` fits into; a type that is too small gets its own largest value.
    pub fn get<T: TryFrom<i64> + Bounds>(self) -> T {
        T::try_from(self.0).unwrap_or(T::LARGEST)
    }
}

/// Types that a number of the file becomes.
pub trait Bounds {
    const LARGEST: Self;
}

macro_rules! bounds {
    ($($ty:ty),*) => {$(
        impl Bounds for $ty {
            const LARGEST: Self = <$ty>::MAX;
        }
    )*};
}
bounds!(u8, u16, u32, u64, usize, i64);

impl<const MIN: i64, const MAX: i64> Setting for Number<MIN, MAX> {
    fn shape() -> Shape {
        Shape::Number { min: MIN, max: MAX }
    }

    fn read(section: &mut Section<'_, '_>, key: &str) -> Option<Self> {
        section.number::<i64>(key, MIN..=MAX).map(Self)
    }

    fn shown(&self) -> Json {
        Json::from(self.0)
    }
}

impl Setting for BTreeMap<String, String> {
    fn shape() -> Shape {
        Shape::Pairs
    }

    fn read(section: &mut Section<'_, '_>, key: &str) -> Option<Self> {
        Some(section.pairs(key))
    }

    fn unset() -> Option<Self> {
        Some(Self::new())
    }

    fn shown(&self) -> Json {
        self.iter().map(|(name, value)| (name.clone(), Json::from(value.as_str()))).collect()
    }
}
