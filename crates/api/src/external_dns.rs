//! The webhook protocol of external-dns, as a server: external-dns writes its endpoints into a source of the engine.
//!
//! 1. `GET /` gives the domains that are taken. `GET /records` gives all endpoints back as they are held.
//! 2. `POST /adjustendpoints` gives each endpoint in the form in which `GET /records` will list it: otherwise external-dns would
//!    plan the same change for ever.
//! 3. `POST /records` holds the endpoints in the store. 204 means that they are durable; the engine publishes them.
//!
//! external-dns takes 500 to 510 for a failure that passes, and ends its process at any other. So a node that does not lead
//! answers 503, and an endpoint that cannot be held is a 500 with the reason, after everything else of the call was taken.

use std::{fmt, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use netstead_engine::{Pushed, PushedRecord};
use netstead_model::{Ident, Name};
use netstead_plan::marks::is_mark;
use netstead_wire::external_dns::{Changes, Endpoint, MEDIA_TYPE};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use tracing::warn;

use crate::cluster::EngineSlot;

/// As many bytes as external-dns itself takes.
const MOST_OF_BODY: usize = 32 << 20;
/// How long a request waits for an engine that is starting: external-dns waits for 15 s.
const PATIENCE: Duration = Duration::from_secs(5);

/// One `[external_dns.NAME]`.
#[derive(Clone)]
pub struct ExternalDnsOptions {
    /// The source that the endpoints become.
    pub source: Ident,
    /// The password that callers send, with any user. Without it everybody is let in.
    pub token: Option<String>,
    /// Names at or below these are taken.
    pub domains: Vec<Name>,
    /// Names at or below these are not.
    pub exclude: Vec<Name>,
}

impl fmt::Debug for ExternalDnsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExternalDnsOptions").field("source", &self.source).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Webhook {
    options: ExternalDnsOptions,
    engine_slot: EngineSlot,
}

type WebhookState = Arc<Webhook>;

/// A status and a line for the log of external-dns.
type Refusal = (StatusCode, String);

/// All routes of one listener.
pub(crate) fn router(options: ExternalDnsOptions, engine_slot: EngineSlot) -> Router {
    let state = Arc::new(Webhook { options, engine_slot });
    Router::new()
        .route("/", get(negotiate))
        .route("/records", get(records).post(change))
        .route("/adjustendpoints", post(adjust))
        .layer(DefaultBodyLimit::max(MOST_OF_BODY))
        .layer(middleware::from_fn_with_state(Arc::clone(&state), check_token))
        .route("/healthz", get(|| async { "ok\n" }))
        .with_state(state)
}

/// Refuses callers without the token. The stock client sends it as `https://any:TOKEN@host`.
async fn check_token(State(webhook): State<WebhookState>, request: Request, next: Next) -> Response {
    let Some(token) = &webhook.options.token else { return next.run(request).await };
    let sent = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let sent = sent.and_then(|value| value.strip_prefix("Basic "));
    let pair = sent.and_then(|text| data_encoding::BASE64.decode(text.trim().as_bytes()).ok());
    let pair = pair.and_then(|pair| String::from_utf8(pair).ok());
    let password = pair.as_deref().and_then(|pair| pair.split_once(':')).map(|(_, password)| password);
    // Of digests the time of a comparison tells nothing.
    if password.is_some_and(|password| Sha256::digest(password) == Sha256::digest(token)) {
        return next.run(request).await;
    }
    let hint = "the URL needs the token as its password: https://netstead:TOKEN@host:port\n";
    let mut response = (StatusCode::UNAUTHORIZED, hint).into_response();
    let realm = HeaderValue::from_static("Basic realm=\"netstead\"");
    response.headers_mut().insert(header::WWW_AUTHENTICATE, realm);
    response
}

/// The filter as external-dns reads it.
#[derive(Serialize)]
struct Filter<'a> {
    include: &'a [Name],
    exclude: &'a [Name],
}

async fn negotiate(State(webhook): State<WebhookState>) -> Response {
    let ExternalDnsOptions { domains, exclude, .. } = &webhook.options;
    answer(&Filter { include: domains, exclude })
}

async fn records(State(webhook): State<WebhookState>) -> Response {
    match webhook.pushed().await {
        Ok(pushed) => {
            let documents: Vec<_> = pushed.list().into_iter().map(|record| record.document).collect();
            answer(&documents)
        }
        Err(refusal) => refusal.into_response(),
    }
}

async fn adjust(State(webhook): State<WebhookState>, headers: HeaderMap, body: Bytes) -> Response {
    let endpoints: Option<Vec<Endpoint>> = match read(&headers, &body) {
        Ok(endpoints) => endpoints,
        Err(refusal) => return refusal.into_response(),
    };
    let source = &webhook.options.source;
    let held = |endpoint: Endpoint| match endpoint.normalised() {
        Ok((held, _)) => Some(held),
        Err(reason) => {
            warn!(%source, reason, "An endpoint of external-dns cannot be held and is left out.");
            None
        }
    };
    let adjusted: Vec<Endpoint> = endpoints.into_iter().flatten().filter_map(held).collect();
    answer(&adjusted)
}

async fn change(State(webhook): State<WebhookState>, headers: HeaderMap, body: Bytes) -> Response {
    let changes: Changes = match read(&headers, &body) {
        Ok(changes) => changes,
        Err(refusal) => return refusal.into_response(),
    };
    let Changes { create, update_old, update_new, delete } = changes;
    if update_old.len() != update_new.len() {
        return (StatusCode::BAD_REQUEST, "updateOld and updateNew are not pairs\n").into_response();
    }
    let pushed = match webhook.pushed().await {
        Ok(pushed) => pushed,
        Err(refusal) => return refusal.into_response(),
    };
    let (mut removed, mut held, mut refused) = (Vec::new(), Vec::new(), Vec::new());
    removed.extend(delete.iter().chain(&update_old).filter_map(place));
    for endpoint in update_new.iter().chain(&create) {
        match webhook.record(endpoint) {
            Ok(record) => held.push(record),
            Err(reason) => {
                // What stands there stays, instead of nothing.
                removed.retain(|gone| Some(gone) != place(endpoint).as_ref());
                refused.push(reason);
            }
        }
    }
    if let Err(error) = pushed.change(&removed, held).await {
        warn!(source = %webhook.options.source, %error, "Endpoints of external-dns could not be stored.");
        return (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")).into_response();
    }
    if refused.is_empty() {
        return StatusCode::NO_CONTENT.into_response();
    }
    let reasons = refused.join("; ");
    warn!(source = %webhook.options.source, reasons, "Endpoints of external-dns are refused; the others are held.");
    (StatusCode::INTERNAL_SERVER_ERROR, format!("{reasons}\n")).into_response()
}

impl Webhook {
    /// The endpoints, if this node leads.
    async fn pushed(&self) -> Result<Pushed, Refusal> {
        let engine = self.engine_slot.await_engine(PATIENCE).await;
        engine.and_then(|engine| engine.pushed(&self.options.source)).ok_or_else(|| {
            let reason = "this node does not lead; another one takes the records\n";
            (StatusCode::SERVICE_UNAVAILABLE, reason.to_owned())
        })
    }

    /// The record that an endpoint is held as.
    fn record(&self, endpoint: &Endpoint) -> Result<PushedRecord, String> {
        let (held, set) = endpoint.normalised()?;
        let below = |domain: &Name| set.name.is_subdomain_of(domain);
        let ExternalDnsOptions { source, domains, exclude, .. } = &self.options;
        if !domains.iter().any(below) || exclude.iter().any(below) {
            return Err(format!("`{}` is outside the domains of [external_dns.{source}]", set.name));
        }
        if is_mark(set.name.as_str()).is_some() {
            return Err(format!("`{}` is the name of a mark that only Netstead itself writes", set.name));
        }
        let reason = match held.labels.get("resource") {
            Some(resource) => format!("endpoint of external-dns for {resource}"),
            None => "endpoint of external-dns".to_owned(),
        };
        let document = serde_json::to_value(&held).map_err(|error| error.to_string())?;
        let (name, kind) = (set.name.clone(), set.kind.to_string());
        // Its own ownership records mean nothing to others.
        let set = (!held.is_of_registry()).then_some(set);
        Ok(PushedRecord { name, kind, set, reason, document })
    }
}

/// The place of an endpoint, if it can have one.
fn place(endpoint: &Endpoint) -> Option<String> {
    let (name, kind) = endpoint.key()?;
    Some(PushedRecord::place(&name, kind.as_str()))
}

/// The JSON of a request with the right media type.
fn read<T: serde::de::DeserializeOwned>(headers: &HeaderMap, body: &[u8]) -> Result<T, Refusal> {
    if headers.get(header::CONTENT_TYPE).is_none_or(|value| value.as_bytes() != MEDIA_TYPE.as_bytes()) {
        let wanted = format!("the content type must be {MEDIA_TYPE}\n");
        return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, wanted));
    }
    serde_json::from_slice(body)
        .map_err(|error| (StatusCode::BAD_REQUEST, format!("not its JSON: {error}\n")))
}

/// An answer with the exact media type: the stock client refuses any other, also one with more parameters.
fn answer(value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(body) => ([(header::CONTENT_TYPE, MEDIA_TYPE)], body).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}
