//! [`NameTemplate`]: names for objects that ask for none, in the form that external-dns' `--fqdn-template` has.

use std::{fmt, str::FromStr};

use netstead_model::ParseError;

use super::object::Stored;

/// Texts with fields in them; several names have commas between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameTemplate {
    text: String,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Name,
    Namespace,
    Kind,
    Label(String),
    Annotation(String),
}

impl NameTemplate {
    /// The names of an object; none if a field that the template uses is empty there.
    pub(super) fn fill(&self, kind: &str, object: &Stored) -> Vec<String> {
        let mut out = String::new();
        for part in &self.parts {
            let value = match part {
                Part::Text(text) => Some(text.as_str()),
                Part::Name => Some(object.name.name.as_str()),
                Part::Namespace => Some(object.name.namespace.as_str()),
                Part::Kind => Some(kind),
                Part::Label(key) => object.labels.get(key).map(String::as_str),
                Part::Annotation(key) => object.annotations.get(key).map(String::as_str),
            };
            match value.filter(|value| !value.is_empty()) {
                Some(value) => out.push_str(value),
                None => return Vec::new(),
            }
        }
        out.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
    }

    /// Whether it looks at labels, which are not kept otherwise.
    pub(super) fn needs_labels(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Label(_)))
    }

    /// The annotations that it looks at.
    pub(super) fn annotations(&self) -> impl Iterator<Item = &String> {
        self.parts.iter().filter_map(|part| match part {
            Part::Annotation(key) => Some(key),
            _ => None,
        })
    }
}

impl FromStr for NameTemplate {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let refuse = |reason: &str| Err(ParseError::new("template", text, None, reason));
        let (mut parts, mut rest) = (Vec::new(), text);
        while let Some((before, after)) = rest.split_once("{{") {
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            let Some((inner, after)) = after.split_once("}}") else { return refuse("a `{{` has no `}}`") };
            match field(inner.trim_matches('-').trim()) {
                Some(part) => parts.push(part),
                None => {
                    return refuse(
                        "a field is one of `.Name`, `.Namespace`, `.Kind`, `.Labels.KEY`, `.Annotations.KEY`, \
                         `index .Labels \"KEY\"` and `index .Annotations \"KEY\"`",
                    );
                }
            }
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        if parts.iter().all(|part| matches!(part, Part::Text(_))) {
            return refuse("it has no field, so every object would have the same name");
        }
        Ok(Self { text: text.to_owned(), parts })
    }
}

fn field(text: &str) -> Option<Part> {
    let text = text.replace(".ObjectMeta.", ".");
    match text.as_str() {
        ".Name" => return Some(Part::Name),
        ".Namespace" => return Some(Part::Namespace),
        ".Kind" => return Some(Part::Kind),
        _ => {}
    }
    if let Some(rest) = text.strip_prefix("index ") {
        let (list, key) = rest.trim().split_once(char::is_whitespace)?;
        let key = key.trim().strip_prefix('"')?.strip_suffix('"')?.to_owned();
        return match list {
            ".Labels" => Some(Part::Label(key)),
            ".Annotations" => Some(Part::Annotation(key)),
            _ => None,
        };
    }
    let key = |key: &str| (!key.is_empty() && !key.contains(char::is_whitespace)).then(|| key.to_owned());
    match (text.strip_prefix(".Labels."), text.strip_prefix(".Annotations.")) {
        (Some(label), _) => key(label).map(Part::Label),
        (_, Some(annotation)) => key(annotation).map(Part::Annotation),
        _ => None,
    }
}

impl fmt::Display for NameTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{
        super::{kinds::Body, object::ObjectName},
        *,
    };

    #[test]
    fn a_template_makes_names_of_fields() {
        let object = Stored {
            name: ObjectName::new("shop", "web"),
            uid: String::new(),
            generation: None,
            created: None,
            labels: BTreeMap::from([("app".to_owned(), "front".to_owned())]),
            annotations: BTreeMap::new(),
            body: Body::Unreadable(String::new()),
        };
        let cases: [(&str, &[&str]); 4] = [
            ("{{.Name}}.example.com", &["web.example.com"]),
            (
                "{{ .Name }}.{{ .Namespace }}.a.test, {{.ObjectMeta.Name}}.b.test",
                &["web.shop.a.test", "web.b.test"],
            ),
            ("{{ index .Labels \"app\" }}.{{ .Labels.app }}.c.test", &["front.front.c.test"]),
            ("{{ .Labels.none }}.c.test", &[]),
        ];
        for (text, names) in cases {
            assert_eq!(text.parse::<NameTemplate>().unwrap().fill("service", &object), names, "{text}");
        }
        for text in ["web.example.com", "{{ .Name", "{{ .Spec.x }}.a", "{{ if .Name }}a{{ end }}"] {
            assert!(text.parse::<NameTemplate>().is_err(), "{text}");
        }
    }
}
