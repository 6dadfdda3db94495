//! Single addresses.

use netstead_client::types::{AddressOutput, ExplainOutput, ExplainPlace, Page};
use netstead_ledger::{AddressCursor, AddressFilter, AddressState, AddressView, Book, EventQuery};
use netstead_model::Address;
use serde::Deserialize;
use utoipa::IntoParams;

use super::{cut, visible};
use crate::{
    access::Scopes,
    convert,
    http::{
        answer::Answer,
        cursor,
        path::TextPath,
        query::{FreshParams, NoParams, ReadQuery, limit, maybe},
        seen::{SeenExt as _, TransposeExt as _},
        session::{Asker, Read, Session, check_in},
    },
    openapi::Listing,
    problem::Failure,
};

/// How many events of an address are told with it.
const HISTORY: usize = 20;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListParams {
    /// Only addresses of this pool.
    pool: Option<String>,
    /// Only addresses of pools of this VRF.
    vrf: Option<String>,
    /// `held`, `resting`, `reserved`, `observed`, `excluded` or `gateway`.
    state: Option<String>,
    /// Only addresses in this range: `a-b`, a CIDR or one address.
    within: Option<String>,
    /// The `next` of the page before.
    after: Option<String>,
    /// 1 to 1000; default 100.
    limit: Option<String>,
}

/// Lists the addresses that are not simply free.
#[utoipa::path(get, path = "/addresses", tag = "addresses", operation_id = "list_addresses", params(ListParams, FreshParams),
    responses((status = 200, description = "Addresses by pool and number", body = Page<AddressOutput>), Listing))]
pub(crate) async fn list(
    session: Session<Read>,
    ReadQuery { params, freshness }: ReadQuery<ListParams>,
) -> Result<Answer<Page<AddressOutput>>, Failure> {
    let state = params.state.as_deref().map(convert::address::state).transpose();
    let filter = AddressFilter {
        pool: maybe("pool", params.pool.as_ref())?,
        pools: None,
        vrf: maybe("vrf", params.vrf.as_ref())?,
        within: maybe("within", params.within.as_ref())?,
        state: state.map_err(|told| Failure::unreadable("state", told))?,
    };
    let after = params.after.as_deref().map(cursor::pair::<Address>).transpose()?;
    let after = after.map(|(pool, address)| AddressCursor { pool, address });
    let limit = limit(params.limit.as_ref())?;
    let scopes = session.scopes();
    let look = |book: &Book| {
        if let Some(pool) = &filter.pool {
            check_in(book, scopes, pool)?;
        }
        let filter = AddressFilter { pools: visible(book, scopes), ..filter.clone() };
        Ok::<_, Failure>(book.addresses(&filter, after.as_ref(), limit + 1))
    };
    let mut seen = session.read(freshness, look).await?.transpose()?;
    let place = |view: &AddressView| {
        format!("{}/{}", view.pool.as_ref().map(ToString::to_string).unwrap_or_default(), view.address)
    };
    let next = cut(&mut seen.value, limit, place);
    let (seq, now) = (seen.seq, session.app.clock.wall());
    let page = |views: Vec<AddressView>| Page {
        items: views.iter().map(|view| convert::address::output(view, now)).collect(),
        next,
        seq,
    };
    Ok(Answer::seen(seen.map(page), freshness))
}

/// Explains an address: what it is, why, and what happened to it.
#[utoipa::path(get, path = "/addresses/{address}", tag = "addresses", operation_id = "explain_address",
    params(("address" = String, Path, description = "An address or a prefix in any notation, `/` as `%2F`"), FreshParams),
    responses((status = 200, description = "What it is in each VRF in which it means something", body = ExplainOutput), Listing))]
pub(crate) async fn explain(
    session: Session<Read>,
    TextPath(text): TextPath,
    ReadQuery { freshness, .. }: ReadQuery<NoParams>,
) -> Result<Answer<ExplainOutput>, Failure> {
    let (address, length) = convert::place(&text).map_err(|error| Failure::unreadable("address", error))?;
    let (scopes, now) = (session.scopes(), session.app.clock.wall());
    let look = |book: &Book| {
        let views = book.explain(address).into_iter().filter(|view| sees(scopes, view));
        let views = views.filter(|view| length.is_none() || view.length.is_none() || view.length == length);
        views.map(|view| (place(book, &view, now), view)).collect::<Vec<_>>()
    };
    let seen = session.read(freshness, look).await?;
    let mut places = Vec::with_capacity(seen.value.len());
    for (mut place, view) in seen.value {
        place.history = history(&session, &view).await?;
        places.push(place);
    }
    let shown = length.map_or_else(|| address.to_string(), |length| format!("{address}/{length}"));
    let answer = netstead_ledger::Seen {
        value: ExplainOutput { address: shown, places },
        seq: seen.seq,
        age: seen.age,
    };
    Ok(Answer::seen(answer, freshness))
}

fn sees(scopes: &Scopes, view: &AddressView) -> bool {
    match &view.pool {
        Some(pool) => scopes.allows_pool(pool, &view.vrf),
        None => scopes.pools.is_empty() && scopes.allows_vrf(&view.vrf),
    }
}

fn place(book: &Book, view: &AddressView, now: jiff::Timestamp) -> ExplainPlace {
    let claim = match &view.state {
        AddressState::Held(held) => Some(convert::claim::in_book(book, &held.claim, now)),
        _ => None,
    };
    ExplainPlace {
        address: convert::address::output(view, now),
        claim,
        why: convert::address::why(view),
        history: Vec::new(),
    }
}

async fn history(
    session: &Asker,
    view: &AddressView,
) -> Result<Vec<netstead_client::types::EventOutput>, Failure> {
    let query = EventQuery {
        address: Some(view.address),
        pools: view.pool.clone().map(|pool| vec![pool]),
        newest_first: true,
        limit: HISTORY,
        ..EventQuery::default()
    };
    let page = session.app.ledger.events(&query).await?;
    Ok(page.events.iter().map(|event| convert::event::output(event)).collect())
}
