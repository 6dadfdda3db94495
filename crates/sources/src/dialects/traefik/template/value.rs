//! Values of templates.

use std::{borrow::Cow, collections::BTreeMap};

#[derive(Debug, Clone)]
pub(super) enum Value<'a> {
    Text(Cow<'a, str>),
    Number(i64),
    Bool(bool),
    List(Vec<String>),
    Labels(&'a BTreeMap<String, String>),
    /// A label that is not there, as Go prints it in a text of nothing.
    Nothing,
}

impl<'a> Value<'a> {
    pub(super) fn get(&self, key: &str) -> Self {
        match self {
            Self::Labels(labels) => {
                let labels: &'a BTreeMap<String, String> = labels;
                labels.get(key).map_or(Self::Nothing, |text| Self::Text(text.as_str().into()))
            }
            Self::List(list) => {
                let item = key.parse::<usize>().ok().and_then(|place| list.get(place));
                item.map_or(Self::Nothing, |text| Self::Text(text.clone().into()))
            }
            _ => Self::Nothing,
        }
    }

    /// True as in Go's templates: every value that is not empty.
    pub(super) fn is_true(&self) -> bool {
        match self {
            Self::Text(text) => !text.is_empty(),
            Self::Number(number) => *number != 0,
            Self::Bool(truth) => *truth,
            Self::List(list) => !list.is_empty(),
            Self::Labels(labels) => !labels.is_empty(),
            Self::Nothing => false,
        }
    }

    pub(super) fn to_text(&self) -> Cow<'a, str> {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(number) => number.to_string().into(),
            Self::Bool(truth) => truth.to_string().into(),
            Self::List(list) => format!("[{}]", list.join(" ")).into(),
            Self::Labels(_) | Self::Nothing => "".into(),
        }
    }
}
