//! Labels on pools and claims, and selectors over them.

use std::{collections::BTreeMap, fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::ParseError;

/// Most labels one thing may carry.
const MOST: usize = 64;

/// Names with values, in order of name. Names are 1 to 63 of `a-z A-Z 0-9 . _ / -`, values at most 253 printable
/// characters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Labels(BTreeMap<String, String>);

impl Labels {
    /// No label at all.
    pub const NONE: Self = Self(BTreeMap::new());

    pub fn new(pairs: impl IntoIterator<Item = (String, String)>) -> Result<Self, ParseError> {
        let mut labels = BTreeMap::new();
        for (name, value) in pairs {
            check_name(&name)?;
            check_value(&value)?;
            labels.insert(name, value);
        }
        if labels.len() > MOST {
            let text = format!("{} labels", labels.len());
            return Err(ParseError::new("set of labels", &text, None, format!("at most {MOST} are allowed")));
        }
        Ok(Self(labels))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

fn check_name(name: &str) -> Result<(), ParseError> {
    let wrong = |reason: &str| Err(ParseError::new("label name", name, None, reason));
    if name.is_empty() {
        return wrong("it is empty");
    }
    if name.len() > 63 {
        return wrong("it is longer than 63 characters");
    }
    if !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._/-".contains(&b)) {
        return wrong("only letters, digits, `.`, `_`, `/` and `-` are allowed");
    }
    Ok(())
}

fn check_value(value: &str) -> Result<(), ParseError> {
    if value.chars().count() > 253 {
        return Err(ParseError::new("label value", value, None, "it is longer than 253 characters"));
    }
    if value.chars().any(char::is_control) {
        return Err(ParseError::new("label value", value, None, "it has a control character"));
    }
    Ok(())
}

impl Serialize for Labels {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(BTreeMap::<String, String>::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

/// A choice by labels: `site=ams,env!=dev,fast,!old`. All of its terms must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector(Vec<Term>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Term {
    Is(String, String),
    IsNot(String, String),
    Has(String),
    Lacks(String),
}

impl Selector {
    pub fn matches(&self, labels: &Labels) -> bool {
        self.0.iter().all(|term| match term {
            Term::Is(name, value) => labels.get(name) == Some(value),
            Term::IsNot(name, value) => labels.get(name) != Some(value),
            Term::Has(name) => labels.get(name).is_some(),
            Term::Lacks(name) => labels.get(name).is_none(),
        })
    }
}

impl FromStr for Selector {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut terms = Vec::new();
        for part in text.split(',').map(str::trim) {
            let term = if let Some((name, value)) = part.split_once("!=") {
                Term::IsNot(name.trim().to_owned(), value.trim().to_owned())
            } else if let Some((name, value)) = part.split_once('=') {
                // `==` is what kubectl users type.
                let value = value.strip_prefix('=').unwrap_or(value);
                Term::Is(name.trim().to_owned(), value.trim().to_owned())
            } else if let Some(name) = part.strip_prefix('!') {
                Term::Lacks(name.trim().to_owned())
            } else {
                Term::Has(part.to_owned())
            };
            let (Term::Is(name, _) | Term::IsNot(name, _) | Term::Has(name) | Term::Lacks(name)) = &term;
            if name.is_empty() {
                return Err(ParseError::new("label selector", text, None, "a term has no label name"));
            }
            check_name(name)?;
            terms.push(term);
        }
        Ok(Self(terms))
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, term) in self.0.iter().enumerate() {
            if place > 0 {
                f.write_str(",")?;
            }
            match term {
                Term::Is(name, value) => write!(f, "{name}={value}")?,
                Term::IsNot(name, value) => write!(f, "{name}!={value}")?,
                Term::Has(name) => f.write_str(name)?,
                Term::Lacks(name) => write!(f, "!{name}")?,
            }
        }
        Ok(())
    }
}

impl Serialize for Selector {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Selector {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        Labels::new(pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))).unwrap()
    }

    #[test]
    fn all_terms_of_a_selector_must_hold() {
        let lab = labels(&[("site", "ams"), ("fast", "")]);
        for (selector, matches) in [
            ("site=ams", true),
            ("site==ams", true),
            ("site=ber", false),
            ("site!=ber,fast", true),
            ("fast,!old", true),
            ("!fast", false),
            ("missing!=x", true),
        ] {
            assert_eq!(selector.parse::<Selector>().unwrap().matches(&lab), matches, "{selector}");
        }
    }

    #[test]
    fn a_selector_without_a_name_is_refused() {
        for text in ["", "=x", "a,,b", "!", "a b=c"] {
            assert!(text.parse::<Selector>().is_err(), "{text}");
        }
    }
}
