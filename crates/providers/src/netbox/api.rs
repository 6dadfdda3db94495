//! [`Api`]: requests, lists page by page, and bulk changes.

use std::{
    collections::BTreeMap,
    fmt,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use netstead_model::ProviderError;
use netstead_wire::http::{Effect, Http, HttpError, Method, Reply};
use serde_json::{Value, json};

use super::{ApiError, KeyField, Row, error::spoken, id_of, rows::text_of};

/// Objects on a page; NetBox gives fewer if its administrator wants that.
const PAGE: &str = "1000";
/// The most characters that the values of a filter may take: the first line of a request has 4094 at most.
const FILTER: usize = 3000;
/// The oldest version that is spoken.
const OLDEST: Version = Version(307);

/// A minor version: 4.7 is 407.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(u32);

impl Version {
    /// Disks are in megabytes from here on, in gigabytes before.
    pub(crate) const DISK_IN_MB: Self = Self(401);
    /// MAC addresses are objects.
    pub(crate) const MAC_OBJECTS: Self = Self(402);
    /// An object has an `ETag`.
    pub(crate) const ETAG: Self = Self(406);
    /// Lists of types are called `object_types` from here on.
    pub(crate) const OBJECT_TYPES: Self = Self(400);

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        let (major, minor): (u32, u32) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        (minor < 100).then_some(Self(major.checked_mul(100)?.checked_add(minor)?))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0 / 100, self.0 % 100)
    }
}

/// One NetBox.
#[derive(Debug)]
pub(crate) struct Api {
    http: Http,
    key_field: KeyField,
    /// As an answer said; 0 before the first one.
    version: AtomicU32,
}

impl Api {
    pub(super) fn new(http: Http, key_field: KeyField) -> Self {
        Self { http, key_field, version: AtomicU32::new(0) }
    }

    /// With another limit for one request.
    pub(crate) fn timeout(self, timeout: Duration) -> Self {
        Self { http: self.http.timeout(timeout), ..self }
    }

    pub(crate) fn server(&self) -> &str {
        self.http.server()
    }

    pub(crate) fn key_field(&self) -> &KeyField {
        &self.key_field
    }

    pub(crate) fn malformed(&self, reason: &str) -> ProviderError {
        self.http.malformed(reason).into()
    }

    /// The version, asked for if no answer has said it yet.
    pub(crate) async fn version(&self) -> Result<Version, ApiError> {
        if self.version.load(Ordering::Relaxed) == 0 {
            let status = self.get("/api/status/", &[]).await?;
            if self.version.load(Ordering::Relaxed) == 0 {
                let said = Version::parse(&text_of(&status, "netbox-version"));
                let version =
                    said.ok_or_else(|| self.malformed("it does not say its version; is it a NetBox?"))?;
                self.version.store(version.0, Ordering::Relaxed);
            }
        }
        let version = Version(self.version.load(Ordering::Relaxed));
        if version < OLDEST {
            return Err(self
                .malformed(&format!("it is NetBox {version}, and {OLDEST} is the oldest that works"))
                .into());
        }
        Ok(version)
    }

    /// The version of the last answer.
    pub(super) fn version_said(&self) -> Version {
        Version(self.version.load(Ordering::Relaxed))
    }

    /// One object.
    pub(crate) async fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<Row, ApiError> {
        Ok(self.get_with_etag(path, query).await?.0)
    }

    /// One object, and its `ETag` where there is one.
    pub(crate) async fn get_with_etag(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<(Row, Option<String>), ApiError> {
        let reply =
            self.http.get(path).query(query).send().await.map_err(|error| Self::explained(error, path))?;
        self.note_version(&reply);
        if !reply.is_success() {
            return Err(ApiError::refused(&reply));
        }
        let etag = reply.header("etag").map(ToOwned::to_owned);
        let row =
            reply.json::<Row>().map_err(|error| self.malformed(&format!("{path}: not its JSON: {error}")))?;
        Ok((row, etag))
    }

    /// All objects of a list, by ascending id. `query` is a hint: NetBox ignores filters that it does not know.
    ///
    /// Pages follow each other by the last id, so an object that is made or removed meanwhile makes no other one be left out.
    pub(crate) async fn list(&self, path: &str, query: &[(&str, &str)]) -> Result<Vec<Row>, ApiError> {
        let (mut rows, mut last) = (Vec::new(), 0);
        loop {
            let after = last.to_string();
            let mut page = query.to_vec();
            page.extend([("ordering", "id"), ("limit", PAGE)]);
            if last > 0 {
                page.push(("id__gt", &after));
            }
            let mut answer = self.get(path, &page).await?;
            let more = answer.get("next").is_some_and(|next| !next.is_null());
            let Some(Value::Array(found)) = answer.remove("results") else {
                return Err(self.malformed(&format!("{path}: no list")).into());
            };
            let before = last;
            for row in found {
                let Value::Object(row) = row else {
                    return Err(self.malformed(&format!("{path}: no objects in the list")).into());
                };
                match id_of(&row, "id") {
                    Some(id) if id > last => last = id,
                    _ => return Err(self.malformed(&format!("{path}: pages are not in order")).into()),
                }
                rows.push(row);
            }
            if !more {
                return Ok(rows);
            }
            if before == last {
                return Err(self.malformed(&format!("{path}: an empty page, and more to come")).into());
            }
        }
    }

    /// The objects of a list for which a filter has one of many values, in as many requests as their length takes.
    pub(crate) async fn list_by(
        &self,
        path: &str,
        query: &[(&str, &str)],
        filter: &str,
        values: &[String],
    ) -> Result<Vec<Row>, ApiError> {
        let (mut rows, mut seen) = (Vec::new(), std::collections::BTreeSet::new());
        let mut rest = values;
        while !rest.is_empty() {
            let mut length = 0;
            let fits = rest.iter().take_while(|value| {
                // A character may become three.
                length += filter.len() + 2 + value.len() * 3;
                length <= FILTER
            });
            let count = fits.count().max(1);
            let (some, others) = rest.split_at_checked(count).unwrap_or((rest, &[]));
            rest = others;
            let mut filters = query.to_vec();
            filters.extend(some.iter().map(|value| (filter, value.as_str())));
            let found = self.list(path, &filters).await?;
            rows.extend(found.into_iter().filter(|row| seen.insert(id_of(row, "id"))));
        }
        Ok(rows)
    }

    /// Makes objects, all or none, and gives them as NetBox has them, in order.
    pub(crate) async fn create(&self, path: &str, bodies: &[Row]) -> Result<Vec<Row>, ApiError> {
        let answer = self.change(Method::POST, path, Some(&json!(bodies)), Effect::Once, None).await?;
        let rows: Option<Vec<Row>> = match answer {
            Value::Array(all) => all.into_iter().map(object).collect(),
            one => object(one).map(|row| vec![row]),
        };
        // They may be there.
        let unknown = || {
            let (server, reason) = (self.server().to_owned(), "it does not say what it made".to_owned());
            ApiError::Server(ProviderError::Unknown { server, reason })
        };
        rows.filter(|rows| rows.len() == bodies.len()).ok_or_else(unknown)
    }

    /// Makes one object.
    pub(crate) async fn create_one(&self, path: &str, body: &Row) -> Result<Row, ApiError> {
        let answer = self.change(Method::POST, path, Some(&json!(body)), Effect::Once, None).await?;
        object(answer).ok_or_else(|| {
            let (server, reason) = (self.server().to_owned(), "it does not say what it made".to_owned());
            ProviderError::Unknown { server, reason }.into()
        })
    }

    /// Changes or removes objects, all or none. Sending it again changes nothing more.
    pub(crate) async fn change_all(
        &self,
        method: Method,
        path: &str,
        bodies: &[Row],
    ) -> Result<(), ApiError> {
        self.change(method, path, Some(&json!(bodies)), Effect::Idempotent, None).await.map(drop)
    }

    /// Changes or removes one object, if it still is as its `ETag` says.
    pub(crate) async fn change_one(
        &self,
        method: Method,
        path: &str,
        body: Option<&Row>,
        etag: Option<&str>,
    ) -> Result<(), ApiError> {
        let body = body.map(|body| json!(body));
        // With an ETag a repetition would be refused after a first one that had its effect unseen.
        let effect = if etag.is_some() { Effect::Once } else { Effect::Idempotent };
        self.change(method, path, body.as_ref(), effect, etag).await.map(drop)
    }

    async fn change(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        effect: Effect,
        etag: Option<&str>,
    ) -> Result<Value, ApiError> {
        let mut request = self.http.request(method, path).effect(effect).judging_errors();
        if let Some(body) = body {
            request = request.json(body);
        }
        if let Some(etag) = etag {
            request = request.header("if-match", etag);
        }
        let reply = request.send().await.map_err(|error| Self::explained(error, path))?;
        self.note_version(&reply);
        if reply.is_success() {
            return Ok(if reply.body.is_empty() { Value::Null } else { reply.json().unwrap_or(Value::Null) });
        }
        // An error of NetBox itself is JSON, and the transaction is rolled back. Any other page is that of a proxy.
        let own = || reply.json::<Row>().is_ok_and(|body| body.contains_key("exception"));
        if reply.status.is_server_error() && !own() {
            let (server, reason) =
                (self.server().to_owned(), format!("it answers {}: {}", reply.status, reply.text()));
            return Err(ProviderError::Unknown { server, reason }.into());
        }
        Err(ApiError::refused(&reply))
    }

    /// Whether the token may make objects of this list.
    pub(crate) async fn may_add(&self, path: &str) -> Result<bool, ApiError> {
        let request = self.http.request(Method::OPTIONS, path).effect(Effect::Read);
        let about: Value = request.read().await.map_err(|error| Self::explained(error, path))?;
        Ok(about.get("actions").is_some_and(|actions| actions.get("POST").is_some()))
    }

    fn note_version(&self, reply: &Reply) {
        if let Some(version) = reply.header("api-version").and_then(Version::parse) {
            self.version.store(version.0, Ordering::Relaxed);
        }
    }

    /// A refusal of the credentials with the next step.
    fn explained(error: HttpError, path: &str) -> ApiError {
        let HttpError::Denied { server, status, reason } = error else { return error.into() };
        // NetBox says it in JSON; the rest of the line is ours.
        let said = reason.split_once('{').map(|(_, json)| format!("{{{json}"));
        let said = said.and_then(|json| serde_json::from_str::<Value>(&json).ok()).map(|json| spoken(&json));
        let said = said.unwrap_or(reason);
        let reason = if said.contains("permission") {
            format!("{said} ({path}): give the user of the token the permission for it")
        } else if said.contains("not provided") {
            format!("{said} Versions before 4.5 know tokens of version 1 alone")
        } else {
            format!("{said} (status {status})")
        };
        ProviderError::Denied { server, reason }.into()
    }
}

fn object(value: Value) -> Option<Row> {
    match value {
        Value::Object(row) => Some(row),
        _ => None,
    }
}

/// The members of a batch that NetBox names in its refusal, by their number, with its words. `ids` are those of the batch.
pub(crate) fn refused_members(body: &Value, ids: &[Option<u64>]) -> BTreeMap<usize, String> {
    let mut found = BTreeMap::new();
    if let Some(all) = body.as_array().filter(|all| all.len() == ids.len()) {
        for (number, one) in all.iter().enumerate() {
            let said = spoken(one);
            if !said.is_empty() {
                found.insert(number, said);
            }
        }
        return found;
    }
    for one in body.get("errors").and_then(Value::as_array).into_iter().flatten() {
        let number = |name: &str| one.get(name).and_then(Value::as_u64);
        let by_id = || ids.iter().position(|id| id.is_some() && *id == number("id"));
        let by_index = number("index").and_then(|index| usize::try_from(index).ok());
        let Some(at) = by_index.or_else(by_id).filter(|at| *at < ids.len()) else { continue };
        found.insert(at, one.get("errors").map(spoken).unwrap_or_default());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        let version = |text: &str| Version::parse(text).unwrap();
        assert!(version("4.10") > version("4.7.3") && version("3.7.8") >= OLDEST && version("3.6") < OLDEST);
        assert_eq!(version("4.7").to_string(), "4.7");
        assert_eq!((Version::parse("4"), Version::parse("x.y")), (None, None));
    }

    #[test]
    fn refused_members_are_found_in_every_form() {
        let ids = [None, None];
        let found = refused_members(&json!([{}, { "name": ["Too long."] }]), &ids);
        assert_eq!(found, BTreeMap::from([(1, "name: Too long.".to_owned())]));
        let indexed =
            json!({ "detail": "1 of 2", "errors": [{ "index": 0, "errors": { "__all__": ["No."] } }] });
        assert_eq!(refused_members(&indexed, &ids), BTreeMap::from([(0, "No.".to_owned())]));
        let by_id = json!({ "detail": "1 of 2", "errors": [{ "id": 9, "errors": { "x": ["No."] } }] });
        assert_eq!(refused_members(&by_id, &[Some(7), Some(9)]), BTreeMap::from([(1, "x: No.".to_owned())]));
        assert!(refused_members(&json!({ "detail": "No." }), &ids).is_empty());
    }
}
