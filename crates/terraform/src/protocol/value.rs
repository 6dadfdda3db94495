//! [`Value`]: a value of Terraform, with the values that are not known yet.

use std::collections::BTreeMap;

/// Attributes of a resource, a data source or the provider, by name.
pub type Object = BTreeMap<String, Value>;

#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Null,
    /// Known after apply. With a refinement Terraform knows some facts before.
    Unknown(Refinement),
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    /// A list, or a set in no order.
    List(Vec<Value>),
    /// A map or an object.
    Map(Object),
}

/// Facts about an unknown value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Refinement {
    pub not_null: bool,
    /// The text begins with this.
    pub prefix: Option<String>,
    /// Facts that this provider only hands back, by their number on the wire: bounds of numbers and lengths.
    pub others: Vec<(u64, Vec<u8>)>,
}

impl Refinement {
    const fn new(not_null: bool) -> Self {
        Self { not_null, prefix: None, others: Vec::new() }
    }
}

impl Value {
    pub const UNKNOWN: Self = Self::Unknown(Refinement::new(false));
    /// Unknown, and never null.
    pub const SOMETHING: Self = Self::Unknown(Refinement::new(true));

    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown(_))
    }

    /// Whether all of it is known, elements included.
    pub fn is_known(&self) -> bool {
        match self {
            Self::Unknown(_) => false,
            Self::List(items) => items.iter().all(Self::is_known),
            Self::Map(items) => items.values().all(Self::is_known),
            _ => true,
        }
    }

    pub fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    pub fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(value) = self { Some(*value) } else { None }
    }

    pub fn as_int(&self) -> Option<i64> {
        if let Self::Int(value) = self { Some(*value) } else { None }
    }

    /// The texts of a list or set.
    pub fn as_texts(&self) -> Option<Vec<String>> {
        let Self::List(items) = self else { return None };
        items.iter().map(|item| item.as_text().map(str::to_owned)).collect()
    }

    /// The texts of a map.
    pub fn as_text_map(&self) -> Option<BTreeMap<String, String>> {
        let Self::Map(items) = self else { return None };
        items.iter().map(|(key, item)| Some((key.clone(), item.as_text()?.to_owned()))).collect()
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Self::Int(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Self {
        Self::Int(value.into())
    }
}

impl From<u8> for Value {
    fn from(value: u8) -> Self {
        Self::Int(value.into())
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(items: Vec<T>) -> Self {
        Self::List(items.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<Value>> From<BTreeMap<String, T>> for Value {
    fn from(items: BTreeMap<String, T>) -> Self {
        Self::Map(items.into_iter().map(|(key, item)| (key, item.into())).collect())
    }
}

/// The fields of an object, read by name.
pub trait Fields {
    fn value(&self, name: &str) -> &Value;

    fn text(&self, name: &str) -> Option<&str> {
        self.value(name).as_text()
    }

    fn owned(&self, name: &str) -> Option<String> {
        self.text(name).map(str::to_owned)
    }

    fn flag(&self, name: &str) -> Option<bool> {
        self.value(name).as_bool()
    }

    fn int(&self, name: &str) -> Option<i64> {
        self.value(name).as_int()
    }

    fn texts(&self, name: &str) -> Option<Vec<String>> {
        self.value(name).as_texts()
    }

    fn text_map(&self, name: &str) -> Option<BTreeMap<String, String>> {
        self.value(name).as_text_map()
    }
}

impl Fields for Object {
    fn value(&self, name: &str) -> &Value {
        self.get(name).unwrap_or(&Value::Null)
    }
}
