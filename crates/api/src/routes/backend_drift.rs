//! Differences between pools and the backends that their addresses come from.

use std::time::Duration;

use axum::http::StatusCode;
use netstead_client::types::{Page, PoolDriftKind, PoolDriftOutput, ReleaseDriftInput, RestoreDriftInput};
use netstead_ledger::{
    Command, DrawReply, DrawStep, Drift, DriftKind, Freshness, Refusal, Reply, RestoreError,
};
use netstead_model::{Ident, Key};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{page_of, store::Empty, visible};
use crate::{
    convert,
    http::{
        answer::Answer,
        body::Json,
        query::{NoParams, Query},
        session::{Read, Session, Write},
    },
    openapi::{Changing, Listing},
    problem::Failure,
};

/// How long a backend may take to hold an address again.
const RESTORE_PATIENCE: Duration = Duration::from_secs(25);

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListParams {
    /// The `next` of the page before.
    after: Option<String>,
    /// 1 to 1000; default 100.
    limit: Option<String>,
}

/// Lists how backends differ from the claims that draw from them. The leader compares them every ten minutes.
#[utoipa::path(get, path = "/drift", tag = "pools", operation_id = "list_pool_drift", params(ListParams),
    responses((status = 200, description = "Differences in order of pool and address", body = Page<PoolDriftOutput>), Listing))]
pub(crate) async fn list(
    session: Session<Read>,
    Query(params): Query<ListParams>,
) -> Result<Answer<Page<PoolDriftOutput>>, Failure> {
    let (scopes, wall) = (session.scopes(), session.app.clock.wall());
    let seen = session.read(Freshness::Fresh, |book| {
        let visible = visible(book, scopes);
        let mut drift = session.app.backends.drift(book, wall);
        drift.retain(|drift| visible.as_ref().is_none_or(|visible| visible.contains(&drift.pool)));
        drift
    });
    let items: Vec<_> = seen.await?.value.iter().map(output).collect();
    let place = |drift: &PoolDriftOutput| {
        format!("{}/{}/{}", drift.pool, drift.address.as_deref().unwrap_or(""), drift.kind)
    };
    page_of(&session, items, place, params.after.as_ref(), params.limit.as_ref())
}

fn output(drift: &Drift) -> PoolDriftOutput {
    PoolDriftOutput {
        pool: drift.pool.to_string(),
        kind: kind(drift.kind),
        key: drift.key.as_ref().map(ToString::to_string),
        backend_key: drift.remote_key.clone(),
        address: drift.address.map(|address| address.to_string()),
        stray: drift.stray,
        reason: drift.reason.clone(),
        seen: drift.seen,
    }
}

fn kind(kind: DriftKind) -> PoolDriftKind {
    match kind {
        DriftKind::Missing => PoolDriftKind::Missing,
        DriftKind::OtherKey => PoolDriftKind::OtherKey,
        DriftKind::OtherHolder => PoolDriftKind::OtherHolder,
        DriftKind::Unknown => PoolDriftKind::Unclaimed,
        DriftKind::Stray => PoolDriftKind::Stray,
        DriftKind::Description => PoolDriftKind::Description,
    }
}

/// Claims the address of a claim at its backend again, after the backend lost it.
#[utoipa::path(post, path = "/drift/restore", tag = "pools", operation_id = "restore_pool_drift", request_body = RestoreDriftInput,
    responses((status = 200, description = "The backend has it again", body = Empty), Changing))]
pub(crate) async fn restore(
    session: Session<Write>,
    Query(NoParams {}): Query<NoParams>,
    Json(input): Json<RestoreDriftInput>,
) -> Result<Answer<Empty>, Failure> {
    let (pool, key): (Ident, Key) =
        (convert::parse("pool", &input.pool)?, convert::parse("key", &input.key)?);
    session.check_pool(&pool).await?;
    let seen = session.read(Freshness::Fresh, |book| book.claim(&pool, &key).map(|view| view.claim)).await?;
    match seen.value {
        None => return Err(Refusal::NoSuchClaim { pool, key }.into()),
        Some(claim) if claim.drawn.is_none() => {
            return Err(Failure::impossible("key", RestoreError::NotDrawn.to_string()));
        }
        Some(_) => {}
    }
    session.app.backends.restore(pool.clone(), key.clone(), RESTORE_PATIENCE).await.map_err(|error| {
        let told = error.to_string();
        match error {
            RestoreError::NoSuchClaim => Refusal::NoSuchClaim { pool, key }.into(),
            RestoreError::Backend { backend, error } => {
                Refusal::Backend { pool, backend, kind: error.kind, message: error.to_string() }.into()
            }
            RestoreError::Elsewhere { backend, address } => {
                Failure::new(StatusCode::CONFLICT, "backend-refuses", told)
                    .fact("backend", backend)
                    .fact("address", address)
            }
            RestoreError::NotDrawn => Failure::impossible("key", told),
            RestoreError::Idle { .. } | RestoreError::Paused { .. } | RestoreError::Changed => {
                Failure::new(StatusCode::CONFLICT, "not-now", told)
            }
            _ => Failure::new(StatusCode::SERVICE_UNAVAILABLE, "backend-does-not-answer", told),
        }
    })?;
    let seq = session.read(Freshness::Fresh, |_| ()).await?.seq;
    Ok(Answer::ok(Empty {}).at(seq))
}

/// Gives an address back to a backend that could not be bound.
#[utoipa::path(post, path = "/drift/release", tag = "pools", operation_id = "release_pool_drift", request_body = ReleaseDriftInput,
    responses((status = 200, description = "It is given back", body = Empty), Changing))]
pub(crate) async fn release(
    session: Session<Write>,
    Query(NoParams {}): Query<NoParams>,
    Json(input): Json<ReleaseDriftInput>,
) -> Result<Answer<Empty>, Failure> {
    session.check_unscoped()?;
    let step = DrawStep::ReleaseStray { seq: input.stray };
    let done = session.submit(Command::Draw(Box::new(step))).await?;
    match done.reply {
        Reply::Drawn(DrawReply::Stale) => {
            Err(Failure::not_found("no-such-stray", format!("there is no stray object {}", input.stray)))
        }
        _ => Ok(Answer::ok(Empty {}).at(done.seq)),
    }
}
