//! Sends requests that only the leader can answer to the leader: once, with the caller's own token.
//!
//! A write must not be done twice, and its caller must not be told that nothing happened when it may have happened:
//!
//! 1. A client sends `PUT /api/v1/pools/lan/claims/web` to node B, which follows. B believes that A leads.
//! 2. B sends the request to A, with the header `netstead-forwarded`. A node never forwards such a request again, so two
//!    nodes that take each other for the leader make no loop.
//! 3. One of these happens:
//!    - A answers. B passes the answer on.
//!    - There is no connection to A, so nothing was sent. B waits for a leader and goes back to step 2, for at most 10 s, or
//!      2 s while the store is away. Then it answers 503 `no-leader`.
//!    - A answers with the header `netstead-not-leading`: A began nothing. B does the same as without a connection.
//!    - The connection breaks, or no answer comes in time, or the leader changes and A has not answered 500 ms later. The
//!      request may have been done. B does not send it again: it answers *unknown*, and the client asks again with the same
//!      key, which gives the same address.
//! 4. If B itself comes to lead while it waits, it answers the request itself.
//!
//! A read has nothing to do twice, so instead of *unknown* it gets 503. The leader checks the caller's token like any other,
//! so a node that forwards grants no rights.

use std::time::Duration;

use axum::{
    body::{Body, Bytes},
    extract::{MatchedPath, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header, request::Parts},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use futures::StreamExt as _;
use netstead_ledger::LedgerError;
use netstead_model::Span;
use netstead_store::{Health, Membership};
use netstead_wire::{BodyError, read_body};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::{
    body,
    envelope::{REQUEST_ID, RequestInfo},
    session::{LAST_MOMENT, RequestContext, TIMEOUT, time_left},
};
use crate::{
    app::{App, AppState},
    cluster::{Cluster, Leader, NodeRole, Peers},
    problem::Failure,
};

/// The node that forwarded a request. A request with this header is not forwarded again.
pub(crate) const FORWARDED: HeaderName = HeaderName::from_static("netstead-forwarded");

/// Marks the answer of a node that does not lead and has done nothing: another node may be asked.
pub(crate) const NOT_LEADING: HeaderName = HeaderName::from_static("netstead-not-leading");

/// How long a request waits for a leader: about as long as a change of leader takes…
const PATIENCE: Duration = Duration::from_secs(10);
/// …and how long while the store cannot be reached, since waiting does not help then.
const SHORT: Duration = Duration::from_secs(2);
/// The most of what a leader adds to an answer of ours, in bytes.
const MOST_OF_LEADER: usize = 64 << 20;
/// The pause before a leader that cannot be reached is tried again.
const AGAIN: Duration = Duration::from_millis(100);
/// How long the answer may be on its way back after the leader's own deadline.
const GRACE: Duration = Duration::from_secs(2);
/// How long a former leader may take to answer what it was asked before: a leader that hands over ends its work first.
const STILL: Duration = Duration::from_millis(500);

/// Routes that only the leader's engine can answer, whatever the method. All other reads are answered by this node.
pub(crate) const OF_THE_ENGINE: [&str; 12] = [
    "/api/v1/sources",
    "/api/v1/providers",
    "/api/v1/workloads",
    "/api/v1/zones",
    "/api/v1/names/{name}",
    "/api/v1/plans",
    "/api/v1/plans/{provider}",
    "/api/v1/plans/{provider}/case",
    "/api/v1/changes",
    "/api/v1/records",
    "/api/v1/drift",
    "/api/v1/drift/ignored",
];
/// The stream of events. Only the leader can add the events of its engine, which `engine=true` asks for.
const STREAM: &str = "/api/v1/events/stream";
/// How long a forwarded stream may last; its reader comes again then.
const LONGEST_STREAM: Duration = Duration::from_hours(24);
/// Routes that change nothing and need no engine, although they are not `GET`.
const READS: [&str; 1] = ["/api/v1/check"];

/// First parts of paths whose changes need no engine.
const OF_THE_LEDGER: [&str; 8] =
    ["pools", "claims", "bulk", "observations", "tokens", "cluster", "session", "sessions"];

/// The hint for a certificate of another node that is not trusted.
const DISTRUST: &str = "`[api] peer_ca_file` of this node names who signed the certificates of the others";

/// Headers of one connection (RFC 9110, 7.6.1), and headers that are set again for the next connection.
const OF_THE_CONNECTION: [HeaderName; 9] = [
    header::CONNECTION,
    header::HOST,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::TE,
    header::TRAILER,
    header::UPGRADE,
    header::EXPECT,
    HeaderName::from_static("keep-alive"),
];

/// Answers the requests that this node can answer, and forwards the others to the leader.
pub(crate) async fn to_leader(State(app): State<AppState>, request: Request, next: Next) -> Response {
    let Some((cluster, peers)) = &app.cluster else { return next.run(request).await };
    if !needs_leader(&request) {
        return next.run(request).await;
    }
    let from_peer = request.headers().contains_key(FORWARDED);
    match (cluster.role(), from_peer) {
        (NodeRole::Leading { .. }, false) => answer(&app, request, next).await,
        (NodeRole::Leading { .. }, true) => marked(answer(&app, request, next).await),
        (NodeRole::Following, true) => marked(not_leading(cluster).into_response()),
        (NodeRole::Following, false) => match send_to_leader(&app, cluster, peers, request, next).await {
            Ok(response) => response,
            Err(failure) => failure.into_response(),
        },
    }
}

fn needs_leader(request: &Request) -> bool {
    let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str).unwrap_or_default();
    let looks = matches!(*request.method(), Method::GET | Method::HEAD) || READS.contains(&path);
    !looks || OF_THE_ENGINE.contains(&path) || (path == STREAM && asks_for_engine(request.uri()))
}

fn asks_for_engine(uri: &Uri) -> bool {
    uri.query().unwrap_or_default().split('&').any(|pair| pair == "engine=true")
}

/// Answers on this node, which may have become the leader a moment ago: requests about names wait for the engine.
async fn answer(app: &AppState, request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str).unwrap_or_default();
    let path = path.strip_prefix("/api/v1/").unwrap_or_default();
    let room = path.split('/').next().unwrap_or_default();
    if !OF_THE_LEDGER.contains(&room) {
        let left = time_left(app, request.extensions(), request.headers()).unwrap_or_default();
        app.engine_slot.await_engine(left.min(PATIENCE)).await;
    }
    next.run(request).await
}

/// Marks an answer that says `not-leading`: the request was not begun, and the forwarding node can ask the next leader.
fn marked(mut response: Response) -> Response {
    let failure = response.extensions().get::<Failure>();
    if failure.is_some_and(|failure| failure.slug() == "not-leading") {
        response.headers_mut().insert(NOT_LEADING, HeaderValue::from_static("1"));
    }
    response
}

/// The answer of a node that another node takes for the leader.
fn not_leading(cluster: &Cluster) -> Failure {
    let told = "this node does not lead; nothing was changed: ask again in a moment";
    let failure = Failure::new(StatusCode::SERVICE_UNAVAILABLE, "not-leading", told)
        .retry_after(Duration::from_secs(1))
        .fact("node", &cluster.me().name);
    match cluster.leader() {
        Some(leader) => failure.fact("leader", leader.url).fact("epoch", leader.epoch),
        None => failure,
    }
}

/// The answer when no leader can be reached.
fn no_leader(cluster: &Cluster, why: &str) -> Failure {
    let told = format!("no leader can be reached ({why}); nothing was changed: ask again in a moment");
    Failure::new(StatusCode::SERVICE_UNAVAILABLE, "no-leader", told)
        .retry_after(Duration::from_secs(1))
        .fact("node", &cluster.me().name)
}

/// This node is about to end: what it sent on now, it might not live to answer.
fn stopping(cluster: &Cluster) -> Failure {
    let told = "this node is about to end and sends nothing on to the leader any more; nothing was changed: ask another \
                node, or this one again in a moment";
    let failure = Failure::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", told)
        .retry_after(Duration::from_secs(1))
        .fact("node", &cluster.me().name);
    match cluster.leader().filter(|leader| leader.node != cluster.me().id) {
        Some(leader) => failure.fact("leader", leader.url),
        None => failure,
    }
}

/// Does the steps above for one request.
async fn send_to_leader(
    app: &AppState,
    cluster: &Cluster,
    peers: &Peers,
    request: Request,
    next: Next,
) -> Result<Response, Failure> {
    let left = time_left(app, request.extensions(), request.headers())?;
    let begun = app.clock.monotonic();
    let spent = || app.clock.monotonic().saturating_sub(begun);
    let (parts, body) = request.into_parts();
    let reading = tokio::time::timeout(left, body::read(body, &parts.headers, app.max_body));
    let body = Bytes::from(reading.await.map_err(|_| body::too_slow())??);
    let (mut stands, mut changes) = (cluster.role_changes(), cluster.changes());
    let mut why = "none is known".to_owned();
    loop {
        let leads = matches!(*stands.borrow_and_update(), NodeRole::Leading { .. });
        changes.mark_unchanged();
        if leads {
            return Ok(answer(app, Request::from_parts(parts, Body::from(body)), next).await);
        }
        if app.stopping.is_cancelled() {
            return Err(stopping(cluster));
        }
        if let Some(leader) = cluster.leader().filter(|leader| leader.node != cluster.me().id) {
            match send(app, cluster, peers, &leader, &parts, &body, left.saturating_sub(spent())).await {
                Ok(response) => return Ok(response),
                Err(ForwardError::Never(reason)) => why = reason,
                Err(ForwardError::Perhaps(failure)) => return Err(failure),
            }
        }
        let patience = match app.ledger.store().health() {
            Health::Ready => PATIENCE,
            Health::Failed { reason } => {
                why = reason;
                SHORT
            }
        };
        if spent() >= patience.min(left) {
            return Err(no_leader(cluster, &why));
        }
        tokio::select! {
            _ = stands.changed() => {}
            _ = changes.changed() => {}
            () = app.stopping.cancelled() => {}
            () = tokio::time::sleep(AGAIN) => {}
        }
    }
}

/// Why a forwarded request has no answer.
enum ForwardError {
    /// It was not done: there was no connection, or the node does not lead.
    Never(String),
    /// It may have been done.
    Perhaps(Failure),
}

async fn send(
    app: &App,
    cluster: &Cluster,
    peers: &Peers,
    leader: &Leader,
    parts: &Parts,
    body: &Bytes,
    left: Duration,
) -> Result<Response, ForwardError> {
    let target = parts.uri.path_and_query().map_or("/", axum::http::uri::PathAndQuery::as_str);
    let url = format!("{}{target}", leader.url.trim_end_matches('/'));
    let wait = wait_of(body);
    let is_stream = parts.uri.path() == STREAM;
    let patience = if is_stream { LONGEST_STREAM } else { left.saturating_add(wait).saturating_add(GRACE) };
    let request = peers
        .http
        .request(parts.method.clone(), &url)
        .headers(headers(&cluster.me().id, parts, left))
        .timeout(patience)
        .body(body.clone());
    debug!(leader = leader.url, epoch = leader.epoch, "A request is sent to the leader.");
    app.metrics.forwarded();
    let mut changes = cluster.changes();
    let moved = async { drop(changes.wait_for(|known| known.leader.as_ref() != Some(leader)).await) };
    // As with requests that are answered here: what runs may end, and a claim that waits for an address may not go on to.
    let stopping = async {
        app.stopping.cancelled().await;
        if wait.is_zero() {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(LAST_MOMENT).await;
    };
    let sending = request.send();
    tokio::pin!(sending);
    let answer = tokio::select! {
        biased;
        answer = &mut sending => answer,
        // The node that was asked no longer leads. Its answer may still come.
        () = moved => match tokio::time::timeout(STILL, &mut sending).await {
            Ok(answer) => answer,
            Err(_) => return Err(ForwardError::Perhaps(lost(parts, "the leader changed before it answered"))),
        },
        () = stopping => {
            return Err(ForwardError::Perhaps(lost(parts, "the server is about to end")));
        }
    };
    match answer {
        Ok(answer) if answer.headers().contains_key(NOT_LEADING) => {
            Err(ForwardError::Never(format!("{} does not lead", leader.url)))
        }
        Ok(answer) => {
            Ok(streamed(answer, if is_stream { app.stopping.clone() } else { CancellationToken::new() }))
        }
        Err(error) if error.is_connect() || error.is_builder() => {
            Err(ForwardError::Never(format!("{}: {}", leader.url, root_cause(&error.without_url()))))
        }
        Err(error) if error.is_timeout() => {
            Err(ForwardError::Perhaps(lost(parts, "the leader did not answer in time")))
        }
        Err(_) => {
            Err(ForwardError::Perhaps(lost(parts, "the connection to the leader broke before the answer")))
        }
    }
}

/// The failure when no answer came: a read can be repeated; of a write it is unknown whether it was done.
fn lost(parts: &Parts, reason: &str) -> Failure {
    if matches!(parts.method, Method::GET | Method::HEAD) {
        return LedgerError::Unavailable { reason: reason.to_owned() }.into();
    }
    LedgerError::Unknown { reason: reason.to_owned() }.into()
}

/// The caller's headers, with this node's id. `Origin` was checked by this node and is left out.
fn headers(me: &str, parts: &Parts, left: Duration) -> HeaderMap {
    let mut headers = parts.headers.clone();
    for name in OF_THE_CONNECTION.iter().chain([&header::ORIGIN, &header::ACCEPT_ENCODING]) {
        headers.remove(name);
    }
    let arrival = parts.extensions.get::<RequestInfo>();
    let request = arrival.and_then(|arrival| HeaderValue::from_str(&arrival.id).ok());
    if let Some(id) = request {
        headers.insert(REQUEST_ID, id);
    }
    // The time that is left replaces the caller's timeout.
    if let Ok(seconds) = HeaderValue::try_from(format!("{:.3}", left.as_secs_f64())) {
        headers.insert(TIMEOUT, seconds);
    }
    let node = HeaderValue::from_str(me).unwrap_or(HeaderValue::from_static("node"));
    headers.insert(FORWARDED, node);
    headers
}

/// The cluster whose leader knows more than this node; none if this node leads, or asks for another one.
pub(crate) fn leader_to_ask<'a>(
    session: &'a RequestContext,
    caller: &HeaderMap,
) -> Option<Result<(&'a Cluster, &'a Peers), String>> {
    let (cluster, peers) = session.app.cluster.as_ref()?;
    let here = session.app.engine_slot.engine().is_some() || cluster.role() != NodeRole::Following;
    if here || caller.contains_key(FORWARDED) {
        return None;
    }
    if session.app.ledger.store().membership().is_some_and(Membership::knows_no_leader) {
        // The last one that is known may be a machine that is switched off.
        return Some(Err("no node leads".to_owned()));
    }
    Some(Ok((cluster, peers)))
}

/// Gets something from the leader that this node adds to its own answer, with the caller's token.
pub(crate) async fn get_from_leader<T: DeserializeOwned>(
    cluster: &Cluster,
    peers: &Peers,
    caller: &HeaderMap,
    target: &str,
) -> Result<T, String> {
    let Some(leader) = cluster.leader().filter(|leader| leader.node != cluster.me().id) else {
        return Err("no node leads".to_owned());
    };
    let mut request = peers
        .http
        .get(format!("{}{target}", leader.url.trim_end_matches('/')))
        .timeout(SHORT)
        .header(FORWARDED, &cluster.me().id);
    if let Some(token) = caller.get(header::AUTHORIZATION) {
        request = request.header(header::AUTHORIZATION, token);
    }
    let told = |error: reqwest::Error| {
        format!("the leader at {} does not say: {}", leader.url, root_cause(&error.without_url()))
    };
    let answer = request.send().await.map_err(told)?.error_for_status().map_err(told)?;
    let body = match read_body(reqwest::Body::from(answer), MOST_OF_LEADER).await {
        Ok(body) => body,
        Err(BodyError::Broken(error)) => return Err(told(error)),
        Err(error) => return Err(format!("the leader at {}: {error}", leader.url)),
    };
    serde_json::from_slice(&body)
        .map_err(|error| format!("the leader at {} does not say: {error}", leader.url))
}

/// How long the claim in this body may wait for an address.
fn wait_of(body: &[u8]) -> Duration {
    let Ok(value) = serde_json::from_slice::<Value>(body) else { return Duration::ZERO };
    let wait = |value: &Value| value.get("wait").and_then(Value::as_str).and_then(|text| text.parse().ok());
    let found: Option<Span> = wait(&value).or_else(|| value.get("claim").and_then(wait));
    found.map_or(Duration::ZERO, Duration::from)
}

/// Passes the leader's answer on while it arrives, until `stopping` is cancelled.
pub(crate) fn streamed(answer: reqwest::Response, stopping: CancellationToken) -> Response {
    let (status, mut headers) = (answer.status(), answer.headers().clone());
    for name in &OF_THE_CONNECTION {
        headers.remove(name);
    }
    let mut response =
        Body::from_stream(answer.bytes_stream().take_until(stopping.cancelled_owned())).into_response();
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// The innermost cause of an error, with a hint if it is about a certificate.
pub(crate) fn root_cause(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    let told = last.to_string();
    if told.contains("certificate") { format!("{told}; {DISTRUST}") } else { told }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_that_is_not_trusted_says_what_to_set() {
        let told = |text: &str| root_cause(&std::io::Error::other(text));
        let distrusted = told("invalid peer certificate: UnknownIssuer");
        assert!(distrusted.contains("UnknownIssuer; `[api] peer_ca_file`"), "{distrusted}");
        assert_eq!(told("Connection refused"), "Connection refused");
    }

    #[test]
    fn a_claim_that_waits_is_waited_for() {
        assert_eq!(wait_of(br#"{"wait": "5m"}"#), Duration::from_mins(5));
        assert_eq!(
            wait_of(br#"{"key": "a", "any": ["lan"], "claim": {"wait": "2s"}}"#),
            Duration::from_secs(2)
        );
        for body in [&b""[..], b"{}", b"[]", br#"{"wait": 7}"#, br#"{"wait": "x"}"#] {
            assert_eq!(wait_of(body), Duration::ZERO, "{}", String::from_utf8_lossy(body));
        }
    }

    #[test]
    fn only_what_was_certainly_not_done_may_be_asked_of_another() {
        let told = |error: LedgerError| {
            marked(Failure::from(error).into_response()).headers().contains_key(NOT_LEADING)
        };
        let reason = || "the disk is full".to_owned();
        assert!(told(LedgerError::NotLeading));
        assert!(!told(LedgerError::Unknown { reason: reason() }));
        assert!(!told(LedgerError::Unavailable { reason: reason() }));
        assert!(!marked(StatusCode::OK.into_response()).headers().contains_key(NOT_LEADING));
    }

    #[test]
    fn the_leader_is_told_what_is_left_of_the_callers_time() {
        let request = Request::builder().header(TIMEOUT, "5").header(REQUEST_ID, "theirs").body(()).unwrap();
        let (mut parts, ()) = request.into_parts();
        parts.extensions.insert(RequestInfo { id: "ours".into(), at: Duration::ZERO });
        let sent = headers("ns2", &parts, Duration::from_millis(100));
        let values = |name: HeaderName| sent.get_all(name).iter().cloned().collect::<Vec<_>>();
        assert_eq!(values(TIMEOUT), ["0.100"]);
        assert_eq!(values(REQUEST_ID), ["ours"]);
        assert_eq!(values(FORWARDED), ["ns2"]);
    }

    #[test]
    fn every_route_of_the_engine_is_a_route() {
        let (_, document) = crate::routes::documented().split_for_parts();
        for path in OF_THE_ENGINE.iter().chain(&READS) {
            assert!(document.paths.paths.contains_key(*path), "{path}");
        }
    }
}
