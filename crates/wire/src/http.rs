//! [`Http`]: one server's HTTP API.
//!
//! Every call ends in time and reads a bounded answer. Only what may be sent twice is sent twice. No secret of ours leaves
//! this module but to its server: what a server echoes is redacted before anyone sees it.
//!
//! ```no_run
//! use netstead_settings::{BuildContext, Secret, SettingsError};
//! use netstead_wire::{Tls, http::{Http, HttpError, path}};
//!
//! #[derive(serde::Deserialize)]
//! struct Zone {
//!     id: String,
//! }
//!
//! fn open(url: &str, tls: &Tls, token: &Secret, context: &BuildContext) -> Result<Http, SettingsError> {
//!     let token = token.reveal(context).map_err(|problem| SettingsError::new("token", problem))?;
//!     Http::open(url, tls, context)?.bearer("token", &token)
//! }
//!
//! async fn rename(http: &Http, zone: &str, to: &str) -> Result<Option<Zone>, HttpError> {
//!     let path = path(&["zones", zone]);
//!     // A read: asked again when no answer comes. 404 is `None`.
//!     let Some(_) = http.get(&path).query(&[("full", "1")]).find::<Zone>().await? else { return Ok(None) };
//!     // A change: sent once. `HttpError::Unknown` when its answer is lost.
//!     http.patch(&path).json(&serde_json::json!({ "name": to })).read().await.map(Some)
//! }
//! ```
//!
//! - `http/request.rs`: one request, its repetitions, its outcome. `http/reply.rs`: an answer. `http/error.rs`: one variant
//!   per thing the caller does next; converts into [`netstead_model::ProviderError`].
//! - `http/client.rs`: makes the client under [`Http`], and under the two callers that judge answers by rules of their own: the
//!   client of Netstead's API and the forwarding between nodes. `http/endpoint.rs`: one URL instead of an API.
//! - `http/base_url.rs`: addresses, also `unix:///run/server.sock`. `http/retry_after.rs`: how long a busy server asks to wait.
//! - [`Tls`]: the keys of TLS for the table of a kind: `tls: Tls, all;`.

mod base_url;
mod client;
mod endpoint;
mod error;
mod reply;
mod request;
mod retry_after;

use std::{fmt, sync::Arc, time::Duration};

use netstead_model::{CallObserver, Clock};
use netstead_settings::{BuildContext, SecretValue, SettingsError};
use reqwest::{
    Url,
    header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue},
};

use self::base_url::BaseUrl;
use crate::{MOST_OF_ANSWER, Redactor, Tls};

pub use self::{
    base_url::{check_url, path},
    client::ClientSettings,
    endpoint::Endpoint,
    error::HttpError,
    reply::Reply,
    request::{Effect, Request},
    retry_after::LONGEST_RETRY_AFTER,
};
pub use reqwest::{Method, StatusCode};

/// How long one request may take, from connecting to the last byte of its answer.
const WHOLE: Duration = Duration::from_secs(30);

/// A part of a [`BuildContext`]: no request takes longer than this, whatever a table or a provider says.
#[derive(Debug, Clone, Copy)]
pub struct LongestRequest(pub Duration);

/// One server's HTTP API. Clones share its connections.
#[derive(Clone)]
pub struct Http {
    client: reqwest::Client,
    base: Url,
    /// The address for people.
    server: String,
    headers: HeaderMap,
    /// Knows the secrets that are sent.
    redactor: Redactor,
    timeout: Duration,
    longest: Duration,
    limit: usize,
    observer: Arc<dyn CallObserver>,
    clock: Arc<dyn Clock>,
}

impl Http {
    /// Reads the files of `tls`. The server itself is asked later.
    pub fn open(url: &str, tls: &Tls, context: &BuildContext) -> Result<Self, SettingsError> {
        let BaseUrl { base, server, socket } = base_url::parse(url)?;
        let tls = (base.scheme() == "https").then_some(tls);
        let client = ClientSettings { socket, tls, ..ClientSettings::default() }.build()?;
        let longest = context.part::<LongestRequest>().map_or(Duration::MAX, |longest| longest.0);
        Ok(Self {
            client,
            base,
            server,
            headers: HeaderMap::new(),
            redactor: Redactor::default(),
            timeout: WHOLE.min(longest),
            longest,
            limit: MOST_OF_ANSWER,
            observer: Arc::clone(&context.calls),
            clock: Arc::clone(&context.clock),
        })
    }

    /// How long one request may take, repetitions apart. 30 s unless set.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout: timeout.min(self.longest), ..self }
    }

    /// The most bytes of an answer that are read. 256 MiB unless set.
    #[must_use]
    pub fn limit(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// Sends a header with every request. `key` is the setting it comes from.
    pub fn header(
        mut self,
        name: &'static str,
        key: &'static str,
        value: &str,
    ) -> Result<Self, SettingsError> {
        self.headers.insert(HeaderName::from_static(name), header_value(key, value)?);
        Ok(self)
    }

    /// Sends `secret` as the header `name` with every request. `key` is the setting it comes from.
    pub fn secret_header(
        self,
        name: &'static str,
        key: &'static str,
        secret: &SecretValue,
    ) -> Result<Self, SettingsError> {
        self.prefixed_secret(HeaderName::from_static(name), "", key, secret)
    }

    /// As [`Http::secret_header`], with a header that a setting names: `name_key` is its key.
    pub fn named_secret_header(
        self,
        name_key: &'static str,
        name: &str,
        key: &'static str,
        secret: &SecretValue,
    ) -> Result<Self, SettingsError> {
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| SettingsError::new(name_key, format!("`{name}` is no name of a header")))?;
        self.prefixed_secret(name, "", key, secret)
    }

    /// Sends `Authorization: Bearer SECRET` with every request.
    pub fn bearer(self, key: &'static str, secret: &SecretValue) -> Result<Self, SettingsError> {
        self.authorization("Bearer ", key, secret)
    }

    /// Sends `Authorization: PREFIXSECRET` with every request: `Token `, `PVEAPIToken=`.
    pub fn authorization(
        self,
        prefix: &str,
        key: &'static str,
        secret: &SecretValue,
    ) -> Result<Self, SettingsError> {
        self.prefixed_secret(AUTHORIZATION, prefix, key, secret)
    }

    /// Sends user and password with every request.
    pub fn basic_auth(self, user: &str, password: &SecretValue) -> Result<Self, SettingsError> {
        self.credentials(user, password.expose())
    }

    fn credentials(mut self, user: &str, password: &str) -> Result<Self, SettingsError> {
        let pair = data_encoding::BASE64.encode(format!("{user}:{password}").as_bytes());
        let mut value = header_value("password", &format!("Basic {pair}"))?;
        value.set_sensitive(true);
        self.headers.insert(AUTHORIZATION, value);
        self.redactor = self.redactor.and(&pair).and(password);
        Ok(self)
    }

    /// Removes `secret` from everything the server says. For secrets that are sent in a form or a query.
    #[must_use]
    pub fn redacting(mut self, secret: &SecretValue) -> Self {
        self.redactor = self.redactor.and(secret.expose());
        self
    }

    fn prefixed_secret(
        mut self,
        name: HeaderName,
        prefix: &str,
        key: &'static str,
        secret: &SecretValue,
    ) -> Result<Self, SettingsError> {
        let mut value = header_value(key, &format!("{prefix}{}", secret.expose()))?;
        value.set_sensitive(true);
        self.headers.insert(name, value);
        Ok(self.redacting(secret))
    }

    /// The address of the server, for people.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// A read. `path` begins with `/` and lies below the path of the address.
    pub fn get(&self, path: &str) -> Request<'_> {
        self.request(Method::GET, path)
    }

    pub fn post(&self, path: &str) -> Request<'_> {
        self.request(Method::POST, path)
    }

    pub fn put(&self, path: &str) -> Request<'_> {
        self.request(Method::PUT, path)
    }

    pub fn patch(&self, path: &str) -> Request<'_> {
        self.request(Method::PATCH, path)
    }

    pub fn delete(&self, path: &str) -> Request<'_> {
        self.request(Method::DELETE, path)
    }

    pub fn request(&self, method: Method, path: &str) -> Request<'_> {
        Request::new(self, method, path)
    }

    /// An answer that makes no sense to the caller.
    pub fn malformed(&self, reason: impl AsRef<str>) -> HttpError {
        HttpError::Malformed { server: self.server.clone(), reason: self.shown(reason.as_ref()) }
    }

    fn shown(&self, reason: &str) -> String {
        self.redactor.redact(reason).into_owned()
    }
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").field("server", &self.server).finish_non_exhaustive()
    }
}

fn header_value(key: &'static str, value: &str) -> Result<HeaderValue, SettingsError> {
    HeaderValue::from_str(value)
        .map_err(|_| SettingsError::new(key, "it has characters that cannot stand in a header"))
}
