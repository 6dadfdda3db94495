//! Claims.

use std::sync::Arc;

use jiff::Timestamp;
use netstead_client::types::{self, ClaimFrom, ClaimInput, ClaimOutput, ClaimState, ReservationOutput};
use netstead_ledger::{Book, ClaimView, MOST_ENTRIES};
use netstead_model::{
    Address, Claim, ClaimId, ClaimRef, ClaimRequest, Details, Draw, Family, Ident, Key, Kind, PoolChoice,
    PoolSpec, Reservation, Waiting, Want,
};

use super::{address_or_prefix, each, ending, labels, maybe, pairs, parse};
use crate::problem::Failure;

/// Most pools that `any` may name. A selector may find more.
const MOST_NAMED: usize = 64;

/// A claim as it is asked for, and for whom.
#[derive(Debug, Clone)]
pub(crate) struct ParsedClaim {
    pub(crate) request: ClaimRequest,
    pub(crate) owner: Option<Arc<str>>,
}

pub(crate) fn request(key: Key, from: PoolChoice, input: ClaimInput) -> Result<ParsedClaim, Failure> {
    let (want, length) = wanted(&input)?;
    let owner: Option<Key> = maybe("owner", input.owner.as_ref())?;
    let request = ClaimRequest {
        key,
        from,
        want,
        length,
        ttl: maybe("ttl", input.ttl.as_ref())?,
        labels: input.labels.map(|pairs| labels("labels", pairs)).transpose()?,
        hostnames: input.hostnames.map(|names| each("hostnames", &names)).transpose()?,
        description: input.description,
        adopt: input.adopt,
        force: input.force,
        wait: maybe("wait", input.wait.as_ref())?,
        keep: input.keep,
    };
    Ok(ParsedClaim { request, owner: owner.map(|owner| owner.as_str().into()) })
}

fn wanted(input: &ClaimInput) -> Result<(Want, Option<u8>), Failure> {
    let (field, text) = match (&input.address, &input.prefer) {
        (None, None) => return Ok((Want::Any, input.length)),
        (Some(_), Some(_)) => {
            return Err(Failure::impossible(
                "prefer",
                "it cannot be combined with `address`: one of them decides",
            ));
        }
        (Some(address), None) => ("address", address),
        (None, Some(address)) => ("prefer", address),
    };
    let (address, length) = address_or_prefix(text).map_err(|error| Failure::unreadable(field, error))?;
    if let (Some(named), Some(asked)) = (length, input.length)
        && named != asked
    {
        return Err(Failure::impossible("length", format!("`{text}` is a /{named} and not a /{asked}")));
    }
    let want = if field == "address" { Want::Exact(address) } else { Want::Prefer(address) };
    Ok((want, length.or(input.length)))
}

/// The requests a [`ClaimFrom`] stands for: one, or one per pool of `each`.
pub(crate) fn requests(from: &ClaimFrom) -> Result<Vec<ParsedClaim>, Failure> {
    let key: Key = parse("key", &from.key)?;
    if from.any.len() > MOST_NAMED {
        return Err(Failure::impossible("any", format!("at most {MOST_NAMED} pools can be named")));
    }
    if from.each.len() > MOST_ENTRIES {
        let told = format!("{} pools, and at most {MOST_ENTRIES} fit into one commit", from.each.len());
        return Err(Failure::impossible("each", told));
    }
    let any: Vec<Ident> = each("any", &from.any)?;
    let all: Vec<Ident> = each("each", &from.each)?;
    let select = maybe("select", from.select.as_ref())?;
    let one =
        |choice| request(key.clone(), choice, from.claim.clone()).map_err(|failure| failure.within("claim"));
    match (any.is_empty(), all.is_empty(), select) {
        (false, true, None) => Ok(vec![one(PoolChoice::Pools(any))?]),
        (true, true, Some(selector)) => Ok(vec![one(PoolChoice::Select(selector))?]),
        (true, false, None) => {
            if let Some(twice) =
                all.iter().enumerate().find(|(place, pool)| all.iter().take(*place).any(|p| p == *pool))
            {
                return Err(Failure::impossible(
                    format!("each[{}]", twice.0),
                    format!("pool `{}` is named twice", twice.1),
                ));
            }
            if from.claim.wait.is_some() && all.len() > 1 {
                return Err(Failure::impossible(
                    "claim.wait",
                    "only a single claim can wait, not one of several",
                ));
            }
            all.into_iter().map(|pool| one(PoolChoice::Pools(vec![pool]))).collect()
        }
        _ => Err(Failure::impossible("any", "give exactly one of `any`, `each` and `select`")),
    }
}

pub(crate) fn target(pool: &str, key: &str, id: Option<&String>) -> Result<ClaimRef, Failure> {
    Ok(ClaimRef { pool: parse("pool", pool)?, key: parse("key", key)?, id: claim_id(id)? })
}

pub(crate) fn claim_id(id: Option<&String>) -> Result<Option<ClaimId>, Failure> {
    maybe("id", id)
}

/// A bound claim with what its pool adds. `view.left` is of its time to live.
pub(crate) fn output(view: &ClaimView, pool: Option<&PoolSpec>, now: Timestamp) -> ClaimOutput {
    let claim = &*view.claim;
    let details = claim.details();
    let names = claim.names(pool.and_then(|pool| pool.domain.as_ref()));
    let left = claim.ttl.map(|ttl| view.left.unwrap_or_else(|| ttl.into()));
    ClaimOutput {
        pool: claim.pool.to_string(),
        key: claim.key.to_string(),
        state: ClaimState::Bound,
        address: Some(claim.held()),
        id: Some(claim.id.to_string()),
        owner: claim.owner.to_string(),
        fixed: claim.fixed,
        since: claim.since,
        until: left.map(|left| ending(now, left)),
        ttl: claim.ttl.map(|ttl| ttl.to_string()),
        names: names.names.iter().map(ToString::to_string).collect(),
        names_reason: names.reason.to_owned(),
        family: family(claim.address, claim.length).into(),
        backend_key: claim.drawn.as_ref().map(|drawn| drawn.key.to_string()),
        ..common_fields(details, pool)
    }
}

/// A claim that is gone, or whose Book is not at hand.
pub(crate) fn lone(claim: &Claim, pool: Option<&PoolSpec>, now: Timestamp) -> ClaimOutput {
    output(&ClaimView { claim: Arc::new(claim.clone()), left: None }, pool, now)
}

/// A claim in the queue, as one of a pool: the first where it may be served, if none is said.
pub(crate) fn waiting(waiting: &Waiting, pool: Option<&PoolSpec>) -> ClaimOutput {
    let name = pool.map(|pool| &pool.name).or(waiting.pools.first());
    ClaimOutput {
        pool: name.map(ToString::to_string).unwrap_or_default(),
        key: waiting.key.to_string(),
        state: match waiting.draw.as_deref() {
            Some(draw) if !draw.is_live() => ClaimState::Withdrawn,
            _ => ClaimState::Waiting,
        },
        why: waiting.draw.as_deref().map(why),
        backend_key: waiting.draw.as_deref().map(|draw| draw.key.to_string()),
        owner: waiting.owner.to_string(),
        since: waiting.since,
        ttl: waiting.ttl.map(|ttl| ttl.to_string()),
        names_reason: "it has no address yet".to_owned(),
        family: pool.map_or_else(no_family, |pool| pool.family.into()),
        ..common_fields(&waiting.details, pool)
    }
}

/// Why a claim has no address yet.
pub(crate) fn why(draw: &Draw) -> String {
    match (&draw.why, draw.is_withdrawn()) {
        (_, true) => "it ended; what the backend may hold for it is given back".to_owned(),
        (Some(failure), _) => failure.message.clone(),
        (None, _) if draw.asked => "the backend was asked and has not answered yet".to_owned(),
        (None, _) => "the backend is asked next".to_owned(),
    }
}

fn common_fields(details: &Details, pool: Option<&PoolSpec>) -> ClaimOutput {
    ClaimOutput {
        pool: String::new(),
        key: String::new(),
        state: ClaimState::Bound,
        address: None,
        id: None,
        owner: String::new(),
        fixed: false,
        since: Timestamp::UNIX_EPOCH,
        until: None,
        ttl: None,
        labels: pairs(&details.labels),
        hostnames: details.hostnames.iter().map(ToString::to_string).collect(),
        description: details.description.clone(),
        names: Vec::new(),
        names_reason: String::new(),
        vrf: pool.map(|pool| pool.vrf.to_string()).unwrap_or_default(),
        family: no_family(),
        gateway: pool.and_then(|pool| pool.gateway).map(|gateway| gateway.to_string()),
        network: pool.and_then(|pool| pool.network).map(|network| network.to_string()),
        domain: pool.and_then(|pool| pool.domain.as_ref()).map(ToString::to_string),
        why: None,
        backend_key: None,
    }
}

/// Family of a claim whose pool is not known.
fn no_family() -> types::Family {
    types::Family::from("")
}

fn family(address: Address, length: Option<u8>) -> Family {
    match (address.kind(), length) {
        (_, Some(_)) => Family::Prefix,
        (Kind::V4, None) => Family::Ipv4,
        (Kind::V6, None) => Family::Ipv6,
        (Kind::Mac, None) => Family::Mac,
    }
}

/// A claim as a Book has it now: with what is left of its time, and with its pool.
pub(crate) fn in_book(book: &Book, claim: &Arc<Claim>, now: Timestamp) -> ClaimOutput {
    let status = book.pool(&claim.pool);
    let spec = status.as_ref().map(|status| &status.pool.spec);
    match book.claim(&claim.pool, &claim.key).filter(|view| view.claim.id == claim.id) {
        Some(view) => output(&ClaimView { claim: Arc::clone(claim), left: view.left }, spec, now),
        None => lone(claim, spec, now),
    }
}

/// A claim in the queue as one of the first of its pools that is `visible`, or of all.
pub(crate) fn waiting_in_book(book: &Book, waits: &Waiting, visible: Option<&[Ident]>) -> ClaimOutput {
    let seen = |pool: &&Ident| visible.is_none_or(|visible| visible.contains(pool));
    let status = waits.pools.iter().find(seen).and_then(|pool| book.pool(pool));
    waiting(waits, status.as_ref().map(|status| &status.pool.spec))
}

pub(crate) fn reservation(reservation: &Reservation) -> ReservationOutput {
    ReservationOutput {
        pool: reservation.pool.to_string(),
        key: reservation.key.to_string(),
        owner: reservation.owner.to_string(),
        range: reservation.range.to_string(),
        since: reservation.since,
        description: reservation.description.clone(),
    }
}
