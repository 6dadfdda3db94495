//! [`Web`]: the routes of all pages.

use std::sync::Arc;

use axum::{
    Router,
    extract::Request,
    http::{HeaderMap, StatusCode, header},
    middleware,
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use netstead_api::{PageListener, Pages};
use netstead_model::Clock;
use tower::ServiceExt as _;
use tower_http::compression::CompressionLayer;

use crate::{
    WebOptions, assets, guard,
    login::{self, Attempts},
    pages,
};

/// The pages, which the binary puts around the API.
#[derive(Debug)]
pub struct Web {
    options: Arc<WebOptions>,
    clock: Arc<dyn Clock>,
}

/// The state of every page.
#[derive(Debug)]
pub(crate) struct WebState {
    pub(crate) api: Router,
    pub(crate) options: Arc<WebOptions>,
    pub(crate) base: String,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) tls: bool,
    pub(crate) attempts: Attempts,
}

impl Web {
    pub fn new(options: WebOptions, clock: Arc<dyn Clock>) -> Self {
        Self { options: Arc::new(options), clock }
    }
}

impl Pages for Web {
    fn around(&self, api: Router, listener: PageListener) -> Router {
        let base = self.options.base();
        let state = Arc::new(WebState {
            api: api.clone(),
            options: Arc::clone(&self.options),
            base: base.clone(),
            clock: Arc::clone(&self.clock),
            tls: listener.tls,
            attempts: Attempts::new(Arc::clone(&self.clock)),
        });
        let pages = routes(&state);
        // A proxy may take the path away, or leave it.
        let below = if base.is_empty() { None } else { Some(pages.clone()) };
        let mut router = pages.fallback(async move |request: Request| elsewhere(api, request).await);
        if let Some(below) = below {
            let first = Router::new().route(&format!("{base}/"), get(pages::overview::show));
            router = router.nest(&base, below).merge(dressed(first).with_state(state));
        }
        router
    }

    fn url(&self) -> Option<&str> {
        self.options.url.as_deref()
    }
}

fn routes(state: &Arc<WebState>) -> Router {
    let routes = Router::new()
        .route("/", get(pages::overview::show))
        .route("/login", get(login::show).post(login::with_token))
        .route("/login/{secret}", get(login::show_link).post(login::with_link))
        .route("/logout", post(login::log_out))
        .route("/theme", post(login::theme))
        .route("/live", get(pages::live::follow))
        .route("/addresses", get(pages::addresses::list))
        .route("/addresses/{address}", get(pages::address::show))
        .route("/pools/new", get(pages::pool_form::blank).post(pages::pool_form::create))
        .route("/pools/{pool}", get(pages::pool::show))
        .route("/pools/{pool}/claim", post(pages::pool::claim))
        .route("/pools/{pool}/reserve", post(pages::pool::reserve))
        .route("/pools/{pool}/release", post(pages::pool::release))
        .route("/pools/{pool}/unreserve", post(pages::pool::unreserve))
        .route("/names", get(pages::names::list))
        .route("/names/{name}", get(pages::name::show))
        .route("/names/{name}/set", post(pages::name::set))
        .route("/names/{name}/delete", post(pages::name::delete))
        .route("/workloads", get(pages::workloads::list))
        .route("/plan", get(pages::plan::list))
        .route("/plan/apply", post(pages::plan::apply))
        .route("/plan/approve", post(pages::plan::approve))
        .route("/drift", get(pages::drift::list))
        .route("/drift/adopt", post(pages::drift::adopt))
        .route("/servers", get(pages::servers::list))
        .route("/servers/pause", post(pages::servers::pause))
        .route("/servers/resume", post(pages::servers::resume))
        .route("/history", get(pages::history::list))
        .route("/search", get(pages::search::find))
        .route("/doctor", get(pages::doctor::show))
        .route("/access", get(pages::access::show).post(pages::access::create))
        .route("/access/revoke", post(pages::access::revoke))
        .route("/access/end", post(pages::access::end))
        .route("/cluster", get(pages::cluster::show))
        .route("/assets/{hash}/{name}", get(assets::get));
    dressed(routes).with_state(Arc::clone(state))
}

/// With what is around every page.
fn dressed(routes: Router<Arc<WebState>>) -> Router<Arc<WebState>> {
    routes.layer(CompressionLayer::new()).layer(middleware::from_fn(guard::around))
}

/// All that is no page: the API, and what is nowhere.
async fn elsewhere(api: Router, request: Request) -> Response {
    let wants_page = wants_html(request.headers()) && !request.uri().path().starts_with("/api");
    let response = match api.oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    };
    if wants_page && response.status() == StatusCode::NOT_FOUND {
        return (StatusCode::NOT_FOUND, "there is no such page; the first one is at /\n").into_response();
    }
    response
}

fn wants_html(headers: &HeaderMap) -> bool {
    let accepts = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    accepts.is_some_and(|accepts| accepts.contains("text/html"))
}
