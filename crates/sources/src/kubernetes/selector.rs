//! [`AnnotationSelector`]: a filter over annotations, written like a selector of labels.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
};

use netstead_model::ParseError;

/// Conditions that must all hold: `a=b`, `a!=b`, `a in (b, c)`, `a notin (b, c)`, `a`, `!a`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnotationSelector {
    text: String,
    conditions: Vec<(String, Test)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Test {
    In(BTreeSet<String>),
    NotIn(BTreeSet<String>),
    Exists,
    Missing,
}

impl AnnotationSelector {
    pub(super) fn matches(&self, annotations: &BTreeMap<String, String>) -> bool {
        self.conditions.iter().all(|(key, test)| {
            let value = annotations.get(key);
            match test {
                Test::In(values) => value.is_some_and(|value| values.contains(value)),
                Test::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
                Test::Exists => value.is_some(),
                Test::Missing => value.is_none(),
            }
        })
    }

    /// The annotations that it looks at.
    pub(super) fn keys(&self) -> BTreeSet<String> {
        self.conditions.iter().map(|(key, _)| key.clone()).collect()
    }
}

impl FromStr for AnnotationSelector {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let conditions = parts(text).into_iter().map(|part| condition(&part));
        let conditions: Option<Vec<_>> = conditions.collect();
        match conditions.filter(|conditions| !conditions.is_empty()) {
            Some(conditions) => Ok(Self { text: text.to_owned(), conditions }),
            None => Err(ParseError::new(
                "selector",
                text,
                None,
                "write conditions like `a=b`, `a!=b`, `a in (b, c)`, `a notin (b, c)`, `a` or `!a` with commas between",
            )),
        }
    }
}

impl fmt::Display for AnnotationSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The parts between commas that stand in no parentheses.
fn parts(text: &str) -> Vec<String> {
    let (mut parts, mut depth) = (vec![String::new()], 0_usize);
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        match parts.last_mut() {
            Some(last) if c != ',' || depth > 0 => last.push(c),
            _ => parts.push(String::new()),
        }
    }
    parts.into_iter().map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

fn condition(text: &str) -> Option<(String, Test)> {
    let key = |text: &str| {
        let text = text.trim();
        let good = !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || "()=!,".contains(c));
        good.then(|| text.to_owned())
    };
    let one = |text: &str| BTreeSet::from([text.trim().to_owned()]);
    if let Some((left, right)) = text.split_once("!=") {
        return Some((key(left)?, Test::NotIn(one(right))));
    }
    if let Some((left, right)) = text.split_once("==").or_else(|| text.split_once('=')) {
        return Some((key(left)?, Test::In(one(right))));
    }
    if let Some((left, list)) = text.split_once('(') {
        let values = list.strip_suffix(')')?.split(',').map(|value| value.trim().to_owned()).collect();
        let (name, word) = left.trim().rsplit_once(char::is_whitespace)?;
        return match word {
            "in" => Some((key(name)?, Test::In(values))),
            "notin" => Some((key(name)?, Test::NotIn(values))),
            _ => None,
        };
    }
    match text.strip_prefix('!') {
        Some(missing) => Some((key(missing)?, Test::Missing)),
        None => Some((key(text)?, Test::Exists)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_mean_what_they_mean_for_labels() {
        let annotations: BTreeMap<String, String> =
            [("a", "1"), ("b", "x")].map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let cases = [
            ("a=1", true),
            ("a==1,b=x", true),
            ("a=2", false),
            ("a!=2", true),
            ("c!=2", true),
            ("a in (1, 2)", true),
            ("a notin (1, 2)", false),
            ("c notin (1)", true),
            ("a", true),
            ("c", false),
            ("!c", true),
            ("!a, b in (x)", false),
        ];
        for (text, result) in cases {
            assert_eq!(text.parse::<AnnotationSelector>().unwrap().matches(&annotations), result, "{text}");
        }
        for text in ["", "a in 1", "a of (1)", "a b", "=1"] {
            assert!(text.parse::<AnnotationSelector>().is_err(), "{text}");
        }
    }
}
