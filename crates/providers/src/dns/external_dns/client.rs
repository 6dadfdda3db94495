//! The four calls of the protocol.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use netstead_model::ProviderError;
use netstead_wire::{
    external_dns::{Changes, Endpoint, MEDIA_TYPE},
    http::{Effect, Http, Reply, Request, StatusCode},
};
use serde::de::DeserializeOwned;

use super::{Config, DomainFilter, domain_filter::Written, listed::Listed};
use crate::{BuildContext, SettingsError, dns::refused_login::RefusedLogin};

/// Endpoints in one call of `adjustendpoints`.
const MOST_ADJUSTED: usize = 1_000;

pub(super) struct Client {
    http: Http,
    refused: RefusedLogin,
    /// From the negotiation. Asked for again after any failure: the provider may be another one then.
    filter: Mutex<Option<Arc<DomainFilter>>>,
}

impl Client {
    pub(super) fn open(config: &Config, context: &BuildContext) -> Result<Self, SettingsError> {
        let mut http = Http::open(&config.url, &config.tls, context)?.timeout(config.timeout.into());
        if let (Some(user), Some(password)) = (&config.user, &config.password) {
            let password =
                password.reveal(context).map_err(|problem| SettingsError::new("password", problem))?;
            http = http.basic_auth(user, &password)?;
        }
        let refused = RefusedLogin::new(Arc::clone(&context.clock));
        Ok(Self { http, refused, filter: Mutex::default() })
    }

    pub(super) fn server(&self) -> String {
        self.http.server().to_owned()
    }

    fn known_filter(&self) -> MutexGuard<'_, Option<Arc<DomainFilter>>> {
        self.filter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn send(&self, request: Request<'_>) -> Result<Reply, ProviderError> {
        self.refused.check()?;
        request.send().await.map_err(|error| {
            *self.known_filter() = None;
            self.refused.remember(error.into())
        })
    }

    fn malformed(&self, reason: impl AsRef<str>) -> ProviderError {
        *self.known_filter() = None;
        self.http.malformed(reason).into()
    }

    fn odd(&self, reply: &Reply) -> ProviderError {
        self.malformed(format!("it answers {}: {}", reply.status, reply.text()))
    }

    fn json<T: DeserializeOwned>(&self, reply: &Reply) -> Result<T, ProviderError> {
        reply.json().map_err(|error| self.malformed(format!("not its JSON: {error}")))
    }

    /// The names that the provider takes.
    pub(super) async fn filter(&self) -> Result<Arc<DomainFilter>, ProviderError> {
        if let Some(filter) = &*self.known_filter() {
            return Ok(Arc::clone(filter));
        }
        let reply = self.send(self.http.get("").header("accept", MEDIA_TYPE).operation("negotiate")).await?;
        if !reply.is_success() {
            return Err(self.odd(&reply));
        }
        let spoken = reply.header("content-type").unwrap_or_default();
        if !speaks_version_one(spoken) {
            let reason = format!(
                "it speaks `{spoken}` and not `{MEDIA_TYPE}`: is it a webhook provider of external-dns?"
            );
            return Err(self.malformed(reason));
        }
        let filter = DomainFilter::new(self.json::<Option<Written>>(&reply)?.unwrap_or_default());
        let filter = Arc::new(filter.map_err(|problem| self.malformed(problem))?);
        *self.known_filter() = Some(Arc::clone(&filter));
        Ok(filter)
    }

    /// Everything that the provider holds.
    pub(super) async fn records(&self) -> Result<Listed, ProviderError> {
        let request = self.http.get("/records").header("accept", MEDIA_TYPE).operation("list");
        let reply = self.send(request).await?;
        if reply.status != StatusCode::OK {
            return Err(self.odd(&reply));
        }
        Ok(Listed::new(self.json::<Option<Vec<Endpoint>>>(&reply)?.unwrap_or_default()))
    }

    /// Asks for the form in which the provider would hold these.
    pub(super) async fn adjust(&self, endpoints: &[Endpoint]) -> Result<Vec<Endpoint>, ProviderError> {
        let mut adjusted = Vec::with_capacity(endpoints.len());
        for part in endpoints.chunks(MOST_ADJUSTED) {
            let body = serde_json::to_vec(part).map_err(|error| self.malformed(error.to_string()))?;
            let request = self.http.post("/adjustendpoints").header("accept", MEDIA_TYPE);
            let request = request.body(MEDIA_TYPE, body).effect(Effect::Read).operation("adjust");
            let reply = self.send(request).await?;
            if reply.status != StatusCode::OK {
                return Err(self.odd(&reply));
            }
            adjusted.extend(self.json::<Option<Vec<Endpoint>>>(&reply)?.unwrap_or_default());
        }
        Ok(adjusted)
    }

    /// Sends changes. The inner error is why the provider refuses them; some of them may have been carried out.
    pub(super) async fn change(&self, changes: &Changes) -> Result<Result<(), String>, ProviderError> {
        let body = serde_json::to_vec(changes).map_err(|error| self.malformed(error.to_string()))?;
        let request = self.http.post("/records").body(MEDIA_TYPE, body).operation("change").judging_errors();
        let reply = self.send(request).await?;
        match reply.status {
            status if status.is_success() => Ok(Ok(())),
            StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => Err(self.odd(&reply)),
            status => {
                let text = reply.text();
                let reason = if text.is_empty() {
                    format!("it answers {status} and gives no reason; its log has one")
                } else {
                    format!("it answers {status}: {text}")
                };
                Ok(Err(reason))
            }
        }
    }
}

/// Other blanks and parameters do no harm.
fn speaks_version_one(spoken: &str) -> bool {
    let mut parts = spoken.split(';').map(str::trim);
    parts.next() == Some("application/external.dns.webhook+json") && parts.any(|part| part == "version=1")
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("http", &self.http).finish_non_exhaustive()
    }
}
