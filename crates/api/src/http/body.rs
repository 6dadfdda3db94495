//! JSON bodies: bounded, strict, with errors that name the field.

use std::{fmt, time::Duration};

use axum::{
    body::{Body, HttpBody as _},
    extract::{FromRequest, Request},
    http::{HeaderMap, StatusCode, header},
};
use futures::StreamExt as _;
use serde::{
    Deserializer,
    de::{self, DeserializeOwned, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;

use crate::{app::AppState, http::session::time_left, problem::Failure};

/// Most bytes of an ordinary body.
pub(crate) const ORDINARY: usize = 1 << 20;
/// Most bytes of a body that carries many things, unless configured otherwise.
pub(crate) const BULK: usize = 8 << 20;
/// How much of a body that is too large is read and thrown away, so that its sender hears why.
const SWALLOWED: usize = 64 << 20;
const SWALLOWING: Duration = Duration::from_secs(10);

/// A body that is one list of many things.
pub(crate) trait Many {
    /// Name of the list in the body.
    const LIST: &'static str;
    /// Most things in it.
    const MOST: usize;
}

/// A body of at most [`BULK`] bytes, whose things are counted before any of them is read.
#[derive(Debug)]
pub(crate) struct ManyJson<T>(pub(crate) T);

impl<T: DeserializeOwned + Many> FromRequest<AppState> for ManyJson<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, app: &AppState) -> Result<Self, Failure> {
        let bytes = receive::<BULK>(request, app).await?;
        check_count::<T>(&bytes)?;
        parse(&bytes).map(Self)
    }
}

/// Refuses a list that is too long. What else may be wrong with the body is found when it is read.
fn check_count<T: Many>(bytes: &[u8]) -> Result<(), Failure> {
    let mut count = ListLength { list: T::LIST, most: T::MOST, found: 0 };
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let _ = json.deserialize_map(&mut count);
    if count.found <= T::MOST {
        return Ok(());
    }
    let told = format!("there are more than {}, which is the most that are taken at once", T::MOST);
    Err(Failure::impossible(T::LIST, told))
}

/// Counts the things in one list of an object, and stops when there are too many.
struct ListLength {
    list: &'static str,
    most: usize,
    found: usize,
}

impl<'de> Visitor<'de> for &mut ListLength {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with a list")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            if name == self.list {
                map.next_value_seed(&mut *self)?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {
            self.found += 1;
            if self.found > self.most {
                return Err(de::Error::custom("there are too many"));
            }
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for &mut ListLength {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, list: D) -> Result<(), D::Error> {
        list.deserialize_seq(self)
    }
}

/// A body of at most `MOST` bytes of JSON. An empty one counts as `{}`.
#[derive(Debug)]
pub(crate) struct Json<T, const MOST: usize = ORDINARY>(pub(crate) T);

impl<T: DeserializeOwned, const MOST: usize> FromRequest<AppState> for Json<T, MOST> {
    type Rejection = Failure;

    async fn from_request(request: Request, app: &AppState) -> Result<Self, Failure> {
        parse(&receive::<MOST>(request, app).await?).map(Self)
    }
}

async fn receive<const MOST: usize>(request: Request, app: &AppState) -> Result<Vec<u8>, Failure> {
    let left = time_left(app, request.extensions(), request.headers())?;
    let (parts, body) = request.into_parts();
    if !body.is_end_stream() {
        check_type(&parts.headers)?;
    }
    // What carries many things is bounded by the configuration, the rest never takes more than it needs.
    let most = if MOST == BULK { app.max_body } else { MOST.min(app.max_body) };
    let reading = tokio::time::timeout(left, read(body, &parts.headers, most));
    reading.await.map_err(|_| too_slow())?
}

fn check_type(headers: &HeaderMap) -> Result<(), Failure> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json")) {
        return Ok(());
    }
    let told = if kind.is_empty() {
        "the body has no type".to_owned()
    } else {
        format!("a body of type `{essence}` is not taken")
    };
    Err(Failure::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "unsupported-media-type",
        format!("{told}; send `Content-Type: application/json`"),
    ))
}

/// The whole body, if it is not too large.
pub(super) async fn read(body: Body, headers: &HeaderMap, most: usize) -> Result<Vec<u8>, Failure> {
    let declared = body.size_hint().lower();
    let asks_first = headers
        .get(header::EXPECT)
        .is_some_and(|expect| expect.as_bytes().eq_ignore_ascii_case(b"100-continue"));
    let too_large = declared > most as u64;
    if too_large && asks_first {
        return Err(oversized(most));
    }
    let mut stream = body.into_data_stream();
    let mut bytes = Vec::new();
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.map_err(|error| Failure::unreadable("", format!("the body broke off: {error}")))?;
        if too_large || bytes.len() + chunk.len() > most {
            swallow(stream).await;
            return Err(oversized(most));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// Reads on for a while: an answer to a client that is still sending would be lost with the connection.
async fn swallow(mut stream: axum::body::BodyDataStream) {
    let swallowing = async {
        let mut swallowed = 0;
        while let Some(Ok(chunk)) = stream.next().await {
            swallowed += chunk.len();
            if swallowed > SWALLOWED {
                break;
            }
        }
    };
    let _ = tokio::time::timeout(SWALLOWING, swallowing).await;
}

fn oversized(most: usize) -> Failure {
    let size = if most >= 1 << 20 { format!("{} MiB", most >> 20) } else { format!("{} KiB", most >> 10) };
    let told = format!("the body is larger than the {size} that are taken here");
    Failure::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", told).fact("most_bytes", most)
}

pub(super) fn too_slow() -> Failure {
    Failure::new(
        StatusCode::REQUEST_TIMEOUT,
        "too-slow",
        "the body did not arrive before the deadline of the request",
    )
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Failure> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        Failure::unreadable("", format!("the body is not UTF-8 from byte {} on", error.valid_up_to()))
    })?;
    let text = if text.trim().is_empty() { "{}" } else { text };
    let mut json = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        unreadable(text, &path, &error.into_inner())
    })?;
    json.end().map_err(|error| Failure::unreadable("", format!("after the end of the body: {error}")))?;
    if text.contains('[') {
        let plain = serde_json::from_str(text).map_err(|error| Failure::unreadable("", error))?;
        check_lists(&plain, "")?;
    }
    Ok(value)
}

/// Where a list may stand. Serde would take one for any object, as its fields without their names.
const LISTS: [&str; 11] =
    ["any", "each", "entries", "exclude", "hostnames", "pools", "ranges", "seen", "values", "vrfs", "zones"];

fn check_lists(value: &Value, path: &str) -> Result<(), Failure> {
    match value {
        Value::Object(fields) => fields.iter().try_for_each(|(name, value)| {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            match value {
                Value::Array(items) if LISTS.contains(&name.as_str()) => items
                    .iter()
                    .enumerate()
                    .try_for_each(|(place, item)| check_lists(item, &format!("{path}[{place}]"))),
                _ => check_lists(value, &path),
            }
        }),
        Value::Array(_) if path.is_empty() => {
            Err(Failure::unreadable("", "the body is a list; it must be an object"))
        }
        Value::Array(_) => Err(Failure::unreadable(path, "it is a list; it must be an object")),
        _ => Ok(()),
    }
}

/// Serde's error in words that do not need its source.
fn unreadable(text: &str, path: &str, error: &serde_json::Error) -> Failure {
    let told = without_types(&error.to_string());
    let broken = error.is_syntax() || error.is_eof();
    if broken && serde_json::from_str::<Value>(text).is_ok() {
        // What ends after its first field, and has a second one.
        let place = path.split_inclusive(']').next().unwrap_or_default();
        let operations = "one of `claim`, `release`, `renew` and `move`";
        return Failure::unreadable(
            place,
            format!("it says more than one thing; give each entry {operations}"),
        );
    }
    let field = field(path, &told);
    match (field.is_empty(), broken) {
        (true, true) => Failure::unreadable("", format!("the body is not JSON: {told}")),
        (true, false) => Failure::unreadable("", format!("the body cannot be read: {told}")),
        (false, _) => Failure::unreadable(field, told),
    }
}

/// Removes Rust's type names: clients know objects.
fn without_types(told: &str) -> String {
    let Some((before, rest)) = told.split_once("expected struct ") else { return told.to_owned() };
    let after = rest.trim_start_matches(|letter: char| letter.is_ascii_alphanumeric());
    format!("{before}expected an object{after}")
}

/// The path to the trouble. Serde gives a missing field the path of what it is missing in, and one that is there twice
/// that of what it is in; where it does not know, it says `?`.
fn field(path: &str, told: &str) -> String {
    let known = path.trim_end_matches('?').trim_end_matches('.');
    let named = ["missing field `", "duplicate field `"].iter().find_map(|start| told.strip_prefix(start));
    match named.and_then(|rest| rest.split_once('`')) {
        Some((name, _)) if known.is_empty() => name.to_owned(),
        Some((name, _)) if known == name || known.ends_with(&format!(".{name}")) => known.to_owned(),
        Some((name, _)) => format!("{known}.{name}"),
        None => known.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use netstead_client::types::{BulkInput, ClaimFrom, ClaimInput, ReservationInput};

    use super::*;

    fn wrong<T: DeserializeOwned + std::fmt::Debug>(text: &[u8]) -> String {
        let problem = parse::<T>(text).unwrap_err().problem(None);
        format!("{} {} | {}", problem.status, problem.field.unwrap_or_default(), problem.detail)
    }

    #[test]
    fn errors_name_the_field() {
        let all = [
            wrong::<ClaimFrom>(br#"{"key": "a", "claim": {"labels": {"env": 7}}}"#),
            wrong::<ClaimInput>(br#"{"adress": "10.0.0.1"}"#),
            wrong::<ReservationInput>(b"{}"),
            wrong::<BulkInput>(
                br#"{"entries": [{"claim": {"key": "a", "any": ["lan"]}}, {"release": {"pool": "lan"}}]}"#,
            ),
            wrong::<BulkInput>(br#"{"entries": [{"frobnicate": {}}]}"#),
            wrong::<ClaimInput>(br#"{"address": }"#),
            wrong::<ClaimInput>(b"{} {}"),
            wrong::<ClaimInput>(b"[]"),
            wrong::<ClaimFrom>(br#"{"key": "a", "any": ["lan"], "claim": ["10.0.0.1"]}"#),
            wrong::<BulkInput>(
                br#"{"entries": [{"release": {"pool": "a", "key": "b"}}, {"release": ["lan", "web"]}]}"#,
            ),
            wrong::<ClaimInput>(b"{\"key\": \"\xff\"}"),
            wrong::<ClaimInput>(b"{"),
            wrong::<ClaimInput>(b"null"),
            wrong::<ClaimFrom>(br#"{"key": "a", "any": ["lan"], "claim": 7}"#),
            wrong::<ClaimFrom>(br#"{"key": "a", "claim": {"ttl": "1h", "ttl": "2h"}}"#),
            wrong::<BulkInput>(
                br#"{"entries": [{"release": {"pool": "a", "key": "b"}, "renew": {"pool": "a", "key": "b"}}]}"#,
            ),
        ];
        assert_snapshot!(all.join("\n"), @"
        400 claim.labels.env | claim.labels.env: invalid type: integer `7`, expected a string at line 1 column 42
        400 adress | adress: unknown field `adress`, expected one of `address`, `prefer`, `length`, `ttl`, `labels`, `hostnames`, `description`, `owner`, `adopt`, `force`, `wait`, `keep` at line 1 column 9
        400 range | range: missing field `range` at line 1 column 2
        400 entries[1].release.key | entries[1].release.key: missing field `key` at line 1 column 81
        400 entries[0] | entries[0]: unknown variant `frobnicate`, expected one of `claim`, `release`, `renew`, `move` at line 1 column 26
        400 address | address: expected value at line 1 column 13
        400  | after the end of the body: trailing characters at line 1 column 4
        400  | the body is a list; it must be an object
        400 claim | claim: it is a list; it must be an object
        400 entries[1].release | entries[1].release: it is a list; it must be an object
        400  | the body is not UTF-8 from byte 9 on
        400  | the body is not JSON: EOF while parsing an object at line 1 column 1
        400  | the body cannot be read: invalid type: null, expected an object at line 1 column 4
        400 claim | claim: invalid type: integer `7`, expected an object at line 1 column 39
        400 claim.ttl | claim.ttl: duplicate field `ttl` at line 1 column 41
        400 entries[0] | entries[0]: it says more than one thing; give each entry one of `claim`, `release`, `renew` and `move`
        ");
    }

    #[test]
    fn a_list_that_is_too_long_is_refused_before_its_things_are_read() {
        // None of these is an entry, which only shows when they are read.
        let body = |count: usize| format!("{{\"x\": [[[]]], \"entries\": [{}]}}", vec!["7"; count].join(","));
        assert!(check_count::<BulkInput>(body(10_000).as_bytes()).is_ok());
        let problem = check_count::<BulkInput>(body(10_001).as_bytes()).unwrap_err().problem(None);
        let told = "entries: there are more than 10000, which is the most that are taken at once";
        assert_eq!((problem.status, problem.detail.as_str()), (422, told));
        for other in ["", "[]", "7", "{\"entries\": 7}", "{\"entries\": [", "{\"other\": [1, 2]}"] {
            assert!(check_count::<BulkInput>(other.as_bytes()).is_ok(), "{other}");
        }
    }

    #[test]
    fn an_empty_body_is_an_empty_object() {
        assert_eq!(parse::<ClaimInput>(b"").unwrap(), ClaimInput::default());
    }
}
