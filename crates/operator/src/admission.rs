//! The webhooks: admission of pools, and the conversion of their old version, over TLS.
//!
//! - `verdict` says what may be written, `review` speaks with the API server, `listener` answers it.
//! - `certificate` makes certificates; `keeper` keeps one in a Secret that all replicas share (or reads one from a directory), renews
//!   it, and lets the API server know it, through `registration`.
//!
//! Every replica answers, whether it works on claims or not. Without webhooks the rules of the definitions hold all the same; see
//! `cel`.

mod certificate;
mod keeper;
mod listener;
mod registration;
pub(crate) mod review;
mod verdict;

use std::{io, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use axum::{
    Json, Router,
    body::{Body, to_bytes},
    extract::State,
    http::StatusCode,
    response::{IntoResponse as _, Response},
    routing::post,
};
use serde_json::Value;
use tokio::{sync::watch, task::JoinSet, time::timeout};
use tokio_util::sync::CancellationToken;
use tracing::debug;

use self::{
    keeper::Keeper,
    listener::TlsListener,
    verdict::{Held, Refusal},
};
use crate::{PoolKind, object::PoolKey, operator::Readiness, shared::Shared};

/// The Service that leads to the webhooks, in the namespace of the operator; also the name of the Secret with the certificate.
pub(crate) const SERVICE: &str = "netstead-operator-webhook";
/// The namespace of the packaged operator.
pub(crate) const NAMESPACE: &str = "netstead-ipam-system";

/// The longest review: an object and the one before it are at most 3 MiB, and lists are converted as a whole.
const LONGEST: usize = 32 << 20;
/// How long a review may take to arrive. The API server itself waits 10 s.
const ARRIVAL: Duration = Duration::from_secs(10);

/// How the webhooks are served.
#[derive(Debug, Clone)]
pub struct WebhookOptions {
    pub listen: SocketAddr,
    /// `tls.crt`, `tls.key` and, if the API server is to be told of it, `ca.crt`. Without a directory the operator makes its own
    /// certificate and keeps it in the Secret `netstead-operator-webhook`.
    pub cert_dir: Option<PathBuf>,
    /// The namespace of the Service `netstead-operator-webhook` and of the Secret.
    pub namespace: String,
    /// Where the API server reaches the port, if not by the Service: `https://192.0.2.7:9443`.
    pub url: Option<String>,
    /// How often certificate and registration are looked at.
    pub interval: Duration,
    /// How long a new certificate waits after the API server was told of it.
    pub settle: Duration,
}

impl WebhookOptions {
    pub fn new(listen: SocketAddr, namespace: impl Into<String>) -> Self {
        let (interval, settle) = (Duration::from_mins(1), Duration::from_secs(10));
        Self { listen, cert_dir: None, namespace: namespace.into(), url: None, interval, settle }
    }
}

/// Whether the API server can call webhooks at this address. An error says what to write.
pub fn check_webhook_url(url: &str) -> Result<(), String> {
    let rest = url.strip_prefix("https://").unwrap_or_default();
    let is_plain = !rest.contains(['?', '#', '@']) && rest.chars().all(|c| c.is_ascii_graphic());
    if keeper::host(url).is_empty() || rest.is_empty() || !is_plain {
        return Err(format!("`{url}` is no address of webhooks; write `https://192.0.2.7:9443`"));
    }
    Ok(())
}

/// All that an answer needs.
#[derive(Debug, Clone)]
struct Reviewer {
    shared: Arc<Shared>,
    readiness: Readiness,
}

impl Reviewer {
    /// The addresses of a pool that objects hold. None are known of a kind that is switched off.
    fn held(&self, key: &PoolKey) -> Result<Held, Refusal> {
        if !self.readiness.missing().is_empty() {
            return Err(Refusal::not_listed());
        }
        let world = self.shared.world();
        let Some(pool) = world.pools.get(key) else { return Ok(Held::default()) };
        let count = usize::try_from(pool.index.counts().used).unwrap_or(usize::MAX);
        Ok(Held { count, addresses: pool.index.held().collect() })
    }
}

/// Begins to answer, and to keep the certificate and what the API server knows of it.
pub(crate) async fn start(
    options: &WebhookOptions,
    kinds: &[PoolKind],
    shared: &Arc<Shared>,
    readiness: &Readiness,
    tasks: &mut JoinSet<()>,
    stop: &CancellationToken,
) -> io::Result<()> {
    let (config, configs) = watch::channel(None);
    let listener = TlsListener::bind(options.listen, configs).await?;
    let reviewer = Reviewer { shared: Arc::clone(shared), readiness: readiness.clone() };
    let router = Router::new()
        .route("/validate", post(validate))
        .route("/default", post(default))
        .route("/convert", post(convert))
        .with_state(reviewer);
    tasks.spawn(listener.serve(router, stop.clone()));
    tasks.spawn(Keeper::new(Arc::clone(shared), options.clone(), kinds.to_vec(), config).run());
    Ok(())
}

async fn validate(State(reviewer): State<Reviewer>, body: Body) -> Response {
    answer(body, |body| review::validate(body, |key| reviewer.held(key))).await
}

async fn default(body: Body) -> Response {
    answer(body, review::default).await
}

async fn convert(body: Body) -> Response {
    answer(body, review::convert).await
}

async fn answer(body: Body, review: impl FnOnce(&[u8]) -> Result<Value, serde_json::Error>) -> Response {
    let refuse = |status: StatusCode, problem: String| {
        debug!(problem, "A review was not answered.");
        (status, problem).into_response()
    };
    let body = match timeout(ARRIVAL, to_bytes(body, LONGEST)).await {
        Ok(Ok(body)) => body,
        Ok(Err(error)) => return refuse(StatusCode::PAYLOAD_TOO_LARGE, error.to_string()),
        Err(_) => {
            return refuse(
                StatusCode::REQUEST_TIMEOUT,
                format!("the review did not arrive within {ARRIVAL:?}"),
            );
        }
    };
    match review(&body) {
        Ok(answer) => Json(answer).into_response(),
        Err(error) => refuse(StatusCode::BAD_REQUEST, format!("this is no review of version v1: {error}")),
    }
}
