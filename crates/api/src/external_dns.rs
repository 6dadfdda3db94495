//! The webhook protocol of external-dns, as a server: external-dns writes its endpoints into a source of the engine.
//!
//! 1. `GET /` gives the domains that are taken. `GET /records` gives all endpoints back as they are held.
//! 2. `POST /adjustendpoints` gives each endpoint in the form in which `GET /records` will list it: otherwise external-dns would
//!    plan the same change for ever.
//! 3. `POST /records` holds the endpoints in the store. 204 means that they are durable; the engine publishes them.
//!
//! Only the leader holds endpoints. A node that follows sends such calls to the leader (`external_dns/to_leader.rs`), where they
//! arrive at `/external-dns/NAME` of the API.
//!
//! external-dns takes 500 to 510 for a failure that passes, and ends its process at any other. So a call for which there is no
//! leader is a 503, and an endpoint that cannot be held is a 500 with the reason, after everything else of the call was taken.

mod to_leader;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, Path},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use jiff::Timestamp;
use netstead_engine::{Pushed, PushedRecord};
use netstead_model::{Clock, Ident, Name};
use netstead_plan::marks::is_mark;
use netstead_wire::external_dns::{Changes, Endpoint, MEDIA_TYPE};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use tracing::warn;

use crate::cluster::{Cluster, EngineSlot, Peers};

/// As many bytes as external-dns itself takes.
const MOST_OF_BODY: usize = 32 << 20;
/// How long a request waits for an engine that is starting, or for a leader: external-dns waits for 15 s.
const PATIENCE: Duration = Duration::from_secs(5);

/// One `[external_dns.NAME]`.
#[derive(Clone)]
pub struct ExternalDnsOptions {
    /// The source that the endpoints become.
    pub source: Ident,
    /// The password that callers send, with any user. Without it every caller is let in.
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

/// All tables `[external_dns.NAME]` of this node. Clones are the same tables.
#[derive(Debug, Clone)]
pub struct ExternalDns(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    engine_slot: EngineSlot,
    cluster: Option<(Cluster, Peers)>,
    clock: Arc<dyn Clock>,
    tables: RwLock<BTreeMap<Ident, Arc<ExternalDnsOptions>>>,
    called: RwLock<BTreeMap<Ident, Timestamp>>,
}

/// A call of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Negotiate,
    Records,
    Adjust,
    Change,
}

/// How a call came to this node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// From external-dns, to the listener of the table.
    Direct,
    /// From another node, to the API: it is not sent on again.
    Forwarded,
}

/// A status and a line for the log of external-dns.
type Refusal = (StatusCode, String);

impl Call {
    /// Its method and the end of its path.
    fn target(self) -> (Method, &'static str) {
        match self {
            Self::Negotiate => (Method::GET, ""),
            Self::Records => (Method::GET, "/records"),
            Self::Adjust => (Method::POST, "/adjustendpoints"),
            Self::Change => (Method::POST, "/records"),
        }
    }
}

impl ExternalDns {
    /// With no table yet. Without a cluster there is no other node to send a call to.
    pub fn new(engine_slot: &EngineSlot, cluster: Option<(&Cluster, &Peers)>, clock: Arc<dyn Clock>) -> Self {
        let cluster = cluster.map(|(cluster, peers)| (cluster.clone(), peers.clone()));
        let (tables, called) = (RwLock::default(), RwLock::default());
        Self(Arc::new(Inner { engine_slot: engine_slot.clone(), cluster, clock, tables, called }))
    }

    /// From now on these are the tables. Listeners that are open go by them with their next call.
    pub fn configure(&self, tables: impl IntoIterator<Item = ExternalDnsOptions>) {
        let tables = tables.into_iter().map(|table| (table.source.clone(), Arc::new(table))).collect();
        *self.0.tables.write().unwrap_or_else(PoisonError::into_inner) = tables;
    }

    /// When external-dns last called with the right token, since this process started.
    pub fn last_call(&self, source: &Ident) -> Option<Timestamp> {
        self.0.called.read().unwrap_or_else(PoisonError::into_inner).get(source).copied()
    }

    fn table(&self, source: &Ident) -> Option<Arc<ExternalDnsOptions>> {
        self.0.tables.read().unwrap_or_else(PoisonError::into_inner).get(source).cloned()
    }

    /// The routes of the listener of one table.
    pub(crate) fn listener_routes(&self, source: &Ident) -> Router {
        let calls = |call: Call| {
            let (own, source) = (self.clone(), source.clone());
            move |headers: HeaderMap, body: Bytes| async move {
                own.serve(&source, call, Way::Direct, &headers, &body).await
            }
        };
        Router::new()
            .route("/", get(calls(Call::Negotiate)))
            .route("/records", get(calls(Call::Records)).post(calls(Call::Change)))
            .route("/adjustendpoints", post(calls(Call::Adjust)))
            .layer(DefaultBodyLimit::max(MOST_OF_BODY))
            .route("/healthz", get(|| async { "ok\n" }))
    }

    /// The routes of the API at which calls of other nodes arrive.
    pub(crate) fn forwarded_routes(&self) -> Router {
        let calls = |call: Call| {
            let own = self.clone();
            move |Path(source): Path<String>, headers: HeaderMap, body: Bytes| async move {
                match source.parse::<Ident>() {
                    Ok(source) => own.serve(&source, call, Way::Forwarded, &headers, &body).await,
                    Err(_) => StatusCode::NOT_FOUND.into_response(),
                }
            }
        };
        Router::new()
            .route("/external-dns/{source}/records", get(calls(Call::Records)).post(calls(Call::Change)))
            .layer(DefaultBodyLimit::max(MOST_OF_BODY))
    }

    async fn serve(
        &self,
        source: &Ident,
        call: Call,
        way: Way,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Response {
        let Some(table) = self.table(source) else {
            let told = format!("[external_dns.{source}] is not in the configuration of this node\n");
            return (StatusCode::SERVICE_UNAVAILABLE, told).into_response();
        };
        if table.token.is_none() && way == Way::Forwarded {
            let told =
                format!("without `token` in [external_dns.{source}] only the leader takes its records\n");
            return (StatusCode::SERVICE_UNAVAILABLE, told).into_response();
        }
        if let Some(refusal) = check_token(&table, headers) {
            return refusal;
        }
        if way == Way::Direct {
            let now = self.0.clock.wall();
            self.0.called.write().unwrap_or_else(PoisonError::into_inner).insert(source.clone(), now);
        }
        match call {
            Call::Negotiate => answer(&Filter { include: &table.domains, exclude: &table.exclude }),
            Call::Adjust => adjust(&table, headers, body),
            Call::Records | Call::Change => match self.pushed(&table, call, way, headers, body).await {
                Ok(pushed) if call == Call::Records => list(&pushed),
                Ok(pushed) => change(&table, &pushed, headers, body).await,
                Err(response) => *response,
            },
        }
    }
}

/// Refuses callers without the token. The stock client sends it as `https://any:TOKEN@host`.
fn check_token(table: &ExternalDnsOptions, headers: &HeaderMap) -> Option<Response> {
    let token = table.token.as_ref()?;
    let sent = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let sent = sent.and_then(|value| value.strip_prefix("Basic "));
    let pair = sent.and_then(|text| data_encoding::BASE64.decode(text.trim().as_bytes()).ok());
    let pair = pair.and_then(|pair| String::from_utf8(pair).ok());
    let password = pair.as_deref().and_then(|pair| pair.split_once(':')).map(|(_, password)| password);
    // Of digests the time of a comparison tells nothing.
    if password.is_some_and(|password| Sha256::digest(password) == Sha256::digest(token)) {
        return None;
    }
    let hint = "the URL needs the token as its password: https://netstead:TOKEN@host:port\n";
    let mut response = (StatusCode::UNAUTHORIZED, hint).into_response();
    let realm = HeaderValue::from_static("Basic realm=\"netstead\"");
    response.headers_mut().insert(header::WWW_AUTHENTICATE, realm);
    Some(response)
}

/// The filter as external-dns reads it.
#[derive(Serialize)]
struct Filter<'a> {
    include: &'a [Name],
    exclude: &'a [Name],
}

fn list(pushed: &Pushed) -> Response {
    let documents: Vec<_> = pushed.list().into_iter().map(|record| record.document).collect();
    answer(&documents)
}

fn adjust(table: &ExternalDnsOptions, headers: &HeaderMap, body: &[u8]) -> Response {
    let endpoints: Option<Vec<Endpoint>> = match read(headers, body) {
        Ok(endpoints) => endpoints,
        Err(refusal) => return refusal.into_response(),
    };
    let source = &table.source;
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

async fn change(table: &ExternalDnsOptions, pushed: &Pushed, headers: &HeaderMap, body: &[u8]) -> Response {
    let changes: Changes = match read(headers, body) {
        Ok(changes) => changes,
        Err(refusal) => return refusal.into_response(),
    };
    let Changes { create, update_old, update_new, delete } = changes;
    if update_old.len() != update_new.len() {
        return (StatusCode::BAD_REQUEST, "updateOld and updateNew are not pairs\n").into_response();
    }
    let (mut removed, mut held, mut refused) = (Vec::new(), Vec::new(), Vec::new());
    removed.extend(delete.iter().chain(&update_old).filter_map(place));
    for endpoint in update_new.iter().chain(&create) {
        match table.record(endpoint) {
            Ok(record) => held.push(record),
            Err(reason) => {
                // What stands there stays, instead of nothing.
                removed.retain(|gone| Some(gone) != place(endpoint).as_ref());
                refused.push(reason);
            }
        }
    }
    if let Err(error) = pushed.change(&removed, held).await {
        warn!(source = %table.source, %error, "Endpoints of external-dns could not be stored.");
        return (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")).into_response();
    }
    if refused.is_empty() {
        return StatusCode::NO_CONTENT.into_response();
    }
    let reasons = refused.join("; ");
    warn!(source = %table.source, reasons, "Endpoints of external-dns are refused; the others are held.");
    (StatusCode::INTERNAL_SERVER_ERROR, format!("{reasons}\n")).into_response()
}

impl ExternalDnsOptions {
    /// The record that an endpoint is held as.
    fn record(&self, endpoint: &Endpoint) -> Result<PushedRecord, String> {
        let (held, set) = endpoint.normalised()?;
        let below = |domain: &Name| set.name.is_subdomain_of(domain);
        let Self { source, domains, exclude, .. } = self;
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
