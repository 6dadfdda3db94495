//! [`Claims`]: which namespaces may claim which names.

use netstead_model::Name;
use netstead_settings::{Section, Setting, Shape};
use serde_json::Value as Json;

/// Patterns of namespaces with patterns of names. Without any, every namespace may claim every name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claims(Vec<(String, Vec<String>)>);

impl Claims {
    /// Whether an object of this namespace may have this name. Objects of the cluster itself may have any.
    pub(super) fn allows(&self, namespace: &str, name: &Name) -> bool {
        let name = name.to_string();
        let allows = |(of, names): &(String, Vec<String>)| {
            matches(of, namespace) && names.iter().any(|pattern| matches(pattern, &name))
        };
        self.0.is_empty() || namespace.is_empty() || self.0.iter().any(allows)
    }
}

impl Setting for Claims {
    fn shape() -> Shape {
        Shape::Pairs
    }

    /// `{ "team-a" = "*.a.example.com", "*" = "*.apps.example.com, apps.example.com" }`
    fn read(section: &mut Section<'_, '_>, key: &str) -> Option<Self> {
        let pairs = section.pairs(key).into_iter();
        let names = |text: String| -> Vec<String> {
            let names = text.split([',', ' ']).map(str::trim).filter(|name| !name.is_empty());
            names.map(|name| name.trim_end_matches('.').to_ascii_lowercase()).collect()
        };
        Some(Self(pairs.map(|(namespace, text)| (namespace, names(text))).collect()))
    }

    fn unset() -> Option<Self> {
        Some(Self::default())
    }

    fn shown(&self) -> Json {
        self.0.iter().map(|(namespace, names)| (namespace.clone(), Json::from(names.join(", ")))).collect()
    }
}

/// Whether a text is what a pattern means; `*` is any text, dots included.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(start) else { return false };
    (0..=text.len()).filter(|at| text.is_char_boundary(*at)).any(|at| matches(rest, text.split_at(at).1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_text() {
        let cases = [
            ("shop", "shop", true),
            ("shop", "shop2", false),
            ("*", "", true),
            ("team-*", "team-a", true),
            ("*.example.com", "a.b.example.com", true),
            ("*.example.com", "example.com", false),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "aXcYb", false),
        ];
        for (pattern, text, result) in cases {
            assert_eq!(matches(pattern, text), result, "{pattern} {text}");
        }
    }
}
