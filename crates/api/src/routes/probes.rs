//! Probes in the form that dnsweaver has, for tools that asked dnsweaver before.

use std::sync::Arc;

use axum::{Json, Router, extract::State, http::StatusCode, middleware, routing::get};
use netstead_engine::ProviderStatus;
use netstead_ledger::damage::describe;
use serde::Serialize;

use super::health;
use crate::{app::AppState, http::host_check};

/// The nameserver of this process; dnsweaver has none, so none is told of here.
const BUILTIN: &str = "builtin";

/// All that is served where probes come.
pub(crate) fn router(app: &AppState) -> Router {
    let guarded = middleware::from_fn_with_state(Arc::clone(app), host_check::check_host);
    Router::new()
        .route("/metrics", get(health::metrics))
        .layer(guarded)
        .route("/health", get(alive))
        .route("/ready", get(ready))
        .with_state(Arc::clone(app))
}

#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct ProbeOutput {
    status: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    components: Vec<Component>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    degraded: Vec<Degraded>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Component {
    name: String,
    healthy: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Degraded {
    name: &'static str,
    message: String,
}

async fn alive() -> Json<ProbeOutput> {
    Json(ProbeOutput { status: "healthy", ..ProbeOutput::default() })
}

async fn ready(State(app): State<AppState>) -> (StatusCode, Json<ProbeOutput>) {
    if app.stopping.is_cancelled() {
        let said = ProbeOutput { status: "shutting_down", ..ProbeOutput::default() };
        return (StatusCode::SERVICE_UNAVAILABLE, Json(said));
    }
    let ledger = app.ledger.health();
    let store = (!ledger.ready).then(|| ledger.reason.unwrap_or_else(|| "it does not answer yet".into()));
    let providers = app.engine_slot.engine().map(|engine| engine.status().providers).unwrap_or_default();
    let damage: Vec<String> = ledger.damage.iter().map(describe).collect();
    let (code, said) = judge(store, &damage, &providers);
    (code, Json(said))
}

/// A server that has answered before and does not now makes it unready; one that has not answered yet is waited for.
fn judge(
    store: Option<String>,
    damage: &[String],
    providers: &[ProviderStatus],
) -> (StatusCode, ProbeOutput) {
    let mut said = ProbeOutput { status: "ready", ..ProbeOutput::default() };
    let mut pending = Vec::new();
    if let Some(reason) = store {
        said.components.push(Component { name: "store".into(), healthy: false, error: Some(reason) });
    }
    if !damage.is_empty() {
        said.degraded.push(Degraded { name: "store", message: damage.join("; ") });
    }
    for provider in providers.iter().filter(|provider| provider.kind != BUILTIN) {
        let error = error(provider);
        let known = provider.zones.iter().any(|zone| zone.sets.is_some() || zone.serial.is_some());
        if known || (provider.last.is_some() && error.is_none()) {
            let (name, healthy) = (format!("provider:{}", provider.name), error.is_none());
            said.components.push(Component { name, healthy, error });
        } else {
            pending.push(provider.name.to_string());
        }
    }
    if !pending.is_empty() {
        let message = format!("{} providers pending: [{}]", pending.len(), pending.join(" "));
        said.degraded.push(Degraded { name: "provider-manager", message });
    }
    let unready = said.components.iter().any(|component| !component.healthy);
    let (code, status) = match (unready, said.degraded.is_empty()) {
        (true, _) => (StatusCode::SERVICE_UNAVAILABLE, "not_ready"),
        (false, false) => (StatusCode::OK, "degraded"),
        (false, true) => (StatusCode::OK, "ready"),
    };
    said.status = status;
    (code, said)
}

/// Why a server is not in order: all of it, or one of its zones.
fn error(provider: &ProviderStatus) -> Option<String> {
    let zone = || provider.zones.iter().find_map(|zone| zone.error.clone());
    provider.error.clone().or_else(zone)
}
