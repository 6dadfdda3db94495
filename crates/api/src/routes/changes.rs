//! The history: changes of names, and events of the engine.

use netstead_client::types::{ChangeKind, HistoryOutput, ListOrder, Page};
use netstead_engine::{Change, ChangeQuery};
use netstead_ledger::Freshness;
use serde::Deserialize;
use utoipa::IntoParams;

use super::events::{moment, oldest_first};
use crate::{
    convert,
    http::{
        answer::Answer,
        cursor::ChangeCursor,
        query::{Query, limit, maybe},
        session::{Read, Session},
    },
    openapi::Following,
    problem::Failure,
};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListParams {
    /// Only what happened on this provider.
    provider: Option<String>,
    /// Only what happened in this zone.
    zone: Option<String>,
    /// Only what happened at this name.
    name: Option<String>,
    /// Only this outcome of a change, or kind of event.
    #[param(inline, value_type = Option<ChangeKind>)]
    what: Option<String>,
    /// Only from this time on: RFC 3339, or how long ago: `2h`.
    since: Option<String>,
    /// Only before this time: RFC 3339, or how long ago.
    until: Option<String>,
    /// `newest` first (default) or `oldest` first.
    #[param(inline, value_type = Option<ListOrder>)]
    order: Option<String>,
    /// The `next` of the page before.
    after: Option<String>,
    /// 1 to 1000; default 100.
    limit: Option<String>,
}

/// Lists what was changed at which name, what became of it, and what else happened to names.
#[utoipa::path(get, path = "/changes", tag = "names", operation_id = "list_changes", params(ListParams),
    responses((status = 200, description = "Changes in the order asked for", body = Page<HistoryOutput>), Following))]
pub(crate) async fn list(
    session: Session<Read>,
    Query(params): Query<ListParams>,
) -> Result<Answer<Page<HistoryOutput>>, Failure> {
    let (engine, ledger) = (session.engine()?, &session.app.ledger);
    let oldest_first = oldest_first(params.order.as_deref())?;
    let after = match &params.after {
        Some(after) => Some(ChangeCursor::read(after, ledger, &engine, oldest_first).await?),
        None => None,
    };
    if params.what.as_ref().is_some_and(|what| !Change::KINDS.contains(&what.as_str())) {
        return Err(Failure::unreadable("what", format!("it is one of {}", Change::KINDS.join(", "))));
    }
    let clock = &*session.app.clock;
    let query = ChangeQuery {
        provider: maybe("provider", params.provider.as_ref())?,
        zone: maybe("zone", params.zone.as_ref())?,
        name: maybe("name", params.name.as_ref())?,
        what: params.what,
        since: moment("since", params.since.as_deref(), clock)?,
        until: moment("until", params.until.as_deref(), clock)?,
        within: session.name_scope(Freshness::Stale).await?.names().cloned(),
        after,
        oldest_first,
        limit: limit(params.limit.as_ref())?,
    };
    let page = engine.changes(&query).await?;
    let next = page.next.map(|place| ChangeCursor { ledger: ledger.id(), place }.to_string());
    let items = page.changes.iter().map(convert::history::output).collect();
    let seq = ledger.health().seq;
    Ok(Answer::ok(Page { items, next, seq }).at(seq))
}
