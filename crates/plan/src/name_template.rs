//! Templates for names, filled with what is known of a workload.

use std::{fmt, str::FromStr};

use netstead_model::{Name, ParseError, Workload};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// How a name is made: `{name}.{domain}`. Fields are `name`, `domain`, `source`, `kind` and `id`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(String);

const FIELDS: [&str; 5] = ["name", "domain", "source", "kind", "id"];

impl Template {
    /// The name of `workload` in `domain`; the error is the rest of a sentence.
    pub fn fill(&self, workload: &Workload, domain: &Name) -> Result<Name, String> {
        let mut text = String::with_capacity(64);
        let mut rest = self.0.as_str();
        while let Some((before, after)) = rest.split_once('{') {
            text.push_str(before);
            let (field, after) = after.split_once('}').unwrap_or((after, ""));
            match field {
                "domain" => text.push_str(domain.as_str()),
                "name" => text.push_str(own_name(workload)),
                "source" => text.push_str(workload.source.as_str()),
                "kind" => text.push_str(&workload.kind),
                _ => text.push_str(workload.id.as_str()),
            }
            rest = after;
        }
        text.push_str(rest);
        Name::host(&text).map_err(|error| error.to_string())
    }
}

/// The first label of its host name, else its name.
fn own_name(workload: &Workload) -> &str {
    match &workload.hostname {
        Some(hostname) => hostname.as_str().split('.').next().unwrap_or_default(),
        None => &workload.name,
    }
}

impl Default for Template {
    fn default() -> Self {
        Self("{name}.{domain}".into())
    }
}

impl FromStr for Template {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let wrong = |reason: String| Err(ParseError::new("template", text, None, reason));
        let mut rest = text;
        while let Some((_, after)) = rest.split_once('{') {
            let Some((field, after)) = after.split_once('}') else {
                return wrong("a `{` has no `}`".into());
            };
            if !FIELDS.contains(&field) {
                return wrong(format!("it knows no `{field}`, only {}", FIELDS.join(", ")));
            }
            rest = after;
        }
        if !text.contains("{domain}") {
            return wrong("it has no `{domain}`".into());
        }
        if !text.contains("{name}") && !text.contains("{id}") {
            return wrong("all workloads would share one name; add `{name}` or `{id}`".into());
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl Serialize for Template {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Template {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}
