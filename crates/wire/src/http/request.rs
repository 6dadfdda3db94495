//! [`Request`]: one request, its repetitions, and its outcome.

use std::{borrow::Cow, fmt, time::Duration};

use hyper::{body::Bytes, ext::ReasonPhrase};
use netstead_model::{Call, Outcome};
use reqwest::{
    Method, StatusCode, Url,
    header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};
use serde::{Serialize, de::DeserializeOwned};

use super::{Http, HttpError, Reply, base_url::has_dot_segment, retry_after::retry_after};
use crate::{BodyError, Redactor, read_body};

/// How often a request that may be repeated is sent in all.
const ATTEMPTS: u32 = 3;
/// The pause before the first repetition; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// A busy server that asks for no longer wait than this is asked again at once after it. A longer wait is the caller's.
const SHORT_WAIT: Duration = Duration::from_secs(2);

/// The effect of a request, which says whether it may be sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It changes nothing. Repeated when no answer comes.
    Read,
    /// It changes something, and the same thing however often it is sent. Repeated when no answer comes.
    Idempotent,
    /// It changes something. Sent once.
    Once,
}

/// The statuses that the caller of a request judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Judges {
    /// Those with no meaning that all servers share.
    Plain,
    /// 5xx too, but 503.
    Errors,
    All,
}

/// A request that is not sent yet. GET and HEAD are [`Effect::Read`], everything else is [`Effect::Once`] unless said.
pub struct Request<'h> {
    http: &'h Http,
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Option<Bytes>,
    effect: Effect,
    attempts: u32,
    operation: &'static str,
    timeout: Duration,
    limit: usize,
    redactor: Cow<'h, Redactor>,
    /// The statuses that the caller judges.
    judges: Judges,
    /// Why it cannot be sent at all.
    unusable: Option<String>,
}

impl<'h> Request<'h> {
    pub(super) fn new(http: &'h Http, method: Method, path: &str) -> Self {
        let mut url = http.base.clone();
        url.set_path(&format!("{}{path}", http.base.path().trim_end_matches('/')));
        let reads = matches!(method, Method::GET | Method::HEAD);
        Self {
            url,
            headers: HeaderMap::new(),
            body: None,
            effect: if reads { Effect::Read } else { Effect::Once },
            attempts: ATTEMPTS,
            operation: operation(&method),
            method,
            timeout: http.timeout,
            limit: http.limit,
            redactor: Cow::Borrowed(&http.redactor),
            judges: Judges::Plain,
            unusable: has_dot_segment(path).then(|| format!("`{path}` has `.` or `..` for a name")),
            http,
        }
    }

    /// Adds pairs to the query.
    #[must_use]
    pub fn query(mut self, pairs: &[(&str, &str)]) -> Self {
        if !pairs.is_empty() {
            self.url.query_pairs_mut().extend_pairs(pairs);
        }
        self
    }

    /// Sets the query as it is written.
    pub(super) fn raw_query(mut self, query: &str) -> Self {
        self.url.set_query(Some(query));
        self
    }

    #[cfg(test)]
    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    /// Sends it at most once, even if it may be repeated: the caller has another server to ask.
    #[must_use]
    pub fn once(self) -> Self {
        Self { attempts: 1, ..self }
    }

    #[must_use]
    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        match HeaderValue::from_str(value) {
            Ok(value) => drop(self.headers.insert(HeaderName::from_static(name), value)),
            Err(_) => self.unusable = Some(format!("the header {name} has characters that none may have")),
        }
        self
    }

    /// Sends a secret that only came up now, a session, and removes it from everything the server says.
    #[must_use]
    pub fn secret_header(mut self, name: &'static str, secret: &str) -> Self {
        self = self.header(name, secret);
        if let Some(value) = self.headers.get_mut(name) {
            value.set_sensitive(true);
        }
        self.redactor = Cow::Owned(self.redactor.and(secret));
        self
    }

    /// Sends JSON.
    #[must_use]
    pub fn json(mut self, body: &impl Serialize) -> Self {
        match serde_json::to_vec(body) {
            Ok(bytes) => self.body("application/json", bytes),
            Err(error) => {
                self.unusable = Some(error.to_string());
                self
            }
        }
    }

    /// Sends a form.
    #[must_use]
    pub fn form(self, pairs: &[(&str, &str)]) -> Self {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
        self.body("application/x-www-form-urlencoded", body)
    }

    /// Sends any body.
    #[must_use]
    pub fn body(mut self, content_type: &'static str, body: impl Into<Bytes>) -> Self {
        self.headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        self.body = Some(body.into());
        self
    }

    /// Says whether it may be sent again: a POST may be a read, and a GET of some servers is a change.
    #[must_use]
    pub fn effect(self, effect: Effect) -> Self {
        Self { effect, ..self }
    }

    /// The label of metrics; the method unless set.
    #[must_use]
    pub fn operation(self, operation: &'static str) -> Self {
        Self { operation, ..self }
    }

    /// Leaves every status to the caller, also 401, 403 and 5xx: for servers that mean something of their own by them. A
    /// status is never a cause to send the request again.
    #[must_use]
    pub fn any_status(self) -> Self {
        Self { judges: Judges::All, ..self }
    }

    /// How long each attempt may take.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout: timeout.min(self.http.longest), ..self }
    }

    /// The most bytes of its answer that are read.
    #[must_use]
    pub fn limit(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// Leaves 5xx to the caller, but 503: for servers whose only answer to what they do not want is 500.
    #[must_use]
    pub fn judging_errors(self) -> Self {
        Self { judges: Judges::Errors, ..self }
    }

    /// Sends it. The caller judges every status but 401 and 403 (`Denied`), 429 and 503 (`Busy`), 5xx (`Unreachable`, or
    /// `Unknown` for a change) and redirects (`Malformed`).
    pub async fn send(self) -> Result<Reply, HttpError> {
        let (mut pause, mut attempt) = (FIRST_PAUSE, 1);
        // The first attempt after which a change may have been carried out.
        let mut doubt = None;
        loop {
            let error = match self.observed_attempt().await {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            let wait = self.wait_before_repeating(&error, pause).filter(|_| attempt < self.attempts);
            if matches!(error, HttpError::Unknown { .. }) {
                doubt.get_or_insert_with(|| error.clone());
            }
            let Some(wait) = wait else { return Err(doubt.unwrap_or(error)) };
            tracing::debug!(server = self.http.server, %error, retry_in = ?wait, "Request is repeated.");
            tokio::time::sleep(wait).await;
            (pause, attempt) = (pause.saturating_mul(2), attempt + 1);
        }
    }

    /// Sends it and reads the JSON of a success. Another status is [`HttpError::Refused`].
    pub async fn read<T: DeserializeOwned>(self) -> Result<T, HttpError> {
        let http = self.http;
        self.try_read().await?.map_err(|reply| refused(http, &reply))
    }

    /// As [`Request::read`]; 404 is `None`.
    pub async fn find<T: DeserializeOwned>(self) -> Result<Option<T>, HttpError> {
        let http = self.http;
        match self.try_read().await? {
            Ok(found) => Ok(Some(found)),
            Err(reply) if reply.status == StatusCode::NOT_FOUND => Ok(None),
            Err(reply) => Err(refused(http, &reply)),
        }
    }

    /// Reads the JSON of a success, or gives the reply for the caller to judge.
    pub async fn try_read<T: DeserializeOwned>(self) -> Result<Result<T, Reply>, HttpError> {
        let (http, redactor, writes) = (self.http, self.redactor.clone().into_owned(), self.writes());
        let reply = self.send().await?;
        if !reply.is_success() {
            return Ok(Err(reply));
        }
        reply.json().map(Ok).map_err(|error| {
            let server = http.server.clone();
            let reason = redactor.redact(&format!("not its JSON: {error}")).into_owned();
            // A change that was answered with something else may have reached another server.
            if writes {
                HttpError::Unknown { server, reason }
            } else {
                HttpError::Malformed { server, reason }
            }
        })
    }

    /// Sends it and expects a success whose body does not matter. Another status is [`HttpError::Refused`].
    pub async fn done(self) -> Result<(), HttpError> {
        let http = self.http;
        let reply = self.send().await?;
        if reply.is_success() { Ok(()) } else { Err(refused(http, &reply)) }
    }

    fn writes(&self) -> bool {
        self.effect != Effect::Read
    }

    /// The pause before `error` may be answered by sending the request again.
    fn wait_before_repeating(&self, error: &HttpError, pause: Duration) -> Option<Duration> {
        match (error, self.effect) {
            (_, Effect::Once) => None,
            (HttpError::Unreachable { .. }, _) | (HttpError::Unknown { .. }, Effect::Idempotent) => {
                Some(pause)
            }
            (HttpError::Busy { retry_after: Some(wait), .. }, _) if *wait <= SHORT_WAIT => {
                Some(pause.max(*wait))
            }
            _ => None,
        }
    }

    async fn observed_attempt(&self) -> Result<Reply, HttpError> {
        let begun = self.http.clock.monotonic();
        let outcome = self.attempt().await;
        let how = match &outcome {
            Ok(reply) if reply.is_success() => Outcome::Answered,
            Ok(_) | Err(HttpError::Denied { .. } | HttpError::Busy { .. }) => Outcome::Refused,
            Err(_) => Outcome::Failed,
        };
        let took = self.http.clock.monotonic().saturating_sub(begun);
        self.http.observer.called(Call { operation: self.operation, outcome: how, took });
        outcome
    }

    async fn attempt(&self) -> Result<Reply, HttpError> {
        if let Some(problem) = &self.unusable {
            return Err(self.malformed(&format!("the request cannot be made: {problem}")));
        }
        let mut headers = self.http.headers.clone();
        headers.extend(self.headers.iter().map(|(name, value)| (name.clone(), value.clone())));
        let request = self.http.client.request(self.method.clone(), self.url.clone());
        let mut request = request.headers(headers).timeout(self.timeout);
        if let Some(body) = &self.body {
            request = request.body(body.clone());
        }
        let response = request.send().await.map_err(|error| self.lost(error))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let reason = response.extensions().get::<ReasonPhrase>().filter(|_| !status.is_success());
        let reason = reason.map(|reason| self.shown(&String::from_utf8_lossy(reason.as_bytes())));
        let body = match read_body(reqwest::Body::from(response), self.limit).await {
            Ok(body) if status.is_success() => body,
            Ok(body) => self.redactor.redact_bytes(body),
            Err(BodyError::Broken(error)) => return Err(self.lost(error)),
            Err(error) if self.writes() => return Err(self.unknown(&error.to_string())),
            Err(error) => return Err(self.malformed(&error.to_string())),
        };
        let reply = Reply { status, body, reason, headers };
        if self.judges == Judges::All { Ok(reply) } else { self.judge(reply) }
    }

    /// Turns a status that every server means alike into an error.
    fn judge(&self, reply: Reply) -> Result<Reply, HttpError> {
        let (status, server) = (reply.status, self.http.server.clone());
        let reason = || format!("it answers {status}: {}", reply.text());
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                Err(HttpError::Denied { server, status: status.as_u16(), reason: reason() })
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                let retry_after = retry_after(&reply.headers, self.http.clock.wall());
                Err(HttpError::Busy { server, retry_after })
            }
            status if status.is_server_error() && self.judges == Judges::Errors => Ok(reply),
            status if status.is_server_error() && self.writes() => Err(self.unknown(&reason())),
            status if status.is_server_error() => Err(self.unreachable(&reason())),
            status if status.is_redirection() => Err(self.malformed(&format!(
                "it answers {status} and points elsewhere; give the address it points to"
            ))),
            _ => Ok(reply),
        }
    }

    /// The meaning of a missing or broken answer: a request that never left changed nothing.
    fn lost(&self, error: reqwest::Error) -> HttpError {
        let sent = !error.is_connect() && !error.is_builder();
        let late = if error.is_timeout() { "no answer in time: " } else { "" };
        // The server is named elsewhere, and the URL may hold a secret. The causes below the first line are what people need.
        let error = error.without_url();
        let mut reason = format!("{late}{error}");
        let mut below = std::error::Error::source(&error);
        while let Some(cause) = below {
            reason = format!("{reason}: {cause}");
            below = cause.source();
        }
        if self.writes() && sent { self.unknown(&reason) } else { self.unreachable(&reason) }
    }

    fn unreachable(&self, reason: &str) -> HttpError {
        HttpError::Unreachable { server: self.http.server.clone(), reason: self.shown(reason) }
    }

    fn unknown(&self, reason: &str) -> HttpError {
        HttpError::Unknown { server: self.http.server.clone(), reason: self.shown(reason) }
    }

    fn malformed(&self, reason: &str) -> HttpError {
        HttpError::Malformed { server: self.http.server.clone(), reason: self.shown(reason) }
    }

    fn shown(&self, reason: &str) -> String {
        self.redactor.redact(reason).into_owned()
    }
}

/// Shows neither headers nor query: they may hold secrets.
impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Request({} {}{})", self.method, self.http.server, self.url.path())
    }
}

fn refused(http: &Http, reply: &Reply) -> HttpError {
    HttpError::Refused { server: http.server.clone(), status: reply.status.as_u16(), reason: reply.text() }
}

fn operation(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::PATCH => "PATCH",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}
