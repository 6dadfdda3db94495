//! Reading claims.

use std::sync::Arc;

use jiff::Timestamp;
use netstead_client::types::{ClaimOutput, Page};
use netstead_ledger::{Book, ClaimCursor, ClaimFilter, Refusal};
use netstead_model::{Address, Ident, Key, Waiting};
use serde::Deserialize;
use utoipa::IntoParams;

use super::visible;
use crate::{
    convert,
    http::{
        answer::Answer,
        cursor,
        path::KeyPath,
        query::{FreshParams, NoParams, ReadQuery, limit, maybe},
        session::{Read, Session, check_list_scope, check_pool_scope},
    },
    openapi::{Listing, Looking},
    problem::Failure,
};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListParams {
    /// Only claims in this pool.
    pool: Option<String>,
    /// Only claims of this owner.
    owner: Option<String>,
    /// Only claims under this key.
    key: Option<String>,
    /// Only claims whose labels match: `site=ams,env!=dev`.
    selector: Option<String>,
    /// Only claims in pools of this VRF.
    vrf: Option<String>,
    /// The `next` of the page before.
    after: Option<String>,
    /// 1 to 1000; default 100.
    limit: Option<String>,
}

/// Where a list of claims goes on: first come the bound ones, then those in the queue.
#[derive(Debug, Clone)]
enum After {
    Start,
    Bound(ClaimCursor),
    Waiting(u64),
}

const WAITING: &str = "waiting:";

fn after(text: Option<&String>) -> Result<After, Failure> {
    let Some(text) = text else { return Ok(After::Start) };
    if let Some(seq) = text.strip_prefix(WAITING) {
        return cursor::single(seq).map(After::Waiting);
    }
    let (pool, address) = cursor::pair::<Address>(text)?;
    Ok(After::Bound(ClaimCursor { pool, address }))
}

/// Lists claims.
#[utoipa::path(get, path = "/claims", tag = "claims", operation_id = "list_claims", params(ListParams, FreshParams),
    responses((status = 200, description = "Bound claims by pool and address, then waiting ones by their place in the queue",
        body = Page<ClaimOutput>), Listing))]
pub(crate) async fn list(
    session: Session<Read>,
    ReadQuery { params, freshness }: ReadQuery<ListParams>,
) -> Result<Answer<Page<ClaimOutput>>, Failure> {
    let filter = ClaimFilter {
        pool: maybe("pool", params.pool.as_ref())?,
        owner: params.owner.as_deref().map(Arc::from),
        key: maybe("key", params.key.as_ref())?,
        selector: maybe("selector", params.selector.as_ref())?,
        vrf: maybe("vrf", params.vrf.as_ref())?,
        ..ClaimFilter::default()
    };
    let (after, limit) = (after(params.after.as_ref())?, limit(params.limit.as_ref())?);
    let scopes = session.scopes();
    let look = |book: &Book| {
        check_list_scope(book, scopes, filter.pool.as_ref(), filter.vrf.as_ref())?;
        let filter = ClaimFilter { pools: visible(book, scopes), ..filter.clone() };
        Ok::<_, Failure>(page(book, &filter, &after, limit, session.time_of(book)))
    };
    let seen = session.read(freshness, look).await?.transpose()?;
    let seq = seen.seq;
    Ok(Answer::from_read(seen.map(|(items, next)| Page { items, next, seq }), freshness))
}

fn page(
    book: &Book,
    filter: &ClaimFilter,
    after: &After,
    limit: usize,
    now: Timestamp,
) -> (Vec<ClaimOutput>, Option<String>) {
    let mut items = Vec::new();
    let mut queue_from = 0;
    match after {
        After::Waiting(seq) => queue_from = *seq,
        After::Start | After::Bound(_) => {
            let from = if let After::Bound(cursor) = after { Some(cursor) } else { None };
            let views = book.claims(filter, from, limit + 1);
            let mut pool = None;
            for view in views.iter().take(limit) {
                // Claims come in order of pool: one look-up serves many.
                let same = pool
                    .as_ref()
                    .is_some_and(|known: &netstead_model::PoolStatus| *known.pool.name() == view.claim.pool);
                if !same {
                    pool = book.pool(&view.claim.pool);
                }
                items.push(convert::claim::output(view, pool.as_ref().map(|status| &status.pool.spec), now));
            }
            if let Some(last) = views.get(limit.saturating_sub(1)).filter(|_| views.len() > limit) {
                return (items, Some(format!("{}/{}", last.claim.pool, last.claim.address)));
            }
        }
    }
    let room = limit - items.len();
    let wanted = |waiting: &&Arc<Waiting>| waiting.seq > queue_from && wants(book, filter, waiting);
    let mut waiting: Vec<&Arc<Waiting>> = book.waitings().filter(wanted).take(room + 1).collect();
    let more = waiting.len() > room;
    waiting.truncate(room);
    let next = more.then(|| format!("{WAITING}{}", waiting.last().map_or(queue_from, |waiting| waiting.seq)));
    let visible = filter.pools.as_deref();
    items.extend(waiting.iter().map(|waiting| convert::claim::waiting_in_book(book, waiting, visible)));
    (items, next)
}

fn wants(book: &Book, filter: &ClaimFilter, waiting: &Waiting) -> bool {
    let pool_fits = |pool: &Ident| {
        filter.pool.as_ref().is_none_or(|wanted| wanted == pool)
            && filter.pools.as_ref().is_none_or(|visible| visible.contains(pool))
            && filter.vrf.as_ref().is_none_or(|vrf| book.vrf_of(pool) == Some(vrf))
    };
    let is_stray = waiting.draw.as_ref().is_some_and(|draw| !draw.is_live() && !draw.is_withdrawn());
    !is_stray
        && waiting.pools.iter().any(pool_fits)
        && filter.owner.as_ref().is_none_or(|owner| *owner == waiting.owner)
        && filter.key.as_ref().is_none_or(|key| *key == waiting.key)
        && filter.selector.as_ref().is_none_or(|selector| selector.matches(&waiting.details.labels))
}

/// Shows a claim.
#[utoipa::path(get, path = "/pools/{pool}/claims/{key}", tag = "claims", operation_id = "get_claim",
    params(("pool" = String, Path, description = "The pool"), ("key" = String, Path, description = "Its key, `/` as `%2F`"), FreshParams),
    responses((status = 200, description = "The claim, bound or waiting", body = ClaimOutput), Looking))]
pub(crate) async fn get(
    session: Session<Read>,
    KeyPath { pool, key }: KeyPath,
    ReadQuery { freshness, .. }: ReadQuery<NoParams>,
) -> Result<Answer<ClaimOutput>, Failure> {
    let scopes = session.scopes();
    let look = |book: &Book| {
        check_pool_scope(book, scopes, &pool).and_then(|()| find(book, &pool, &key, session.time_of(book)))
    };
    let seen = session.read(freshness, look).await?.transpose()?;
    Ok(Answer::from_read(seen, freshness))
}

fn find(book: &Book, pool: &Ident, key: &Key, now: Timestamp) -> Result<ClaimOutput, Failure> {
    let status = book.pool(pool).ok_or_else(|| Refusal::NoSuchPool { pool: pool.clone() })?;
    if let Some(view) = book.claim(pool, key) {
        return Ok(convert::claim::output(&view, Some(&status.pool.spec), now));
    }
    let waiting = book.waiting_claim(pool, key);
    let found = waiting.map(|waiting| convert::claim::waiting(&waiting, Some(&status.pool.spec)));
    found.ok_or_else(|| Refusal::NoSuchClaim { pool: pool.clone(), key: key.clone() }.into())
}
