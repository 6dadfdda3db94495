//! One call: its deadline, its request id, its retries, and its outcome.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use netstead_model::{Clock as _, SystemClock};
use netstead_wire::{BodyError, MOST_OF_ANSWER, Redactor, read_body};
use reqwest::{
    Method, Response, StatusCode, Url,
    header::{AUTHORIZATION, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue},
};
use serde::{Serialize, de::DeserializeOwned};

use crate::{ClientError, Options, types::Problem};

mod build;
mod unknown_outcome;

pub use self::build::canonical_url;
pub(crate) use self::unknown_outcome::UnknownOutcome;

/// The most the server lets a request take.
const LONGEST: Duration = Duration::from_mins(10);
/// The time that an answer may need on its way back after the server's deadline.
const GRACE: Duration = Duration::from_secs(2);

/// How old an answer is that its server did not promise to be fresh.
const AGE: &str = "netstead-age";

/// The kind of a call, which decides whether it is repeated when no answer comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It changes nothing.
    Read,
    /// It changes something, and the same thing however often it is sent.
    Idempotent,
    /// A second one could do more than the first.
    Once,
}

/// A request that is not sent yet.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) repeat: Repeat,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Option<Vec<u8>>,
    /// How long the server is asked to wait on top of its deadline.
    pub(crate) wait: Duration,
}

/// The headers of an answer.
#[derive(Debug)]
pub(crate) struct Answer<T> {
    pub(crate) value: T,
    pub(crate) status: StatusCode,
    pub(crate) etag: Option<String>,
    /// Whether an attempt before this answer may have been carried out.
    pub(crate) doubt: UnknownOutcome,
}

#[derive(Clone)]
pub(crate) struct Transport {
    http: reqwest::Client,
    /// The nodes that may be asked. Calls are made for the first, and moved to the one that answers.
    bases: Arc<[Url]>,
    /// Which of them answered last.
    current: Arc<AtomicUsize>,
    token: Option<HeaderValue>,
    /// Knows the token.
    redactor: Redactor,
    /// Of the oldest answer that came from memory.
    age: Arc<Mutex<Option<Duration>>>,
    pub(crate) options: Arc<Options>,
}

impl std::fmt::Debug for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transport").field("base", &self.base().as_str()).finish_non_exhaustive()
    }
}

impl Call {
    /// Adds the fields of `query`, a flat struct, to the URL.
    pub(crate) fn query(mut self, query: &impl Serialize) -> Result<Self, ClientError> {
        let fields = serde_json::to_value(query).map_err(|error| ClientError::unusable(error.to_string()))?;
        let fields = match fields {
            serde_json::Value::Object(fields) => fields,
            serde_json::Value::Null => return Ok(self),
            other => return Err(ClientError::unusable(format!("a query has fields with names: {other}"))),
        };
        for (name, value) in &fields {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            self.url.query_pairs_mut().append_pair(name, &value);
        }
        Ok(self)
    }

    pub(crate) fn json(mut self, body: &impl Serialize) -> Result<Self, ClientError> {
        let body = serde_json::to_vec(body).map_err(|error| ClientError::unusable(error.to_string()))?;
        self.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.body = Some(body);
        Ok(self)
    }

    pub(crate) fn header(mut self, name: HeaderName, value: &str) -> Result<Self, ClientError> {
        let value = HeaderValue::from_str(value)
            .map_err(|_| ClientError::unusable(format!("`{value}` cannot stand in the header {name}")))?;
        self.headers.insert(name, value);
        Ok(self)
    }

    pub(crate) fn waiting(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    fn writes(&self) -> bool {
        self.repeat != Repeat::Read
    }
}

impl Transport {
    /// The same connections, for reads that need not be fresh.
    pub(crate) fn with_stale_reads(&self) -> Self {
        let options = Options { stale: true, ..(*self.options).clone() };
        Self { options: Arc::new(options), age: Arc::default(), ..self.clone() }
    }

    /// The server that calls go to at the moment.
    pub(crate) fn base(&self) -> &Url {
        self.bases.get(self.current.load(Ordering::Relaxed)).unwrap_or_else(|| self.first())
    }

    /// Asks another node from now on, if there is one.
    fn move_on(&self, from: &Url) {
        if let Some(place) = self.bases.iter().position(|base| base == from) {
            let next = (place + 1) % self.bases.len().max(1);
            let _ = self.current.compare_exchange(place, next, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Sends `call`, again if that is safe and helps, and reads the JSON that comes back.
    pub(crate) async fn json<T: DeserializeOwned>(&self, call: Call) -> Result<Answer<T>, ClientError> {
        let answer = self.bytes(call).await?;
        let body = if answer.value.is_empty() { b"null".as_slice() } else { &answer.value };
        let value = serde_json::from_slice(body).map_err(|error| ClientError::Foreign {
            url: self.base().clone(),
            reason: format!("its answer cannot be read ({error})"),
        })?;
        Ok(Answer { value, status: answer.status, etag: answer.etag, doubt: answer.doubt })
    }

    /// `/healthz`, which stands beside the API.
    pub(crate) async fn alive(&self) -> Result<(), ClientError> {
        self.bytes(self.call_below(&["healthz"], Method::GET, Repeat::Read)?).await.map(drop)
    }

    /// How old the oldest answer was that its server did not promise to be fresh.
    pub(crate) fn age(&self) -> Option<Duration> {
        *self.age.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `/readyz`, which stands beside the API.
    pub(crate) async fn ready(&self) -> Result<(), ClientError> {
        self.bytes(self.call_below(&["readyz"], Method::GET, Repeat::Read)?).await.map(drop)
    }

    async fn bytes(&self, call: Call) -> Result<Answer<Vec<u8>>, ClientError> {
        let request_id = request_id();
        let begun = SystemClock.monotonic();
        let mut pause = self.options.backoff;
        let mut left = self.options.retries;
        let time_left = || self.options.timeout.saturating_sub(SystemClock.monotonic().saturating_sub(begun));
        let (mut reason, mut doubt) = (None, UnknownOutcome::default());
        loop {
            let failure = match self.attempt(&call, time_left().min(LONGEST), &request_id).await {
                Ok(answer) => return Ok(Answer { doubt, ..answer }),
                // What an earlier one failed of says why there was too little time for this one.
                Err(failure) if !call.writes() && is_late(&failure) => return Err(reason.unwrap_or(failure)),
                Err(failure) => failure,
            };
            let wait = pause.mul_f64(rand::random_range(0.75..1.25));
            if left == 0 || wait >= time_left() || !repeatable(&failure, call.repeat) {
                return Err(doubt.final_error(failure, self.base()));
            }
            doubt.note(&failure);
            tracing::debug!(%request_id, error = %failure, retry_in = ?wait, "Request is repeated.");
            if let ClientError::Unavailable { url, .. } = &failure {
                // It did nothing; another one may.
                self.move_on(url);
            }
            reason = Some(failure);
            tokio::time::sleep(wait).await;
            left -= 1;
            pause = pause.saturating_mul(2);
        }
    }

    async fn attempt(
        &self,
        call: &Call,
        patience: Duration,
        id: &str,
    ) -> Result<Answer<Vec<u8>>, ClientError> {
        let response = self.send(call, patience, id, Some(patience + call.wait + GRACE)).await?;
        let status = response.status();
        let etag = response.headers().get(ETAG).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let age = response.headers().get(AGE).and_then(|value| value.to_str().ok()?.parse().ok());
        let age = age.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let body = self.body(call, response).await?;
        if status.is_success() {
            let mut oldest = self.age.lock().unwrap_or_else(PoisonError::into_inner);
            *oldest = age.max(*oldest);
            return Ok(Answer { value: body, status, etag, doubt: UnknownOutcome::default() });
        }
        Err(self.refused(call, status, body))
    }

    /// An answer as it streams in; the caller reads it, so nothing but the head is waited for here.
    pub(crate) async fn stream(&self, call: Call) -> Result<Response, ClientError> {
        let patience = self.options.timeout.min(LONGEST);
        let id = request_id();
        let sent = self.send(&call, patience, &id, None);
        let response = tokio::time::timeout(patience, sent)
            .await
            .map_err(|_| ClientError::Slow { url: self.base().clone() })??;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let body = self.body(&call, response).await?;
        Err(self.refused(&call, status, body))
    }

    /// Sends it to the first node that takes a connection. What may have arrived at one is sent to no other.
    async fn send(
        &self,
        call: &Call,
        patience: Duration,
        id: &str,
        timeout: Option<Duration>,
    ) -> Result<Response, ClientError> {
        let mut left = self.bases.len();
        loop {
            let base = self.base().clone();
            let failure = match self.send_to(&base, call, patience, id, timeout).await {
                Ok(response) => return Ok(response),
                Err(failure) => failure,
            };
            left = left.saturating_sub(1);
            let nobody = matches!(&failure, ClientError::Unreachable { source, .. } if source.is_connect());
            if nobody {
                self.move_on(&base);
            }
            if !nobody || left == 0 {
                return Err(failure);
            }
            tracing::debug!(%base, error = %failure, "Nothing answers there; the next one is asked.");
        }
    }

    async fn send_to(
        &self,
        base: &Url,
        call: &Call,
        patience: Duration,
        id: &str,
        timeout: Option<Duration>,
    ) -> Result<Response, ClientError> {
        let seconds = patience.as_millis().div_ceil(1000).max(1);
        let mut request = self
            .http
            .request(call.method.clone(), self.moved(&call.url, base)?)
            .headers(call.headers.clone())
            .header("Netstead-Timeout", seconds.to_string())
            .header("X-Request-Id", id);
        if let Some(timeout) = timeout {
            request = request.timeout(timeout);
        }
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, token);
        }
        if let Some(body) = &call.body {
            request = request.body(body.clone());
        }
        request.send().await.map_err(|error| self.broken(call, error))
    }

    async fn body(&self, call: &Call, response: Response) -> Result<Vec<u8>, ClientError> {
        match read_body(reqwest::Body::from(response), MOST_OF_ANSWER).await {
            Ok(body) => Ok(body),
            Err(BodyError::Broken(error)) => Err(self.broken(call, error)),
            Err(error) if call.writes() => {
                Err(ClientError::Unknown { url: self.base().clone(), reason: error.to_string() })
            }
            Err(error) => Err(ClientError::Foreign { url: self.base().clone(), reason: error.to_string() }),
        }
    }

    /// The error of an answer that did not come whole.
    fn broken(&self, call: &Call, error: reqwest::Error) -> ClientError {
        let url = self.base().clone();
        if error.is_builder() {
            return ClientError::unusable(error.without_url().to_string());
        }
        match tls_error(&error) {
            Some(rustls::Error::InvalidCertificate(reason)) => {
                return ClientError::Untrusted { url, reason: reason.to_string() };
            }
            // Its first bytes are no TLS message.
            Some(rustls::Error::InvalidMessage(_)) => return ClientError::PlainHttp { url },
            _ => {}
        }
        if error.is_connect() {
            return ClientError::Unreachable { url, source: error.without_url() };
        }
        match (call.writes(), error.is_timeout()) {
            (true, true) => ClientError::Unknown { url, reason: "no answer came in time".into() },
            (true, false) => {
                ClientError::Unknown { url, reason: "the connection broke before the answer".into() }
            }
            (false, true) => ClientError::Slow { url },
            (false, false) => ClientError::Unreachable { url, source: error.without_url() },
        }
    }

    /// The error of an answer other than success.
    fn refused(&self, call: &Call, status: StatusCode, body: Vec<u8>) -> ClientError {
        let url = self.base().clone();
        let body = self.redactor.redact_bytes(body);
        let Ok(problem) = serde_json::from_slice::<Problem>(&body).map(Box::new) else {
            let reason = format!("it says {status}");
            return if status.is_server_error() && call.writes() {
                ClientError::Unknown { url, reason: format!("the server says {status}") }
            } else {
                ClientError::Foreign { url, reason }
            };
        };
        match (problem.slug(), status) {
            ("unknown", _) => {
                ClientError::Unknown { url, reason: unknown_outcome::cause(&problem.detail).to_owned() }
            }
            (_, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => ClientError::Denied { url, problem },
            (_, StatusCode::SERVICE_UNAVAILABLE) => ClientError::Unavailable { url, problem },
            _ => ClientError::Refused(problem),
        }
    }
}

/// The error of TLS, if that is what the error is about.
fn tls_error(error: &reqwest::Error) -> Option<&rustls::Error> {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        // An I/O error hides what it is made of from `source`.
        let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        let found =
            inner.and_then(|inner| inner.downcast_ref()).or_else(|| error.downcast_ref::<rustls::Error>());
        if found.is_some() {
            return found;
        }
        cause = match inner {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}

/// Whether all that a look came to is that time is over. Of what changes something, it may say that it goes on.
fn is_late(failure: &ClientError) -> bool {
    matches!(failure, ClientError::Slow { .. }) || failure.is("too-late")
}

fn repeatable(failure: &ClientError, repeat: Repeat) -> bool {
    match failure {
        ClientError::Unreachable { source, .. } => source.is_connect() || repeat != Repeat::Once,
        // The server says that nothing was done.
        ClientError::Unavailable { .. } => true,
        ClientError::Unknown { .. } => repeat == Repeat::Idempotent,
        _ => false,
    }
}

/// Drawn once per call, so its repetitions are one request in the events.
fn request_id() -> String {
    format!("{:016x}", rand::random::<u64>())
}
