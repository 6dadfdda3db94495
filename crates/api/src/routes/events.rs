//! Events of the ledger.

use jiff::Timestamp;
use netstead_client::types::{EventKind, EventOutput, ListOrder, Page};
use netstead_ledger::{Book, EventQuery, ReadAnswer};
use netstead_model::{Clock, Range, Span};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{addresses::address_or_block, visible};
use crate::{
    access::Scopes,
    convert,
    http::{
        answer::Answer,
        cursor::EventCursor,
        query::{FreshParams, ReadQuery, limit, maybe},
        session::{Read, Session, address_out_of_scope, check_pool_scope},
    },
    openapi::Following,
    problem::Failure,
};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListParams {
    /// Only events of this address or prefix.
    address: Option<String>,
    /// Only events of this key.
    key: Option<String>,
    /// Only events of this pool.
    pool: Option<String>,
    /// Only events from this time on: RFC 3339, or how long ago: `2h`.
    since: Option<String>,
    /// Only events before this time: RFC 3339, or how long ago.
    until: Option<String>,
    /// Only events of this kind.
    #[param(inline, value_type = Option<EventKind>)]
    what: Option<String>,
    /// `newest` first (default) or `oldest` first.
    #[param(inline, value_type = Option<ListOrder>)]
    order: Option<String>,
    /// The `next` of the page before.
    after: Option<String>,
    /// 1 to 1000; default 100.
    limit: Option<String>,
}

/// Lists events.
#[utoipa::path(get, path = "/events", tag = "events", operation_id = "list_events", params(ListParams, FreshParams),
    responses((status = 200, description = "Events in the order asked for", body = Page<EventOutput>), Following))]
pub(crate) async fn list(
    session: Session<Read>,
    ReadQuery { params, freshness }: ReadQuery<ListParams>,
) -> Result<Answer<Page<EventOutput>>, Failure> {
    let ledger = &session.app.ledger;
    let mut query = query(&params, &*session.app.clock)?;
    if let Some(after) = &params.after {
        let cursor = EventCursor::read("after", after)?;
        let newest_first = query.newest_first;
        let after = if newest_first { cursor.of(ledger).await? } else { cursor.standing(ledger).await? };
        query.after = Some(after);
    }
    let scopes = session.scopes();
    let seen = session.read(freshness, |book| {
        if let Some(pool) = query.pool.as_ref().filter(|_| !scopes.is_all()) {
            check_pool_scope(book, scopes, pool)?;
        }
        if let Some(address) = params.address.as_ref().filter(|_| scopes.limits_pools()) {
            let range = query.within.or(query.address.map(Range::single));
            if !range.is_some_and(|range| touches(book, scopes, range)) {
                return Err(address_out_of_scope(scopes, address));
            }
        }
        Ok(visible(book, scopes))
    });
    let seen = seen.await?.transpose()?;
    query.pools.clone_from(&seen.value);
    let page = ledger.events(&query).await?;
    let next = page.next.map(|seq| EventCursor { ledger: ledger.id(), seq }.to_string());
    let items =
        page.events.iter().map(|event| convert::event::output(event, seen.value.as_deref())).collect();
    Ok(Answer::from_read(
        ReadAnswer { value: Page { items, next, seq: seen.seq }, seq: seen.seq, age: seen.age },
        freshness,
    ))
}

/// Whether something of the range is in a pool that the token is for.
fn touches(book: &Book, scopes: &Scopes, range: Range) -> bool {
    let mut pools = book.pools().map(|status| status.pool.spec);
    pools.any(|spec| {
        scopes.allows_pool(&spec.name, &spec.vrf) && spec.extent().iter().any(|part| part.overlaps(range))
    })
}

fn query(params: &ListParams, clock: &dyn Clock) -> Result<EventQuery, Failure> {
    let (address, block) = match params.address.as_deref().map(address_or_block).transpose()? {
        Some((_, Some(block))) => (None, Some(block)),
        Some((address, None)) => (Some(address), None),
        None => (None, None),
    };
    let what = params.what.as_deref().map(convert::event::kind).transpose();
    Ok(EventQuery {
        address,
        within: block.map(Range::from),
        key: maybe("key", params.key.as_ref())?,
        pool: maybe("pool", params.pool.as_ref())?,
        pools: None,
        what: what.map_err(|error| Failure::unreadable("what", error))?,
        since: moment("since", params.since.as_deref(), clock)?,
        until: moment("until", params.until.as_deref(), clock)?,
        after: None,
        newest_first: !oldest_first(params.order.as_deref())?,
        limit: limit(params.limit.as_ref())?,
    })
}

/// Which way a list of what happened runs.
pub(super) fn oldest_first(order: Option<&str>) -> Result<bool, Failure> {
    match order {
        None | Some("newest") => Ok(false),
        Some("oldest") => Ok(true),
        Some(_) => Err(Failure::unreadable("order", "use `newest` or `oldest`")),
    }
}

/// A time of day, or one so long ago.
pub(super) fn moment(
    field: &str,
    text: Option<&str>,
    clock: &dyn Clock,
) -> Result<Option<Timestamp>, Failure> {
    let Some(text) = text else { return Ok(None) };
    if let Ok(at) = text.parse() {
        return Ok(Some(at));
    }
    let told = "write a time like `2026-01-31T12:00:00Z`, or how long ago: `2h`, `7d`";
    let ago: Span = text.parse().map_err(|_| Failure::unreadable(field, told))?;
    let ago = std::time::Duration::from(ago);
    Ok(Some(clock.wall().checked_sub(ago).unwrap_or(Timestamp::MIN)))
}
