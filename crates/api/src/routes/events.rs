//! What happened.

use jiff::Timestamp;
use netstead_client::types::{EventOutput, Page};
use netstead_ledger::{EventQuery, Seen};
use netstead_model::{Clock, Span};
use serde::Deserialize;
use utoipa::IntoParams;

use super::visible;
use crate::{
    convert,
    http::{
        answer::Answer,
        cursor::EventCursor,
        query::{FreshParams, ReadQuery, limit, maybe},
        seen::TransposeExt as _,
        session::{Read, Session, check_in},
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
    /// Only events of this kind: `claimed`, `released`, `pool-created` and so on.
    what: Option<String>,
    /// `newest` first (default) or `oldest` first.
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
        query.after = Some(if query.newest_first { cursor.of(ledger)? } else { cursor.standing(ledger)? });
    }
    let scopes = session.scopes();
    let seen = session.read(freshness, |book| match &query.pool {
        Some(pool) if !scopes.is_all() => check_in(book, scopes, pool).map(|()| visible(book, scopes)),
        _ => Ok(visible(book, scopes)),
    });
    let seen = seen.await?.transpose()?;
    query.pools.clone_from(&seen.value);
    let page = ledger.events(&query).await?;
    let next = page.next.map(|seq| EventCursor { ledger: ledger.id(), seq }.to_string());
    let items = page.events.iter().map(|event| convert::event::output(event)).collect();
    Ok(Answer::seen(
        Seen { value: Page { items, next, seq: seen.seq }, seq: seen.seq, age: seen.age },
        freshness,
    ))
}

fn query(params: &ListParams, clock: &dyn Clock) -> Result<EventQuery, Failure> {
    let address = params.address.as_deref().map(convert::place).transpose();
    let what = params.what.as_deref().map(convert::event::kind).transpose();
    Ok(EventQuery {
        address: address.map_err(|error| Failure::unreadable("address", error))?.map(|(address, _)| address),
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
