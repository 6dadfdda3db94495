//! The outermost layer: every request gets an id, every answer carries it, every error becomes problem details.

use std::{any::Any, sync::Arc, time::Duration};

use axum::{
    extract::{MatchedPath, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use tracing::{debug, error, warn};

use super::failed_requests::FailedRequests;
use crate::{
    app::AppState,
    problem::{self, Failure},
};

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
pub(crate) const SEQ: HeaderName = HeaderName::from_static("netstead-seq");

/// The facts of a request before anything of it is parsed.
#[derive(Debug, Clone)]
pub(crate) struct RequestInfo {
    pub(crate) id: Arc<str>,
    /// On the monotonic clock.
    pub(crate) at: Duration,
}

pub(crate) async fn wrap_request(State(app): State<AppState>, mut request: Request, next: Next) -> Response {
    let arrival = RequestInfo { id: request_id(request.headers()), at: app.clock.monotonic() };
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let is_api = request.uri().path().starts_with("/api/v1/");
    request.extensions_mut().insert(arrival.clone());

    let mut response = as_problem_details(next.run(request).await, &arrival, &app.failed);
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(&arrival.id) {
        headers.insert(REQUEST_ID, id);
    }
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if is_api {
        headers.entry(SEQ).or_insert_with(|| HeaderValue::from(app.ledger.health().seq));
        headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    }
    let took = app.clock.monotonic().saturating_sub(arrival.at);
    let route = route.as_deref().unwrap_or("other");
    app.metrics.count(route, &method, response.status(), took);
    debug!(request = &*arrival.id, %method, route, status = response.status().as_u16(), ?took, "Request answered.");
    response
}

/// All errors as problem details, wherever they come from.
fn as_problem_details(mut response: Response, arrival: &RequestInfo, failed: &FailedRequests) -> Response {
    let failure = match response.extensions_mut().remove::<Failure>() {
        Some(failure) => failure,
        None if is_bare_error(&response) => problem::bare(response.status()),
        None => return response,
    };
    if let Some(cause) = failure.cause() {
        error!(request = &*arrival.id, cause, "A request failed through a fault of ours.");
    } else if failure.status().is_server_error() && !failure.is_expected() {
        let (problem, kind) = (failure.problem(None), failure.slug());
        // A client asks again under the same id: one line is enough.
        if failed.is_new(&arrival.id) {
            warn!(request = &*arrival.id, kind, reason = problem.detail, "A request could not be served.");
        } else {
            debug!(
                request = &*arrival.id,
                kind,
                reason = problem.detail,
                "A repeated request could not be served."
            );
        }
    }
    let mut rendered = failure.render(Some(&arrival.id));
    if let Some(allow) = response.headers_mut().remove(header::ALLOW) {
        rendered.headers_mut().insert(header::ALLOW, allow);
    }
    rendered
}

fn is_bare_error(response: &Response) -> bool {
    let error = response.status().is_client_error() || response.status().is_server_error();
    let problem =
        response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == problem::CONTENT_TYPE);
    error && !problem
}

/// The caller's id if it is 1 to 128 printable ASCII characters, else one of ours.
fn request_id(headers: &HeaderMap) -> Arc<str> {
    let given = headers.get(REQUEST_ID).and_then(|value| value.to_str().ok());
    let plain =
        |id: &&str| (1..=128).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_graphic() || b == b' ');
    match given.filter(plain) {
        Some(id) => id.into(),
        None => format!("{:016x}", rand::random::<u64>()).into(),
    }
}

/// A handler panicked: its caller gets an answer, and the log what was said.
#[allow(clippy::needless_pass_by_value, reason = "the layer's signature")]
pub(crate) fn panicked(panic: Box<dyn Any + Send + 'static>) -> Response {
    let said = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let said = said.or_else(|| panic.downcast_ref::<String>().cloned());
    Failure::internal(format!("a handler panicked: {}", said.unwrap_or_default())).into_response()
}

pub(crate) async fn not_found() -> Failure {
    problem::bare(StatusCode::NOT_FOUND)
}

pub(crate) async fn method_not_allowed() -> Failure {
    problem::bare(StatusCode::METHOD_NOT_ALLOWED)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::{Router, body::Body, middleware, routing::get};
    use netstead_client::types::Problem;
    use netstead_ledger::{Ledger, Options};
    use netstead_model::{Clock as _, SystemClock};
    use netstead_store::MemoryStore;
    use tower::ServiceExt as _;
    use tower_http::catch_panic::CatchPanicLayer;

    use super::*;
    use crate::{access::Tokens, app::App};

    async fn app() -> AppState {
        let (store, clock) = (Arc::new(MemoryStore::new()), SystemClock::shared());
        Arc::new(App {
            ledger: Ledger::open(store.clone(), clock.clone(), Options::default()).await.unwrap(),
            engine_slot: crate::cluster::EngineSlot::default(),
            backends: netstead_ledger::Backends::default(),
            cluster: None,
            nameserver: Arc::from([]),
            reader: None,
            what_if_turn: Arc::new(tokio::sync::Semaphore::new(1)),
            examiner: None,
            daily_backups: None,
            pages: None,
            tokens: Tokens::open(store, clock.clone()).await.unwrap(),
            clock,
            metrics: Arc::default(),
            usage: Arc::default(),
            started: SystemClock.wall(),
            store: "memory".into(),
            host_check: crate::http::host_check::HostCheck::default(),
            failed: crate::http::failed_requests::FailedRequests::default(),
            max_body: crate::http::body::BULK,
            stopping: tokio_util::sync::CancellationToken::new(),
        })
    }

    #[tokio::test]
    async fn a_panic_is_an_answer_with_an_id_and_without_its_cause() {
        let boom = async || -> &'static str { panic!("the reactor melts") };
        let router: Router = Router::new()
            .route("/boom", get(boom))
            .layer(CatchPanicLayer::custom(panicked))
            .layer(middleware::from_fn_with_state(app().await, wrap_request));
        let request = Request::get("/boom").header("x-request-id", "r-1").body(Body::empty()).unwrap();
        let response = router.oneshot(request).await.unwrap();
        assert_eq!(response.headers()[REQUEST_ID], "r-1");
        let body = axum::body::to_bytes(response.into_body(), 10_000).await.unwrap();
        let problem: Problem = serde_json::from_slice(&body).unwrap();
        assert_eq!((problem.status, problem.request.as_deref()), (500, Some("r-1")));
        assert!(!problem.detail.contains("reactor"), "{}", problem.detail);
    }
}
