//! The parts that `netstead_address`, `netstead_addresses`, `netstead_prefix` and `netstead_host` share: each is a claim of
//! the ledger.

mod forecast;
mod place;

use std::time::Duration;

use netstead_client::{
    Client,
    types::{ClaimOutput, ClaimState},
};
use netstead_model::{Address, Cidr, Ident, Key, Labels, Name, Selector, Span};

pub(super) use self::{
    forecast::{check_fixed, extent, taken, warn_if_all_full, warn_if_full},
    place::Place,
};
use crate::{
    protocol::{Attribute, Diagnostic, Failed, Fields as _, Kind, Object, Value, sentence},
    session::{Session, keep, told},
};

/// `pool`, `pools` and `selector`.
pub(super) fn pool_attributes() -> Vec<Attribute> {
    vec![
        Attribute::optional("pool", Kind::Text, "The pool. One of `pool`, `pools` and `selector` is needed.")
            .replaces()
            .check(ident),
        Attribute::optional(
            "pools",
            Kind::list_of(Kind::Text),
            "Pools in order: the first with room gives the address. The key is unique over all of them. A change that still \
             has the pool the address is from needs no new address.",
        )
        .replaces()
        .check(ident),
        Attribute::optional(
            "selector",
            Kind::Text,
            "The pools whose labels match, in order of name: `site=ams,env!=dev`. As with `pools`, the first with room gives \
             the address.",
        )
        .replaces()
        .check(selector),
    ]
}

/// How long a creation waits for the backend of its pool, unless `timeouts` says it.
const CREATE: Duration = Duration::from_mins(5);
/// `timeouts = { create = "10m" }`.
pub(super) fn timeouts_attribute() -> Attribute {
    Attribute::optional(
        "timeouts",
        Kind::Object(vec![("create", Kind::Text)]),
        "`create`: how long a creation asks again while the backend of the pool does not answer, `5m` by default. After that it \
         fails, and nothing is claimed. Pools without a backend answer at once; see `wait` of `netstead_address`.",
    )
}

pub(super) fn validate_timeouts(config: &Object) -> Vec<Diagnostic> {
    let wrong = create_timeout(config).err();
    wrong
        .map(|reason| Diagnostic::error("`create` is not usable", sentence(&reason)).at("timeouts"))
        .into_iter()
        .collect()
}

/// How long a creation may ask the backend of its pool.
pub(super) fn patience(config: &Object) -> Duration {
    create_timeout(config).ok().flatten().map_or(CREATE, Duration::from)
}

fn create_timeout(config: &Object) -> Result<Option<Span>, String> {
    let Value::Map(timeouts) = config.value("timeouts") else { return Ok(None) };
    timeouts
        .text("create")
        .map(str::parse)
        .transpose()
        .map_err(|error: <Span as std::str::FromStr>::Err| error.to_string())
}

/// Attributes of the user's own data.
pub(super) fn note_attributes() -> Vec<Attribute> {
    vec![
        Attribute::optional(
            "labels",
            Kind::map_of(Kind::Text),
            "Labels, which lists and selectors can ask for.",
        ),
        Attribute::optional("description", Kind::Text, "A note for people."),
    ]
}

/// Attributes that the ledger sets.
pub(super) fn computed_attributes() -> Vec<Attribute> {
    vec![
        Attribute::computed("id", Kind::Text, "`POOL/KEY`, the id of an import."),
        Attribute::computed("found_in_pool", Kind::Text, "The pool it is from."),
        Attribute::computed(
            "claim_id",
            Kind::Text,
            "The id of this claim; a later one of the same key has another.",
        ),
        Attribute::computed("owner", Kind::Text, "The owner of the claim: the name of the token."),
        Attribute::computed("family", Kind::Text, "`ipv4`, `ipv6`, `mac` or `prefix`."),
        Attribute::computed("network", Kind::Text, "The network of the pool."),
        Attribute::computed("gateway", Kind::Text, "The gateway of the pool."),
    ]
}

pub(super) fn ident(text: &str) -> Result<(), String> {
    text.parse::<Ident>().map(drop).map_err(|error| error.to_string())
}

pub(super) fn key(text: &str) -> Result<(), String> {
    text.parse::<Key>().map(drop).map_err(|error| error.to_string())
}

pub(super) fn address(text: &str) -> Result<(), String> {
    text.parse::<Address>().map(drop).map_err(|error| error.to_string())
}

pub(super) fn name(text: &str) -> Result<(), String> {
    text.parse::<Name>().map(drop).map_err(|error| error.to_string())
}

pub(super) fn span(text: &str) -> Result<(), String> {
    text.parse::<Span>().map(drop).map_err(|error| error.to_string())
}

pub(super) fn selector(text: &str) -> Result<(), String> {
    text.parse::<Selector>().map(drop).map_err(|error| error.to_string())
}

/// Exactly one of `pool`, `pools` and `selector`.
pub(super) fn validate_choice(config: &Object) -> Vec<Diagnostic> {
    let all = ["pool", "pools", "selector"];
    let said: Vec<&str> = all.into_iter().filter(|one| !config.value(one).is_null()).collect();
    match said.as_slice() {
        [_] => Vec::new(),
        [] => vec![
            Diagnostic::error("the pool is missing", "Set one of `pool`, `pools` and `selector`.").at("pool"),
        ],
        [_, more, ..] => vec![
            Diagnostic::error(
                "there is more than one choice of pools",
                format!("Set one of `pool`, `pools` and `selector`, not {}.", said.join(" and ")),
            )
            .at(more),
        ],
    }
}

/// Whether the pool that the claim is in is still among those asked for.
pub(super) async fn leaves_its_pool(session: Option<&Session>, prior: &Object, planned: &Object) -> bool {
    let Some(there) = prior.text("found_in_pool") else { return true };
    if let Some(pool) = planned.text("pool") {
        return pool != there;
    }
    if let Some(pools) = planned.texts("pools") {
        return !pools.iter().any(|pool| pool == there);
    }
    let Some(Ok(selector)) = planned.text("selector").map(str::parse::<Selector>) else { return true };
    let Some(Ok(client)) = session.map(Session::client) else { return true };
    match client.pool(there).await {
        Ok(pool) => Labels::new(pool.value.labels).map_or(true, |labels| !selector.matches(&labels)),
        Err(_) => true,
    }
}

fn is_bound(claim: &ClaimOutput) -> bool {
    claim.state == ClaimState::Bound && claim.address.is_some()
}

/// The claim that `state` names; `None` if it holds nothing.
pub(super) async fn find(client: &Client, state: &Object) -> Result<Option<ClaimOutput>, Failed> {
    let (Some(pool), Some(key)) = (state.text("found_in_pool").or(state.text("pool")), state.text("key"))
    else {
        return Ok(None);
    };
    look_up(client, pool, key).await
}

pub(super) async fn look_up(client: &Client, pool: &str, key: &str) -> Result<Option<ClaimOutput>, Failed> {
    match client.look_up(pool, key).await {
        Ok(claim) => Ok(claim.filter(is_bound)),
        Err(error) if error.is("no-such-pool") => Ok(None),
        Err(error) => Err(told(format!("`{key}` of pool `{pool}` cannot be read"), &error).into()),
    }
}

/// Ends the claim in `state`, and no later one of the same key.
pub(super) async fn release(client: &Client, state: &Object) -> Result<(), Failed> {
    let (Some(pool), Some(key)) = (state.text("found_in_pool"), state.text("key")) else { return Ok(()) };
    let Some(id) = state.text("claim_id") else { return Ok(()) };
    match client.release(pool, key, id).await {
        Ok(_) => Ok(()),
        Err(error) if error.is("no-such-pool") || error.is("already-gone") || error.is("no-such-claim") => {
            Ok(())
        }
        Err(error) => Err(told(format!("`{key}` of pool `{pool}` cannot be released"), &error).into()),
    }
}

/// The values that all claims have.
pub(super) fn values(claim: &ClaimOutput) -> Object {
    let mut object = Object::new();
    let mut set = |name: &str, value: Value| object.insert(name.to_owned(), value);
    set("id", format!("{}/{}", claim.pool, claim.key).into());
    set("key", claim.key.as_str().into());
    set("found_in_pool", claim.pool.as_str().into());
    set("claim_id", claim.id.clone().into());
    set("owner", claim.owner.as_str().into());
    set("family", claim.family.to_string().into());
    set("network", claim.network.clone().into());
    set("gateway", claim.gateway.clone().into());
    set("address", claim.address.clone().into());
    set("description", claim.description.clone().filter(|text| !text.is_empty()).into());
    set("labels", if claim.labels.is_empty() { Value::Null } else { claim.labels.clone().into() });
    set("names", claim.names.clone().into());
    set("fqdn", claim.names.first().cloned().into());
    let length =
        claim.network.as_deref().and_then(|network| network.parse::<Cidr>().ok()).map(|cidr| cidr.len());
    set("prefix_length", length.into());
    object
}

/// `found` with the user's own spelling, and with what only the configuration knows, from `state`.
pub(super) fn with_stated(state: &Object, mut found: Object, only_stated: &[&str]) -> Object {
    for name in only_stated {
        found.insert((*name).to_owned(), state.value(name).clone());
    }
    for (name, value) in &mut found {
        let stated = state.value(name);
        if value.is_null() && is_empty(stated) {
            *value = stated.clone();
        } else {
            *value = keep(stated, value.clone(), same);
        }
    }
    found
}

/// As [`with_stated`], for what is claimed from a choice of pools. After an import no choice is stated, and the pool is that of the
/// claim.
pub(super) fn with_choice(state: &Object, found: Object, only_stated: &[&str]) -> Object {
    let choice = ["pool", "pools", "selector"];
    let none = choice.iter().all(|one| state.value(one).is_null());
    let mut found = with_stated(state, found, &[&choice, only_stated].concat());
    if none {
        found.insert("pool".into(), found.value("found_in_pool").clone());
    }
    found
}

/// An empty text, list or map, which the server does not tell from none.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Text(text) => text.is_empty(),
        Value::List(items) => items.is_empty(),
        Value::Map(items) => items.is_empty(),
        _ => false,
    }
}

/// Whether two texts are the same address, name, range or time.
pub(super) fn same(one: &str, other: &str) -> bool {
    fn equal<T: std::str::FromStr + PartialEq>(one: &str, other: &str) -> bool {
        matches!((one.parse::<T>(), other.parse::<T>()), (Ok(one), Ok(other)) if one == other)
    }
    one == other
        || equal::<Address>(one, other)
        || equal::<netstead_model::Range>(one, other)
        || equal::<Span>(one, other)
        || equal::<Name>(one, other)
}

/// `POOL/KEY`. A key may have a slash, a pool has none.
pub(super) fn import(id: &str) -> Option<Object> {
    let (pool, key) = id.split_once('/').filter(|(pool, key)| !pool.is_empty() && !key.is_empty())?;
    Some(
        [
            ("pool".to_owned(), pool.into()),
            ("found_in_pool".to_owned(), pool.into()),
            ("key".to_owned(), key.into()),
        ]
        .into(),
    )
}
