//! [`ApiError`]: why a call gave nothing to work with.

use netstead_model::{BackendError, BackendErrorKind, ProviderError};
use netstead_wire::http::{HttpError, Reply};
use serde_json::Value;

/// The most characters of a refusal that people see.
const SHOWN: usize = 300;

/// Why a call gave nothing to work with.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum ApiError {
    #[error(transparent)]
    Server(#[from] ProviderError),
    /// NetBox understood the request, said no, and changed nothing.
    #[error("NetBox answers {code}: {message}")]
    Refused { code: u16, message: String, body: Value },
}

impl From<HttpError> for ApiError {
    fn from(error: HttpError) -> Self {
        Self::Server(error.into())
    }
}

impl ApiError {
    /// A status that is no success.
    pub(super) fn refused(reply: &Reply) -> Self {
        let body: Value = reply.json().unwrap_or(Value::Null);
        let message = match &body {
            Value::Null => reply.text(),
            body => spoken(body),
        };
        Self::Refused { code: reply.status.as_u16(), message: message.chars().take(SHOWN).collect(), body }
    }

    /// The error for a caller that expected no refusal.
    pub(crate) fn unexpected(self, server: &str) -> ProviderError {
        match self {
            Self::Server(error) => error,
            refused @ Self::Refused { .. } => {
                ProviderError::Malformed { server: server.to_owned(), reason: refused.to_string() }
            }
        }
    }

    /// The error of a pool backend.
    pub(crate) fn of_backend(self) -> BackendError {
        let kind = match &self {
            Self::Refused { code: 404, .. } => BackendErrorKind::NoSuchPool,
            Self::Refused { .. } => BackendErrorKind::Refused,
            Self::Server(ProviderError::Denied { .. }) => BackendErrorKind::Denied,
            Self::Server(error) if error.may_have_acted() => BackendErrorKind::Unknown,
            Self::Server(_) => BackendErrorKind::Unavailable,
        };
        let error = BackendError::new(kind, self.to_string());
        match kind {
            BackendErrorKind::Denied => {
                error.hint("look at the token in NetBox, and at the permissions of its user")
            }
            _ => error,
        }
    }
}

/// The words of a body, in one line: `address: Duplicate IP address found`.
pub(super) fn spoken(body: &Value) -> String {
    match body {
        Value::String(text) => text.split_whitespace().collect::<Vec<_>>().join(" "),
        Value::Array(all) => {
            let said: Vec<String> = all.iter().map(spoken).filter(|text| !text.is_empty()).collect();
            said.join("; ")
        }
        Value::Object(fields) => {
            let general = |name: &str| matches!(name, "detail" | "__all__" | "non_field_errors" | "error");
            let said = fields.iter().filter(|(name, _)| *name != "exception" && *name != "netbox_version");
            let said =
                said.filter(|(name, _)| *name != "python_version").map(|(name, value)| match spoken(value) {
                    text if general(name) => text,
                    text => format!("{name}: {text}"),
                });
            said.collect::<Vec<_>>().join("; ")
        }
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_refusal_is_one_line() {
        assert_eq!(spoken(&json!({ "detail": "Not\n found." })), "Not found.");
        assert_eq!(spoken(&json!([{}, { "address": ["Duplicate."] }])), "address: Duplicate.");
        assert_eq!(spoken(&json!({ "error": "no", "exception": "ValueError", "netbox_version": "4" })), "no");
    }
}
