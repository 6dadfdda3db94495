//! `/healthz`, `/readyz` and `/metrics`.

use axum::{
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use netstead_ledger::{Freshness, damage::describe};
use netstead_model::PoolStatus;
use netstead_store::Health;
use std::time::Duration;

use crate::{
    DailyBackups, access::Scopes, app::AppState, cluster::NodeRole, http::auth, metrics, problem::Failure,
};

/// The process lives.
pub(crate) async fn alive() -> &'static str {
    "ok\n"
}

/// The ledger answers, and will go on to. On a node that follows as on one that leads. Where a part of the store is
/// damaged, the rest is served: that is ready, and said.
pub(crate) async fn ready(State(app): State<AppState>) -> Result<String, Failure> {
    let not_ready = |reason: String| Failure::new(StatusCode::SERVICE_UNAVAILABLE, "not-ready", reason);
    if app.stopping.is_cancelled() {
        return Err(not_ready("the server is about to end".to_owned()));
    }
    let health = app.ledger.health();
    match health.reason {
        Some(reason) if !health.ready => Err(not_ready(reason).retry_after(Duration::from_secs(1))),
        None if !health.ready => Err(not_ready("the ledger does not answer yet".to_owned())),
        _ => {
            let role = match app.cluster.as_ref().map(|(cluster, _)| cluster.role()) {
                None => "",
                Some(NodeRole::Leading { .. }) => ", leading",
                Some(NodeRole::Following) => ", following",
            };
            // It still answers reads, so a load balancer may go on sending requests.
            let refuses = app.ledger.store().refuses_changes();
            let refuses = refuses.map(|reason| format!("no change can be made: {reason}"));
            // The reason names files and servers, and this needs no token.
            let refused = app.examiner.as_ref().and_then(|host| host.refused_config());
            let refused = refused
                .map(|_| "the changed configuration is not in force; `netstead doctor` says why".to_owned());
            let degraded: Vec<String> =
                refuses.into_iter().chain(refused).chain(health.damage.iter().map(describe)).collect();
            Ok(if degraded.is_empty() {
                format!("ok{role}\n")
            } else {
                format!("degraded{role}: {}\n", degraded.join("; "))
            })
        }
    }
}

/// Prometheus' text. On a listener only this machine can reach it needs no token.
pub(crate) async fn metrics(State(app): State<AppState>, headers: HeaderMap) -> Result<Response, Failure> {
    let open = app.host_check.loopback && !headers.contains_key(header::AUTHORIZATION);
    let scopes = if open { Scopes::default() } else { auth::grant(&app.tokens, &headers)?.scopes().clone() };
    let wanted = |status: &PoolStatus| scopes.allows_pool(&status.pool.spec.name, &status.pool.spec.vrf);
    // What is known is better than nothing while the store is away.
    let pools =
        app.ledger.read(Freshness::Stale, |book| book.pools().filter(wanted).collect::<Vec<_>>()).await;
    let pools = pools.map(|seen| seen.value).unwrap_or_default();
    let store_ready = app.ledger.store().health() == Health::Ready;
    let names = app.engine_slot.engine().filter(|_| scopes.is_all()).map(|engine| engine.status());
    let age = app.ledger.read(Freshness::Stale, |_| ()).await.ok().map(|seen| seen.age);
    let node = app.cluster.as_ref().map(|(cluster, _)| metrics::Node::of(cluster, age));
    let (health, now) = (app.ledger.health(), app.clock.wall());
    let backups = app.daily_backups.as_ref().map(DailyBackups::state);
    let seen = metrics::Seen {
        health: &health,
        store_ready,
        pools: &pools,
        engine: names.as_ref(),
        node: node.as_ref(),
        backups: backups.as_ref(),
        now,
    };
    let text = metrics::scrape(&app.metrics, &seen).map_err(Failure::internal)?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}
