//! Query parameters: unknown ones are refused, wrong ones named.

use std::{fmt::Display, str::FromStr};

use axum::{
    extract::FromRequestParts,
    http::{Uri, request::Parts},
};
use netstead_client::types::Stale;
use netstead_ledger::Freshness;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use utoipa::IntoParams;

use crate::{app::AppState, problem::Failure};

/// Most things on one page.
const MOST: usize = 1000;
const DEFAULT: usize = 100;

/// How many changes after the newest one may be waited for. There are never as many within the longest time a request has.
const FARTHEST: u64 = 1_000_000_000;

/// The parameters of a request that changes something.
#[derive(Debug)]
pub(crate) struct Query<T>(pub(crate) T);

/// The parameters of a request that looks, and how fresh the answer must be.
#[derive(Debug)]
pub(crate) struct ReadQuery<T> {
    pub(crate) params: T,
    pub(crate) freshness: Freshness,
}

/// How fresh an answer must be.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "it is written for the document; `freshness` reads the values")]
pub(crate) struct FreshParams {
    /// `ok`: answer at once from memory; the header `Netstead-Age` says how old that is.
    #[param(inline, value_type = Option<Stale>)]
    stale: Option<String>,
    /// Wait until this sequence number has been reached; at most a billion after the newest.
    at_least: Option<u64>,
}

/// For requests without parameters.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoParams {}

impl<T: DeserializeOwned> FromRequestParts<AppState> for Query<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &AppState) -> Result<Self, Failure> {
        typed(pairs(&parts.uri)?).map(Self)
    }
}

impl<T: DeserializeOwned> FromRequestParts<AppState> for ReadQuery<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, Failure> {
        let mut pairs = pairs(&parts.uri)?;
        let freshness = freshness(&mut pairs, app.ledger.health().seq)?;
        Ok(Self { params: typed(pairs)?, freshness })
    }
}

fn pairs(uri: &Uri) -> Result<Map<String, Value>, Failure> {
    let axum::extract::Query(list) = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(uri)
        .map_err(|error| Failure::unreadable("", format!("the query cannot be read: {error}")))?;
    let mut pairs = Map::new();
    for (name, value) in list {
        if pairs.contains_key(&name) {
            return Err(Failure::unreadable(name, "it is given twice"));
        }
        pairs.insert(name, Value::String(value));
    }
    Ok(pairs)
}

/// How fresh the answer must be, where `newest` is the number of the newest change.
fn freshness(pairs: &mut Map<String, Value>, newest: u64) -> Result<Freshness, Failure> {
    let mut take = |name| pairs.remove(name).and_then(|value| value.as_str().map(str::to_owned));
    let (stale, at_least) = (take("stale"), take("at_least"));
    match (stale.as_deref(), at_least) {
        (None, None) => Ok(Freshness::Fresh),
        (Some("ok"), None) => Ok(Freshness::Stale),
        (Some("ok"), Some(_)) => {
            Err(Failure::unreadable("at_least", "it cannot be asked for together with `stale`"))
        }
        (Some(_), _) => Err(Failure::unreadable("stale", "the only value is `ok`")),
        (None, Some(number)) => {
            let told = "it is a sequence number: a whole number from 0 on";
            let number = number.parse().map_err(|_| Failure::unreadable("at_least", told))?;
            if number > newest.saturating_add(FARTHEST) {
                let told = format!("the newest change is {newest}, and no request waits for {number}");
                return Err(Failure::unreadable("at_least", told));
            }
            Ok(Freshness::AtLeast(number))
        }
    }
}

fn typed<T: DeserializeOwned>(pairs: Map<String, Value>) -> Result<T, Failure> {
    serde_json::from_value(Value::Object(pairs)).map_err(|error| {
        let told = error.to_string();
        let name = told.split('`').nth(1).unwrap_or_default().to_owned();
        Failure::unreadable(name, told.replace("field", "parameter"))
    })
}

/// A parameter as what it should be.
pub(crate) fn parse<T: FromStr<Err: Display>>(name: &str, text: &str) -> Result<T, Failure> {
    text.parse().map_err(|error| Failure::unreadable(name, error))
}

/// As [`parse`], for one that may be missing.
pub(crate) fn maybe<T: FromStr<Err: Display>>(
    name: &str,
    text: Option<&String>,
) -> Result<Option<T>, Failure> {
    text.map(|text| parse(name, text)).transpose()
}

/// How many things a page shall have.
pub(crate) fn limit(text: Option<&String>) -> Result<usize, Failure> {
    let Some(text) = text else { return Ok(DEFAULT) };
    let limit = text.parse().ok().filter(|limit| (1..=MOST).contains(limit));
    limit.ok_or_else(|| Failure::unreadable("limit", format!("it is a number from 1 to {MOST}")))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Params {
        pool: Option<String>,
    }

    fn ask(query: &str) -> Result<(Option<String>, Freshness), String> {
        let mut pairs = pairs(&query.parse().unwrap()).map_err(|failure| failure.problem(None).detail)?;
        let fresh = freshness(&mut pairs, 7).map_err(|failure| failure.problem(None).detail)?;
        let params: Params = typed(pairs).map_err(|failure| failure.problem(None).detail)?;
        Ok((params.pool, fresh))
    }

    #[test]
    fn parameters_are_read_with_their_freshness() {
        assert_eq!(ask("/"), Ok((None, Freshness::Fresh)));
        assert_eq!(ask("/?pool=a%20b&stale=ok"), Ok((Some("a b".into()), Freshness::Stale)));
        assert_eq!(ask("/?at_least=7"), Ok((None, Freshness::AtLeast(7))));
        assert_eq!(ask("/?at_least=1000000007"), Ok((None, Freshness::AtLeast(1_000_000_007))));
    }

    #[test]
    fn wrong_parameters_are_named() {
        let told = |query| ask(query).unwrap_err();
        assert_eq!(told("/?pol=a"), "pol: unknown parameter `pol`, expected `pool`");
        assert_eq!(told("/?pool=a&pool=b"), "pool: it is given twice");
        assert_eq!(told("/?stale=yes"), "stale: the only value is `ok`");
        assert_eq!(told("/?at_least=x"), "at_least: it is a sequence number: a whole number from 0 on");
        for number in ["1000000008", "9223372036854775808", "18446744073709551615"] {
            let wanted = format!("at_least: the newest change is 7, and no request waits for {number}");
            assert_eq!(ask(&format!("/?at_least={number}")).unwrap_err(), wanted);
        }
    }

    #[test]
    fn a_page_has_1_to_1000_things() {
        let of = |text: &str| limit(Some(&text.to_owned())).map_err(|failure| failure.problem(None).detail);
        assert_eq!(limit(None).unwrap(), 100);
        assert_eq!(of("1000"), Ok(1000));
        for wrong in ["0", "1001", "-1", "abc", ""] {
            assert_eq!(of(wrong), Err("limit: it is a number from 1 to 1000".into()), "{wrong}");
        }
    }
}
