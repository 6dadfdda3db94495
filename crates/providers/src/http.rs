//! HTTP as providers use it: every call ends in time, only reads are repeated, and no secret leaves but to the server.

mod tls;

use std::{borrow::Cow, fmt, sync::Arc, time::Duration};

use netstead_model::{Clock, ProviderError};
use netstead_wire::{BodyError, MOST_OF_ANSWER, Redactor, read_body};
use reqwest::{
    Method, StatusCode, Url,
    header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER},
};
use serde::{Serialize, de::DeserializeOwned};

use netstead_settings::SecretValue;

use crate::{Call, CallObserver, Outcome, SettingsError};

pub use self::tls::Tls;

const CONNECT: Duration = Duration::from_secs(5);
const WHOLE: Duration = Duration::from_secs(30);
const READ_ATTEMPTS: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// How much of an answer is worth showing in an error.
const SHOWN: usize = 300;

/// How long a call may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeouts {
    pub(crate) connect: Duration,
    pub(crate) whole: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect: CONNECT, whole: WHOLE }
    }
}

/// One server's HTTP API.
#[derive(Clone)]
pub(crate) struct Http {
    client: reqwest::Client,
    base: Url,
    server: String,
    headers: HeaderMap,
    /// Knows the secrets among the headers: nothing that the server says is shown before it has passed here.
    redactor: Redactor,
    observer: Arc<dyn CallObserver>,
    clock: Arc<dyn Clock>,
}

/// An answer whose status the provider understands better than we do. One that is no success holds no secret of ours.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// The body as text, short enough for an error.
    pub(crate) fn text(&self) -> String {
        let text = String::from_utf8_lossy(&self.body);
        text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(SHOWN).collect()
    }
}

impl Http {
    pub(crate) fn new(
        url: &str,
        tls: &Tls,
        patience: Timeouts,
        observer: Arc<dyn CallObserver>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, SettingsError> {
        let base = base(url)?;
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("netstead/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(patience.connect)
            .timeout(patience.whole)
            .tcp_nodelay(true)
            // A secret follows no redirect.
            .redirect(reqwest::redirect::Policy::none());
        builder = if base.scheme() == "https" {
            builder.tls_backend_preconfigured(tls.client_config()?)
        } else {
            // Without this a machine that has no certificates at all could not even speak plain HTTP.
            builder.tls_certs_only([])
        };
        let client = builder
            .build()
            .map_err(|error| SettingsError::new("url", format!("the HTTP client cannot start: {error}")))?;
        let server = base.as_str().trim_end_matches('/').to_owned();
        let (headers, redactor) = (HeaderMap::new(), Redactor::default());
        Ok(Self { client, base, server, headers, redactor, observer, clock })
    }

    /// Sends `secret` as the header `name` with every request.
    pub(crate) fn secret_header(
        mut self,
        name: &'static str,
        key: &'static str,
        secret: &SecretValue,
    ) -> Result<Self, SettingsError> {
        let mut value = HeaderValue::from_str(secret.expose())
            .map_err(|_| SettingsError::new(key, "it has characters that cannot stand in a header"))?;
        value.set_sensitive(true);
        self.headers.insert(HeaderName::from_static(name), value);
        self.redactor = Redactor::new([secret.expose()]);
        Ok(self)
    }

    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    /// Reads JSON. Where no answer comes it asks again, a few times.
    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<Result<T, Reply>, ProviderError> {
        let mut pause = FIRST_PAUSE;
        for attempt in 1.. {
            match self.send(Method::GET, path, query, None).await {
                Ok(reply) if reply.status.is_success() => return self.json(&reply).map(Ok),
                Ok(reply) => return Ok(Err(reply)),
                Err(error @ ProviderError::Unreachable { .. }) if attempt < READ_ATTEMPTS => {
                    tracing::debug!(server = self.server, %error, retry_in = ?pause, "Read is repeated.");
                    tokio::time::sleep(pause).await;
                    pause = pause.saturating_mul(2);
                }
                Err(error) => return Err(error),
            }
        }
        Err(self.unreachable("it was asked too often".to_owned()))
    }

    /// Sends a change, once.
    pub(crate) async fn change(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<Reply, ProviderError> {
        let body = serde_json::to_vec(body).map_err(|error| self.malformed(error.to_string()))?;
        self.send(method, path, &[], Some(body)).await
    }

    /// One request. What every server means alike is an error here; the rest is for the provider to judge.
    async fn send(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: Option<Vec<u8>>,
    ) -> Result<Reply, ProviderError> {
        let operation = operation(&method);
        let begun = self.clock.monotonic();
        let outcome = self.attempt(method, path, query, body).await;
        let how = match &outcome {
            Ok(reply) if reply.status.is_success() => Outcome::Answered,
            Ok(_) | Err(ProviderError::Denied { .. } | ProviderError::Busy { .. }) => Outcome::Refused,
            Err(_) => Outcome::Failed,
        };
        let took = self.clock.monotonic().saturating_sub(begun);
        self.observer.called(Call { operation, outcome: how, took });
        outcome
    }

    async fn attempt(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: Option<Vec<u8>>,
    ) -> Result<Reply, ProviderError> {
        let mut url = self.base.clone();
        url.set_path(&format!("{}{path}", self.base.path().trim_end_matches('/')));
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let writes = body.is_some();
        let mut request = self.client.request(method, url).headers(self.headers.clone());
        if let Some(body) = body {
            request = request.header("Content-Type", "application/json").body(body);
        }
        let lost = |error: reqwest::Error| self.lost(writes, error);
        let response = request.send().await.map_err(lost)?;
        let status = response.status();
        let retry_after = retry_after(response.headers());
        let body = match read_body(reqwest::Body::from(response), MOST_OF_ANSWER).await {
            Ok(body) if status.is_success() => body,
            Ok(body) => self.redactor.redact_bytes(body),
            Err(BodyError::Broken(error)) => return Err(lost(error)),
            Err(error) if writes => return Err(self.unknown(error.to_string())),
            Err(error) => return Err(self.malformed(error.to_string())),
        };
        let reply = Reply { status, body };
        let reason = || format!("it answers {status}: {}", reply.text());
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                Err(ProviderError::Denied { server: self.server.clone(), reason: reason() })
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                Err(ProviderError::Busy { server: self.server.clone(), retry_after })
            }
            status if status.is_server_error() && writes => Err(self.unknown(reason())),
            status if status.is_server_error() => Err(self.unreachable(reason())),
            status if status.is_redirection() => Err(self.malformed(format!(
                "it answers {status} and points elsewhere; give the address it points to"
            ))),
            _ => Ok(reply),
        }
    }

    fn json<T: DeserializeOwned>(&self, reply: &Reply) -> Result<T, ProviderError> {
        serde_json::from_slice(&reply.body).map_err(|error| self.malformed(format!("not its JSON: {error}")))
    }

    /// What it means that no whole answer came: a request that never left changed nothing.
    fn lost(&self, writes: bool, error: reqwest::Error) -> ProviderError {
        let sent = !error.is_connect() && !error.is_builder();
        let late = if error.is_timeout() { "no answer in time: " } else { "" };
        // The URL is ours to name; what hides below the first line is what people need.
        let error = error.without_url();
        let mut reason = format!("{late}{error}");
        let mut below = std::error::Error::source(&error);
        while let Some(cause) = below {
            reason = format!("{reason}: {cause}");
            below = cause.source();
        }
        if writes && sent { self.unknown(reason) } else { self.unreachable(reason) }
    }

    pub(crate) fn unreachable(&self, reason: String) -> ProviderError {
        ProviderError::Unreachable { server: self.server.clone(), reason: self.shown(reason) }
    }

    pub(crate) fn unknown(&self, reason: String) -> ProviderError {
        ProviderError::Unknown { server: self.server.clone(), reason: self.shown(reason) }
    }

    pub(crate) fn malformed(&self, reason: String) -> ProviderError {
        ProviderError::Malformed { server: self.server.clone(), reason: self.shown(reason) }
    }

    fn shown(&self, reason: String) -> String {
        match self.redactor.redact(&reason) {
            Cow::Owned(redacted) => redacted,
            Cow::Borrowed(_) => reason,
        }
    }
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").field("server", &self.server).finish_non_exhaustive()
    }
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

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

pub(crate) fn base(text: &str) -> Result<Url, SettingsError> {
    let wrong = |problem: String| SettingsError::new("url", problem);
    let url = Url::parse(text).map_err(|error| wrong(format!("`{text}` is no URL: {error}")))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("a secret does not belong in it".into()));
    }
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong(format!("`{text}` begins with neither `http://` nor `https://`")));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong(format!("leave out what follows `?` or `#` in `{text}`")));
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_with_a_secret_is_refused_without_showing_it() {
        let error = base("http://me:hunter2@ns1:8081").unwrap_err();
        assert_eq!(error.to_string(), "url: a secret does not belong in it");
        assert!(base("ftp://ns1").is_err() && base("http://ns1/?key=1").is_err());
        assert!(base("https://ns1.example.net:8081/pdns").is_ok());
    }
}
