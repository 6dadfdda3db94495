//! Events.

use netstead_client::types::EventOutput;
use netstead_model::{Claim, Event, EventKind, Ident, ParseError, Pool, PoolStatus, Subject, Usage, Waiting};
use serde_json::{Value, json};

use super::{claim::reservation, pairs, pool};

/// The event as a caller is told it that sees the pools `visible`, or all of them.
pub(crate) fn output(event: &Event, visible: Option<&[Ident]>) -> EventOutput {
    let subject = |of: &Subject| subject(of, visible);
    let claim = event.claim();
    let after = event.after.as_ref().or(event.before.as_ref());
    EventOutput {
        seq: event.seq,
        at: event.at,
        by: event.by.to_string(),
        request: event.request.as_deref().map(str::to_owned),
        what: event.what.into(),
        pool: event.pool().map(ToString::to_string),
        key: after.and_then(key),
        owner: after.and_then(owner),
        address: claim.map(|claim| claim.held()),
        reason: event.reason.as_deref().map(str::to_owned),
        before: event.before.as_ref().map(subject),
        after: event.after.as_ref().map(subject),
    }
}

fn key(subject: &Subject) -> Option<String> {
    match subject {
        Subject::Claim(claim) => Some(claim.key.to_string()),
        Subject::Reservation(reservation) => Some(reservation.key.to_string()),
        Subject::Waiting(waiting) => Some(waiting.key.to_string()),
        Subject::Pool(_) => None,
    }
}

fn owner(subject: &Subject) -> Option<String> {
    match subject {
        Subject::Claim(claim) => Some(claim.owner.to_string()),
        Subject::Reservation(reservation) => Some(reservation.owner.to_string()),
        Subject::Waiting(waiting) => Some(waiting.owner.to_string()),
        Subject::Pool(_) => None,
    }
}

/// A thing as it was or is, under the names the rest of the API uses.
fn subject(subject: &Subject, visible: Option<&[Ident]>) -> Value {
    match subject {
        Subject::Claim(claim) => bound(claim),
        Subject::Pool(pool) => settings(pool),
        Subject::Reservation(reserved) => plain(&reservation(reserved)),
        Subject::Waiting(waits) => waiting(waits, visible),
    }
}

fn bound(claim: &Claim) -> Value {
    let details = claim.details();
    without_nulls(json!({
        "pool": claim.pool.as_str(),
        "key": claim.key.as_str(),
        "address": claim.held(),
        "id": claim.id.to_string(),
        "owner": &*claim.owner,
        "fixed": claim.fixed,
        "since": claim.since,
        "ttl": claim.ttl.map(|ttl| ttl.to_string()),
        "labels": pairs(&details.labels),
        "hostnames": details.hostnames.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "description": details.description,
    }))
}

fn waiting(waiting: &Waiting, visible: Option<&[Ident]>) -> Value {
    let seen = |pool: &&Ident| visible.is_none_or(|visible| visible.contains(pool));
    without_nulls(json!({
        "pools": waiting.pools.iter().filter(seen).map(ToString::to_string).collect::<Vec<_>>(),
        "key": waiting.key.as_str(),
        "owner": &*waiting.owner,
        "since": waiting.since,
        "keep": waiting.keep,
    }))
}

/// The settings of a pool without its counters, which no event knows.
fn settings(of: &Pool) -> Value {
    let mut value = plain(&pool::output(&PoolStatus { pool: of.clone(), usage: Usage::default() }));
    if let Some(fields) = value.as_object_mut() {
        fields.remove("usage");
    }
    value
}

fn plain(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

fn without_nulls(mut value: Value) -> Value {
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    value
}

pub(crate) fn kind(text: &str) -> Result<EventKind, ParseError> {
    EventKind::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or_else(|| {
        let known: Vec<&str> = EventKind::ALL.iter().map(|kind| kind.as_str()).collect();
        ParseError::new("kind of event", text, None, format!("use one of {}", known.join(", ")))
    })
}
