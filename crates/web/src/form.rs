//! [`Form`]: the fields of a form as they were typed, and the error beside one of them.

use std::collections::BTreeMap;

use axum::{
    extract::{FromRequest, Request},
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use netstead_client::types::Problem;

/// Most bytes of a form.
const MOST: usize = 256 << 10;

/// The fields of a form. A page shows it again with what was typed, and with what is wrong.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Form {
    fields: BTreeMap<String, Vec<String>>,
    /// The field that is wrong; empty if it is about none of them.
    field: String,
    error: String,
}

impl Form {
    /// Returns the text of a field, without spaces around it.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.fields.get(name).and_then(|values| values.first()).map_or("", |text| text.trim())
    }

    /// Returns the text of a field, unless it is empty.
    pub(crate) fn maybe(&self, name: &str) -> Option<String> {
        Some(self.text(name)).filter(|text| !text.is_empty()).map(str::to_owned)
    }

    /// All values of a field that occurs several times.
    pub(crate) fn all(&self, name: &str) -> &[String] {
        self.fields.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    /// The words of a field, between commas, spaces or lines.
    pub(crate) fn words(&self, name: &str) -> Vec<String> {
        let between = |c: char| c == ',' || c.is_whitespace();
        self.text(name).split(between).filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }

    /// The lines of a field.
    pub(crate) fn lines(&self, name: &str) -> Vec<String> {
        let lines = self.text(name).lines().map(str::trim);
        lines.filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }

    /// Whether a box is ticked.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        !self.text(name).is_empty()
    }

    /// With a value for a field, as if it had been typed.
    pub(crate) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.fields.insert(name.to_owned(), vec![value.into()]);
        self
    }

    /// With what is wrong. A field that this form does not have is named in the text.
    pub(crate) fn wrong(mut self, problem: &Problem, known: &[&str]) -> Self {
        let field = problem.field.as_deref().unwrap_or_default();
        let root = field.split(['[', '.']).next().unwrap_or_default();
        self.error.clone_from(&problem.detail);
        if known.contains(&root) {
            root.clone_into(&mut self.field);
        } else if !field.is_empty() {
            self.error = format!("{field}: {}", problem.detail);
        }
        self
    }

    /// The error of a field; empty without one.
    pub(crate) fn error_at(&self, name: &str) -> &str {
        if !self.error.is_empty() && self.field == name { &self.error } else { "" }
    }

    /// The error that is about none of the fields.
    pub(crate) fn error(&self) -> &str {
        self.error_at("")
    }
}

impl<S: Send + Sync> FromRequest<S> for Form {
    type Rejection = Response;

    async fn from_request(request: Request, _: &S) -> Result<Self, Response> {
        let body = axum::body::to_bytes(request.into_body(), MOST).await;
        let Ok(body) = body else {
            return Err((StatusCode::PAYLOAD_TOO_LARGE, "the form is too large").into_response());
        };
        let mut fields: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, value) in url::form_urlencoded::parse(&body) {
            fields.entry(name.into_owned()).or_default().push(value.into_owned());
        }
        Ok(Self { fields, ..Self::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_stands_beside_its_field_or_names_it() {
        let problem = |field: &str| Problem {
            detail: "it is no name".to_owned(),
            field: Some(field.to_owned()),
            ..Problem::default()
        };
        let form = Form::default().with("hostnames", "-x").wrong(&problem("hostnames[0]"), &["hostnames"]);
        assert_eq!((form.error_at("hostnames"), form.error()), ("it is no name", ""));
        let form = Form::default().wrong(&problem("ttl"), &["hostnames"]);
        assert_eq!((form.error_at("ttl"), form.error()), ("", "ttl: it is no name"));
    }

    #[test]
    fn fields_are_read_as_words_and_lines() {
        let form = Form::default().with("names", " a.test, b.test\n c.test ").with("box", "on");
        assert_eq!(form.words("names"), ["a.test", "b.test", "c.test"]);
        assert_eq!(form.lines("names"), ["a.test, b.test", "c.test"]);
        assert_eq!((form.maybe("none"), form.is_set("box"), form.is_set("none")), (None, true, false));
    }
}
