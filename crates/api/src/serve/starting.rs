//! Answers of a server that has no ledger yet: it lives, and says why it is not ready.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    http::StatusCode,
    response::{IntoResponse as _, Response},
    routing::get,
};

use crate::{problem::Failure, routes::health};

/// Says why the server is not ready.
pub(super) type Reason = Arc<dyn Fn() -> String + Send + Sync>;

/// `/healthz` is fine; all else is `503 not-ready` with the reason.
pub(super) fn router(reason: Reason) -> Router {
    let not_ready = move || {
        let reason = reason();
        async move { refusal(reason) }
    };
    Router::new().route("/healthz", get(health::alive)).fallback(not_ready)
}

fn refusal(reason: String) -> Response {
    let failure = Failure::new(StatusCode::SERVICE_UNAVAILABLE, "not-ready", reason);
    failure.retry_after(Duration::from_secs(1)).render(None).into_response()
}
