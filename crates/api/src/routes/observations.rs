//! Observations: addresses that were seen in use.

use std::sync::Arc;

use netstead_client::types::{AddressOutput, ObservationInput, ObservationOutput, Page};
use netstead_ledger::{Book, Command, Reply, Report, Sighting};
use netstead_model::{Address, Ident, Observation, Span, default_vrf};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{cut, visible};
use crate::{
    convert,
    http::{
        answer::Answer,
        body::{BULK, Json},
        cursor,
        path::SourcePath,
        query::{FreshParams, NoParams, Query, ReadQuery, limit, maybe},
        session::{Read, Session, Write},
    },
    openapi::{Changing, Listing},
    problem::Failure,
};

/// How long a Complete report must lack an address before its sighting ends.
const GRACE: Span = Span::from_secs(300);
const LONGEST_NOTE: usize = 1000;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListParams {
    /// Only sightings of this source.
    source: Option<String>,
    /// The `next` of the page before.
    after: Option<String>,
    /// 1 to 1000; default 100.
    limit: Option<String>,
}

/// Reports what a source has seen in use. A repeat gives the same result.
#[utoipa::path(put, path = "/observations/{source}", tag = "addresses", operation_id = "put_observations", request_body = ObservationInput,
    params(("source" = String, Path, description = "Who saw it")),
    responses((status = 200, description = "How many sightings began and ended", body = ObservationOutput), Changing))]
pub(crate) async fn put(
    session: Session<Write>,
    SourcePath(source): SourcePath,
    Query(NoParams {}): Query<NoParams>,
    Json(input): Json<ObservationInput, BULK>,
) -> Result<Answer<ObservationOutput>, Failure> {
    let vrf = convert::maybe("vrf", input.vrf.as_ref())?.unwrap_or_else(default_vrf);
    session.check_vrf(&vrf)?;
    if !session.scopes().pools.is_empty() {
        let told = "a report is about a whole VRF, and your token is limited to pools";
        return Err(Failure::forbidden(told).fact("scope", "pools"));
    }
    let mut seen = Vec::with_capacity(input.seen.len());
    for (place, sighting) in input.seen.into_iter().enumerate() {
        let field = |name: &str| format!("seen[{place}].{name}");
        let address: Address = convert::parse(&field("address"), &sighting.address)?;
        if sighting.note.as_ref().is_some_and(|note| note.chars().count() > LONGEST_NOTE) {
            return Err(Failure::impossible(
                field("note"),
                format!("it is longer than {LONGEST_NOTE} characters"),
            ));
        }
        seen.push(Sighting { address, note: sighting.note });
    }
    let report = Report {
        source,
        vrf,
        complete: input.complete,
        seen,
        grace: convert::maybe("grace", input.grace.as_ref())?.unwrap_or(GRACE),
        ttl: convert::maybe("ttl", input.ttl.as_ref())?,
    };
    let done = session.submit(Command::Observe(report)).await?;
    match done.reply {
        Reply::Observed { begun, ended, .. } => {
            Ok(Answer::ok(ObservationOutput { begun, ended }).at(done.seq))
        }
        _ => Err(Failure::internal("a report was not answered with one")),
    }
}

/// Where a sighting stands in the list.
type Position = (Ident, Address, Ident);

fn position_of(seen: &Observation) -> Position {
    (seen.vrf.clone(), seen.address, seen.source.clone())
}

fn after(text: &str) -> Result<Position, Failure> {
    let (vrf, rest): (Ident, String) = cursor::pair(text)?;
    let (address, source) = rest.split_once('/').unwrap_or((&rest, ""));
    Ok((vrf, cursor::single(address)?, cursor::single(source)?))
}

/// Lists what was seen in use.
#[utoipa::path(get, path = "/observations", tag = "addresses", operation_id = "list_observations", params(ListParams, FreshParams),
    responses((status = 200, description = "Sightings by VRF, address and source", body = Page<AddressOutput>), Listing))]
pub(crate) async fn list(
    session: Session<Read>,
    ReadQuery { params, freshness }: ReadQuery<ListParams>,
) -> Result<Answer<Page<AddressOutput>>, Failure> {
    let source: Option<Ident> = maybe("source", params.source.as_ref())?;
    let after = params.after.as_deref().map(after).transpose()?;
    let limit = limit(params.limit.as_ref())?;
    let scopes = session.scopes();
    let look = |book: &Book| {
        let visible = visible(book, scopes);
        let wanted = |seen: &&Arc<Observation>| {
            source.as_ref().is_none_or(|source| *source == seen.source)
                && scopes.allows_vrf(&seen.vrf)
                && after.as_ref().is_none_or(|after| position_of(seen) > *after)
        };
        let mut found: Vec<_> = book.observations().filter(wanted).cloned().collect();
        found.sort_by_cached_key(|seen| position_of(seen));
        let pool_of = |seen: &Observation| {
            book.explain(seen.address)
                .into_iter()
                .find(|view| view.vrf == seen.vrf)
                .and_then(|view| view.pool)
        };
        let with_pools = found.into_iter().map(|seen| (pool_of(&seen), seen));
        let shown = with_pools.filter(|(pool, _)| match (&visible, pool) {
            (None, _) => true,
            (Some(visible), Some(pool)) => visible.contains(pool),
            (Some(_), None) => scopes.pools.is_empty(),
        });
        shown.take(limit + 1).collect::<Vec<_>>()
    };
    let mut seen = session.read(freshness, look).await?;
    let next =
        cut(&mut seen.value, limit, |(_, last)| format!("{}/{}/{}", last.vrf, last.address, last.source));
    let seq = seen.seq;
    let page = |found: Vec<(Option<Ident>, Arc<Observation>)>| {
        let output = |(pool, seen): &(Option<Ident>, Arc<Observation>)| {
            convert::address::sighting(seen, pool.as_ref().map(ToString::to_string))
        };
        Page { items: found.iter().map(output).collect(), next, seq }
    };
    Ok(Answer::from_read(seen.map(page), freshness))
}
