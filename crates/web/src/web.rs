//! [`Web`]: the routes of all pages.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderMap, StatusCode, Uri, header, uri::PathAndQuery},
    middleware,
    response::Response,
    routing::{get, post},
};
use netstead_api::{PageListener, Pages, access::Tokens};
use netstead_model::Clock;
use tower::ServiceExt as _;
use tower_http::compression::CompressionLayer;

use crate::{
    WebOptions, assets, guard,
    login::{self, Attempts},
    pages, shell,
    visit::Anonymous,
};

/// The pages, which the binary puts around the API.
#[derive(Debug)]
pub struct Web {
    options: Arc<WebOptions>,
    clock: Arc<dyn Clock>,
    tokens: Tokens,
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
    /// Opens sessions for those that a trusted proxy has verified, and for visitors without a login.
    pub(crate) tokens: Tokens,
    pub(crate) anonymous: Anonymous,
}

impl Web {
    pub fn new(options: WebOptions, clock: Arc<dyn Clock>, tokens: Tokens) -> Self {
        Self { options: Arc::new(options), clock, tokens }
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
            tokens: self.tokens.clone(),
            anonymous: Anonymous::default(),
        });
        let other = Arc::clone(&state);
        let site = routes(&state).fallback(async move |request: Request| elsewhere(&other, request).await);
        if base.is_empty() {
            return site;
        }
        // A proxy may take the path away, or leave it.
        Router::new().fallback(async move |mut request: Request| {
            if let Some(uri) = below(&base, request.uri()) {
                *request.uri_mut() = uri;
            }
            match site.oneshot(request).await {
                Ok(response) => response,
                Err(never) => match never {},
            }
        })
    }

    fn url(&self) -> Option<&str> {
        self.options.url.as_deref()
    }
}

/// The address without the path of the proxy, if it has that.
fn below(base: &str, uri: &Uri) -> Option<Uri> {
    let rest = uri.path().strip_prefix(base).filter(|rest| rest.is_empty() || rest.starts_with('/'))?;
    let path = if rest.is_empty() { "/" } else { rest };
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(format!("{path}{query}")).ok()?);
    Uri::from_parts(parts).ok()
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
        .route("/pools/{pool}/claim", post(pages::pool::acts::claim))
        .route("/pools/{pool}/reserve", post(pages::pool::acts::reserve))
        .route("/pools/{pool}/release", post(pages::pool::acts::release))
        .route("/pools/{pool}/unreserve", post(pages::pool::acts::unreserve))
        .route("/pools/{pool}/many", post(pages::pool::many::act))
        .route("/pools/{pool}/edit", get(pages::pool::change::edit).post(pages::pool::change::change))
        .route("/pools/{pool}/delete", get(pages::pool::change::sure).post(pages::pool::change::delete))
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
        .route("/drift/adopt-many", post(pages::drift::adopt_many))
        .route("/drift/ignore", post(pages::drift::ignore))
        .route("/drift/report-again", post(pages::drift::report_again))
        .route("/drift/restore", post(pages::drift::restore))
        .route("/drift/give-back", post(pages::drift::give_back))
        .route("/servers", get(pages::servers::list))
        .route("/servers/pause", post(pages::servers::pause))
        .route("/servers/resume", post(pages::servers::resume))
        .route("/history", get(pages::history::list))
        .route("/rollback", get(pages::rollback::show).post(pages::rollback::act))
        .route("/csv/{list}", get(pages::csv::download))
        .route("/search", get(pages::search::find))
        .route("/doctor", get(pages::doctor::show))
        .route("/access", get(pages::access::show).post(pages::access::create))
        .route("/access/revoke", post(pages::access::revoke))
        .route("/access/end", post(pages::access::end))
        .route("/cluster", get(pages::cluster::show))
        .route("/assets/{hash}/{name}", get(assets::get));
    routes
        .method_not_allowed_fallback(forms_only)
        .layer(CompressionLayer::new())
        .layer(middleware::from_fn_with_state(Arc::clone(state), guard::around))
        .with_state(Arc::clone(state))
}

/// An address that takes a form was opened.
async fn forms_only(State(web): State<Arc<WebState>>) -> Response {
    let told = "This address takes a form of a page, and shows none itself.";
    shell::bare(&web, StatusCode::METHOD_NOT_ALLOWED, "No page", told)
}

/// All that is no page: the API, and what is nowhere.
async fn elsewhere(web: &WebState, request: Request) -> Response {
    let wants_page = wants_html(request.headers()) && !request.uri().path().starts_with("/api");
    let response = match web.api.clone().oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    };
    if wants_page && response.status() == StatusCode::NOT_FOUND {
        let told = "There is no page at this address.";
        return guard::protected(shell::bare(web, StatusCode::NOT_FOUND, "No page", told));
    }
    response
}

fn wants_html(headers: &HeaderMap) -> bool {
    let accepts = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    accepts.is_some_and(|accepts| accepts.contains("text/html"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_a_proxy_is_taken_off() {
        let taken = |path: &'static str| below("/ipam", &Uri::from_static(path)).map(|uri| uri.to_string());
        assert_eq!(taken("/ipam/pools/lan?at=1").as_deref(), Some("/pools/lan?at=1"));
        assert_eq!(taken("/ipam").as_deref(), Some("/"));
        assert_eq!(taken("/ipam/").as_deref(), Some("/"));
        assert_eq!(taken("/ipamx/pools"), None);
        assert_eq!(taken("/pools/lan"), None);
    }
}
