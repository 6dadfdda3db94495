//! Every error as problem details (RFC 9457).

mod access;
mod cluster;
mod engine;
mod ledger;
mod refusal;

use std::{collections::BTreeMap, time::Duration};

use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use netstead_client::types::Problem;

pub(crate) const CONTENT_TYPE: &str = "application/problem+json";

/// An error on its way out. The frame around all handlers adds the request's id and writes the body.
#[derive(Debug, Clone)]
pub(crate) struct Failure(Box<Parts>);

#[derive(Debug, Clone)]
struct Parts {
    status: StatusCode,
    slug: &'static str,
    reason: String,
    field: Option<String>,
    facts: BTreeMap<String, String>,
    retry_after: Option<Duration>,
    cause: Option<String>,
    expected: bool,
}

#[allow(clippy::needless_pass_by_value, reason = "callers give away what they have no more use for")]
impl Failure {
    pub(crate) fn new(status: StatusCode, slug: &'static str, reason: impl Into<String>) -> Self {
        Self(Box::new(Parts {
            status,
            slug,
            reason: reason.into(),
            field: None,
            facts: BTreeMap::new(),
            retry_after: None,
            cause: None,
            expected: false,
        }))
    }

    /// A field that cannot be read.
    pub(crate) fn unreadable(field: impl Into<String>, reason: impl ToString) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid", reason.to_string()).on(field)
    }

    /// A field that can be read, but never done.
    pub(crate) fn impossible(field: impl Into<String>, reason: impl ToString) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", reason.to_string()).on(field)
    }

    pub(crate) fn forbidden(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", reason)
    }

    /// This node cannot compare its state with the store.
    pub(crate) fn unfresh(reason: &str) -> Self {
        let told =
            format!("this data may be out of date: {reason}; `?stale=ok` answers with it all the same");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", told).retry_after(Duration::from_secs(1))
    }

    /// The caller's time is over, and what was begun goes on to its end.
    pub(crate) fn still_running() -> Self {
        let told =
            "it takes longer than the request may; it continues, and `GET /providers` says how it ended";
        Self::new(StatusCode::GATEWAY_TIMEOUT, "still-running", told)
    }

    pub(crate) fn not_found(slug: &'static str, reason: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, slug, reason)
    }

    /// A fault of ours. `cause` is for the log, not for the caller.
    pub(crate) fn internal(cause: impl ToString) -> Self {
        let reason = "something went wrong here; the log has the details under the id of this request";
        let mut failure = Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", reason);
        failure.0.cause = Some(cause.to_string());
        failure
    }

    /// Names the field it is about.
    pub(crate) fn on(mut self, field: impl Into<String>) -> Self {
        let field = field.into();
        self.0.field = (!field.is_empty()).then_some(field);
        self
    }

    /// Says in what the field stands: `address` within `entries[2].claim` is `entries[2].claim.address`.
    pub(crate) fn within(mut self, outer: &str) -> Self {
        self.0.field = self.0.field.map(|field| format!("{outer}.{field}"));
        self
    }

    pub(crate) fn fact(mut self, name: &str, value: impl ToString) -> Self {
        self.0.facts.insert(name.to_owned(), value.to_string());
        self
    }

    pub(crate) fn fact_named(&self, name: &str) -> Option<&str> {
        self.0.facts.get(name).map(String::as_str)
    }

    pub(crate) fn retry_after(mut self, pause: Duration) -> Self {
        self.0.retry_after = Some(pause);
        self
    }

    /// Nothing is wrong here, whatever its status says: what the caller waited for did not happen. The log is silent about it.
    pub(crate) fn expected(mut self) -> Self {
        self.0.expected = true;
        self
    }

    pub(crate) fn is_expected(&self) -> bool {
        self.0.expected
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.0.status
    }

    /// The cause, for the log and not for the caller.
    pub(crate) fn cause(&self) -> Option<&str> {
        self.0.cause.as_deref()
    }

    pub(crate) fn slug(&self) -> &'static str {
        self.0.slug
    }

    pub(crate) fn problem(&self, request: Option<&str>) -> Problem {
        let parts = &self.0;
        let detail = match &parts.field {
            Some(field) => format!("{field}: {}", parts.reason),
            None => parts.reason.clone(),
        };
        Problem {
            kind: format!("urn:netstead:{}", parts.slug),
            title: title(parts.slug),
            status: parts.status.as_u16(),
            detail,
            field: parts.field.clone(),
            request: request.map(str::to_owned),
            facts: parts.facts.clone(),
        }
    }

    /// The answer itself, body and all.
    pub(crate) fn render(&self, request: Option<&str>) -> Response {
        let body = serde_json::to_vec(&self.problem(request)).unwrap_or_default();
        let mut response = (self.0.status, Body::from(body)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE));
        if self.0.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"netstead\""));
        }
        if let Some(pause) = self.0.retry_after {
            let seconds = pause.as_secs() + u64::from(pause.subsec_nanos() > 0);
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds.max(1)));
        }
        response
    }
}

/// `address-held` as `Address held`.
fn title(slug: &str) -> String {
    let words = slug.replace('-', " ");
    let mut letters = words.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().collect::<String>() + letters.as_str())
}

impl IntoResponse for Failure {
    /// An answer that carries the failure; the frame renders it once it knows the request's id.
    fn into_response(self) -> Response {
        let mut response = self.0.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// A bare status of axum and its layers, in our words.
pub(crate) fn bare(status: StatusCode) -> Failure {
    let (slug, reason) = match status {
        StatusCode::NOT_FOUND => ("not-found", "there is nothing at this path; `/api` shows what there is"),
        StatusCode::METHOD_NOT_ALLOWED => {
            ("method-not-allowed", "this path does not know this method; see `Allow`")
        }
        StatusCode::PAYLOAD_TOO_LARGE => ("too-large", "the body is too large"),
        StatusCode::UNSUPPORTED_MEDIA_TYPE => {
            ("unsupported-media-type", "send the body as `application/json`")
        }
        status if status.is_server_error() => return Failure::internal(format!("a bare {status}")),
        _ => ("invalid", "the request cannot be understood"),
    };
    Failure::new(status, slug, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_names_its_field_in_the_detail() {
        let failure = Failure::unreadable("address", "it is empty").within("entries[2].claim");
        let problem = failure.problem(Some("r1"));
        assert_eq!(problem.detail, "entries[2].claim.address: it is empty");
        assert_eq!(problem.field.as_deref(), Some("entries[2].claim.address"));
        assert_eq!((problem.title.as_str(), problem.status), ("Invalid", 400));
        assert_eq!(problem.request.as_deref(), Some("r1"));
    }

    #[test]
    fn the_cause_of_an_internal_error_stays_inside() {
        let failure = Failure::internal("disk 7 is on fire");
        assert!(!failure.problem(None).detail.contains("disk"));
        assert_eq!(failure.cause(), Some("disk 7 is on fire"));
    }
}
