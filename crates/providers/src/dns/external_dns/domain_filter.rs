//! [`DomainFilter`]: names that a provider takes.

use netstead_model::Name;
use regex::bytes::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};

/// A filter as the provider writes it. Lists and patterns are never used together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Written {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exclude: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regex_include: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regex_exclude: Option<String>,
}

/// Names that a provider takes. The empty one takes all.
#[derive(Debug, Clone, Default)]
pub struct DomainFilter {
    include: Vec<String>,
    exclude: Vec<String>,
    include_pattern: Option<Regex>,
    exclude_pattern: Option<Regex>,
}

impl DomainFilter {
    /// Reads a filter. The error says what is wrong with it.
    pub fn new(written: Written) -> Result<Self, String> {
        let list = |entries: Option<Vec<String>>| -> Vec<String> {
            let entries = entries.unwrap_or_default().into_iter();
            let entries = entries.map(|entry| entry.trim().trim_end_matches('.').to_lowercase());
            entries.filter(|entry| !entry.is_empty()).collect()
        };
        let pattern = |text: Option<String>| {
            let text = text.filter(|text| !text.is_empty());
            let read = |text: String| RegexBuilder::new(&text).unicode(false).build();
            text.map(read)
                .transpose()
                .map_err(|error| format!("its domain filter has a bad pattern: {error}"))
        };
        Ok(Self {
            include: list(written.include),
            exclude: list(written.exclude),
            include_pattern: pattern(written.regex_include)?,
            exclude_pattern: pattern(written.regex_exclude)?,
        })
    }

    /// Whether it takes `name`.
    pub fn takes(&self, name: &Name) -> bool {
        if self.include_pattern.is_some() || self.exclude_pattern.is_some() {
            let found = |pattern: &Regex| pattern.is_match(name.as_str().as_bytes());
            return !self.exclude_pattern.as_ref().is_some_and(found)
                && self.include_pattern.as_ref().is_none_or(found);
        }
        let below = |entry: &String| is_below(name.as_str(), entry);
        (self.include.is_empty() || self.include.iter().any(below)) && !self.exclude.iter().any(below)
    }

    /// Whether it may take a name at or below `domain`.
    pub fn reaches(&self, domain: &Name) -> bool {
        if self.include_pattern.is_some() || self.exclude_pattern.is_some() {
            return true;
        }
        let excluded = self.exclude.iter().any(|entry| is_below(domain.as_str(), entry));
        let near = |entry: &String| {
            let bare = entry.trim_start_matches('.');
            is_below(domain.as_str(), bare) || is_below(bare, domain.as_str())
        };
        !excluded && (self.include.is_empty() || self.include.iter().any(near))
    }
}

/// Whether `name` is `entry` or lies below it. An entry that begins with a dot is not meant itself.
fn is_below(name: &str, entry: &str) -> bool {
    match entry.strip_prefix('.') {
        Some(_) => name.ends_with(entry),
        None => name == entry || name.strip_suffix(entry).is_some_and(|rest| rest.ends_with('.')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(json: &str) -> DomainFilter {
        DomainFilter::new(serde_json::from_str(json).unwrap()).unwrap()
    }

    fn taken(json: &str, names: &[&str]) -> Vec<bool> {
        names.iter().map(|name| filter(json).takes(&name.parse().unwrap())).collect()
    }

    #[test]
    fn lists_and_patterns_are_read_as_external_dns_does() {
        let names = ["example.test", "a.example.test", "b.a.example.test", "notexample.test"];
        assert_eq!(taken("{}", &names), [true; 4]);
        assert_eq!(taken(r#"{"include":["Example.test."]}"#, &names), [true, true, true, false]);
        assert_eq!(taken(r#"{"include":[".example.test"]}"#, &names), [false, true, true, false]);
        let both = r#"{"include":["example.test"],"exclude":["a.example.test"]}"#;
        assert_eq!(taken(both, &names), [true, false, false, false]);
        assert_eq!(taken(r#"{"include":null,"exclude":[]}"#, &names), [true; 4]);
        assert_eq!(taken(r#"{"regexInclude":"^\\w\\.example"}"#, &names), [false, true, false, false]);
        assert_eq!(taken(r#"{"regexExclude":"^b\\."}"#, &names), [true, true, false, true]);
        assert!(DomainFilter::new(serde_json::from_str(r#"{"regexInclude":"("}"#).unwrap()).is_err());
    }

    #[test]
    fn a_domain_is_reached_if_a_name_in_it_may_be_taken() {
        let reached = |json: &str| filter(json).reaches(&"example.test".parse().unwrap());
        for yes in ["{}", r#"{"include":["test"]}"#, r#"{"include":["apps.example.test"]}"#] {
            assert!(reached(yes), "{yes}");
        }
        assert!(reached(r#"{"include":[".example.test"],"exclude":["a.example.test"]}"#));
        assert!(!reached(r#"{"include":["other.test"]}"#));
        assert!(!reached(r#"{"exclude":["test"]}"#));
    }
}
