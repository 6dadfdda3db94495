//! The history of pools: usage over time, changes per day, and which pools fill.

use std::collections::BTreeMap;

use netstead_client::types::{FillingPool, PoolHistoryOutput, UsageOutput};
use netstead_ledger::{Described, LedgerError, Refusal};
use netstead_model::{Ident, PoolStatus};
use netstead_store::StoreError;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::{
    convert,
    http::{
        answer::Answer,
        path::PoolPath,
        query::{FreshParams, NoParams, ReadQuery},
        session::{Read, Session, check_pool_scope},
    },
    openapi::{Listing, Looking},
    problem::Failure,
    usage_history,
};

/// Pools that will be full within so many days are named.
const SOON: u64 = 30;
/// Days of changes, unless asked for more or fewer.
const DAYS: u32 = 30;
const MOST_DAYS: u32 = 731;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct UsageParams {
    /// Days of changes: 1 to 731; default 30.
    days: Option<String>,
}

/// Shows how full a pool was, and when it will be full.
#[utoipa::path(get, path = "/pools/{pool}/usage", tag = "pools", operation_id = "get_pool_usage",
    params(("pool" = String, Path, description = "Its name"), FreshParams),
    responses((status = 200, description = "Samples per hour and per day", body = PoolHistoryOutput), Looking))]
pub(crate) async fn of_pool(
    session: Session<Read>,
    PoolPath(pool): PoolPath,
    ReadQuery { freshness, .. }: ReadQuery<NoParams>,
) -> Result<Answer<PoolHistoryOutput>, Failure> {
    let scopes = session.scopes();
    let seen = session
        .read(freshness, |book| check_pool_scope(book, scopes, &pool).map(|()| book.pool(&pool)))
        .await?;
    let seen = seen.transpose()?;
    let Some(status) = &seen.value else { return Err(Refusal::NoSuchPool { pool }.into()) };
    let described = session.app.backends.status().described;
    let status = &completed(status.clone(), &described);
    let (store, now) = (session.app.ledger.store(), session.app.clock.wall());
    let reading = usage_history::of_pool(&**store, status, freshness, now);
    let history = in_time(&session, reading).await?;
    Ok(Answer::from_read(seen.map(|_| history), freshness))
}

/// Counts the changes of each day, and names the pools that will be full within 30 days. A token with scopes sees its own pools,
/// and no changes.
#[utoipa::path(get, path = "/usage", tag = "pools", operation_id = "get_usage", params(UsageParams, FreshParams),
    responses((status = 200, description = "Changes per day, and pools that fill", body = UsageOutput), Listing))]
pub(crate) async fn all(
    session: Session<Read>,
    ReadQuery { params, freshness }: ReadQuery<UsageParams>,
) -> Result<Answer<UsageOutput>, Failure> {
    let days = match params.days.as_deref() {
        None => DAYS,
        Some(text) => text
            .parse()
            .ok()
            .filter(|days| (1..=MOST_DAYS).contains(days))
            .ok_or_else(|| Failure::unreadable("days", format!("it is a number from 1 to {MOST_DAYS}")))?,
    };
    let app = &session.app;
    let reading = app.usage.all(&**app.ledger.store(), &*app.clock);
    let all = in_time(&session, reading).await?;
    let (scopes, now) = (session.scopes(), app.clock.wall());
    let described = app.backends.status().described;
    let filling = |status: PoolStatus| {
        let status = completed(status, &described);
        let recent =
            all.recent.get(status.pool.name()).filter(|recent| recent.created == status.pool.created)?;
        let forecast = usage_history::forecast(&recent.hours, &status.usage, now)?;
        let (pool, free) = (status.pool.name().to_string(), status.usage.free.to_string());
        (forecast.days_left <= SOON).then_some(FillingPool { pool, free, forecast })
    };
    let seen = session
        .read(freshness, |book| {
            let in_scope =
                |status: &PoolStatus| scopes.allows_pool(status.pool.name(), &status.pool.spec.vrf);
            book.pools().filter(in_scope).filter_map(filling).collect::<Vec<FillingPool>>()
        })
        .await?;
    let days = if scopes.is_all() { usage_history::changes(&all, days, now) } else { Vec::new() };
    let sorted = |mut filling: Vec<FillingPool>| {
        filling.sort_by_key(|one| one.forecast.days_left);
        UsageOutput { days, filling }
    };
    Ok(Answer::from_read(seen.map(sorted), freshness))
}

/// A pool with what its backend says of it.
fn completed(status: PoolStatus, described: &BTreeMap<Ident, Described>) -> PoolStatus {
    let usage = convert::pool::described_usage(&status, described.get(status.pool.name()));
    PoolStatus { usage, ..status }
}

/// Waits for the store, for as long as the request has time.
async fn in_time<T>(
    session: &Session<Read>,
    reading: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, Failure> {
    match tokio::time::timeout(session.time_left(), reading).await {
        Ok(read) => Ok(read.map_err(LedgerError::from)?),
        Err(_) => Err(LedgerError::TooLate.into()),
    }
}
