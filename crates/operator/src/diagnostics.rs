//! Metrics and health, over plain HTTP.

use std::{io, net::SocketAddr, sync::Arc};

use axum::{Router, http::StatusCode, routing::get};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{metrics::Metrics, operator::Readiness};

/// A listener that answers until it is told to stop.
#[derive(Debug)]
pub(crate) struct Diagnostics {
    listener: TcpListener,
    router: Router,
}

impl Diagnostics {
    /// Answers `/metrics`.
    pub(crate) async fn metrics(address: SocketAddr, metrics: &Arc<Metrics>) -> io::Result<Self> {
        let metrics = Arc::clone(metrics);
        let text = move || {
            let text = metrics.text();
            async move { ([("content-type", "application/openmetrics-text; version=1.0.0; charset=utf-8")], text) }
        };
        let listener = TcpListener::bind(address).await?;
        Ok(Self { listener, router: Router::new().route("/metrics", get(text)) })
    }

    /// Answers `/healthz` and `/readyz`.
    pub(crate) async fn health(address: SocketAddr, readiness: Readiness) -> io::Result<Self> {
        let ready = move || {
            let missing = readiness.missing();
            async move {
                if missing.is_empty() {
                    (StatusCode::OK, "ok".to_owned())
                } else {
                    (StatusCode::SERVICE_UNAVAILABLE, format!("not listed yet: {}", missing.join(", ")))
                }
            }
        };
        let listener = TcpListener::bind(address).await?;
        let router = Router::new().route("/healthz", get(async || "ok")).route("/readyz", get(ready));
        Ok(Self { listener, router })
    }

    pub(crate) async fn serve(self, stop: CancellationToken) {
        let _ = axum::serve(self.listener, self.router)
            .with_graceful_shutdown(async move { stop.cancelled().await })
            .await;
    }
}
