//! Pools: list, look, make, replace, delete.

pub(crate) mod blocks;
mod upstream;

use axum::{
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use netstead_client::types::{Page, PoolInput, PoolOutput};
use netstead_ledger::{Command, Done, Freshness, Refusal, Reply};
use netstead_model::{Ident, PoolSpec, PoolStatus, Selector};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::cut;
use crate::{
    convert,
    http::{
        answer::Answer,
        body::Json,
        cursor,
        etag::{self, Condition},
        path::PoolPath,
        query::{FreshParams, NoParams, Query, ReadQuery, limit, maybe},
        session::{Read, RequestContext, Session, Write, check_pool_name, check_pool_scope, check_vrf},
    },
    openapi::{ChangingPools, EndingPools, Listing, Looking},
    problem::Failure,
};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListParams {
    /// Only pools whose labels match: `site=ams,env!=dev`.
    selector: Option<String>,
    /// Only pools of this VRF.
    vrf: Option<String>,
    /// The `next` of the page before.
    after: Option<String>,
    /// 1 to 1000; default 100.
    limit: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct DeleteParams {
    /// Why the claims in it are released with it; without a reason a pool with claims stays.
    force: Option<String>,
    /// Why the pool is forgotten together with everything that its backend holds for it.
    abandon: Option<String>,
}

/// Claims and reservations that were removed with a pool.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PoolDeleted {
    /// Claims that were released.
    released: u64,
    /// Addresses that the backend has not got back yet. The pool is removed when it has.
    #[serde(default, skip_serializing_if = "is_zero")]
    owed: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Lists pools.
#[utoipa::path(get, path = "/pools", tag = "pools", operation_id = "list_pools", params(ListParams, FreshParams),
    responses((status = 200, description = "Pools in order of name", body = Page<PoolOutput>), Listing))]
pub(crate) async fn list(
    session: Session<Read>,
    headers: HeaderMap,
    ReadQuery { params, freshness }: ReadQuery<ListParams>,
) -> Result<Answer<Page<PoolOutput>>, Failure> {
    let selector: Option<Selector> = maybe("selector", params.selector.as_ref())?;
    let vrf: Option<Ident> = maybe("vrf", params.vrf.as_ref())?;
    let after: Option<Ident> = params.after.as_deref().map(cursor::single).transpose()?;
    let limit = limit(params.limit.as_ref())?;
    let scopes = session.scopes();
    let wanted = |status: &PoolStatus| {
        let spec = &status.pool.spec;
        scopes.allows_pool(&spec.name, &spec.vrf)
            && vrf.as_ref().is_none_or(|vrf| *vrf == spec.vrf)
            && selector.as_ref().is_none_or(|selector| selector.matches(&spec.labels))
            && after.as_ref().is_none_or(|after| spec.name > *after)
    };
    let mut seen = session
        .read(freshness, |book| book.pools().filter(wanted).take(limit + 1).collect::<Vec<_>>())
        .await?;
    let next = cut(&mut seen.value, limit, |status| status.pool.name().to_string());
    let seq = seen.seq;
    let known = session.app.backends.status().described;
    let shown = |status: &PoolStatus| convert::pool::described(status, known.get(status.pool.name()));
    let mut items: Vec<PoolOutput> = seen.value.iter().map(shown).collect();
    upstream::add_described_page(&session, &headers, after.as_ref(), &mut items).await;
    Ok(Answer::from_read(seen.map(|_| Page { items, next, seq }), freshness))
}

/// Shows a pool.
#[utoipa::path(get, path = "/pools/{pool}", tag = "pools", operation_id = "get_pool",
    params(("pool" = String, Path, description = "Its name"), FreshParams),
    responses((status = 200, description = "The pool; `ETag` is its version", body = PoolOutput,
        headers(("ETag" = String, description = "For `If-Match`"))), (status = 304, description = "It is as `If-None-Match` has it"), Looking))]
pub(crate) async fn get(
    session: Session<Read>,
    PoolPath(pool): PoolPath,
    ReadQuery { freshness, .. }: ReadQuery<NoParams>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let scopes = session.scopes();
    let seen = session
        .read(freshness, |book| check_pool_scope(book, scopes, &pool).map(|()| book.pool(&pool)))
        .await?;
    let seen = seen.transpose()?;
    let Some(status) = &seen.value else { return Err(Refusal::NoSuchPool { pool }.into()) };
    let tag = etag::tag(session.app.ledger.id(), status.pool.version);
    let described = session.app.backends.status().described.get(&pool).cloned();
    let mut output = convert::pool::described(status, described.as_ref());
    upstream::add_described_one(&session, &headers, &mut output).await;
    upstream::name_installation(&session, &mut output).await;
    let answer = Answer::from_read(seen.map(|_| output), freshness).tagged(tag.clone());
    let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let unchanged = known.is_some_and(|known| known.split(',').any(|known| known.trim() == tag));
    let mut response = answer.into_response();
    if unchanged {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        *response.body_mut() = axum::body::Body::empty();
    }
    Ok(response)
}

/// Makes a pool, or replaces all its settings.
///
/// `If-None-Match: *` only makes a new one, `If-Match` only replaces that version. A repeat gives the same result.
#[utoipa::path(put, path = "/pools/{pool}", tag = "pools", operation_id = "put_pool", request_body = PoolInput,
    params(("pool" = String, Path, description = "Its name"),
        ("If-Match" = Option<String>, Header, description = "Only if the pool still has this `ETag`"),
        ("If-None-Match" = Option<String>, Header, description = "`*`: only if there is no such pool")),
    responses((status = 201, description = "It is new", body = PoolOutput),
        (status = 200, description = "It was there, and is as asked now", body = PoolOutput), ChangingPools))]
pub(crate) async fn put(
    session: Session<Write>,
    PoolPath(pool): PoolPath,
    Query(NoParams {}): Query<NoParams>,
    headers: HeaderMap,
    Json(input): Json<PoolInput>,
) -> Result<Answer<PoolOutput>, Failure> {
    let condition = etag::condition(&headers, session.app.ledger.id(), &pool)?;
    let spec = convert::pool::spec(pool.clone(), input)?;
    session.check_vrf(&spec.vrf)?;
    let before = current(&session, &pool).await?;
    let spec = upstream::complete(&session, spec, before.as_ref()).await?;
    let done = match condition {
        Condition::IsNew => session.submit(Command::CreatePool(Box::new(spec))).await?,
        Condition::Exists if before.is_none() => return Err(etag::mismatch(&pool, "there is none")),
        Condition::Exists => session.submit(update(&spec, None)).await?,
        Condition::Version(version) => replace(&session, spec, version, before.as_ref()).await?,
        Condition::Always => put_anyway(&session, spec, before.is_some()).await?,
    };
    let Reply::Pool(made) = done.reply else {
        return Err(Failure::internal("a pool was not answered with a pool"));
    };
    let usage =
        session.read(Freshness::AtLeast(done.seq), |book| book.pool(&pool).map(|status| status.usage)).await;
    let usage = usage.ok().and_then(|seen| seen.value).unwrap_or_default();
    let status = PoolStatus { pool: (*made).clone(), usage };
    let code = if before.is_none() { StatusCode::CREATED } else { StatusCode::OK };
    let tag = etag::tag(session.app.ledger.id(), made.version);
    let mut output = convert::pool::output(&status);
    upstream::name_installation(&session, &mut output).await;
    Ok(Answer::ok(output).status(code).at(done.seq).tagged(tag))
}

/// The pool as it is, if the caller may touch it.
async fn current(session: &RequestContext, pool: &Ident) -> Result<Option<PoolStatus>, Failure> {
    let scopes = session.scopes();
    check_pool_name(scopes, pool)?;
    let status = session.read(Freshness::Fresh, |book| book.pool(pool)).await?.value;
    status.map(|status| check_vrf(scopes, &status.pool.spec.vrf).map(|()| status)).transpose()
}

fn update(spec: &PoolSpec, if_version: Option<u64>) -> Command {
    Command::UpdatePool { spec: Box::new(spec.clone()), if_version }
}

/// Replaces exactly this version. If that happened already and only its answer was lost, the pool is as asked.
async fn replace(
    session: &RequestContext,
    spec: PoolSpec,
    version: u64,
    before: Option<&PoolStatus>,
) -> Result<Done, Failure> {
    match before {
        None => Err(etag::mismatch(&spec.name, "there is none")),
        Some(status) if status.pool.spec == spec && status.pool.version > version => {
            session.submit(update(&spec, Some(status.pool.version))).await
        }
        Some(_) => session.submit(update(&spec, Some(version))).await,
    }
}

/// Makes or changes it: another caller may do the other at the same moment.
async fn put_anyway(session: &RequestContext, spec: PoolSpec, exists: bool) -> Result<Done, Failure> {
    let commands = [Command::CreatePool(Box::new(spec.clone())), update(&spec, None)];
    let [create, change] = commands;
    let (first, second, other_way) =
        if exists { (change, create, "no-such-pool") } else { (create, change, "pool-exists") };
    match session.submit(first).await {
        Err(failure) if failure.slug() == other_way => session.submit(second).await,
        result => result,
    }
}

/// Deletes a pool.
#[utoipa::path(delete, path = "/pools/{pool}", tag = "pools", operation_id = "delete_pool",
    params(("pool" = String, Path, description = "Its name"), DeleteParams,
        ("If-Match" = Option<String>, Header, description = "Only if the pool still has this `ETag`")),
    responses((status = 200, description = "It is gone", body = PoolDeleted), EndingPools))]
pub(crate) async fn delete(
    session: Session<Write>,
    PoolPath(pool): PoolPath,
    Query(params): Query<DeleteParams>,
    headers: HeaderMap,
) -> Result<Answer<PoolDeleted>, Failure> {
    let if_version = match etag::condition(&headers, session.app.ledger.id(), &pool)? {
        Condition::Version(version) => Some(version),
        Condition::Always | Condition::Exists => None,
        Condition::IsNew => return Err(Failure::unreadable("If-None-Match", "it makes no sense here")),
    };
    let [force, abandon] =
        [params.force, params.abandon].map(|reason| reason.map(|reason| reason.trim().to_owned()));
    for (field, reason) in [("force", &force), ("abandon", &abandon)] {
        if reason.as_ref().is_some_and(|reason| reason.is_empty() || reason.chars().count() > 1000) {
            return Err(Failure::impossible(field, "give a reason of 1 to 1000 characters"));
        }
    }
    // One that is gone is no error of the token: a repeat that names the version is told so.
    current(&session, &pool).await?;
    let command = match abandon {
        Some(reason) => Command::AbandonPool { name: pool, reason, if_version },
        None => Command::DeletePool { name: pool, force, if_version },
    };
    let done = session.submit(command).await?;
    match done.reply {
        Reply::PoolDeleted { released, owed, .. } => {
            Ok(Answer::ok(PoolDeleted { released, owed }).at(done.seq))
        }
        _ => Err(Failure::internal("a deletion was not answered with one")),
    }
}
