//! Single addresses.

use axum::http::HeaderMap;
use jiff::Timestamp;
use netstead_client::types::{AddressOutput, ExplainOutput, ExplainPlace, ListedAddressState, Page};
use netstead_ledger::{
    AddressCursor, AddressFilter, AddressState, AddressView, BlockView, Book, EventQuery, Freshness,
};
use netstead_model::{Address, Cidr, Ident, ParseError};
use serde::Deserialize;
use tracing::debug;
use utoipa::IntoParams;

use super::{cut, visible};
use crate::{
    access::Scopes,
    convert,
    http::{
        answer::Answer,
        cursor, forward,
        path::TextPath,
        query::{FreshParams, NoParams, ReadQuery, limit, maybe},
        session::{Read, RequestContext, Session, address_out_of_scope, check_list_scope},
    },
    openapi::Listing,
    problem::Failure,
};

/// When the Book stood where it stands, and what time it is.
#[derive(Debug, Clone, Copy)]
struct Times {
    book: Timestamp,
    now: Timestamp,
}

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
    /// Only addresses in this state.
    #[param(inline, value_type = Option<ListedAddressState>)]
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
        check_list_scope(book, scopes, filter.pool.as_ref(), filter.vrf.as_ref())?;
        let filter = AddressFilter { pools: visible(book, scopes), ..filter.clone() };
        Ok::<_, Failure>((book.addresses(&filter, after.as_ref(), limit + 1), session.time_of(book)))
    };
    let seen = session.read(freshness, look).await?.transpose()?;
    let seq = seen.seq;
    let page = |(mut views, now): (Vec<AddressView>, Timestamp)| {
        let place = |view: &AddressView| {
            let pool = view.pool.as_ref().map(ToString::to_string).unwrap_or_default();
            format!("{pool}/{}", view.through.unwrap_or(view.address))
        };
        let next = cut(&mut views, limit, place);
        Page { items: views.iter().map(|view| convert::address::output(view, now)).collect(), next, seq }
    };
    Ok(Answer::from_read(seen.map(page), freshness))
}

/// Explains an address or a prefix: what it is, why, and what happened to it.
#[utoipa::path(get, path = "/addresses/{address}", tag = "addresses", operation_id = "explain_address",
    params(("address" = String, Path, description = "An address or a prefix in any notation, `/` as `%2F`"), FreshParams),
    responses((status = 200, description = "What it is in each VRF in which it means something", body = ExplainOutput), Listing))]
pub(crate) async fn explain(
    session: Session<Read>,
    TextPath(text): TextPath,
    headers: HeaderMap,
    ReadQuery { freshness, .. }: ReadQuery<NoParams>,
) -> Result<Answer<ExplainOutput>, Failure> {
    let (address, block) = address_or_block(&text)?;
    let (scopes, wall) = (session.scopes(), session.app.clock.wall());
    let look = |book: &Book| {
        let times = Times { book: session.time_of(book), now: wall };
        if let Some(block) = block {
            let views = book.explain_block(block).into_iter();
            let views = views.filter(|view| scopes.allows_pool(&view.pool, &view.vrf));
            return views.map(|view| in_block(book, &block, &view, times)).collect::<Vec<_>>();
        }
        let views = book.explain(address).into_iter().filter(|view| sees(scopes, view));
        views.map(|view| (explain_place(book, &view, times), Some(view))).collect::<Vec<_>>()
    };
    let seen = session.read(freshness, look).await?;
    let shown = block.map_or_else(|| address.to_string(), |block| block.to_string());
    if seen.value.is_empty() && scopes.limits_pools() {
        return Err(address_out_of_scope(scopes, &shown));
    }
    let pools = session.read(Freshness::Stale, |book| visible(book, scopes)).await?.value;
    let mut places = Vec::with_capacity(seen.value.len());
    for (mut place, view) in seen.value {
        if let Some(view) = view {
            place.history = history(&session, &view, pools.as_deref()).await?;
        }
        places.push(place);
    }
    let left_out = if block.is_none() { left_out(&session, &headers, address).await } else { Vec::new() };
    let answer = netstead_ledger::ReadAnswer {
        value: ExplainOutput { address: shown, places, left_out },
        seq: seen.seq,
        age: seen.age,
    };
    Ok(Answer::from_read(answer, freshness))
}

/// Why sources leave an address out. Only the leader knows, so another node asks it with the caller's token.
async fn left_out(session: &RequestContext, headers: &HeaderMap, address: Address) -> Vec<String> {
    let scopes = session.scopes();
    if !scopes.is_all() {
        return Vec::new();
    }
    if let Some(engine) = session.app.engine_slot.engine() {
        return engine.why_left_out(address);
    }
    let Some(Ok((cluster, peers))) = forward::leader_to_ask(session, headers) else { return Vec::new() };
    let target = format!("/api/v1/addresses/{address}?stale=ok");
    match forward::get_from_leader::<ExplainOutput>(cluster, peers, headers, &target).await {
        Ok(known) => known.left_out,
        Err(why) => {
            debug!(%address, why, "The leader does not say why sources leave the address out.");
            Vec::new()
        }
    }
}

/// The address asked for, and the block it begins unless it is a single one.
pub(super) fn address_or_block(text: &str) -> Result<(Address, Option<Cidr>), Failure> {
    let wrong = |error: ParseError| Failure::unreadable("address", error);
    let (address, length) = convert::address_or_prefix(text).map_err(wrong)?;
    let block = length.map(|length| Cidr::new(address, length)).transpose().map_err(wrong)?;
    Ok((address, block.filter(|block| block.first() != block.last())))
}

fn sees(scopes: &Scopes, view: &AddressView) -> bool {
    match &view.pool {
        Some(pool) => scopes.allows_pool(pool, &view.vrf),
        None => scopes.pools.is_empty() && scopes.allows_vrf(&view.vrf),
    }
}

fn explain_place(book: &Book, view: &AddressView, times: Times) -> ExplainPlace {
    let claim = match &view.state {
        AddressState::Held(held) => Some(convert::claim::in_book(book, &held.claim, times.book)),
        _ => None,
    };
    let address = convert::address::output(view, times.book);
    let why = convert::address::why(view, &address, times.now);
    ExplainPlace { address, claim, why, history: Vec::new() }
}

/// Explains a block with the place around it, which has a history.
fn in_block(
    book: &Book,
    block: &Cidr,
    view: &BlockView,
    times: Times,
) -> (ExplainPlace, Option<AddressView>) {
    let told = convert::address::block_why(block, view);
    if let Some(around) = &view.around {
        let mut place = explain_place(book, around, times);
        place.why.splice(0..0, told);
        return (place, Some(around.clone()));
    }
    let address = convert::address::block(block, view);
    (ExplainPlace { address, claim: None, why: told, history: Vec::new() }, None)
}

/// Newest events of an address in its pool. For an address in no pool: its events in the `visible` pools.
async fn history(
    session: &RequestContext,
    view: &AddressView,
    visible: Option<&[Ident]>,
) -> Result<Vec<netstead_client::types::EventOutput>, Failure> {
    let query = EventQuery {
        address: Some(view.address),
        pools: view.pool.clone().map(|pool| vec![pool]).or_else(|| visible.map(<[Ident]>::to_vec)),
        newest_first: true,
        limit: HISTORY,
        ..EventQuery::default()
    };
    let page = session.app.ledger.events(&query).await?;
    Ok(page.events.iter().map(|event| convert::event::output(event, visible)).collect())
}
