//! `target` of a source.

use std::ops::Deref;

use netstead_settings::{Section, Setting, Shape};
use serde_json::Value as Json;

use crate::dialects::TargetSpec;

/// One target, or a list of addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceTarget(pub TargetSpec);

impl Deref for SourceTarget {
    type Target = TargetSpec;

    fn deref(&self) -> &TargetSpec {
        &self.0
    }
}

impl Setting for SourceTarget {
    fn shape() -> Shape {
        Shape::OneOrMore(Box::new(Shape::Text))
    }

    fn read(section: &mut Section<'_, '_>, key: &str) -> Option<Self> {
        let text = section.one_or_more(key).join(",");
        if text.is_empty() {
            section.wrong(key, "it is empty", None);
            return None;
        }
        match text.parse() {
            Ok(target) => Some(Self(target)),
            Err(error) => {
                let error: netstead_model::ParseError = error;
                section.wrong(key, &error.to_string(), None);
                None
            }
        }
    }

    fn shown(&self) -> Json {
        Json::from(self.0.to_string())
    }
}
