//! [`Pages`]: pages for people, which the binary puts around the API.

use std::{fmt::Debug, net::IpAddr};

use axum::{
    Router,
    extract::{Request, State},
    middleware::{self, Next},
    response::{IntoResponse as _, Response},
};

use crate::app::AppState;

/// Pages that are served by the same listener as the API, and made from its answers.
pub trait Pages: Send + Sync + Debug {
    /// All routes of a listener: the pages, and everything else as `api` answers it. The pages ask `api` as any caller does,
    /// with the credential of their visitor, and with `localhost` as the host.
    fn around(&self, api: Router, listener: PageListener) -> Router;

    /// The URL under which people open them, if it was said.
    fn url(&self) -> Option<&str>;
}

/// Facts about a listener that pages need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageListener {
    pub tls: bool,
}

/// The address of the client, which every request of a listener carries as an extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerAddress(pub IpAddr);

/// Puts pages around all routes. Host and Origin are checked for them too.
pub(crate) fn around(pages: &dyn Pages, api: Router, app: &AppState) -> Router {
    let listener = PageListener { tls: app.host_check.tls };
    pages.around(api, listener).layer(middleware::from_fn_with_state(AppState::clone(app), check_host))
}

/// As for the API; a refusal is rendered here, since nothing else is around it.
async fn check_host(State(app): State<AppState>, request: Request, next: Next) -> Response {
    match app.host_check.check(request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(failure) => failure.render(None).into_response(),
    }
}
