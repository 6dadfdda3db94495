//! Reservations: sub-ranges that are set aside.

use std::sync::Arc;

use axum::http::StatusCode;
use netstead_client::types::{Page, ReleaseOutcome, ReleaseOutput, ReservationInput, ReservationOutput};
use netstead_ledger::{Book, Command, Freshness, Reply};
use netstead_model::{Ident, Key, Range, Reservation};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{cut, visible};
use crate::{
    convert,
    http::{
        answer::Answer,
        body::Json,
        cursor,
        path::{KeyPath, PoolPath},
        query::{FreshParams, NoParams, Query, ReadQuery, limit, maybe},
        session::{Read, RequestContext, Session, Write, check_list_scope},
    },
    openapi::{Changing, Ending, Listing, Looking},
    problem::Failure,
};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageParams {
    /// The `next` of the page before.
    after: Option<String>,
    /// 1 to 1000; default 100.
    limit: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListParams {
    /// Only reservations in this pool.
    pool: Option<String>,
    /// The `next` of the page before.
    after: Option<String>,
    /// 1 to 1000; default 100.
    limit: Option<String>,
}

/// Lists reservations.
#[utoipa::path(get, path = "/reservations", tag = "pools", operation_id = "list_reservations", params(ListParams, FreshParams),
    responses((status = 200, description = "Reservations by pool and key", body = Page<ReservationOutput>), Listing))]
pub(crate) async fn list(
    session: Session<Read>,
    ReadQuery { params, freshness }: ReadQuery<ListParams>,
) -> Result<Answer<Page<ReservationOutput>>, Failure> {
    let pool = maybe("pool", params.pool.as_ref())?;
    page(&session, freshness, pool.as_ref(), params.after.as_ref(), params.limit.as_ref()).await
}

/// Lists the reservations of a pool.
#[utoipa::path(get, path = "/pools/{pool}/reservations", tag = "pools", operation_id = "list_pool_reservations",
    params(("pool" = String, Path, description = "The pool"), PageParams, FreshParams),
    responses((status = 200, description = "Reservations by key", body = Page<ReservationOutput>), Looking))]
pub(crate) async fn list_of_pool(
    session: Session<Read>,
    PoolPath(pool): PoolPath,
    ReadQuery { params, freshness }: ReadQuery<PageParams>,
) -> Result<Answer<Page<ReservationOutput>>, Failure> {
    page(&session, freshness, Some(&pool), params.after.as_ref(), params.limit.as_ref()).await
}

async fn page(
    session: &RequestContext,
    freshness: Freshness,
    pool: Option<&Ident>,
    after: Option<&String>,
    most: Option<&String>,
) -> Result<Answer<Page<ReservationOutput>>, Failure> {
    let after: Option<(Ident, Key)> = after.map(|text| cursor::pair(text)).transpose()?;
    let (limit, scopes) = (limit(most)?, session.scopes());
    let look = |book: &Book| {
        check_list_scope(book, scopes, pool, None)?;
        let visible = visible(book, scopes);
        let wanted = |reservation: &&Arc<Reservation>| {
            pool.is_none_or(|pool| *pool == reservation.pool)
                && visible.as_ref().is_none_or(|visible| visible.contains(&reservation.pool))
                && after
                    .as_ref()
                    .is_none_or(|(pool, key)| (&reservation.pool, &reservation.key) > (pool, key))
        };
        let mut found: Vec<_> = book.reservations().filter(wanted).cloned().collect();
        found.sort_by(|one, other| (&one.pool, &one.key).cmp(&(&other.pool, &other.key)));
        Ok::<_, Failure>(found)
    };
    let mut seen = session.read(freshness, look).await?.transpose()?;
    let next = cut(&mut seen.value, limit, |last| format!("{}/{}", last.pool, last.key));
    let seq = seen.seq;
    let page = |found: Vec<Arc<Reservation>>| Page {
        items: found.iter().map(|one| convert::claim::reservation(one)).collect(),
        next,
        seq,
    };
    Ok(Answer::from_read(seen.map(page), freshness))
}

/// Sets a sub-range of a pool aside. A repeat gives the same result.
#[utoipa::path(put, path = "/pools/{pool}/reservations/{key}", tag = "pools", operation_id = "put_reservation", request_body = ReservationInput,
    params(("pool" = String, Path, description = "The pool"), ("key" = String, Path, description = "Its key, `/` as `%2F`")),
    responses((status = 200, description = "It is set aside", body = ReservationOutput), Changing))]
pub(crate) async fn put(
    session: Session<Write>,
    KeyPath { pool, key }: KeyPath,
    Query(NoParams {}): Query<NoParams>,
    Json(input): Json<ReservationInput>,
) -> Result<Answer<ReservationOutput>, Failure> {
    let range: Range = convert::parse("range", &input.range)?;
    session.check_pool(&pool).await?;
    let done = session.submit(Command::Reserve { pool, key, range, description: input.description }).await?;
    match done.reply {
        Reply::Reserved(reservation) => {
            Ok(Answer::ok(convert::claim::reservation(&reservation)).status(StatusCode::OK).at(done.seq))
        }
        _ => Err(Failure::internal("a reservation was not answered with one")),
    }
}

/// Ends a reservation. Ending what is gone is fine.
#[utoipa::path(delete, path = "/pools/{pool}/reservations/{key}", tag = "pools", operation_id = "delete_reservation",
    params(("pool" = String, Path, description = "The pool"), ("key" = String, Path, description = "Its key, `/` as `%2F`")),
    responses((status = 200, description = "It is gone; `outcome` says since when", body = ReleaseOutput), Ending))]
pub(crate) async fn delete(
    session: Session<Write>,
    KeyPath { pool, key }: KeyPath,
    Query(NoParams {}): Query<NoParams>,
) -> Result<Answer<ReleaseOutput>, Failure> {
    session.check_pool(&pool).await?;
    let done = session.submit(Command::Unreserve { pool, key }).await?;
    let outcome =
        if done.reply == Reply::Gone(true) { ReleaseOutcome::Released } else { ReleaseOutcome::AlreadyGone };
    Ok(Answer::ok(ReleaseOutput { outcome, claim: None }).at(done.seq))
}
