//! [`DomainMatch`]: which names a provider is responsible for, as people write it.

use std::{fmt, str::FromStr};

use netstead_model::{Name, ParseError};
use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The most bytes that a compiled regular expression may take. A file may have a hundred of them and anybody who may ask
/// `what-if` can send one, so none may be large; fifty names of twelve letters each still fit.
const MOST_REGEX_BYTES: usize = 64 << 10;

/// A plain domain (itself and all below), a glob whose `*` spans dots, or a `/regex/`.
#[derive(Debug, Clone)]
pub enum DomainMatch {
    Domain(Name),
    /// In lower case.
    Glob(String),
    Regex(Regex),
}

impl DomainMatch {
    /// Whether a text is meant as a regular expression.
    pub fn is_regex(text: &str) -> bool {
        text.starts_with('/')
    }

    pub fn matches(&self, name: &Name) -> bool {
        match self {
            Self::Domain(domain) => name.is_subdomain_of(domain),
            Self::Glob(pattern) => glob(pattern, name.as_str()),
            Self::Regex(regex) => regex.is_match(name.as_str()),
        }
    }

    /// The domain below which all matching names lie, where that is known: what to ask the server for.
    pub fn domain(&self) -> Option<Name> {
        match self {
            Self::Domain(domain) => Some(domain.clone()),
            Self::Glob(pattern) => {
                let (_, tail) = pattern.rsplit_once('*')?;
                tail.split_once('.').and_then(|(_, domain)| domain.parse().ok())
            }
            Self::Regex(_) => None,
        }
    }
}

/// Each part between two `*` must follow in order; the first and last part hold the ends.
fn glob(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    let Some((middle, last)) = rest.rsplit_once('*') else { return text.ends_with(rest) };
    for part in middle.split('*') {
        let Some((_, after)) = text.split_once(part) else { return false };
        text = after;
    }
    text.ends_with(last)
}

impl FromStr for DomainMatch {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let wrong = |reason: String| ParseError::new("domain", text, None, reason);
        if let Some(inner) = text.strip_prefix('/') {
            let inner = inner
                .strip_suffix('/')
                .filter(|inner| !inner.is_empty())
                .ok_or_else(|| wrong("a regular expression is written between two slashes".into()))?;
            let mut pattern = RegexBuilder::new(inner);
            pattern.unicode(false).case_insensitive(true);
            pattern.size_limit(MOST_REGEX_BYTES).dfa_size_limit(MOST_REGEX_BYTES);
            return pattern.build().map(Self::Regex).map_err(|error| wrong(reason(&error)));
        }
        if text.contains('*') {
            let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '*');
            if !text.chars().all(known) {
                return Err(wrong("a glob has letters, digits, `-`, `_`, `.` and `*`".into()));
            }
            return Ok(Self::Glob(text.trim_end_matches('.').to_ascii_lowercase()));
        }
        text.parse().map(Self::Domain)
    }
}

fn reason(error: &regex::Error) -> String {
    if let regex::Error::CompiledTooBig(_) = error {
        let most = MOST_REGEX_BYTES >> 10;
        return format!("the regular expression takes more than {most} KiB; repeat less, or write several");
    }
    let text = error.to_string();
    text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

impl fmt::Display for DomainMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Domain(domain) => write!(f, "{domain}"),
            Self::Glob(pattern) => f.write_str(pattern),
            Self::Regex(regex) => write!(f, "/{regex}/"),
        }
    }
}

impl PartialEq for DomainMatch {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Domain(one), Self::Domain(other)) => one == other,
            (Self::Glob(one), Self::Glob(other)) => one == other,
            (Self::Regex(one), Self::Regex(other)) => one.as_str() == other.as_str(),
            _ => false,
        }
    }
}

impl Eq for DomainMatch {}

impl Serialize for DomainMatch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for DomainMatch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_domain_is_itself_and_all_below_and_a_star_spans_dots() {
        let table = [
            ("home.example", "home.example", true),
            ("home.example", "a.b.home.example", true),
            ("home.example", "athome.example", false),
            ("*.home.example", "a.b.home.example", true),
            ("*.home.example", "home.example", false),
            ("web*.example", "web-1.lab.example", true),
            ("*.lab.*", "a.lab.example", true),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b*", "xxbxxaxx", false),
            ("a*a", "a", false),
            ("/^web[0-9]+\\./", "web12.example", true),
            ("/^web[0-9]+\\./", "web.example", false),
        ];
        for (pattern, name, expected) in table {
            let domain: DomainMatch = pattern.parse().unwrap();
            assert_eq!(domain.matches(&name.parse().unwrap()), expected, "{pattern} {name}");
            assert_eq!(domain.to_string().parse(), Ok(domain));
        }
    }

    #[test]
    fn what_is_no_domain_is_refused() {
        for text in ["", "/", "//", "/(/", "a b", "*.ex ample", "10.0.0.1"] {
            assert!(text.parse::<DomainMatch>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_regular_expression_is_small() {
        let words: Vec<String> =
            (0..50).map(|n: u32| format!("host{:08x}", n.wrapping_mul(0x9e37_79b1))).collect();
        assert!(format!("/^({})\\.example\\.com$/", words.join("|")).parse::<DomainMatch>().is_ok());
        let error = "/(a{90}){90}0/".parse::<DomainMatch>().unwrap_err().to_string();
        let told = "the regular expression takes more than 64 KiB; repeat less, or write several";
        assert!(error.ends_with(told), "{error}");
    }
}
