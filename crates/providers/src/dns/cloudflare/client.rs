//! Calls of the API.

use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};

use netstead_model::{Name, ProviderError, RequestBudget};
use netstead_wire::http::{Http, HttpError, Reply, Request, StatusCode, path};
use serde::{
    Deserialize,
    de::{DeserializeOwned, IgnoredAny},
};
use serde_json::Value;

use super::{
    Config,
    budget::{Budget, Counting},
    wire::{ApiRecord, Comments, into_listing},
};
use crate::{
    BuildContext, SettingsError,
    dns::{per_record::Listing, refused_login::RefusedLogin},
};

/// The most records and zones in one page.
const RECORDS: usize = 5_000;
const ZONES: usize = 50;
/// A listing that does not fit together is read again so often: a page shifts when others write.
const LISTINGS: usize = 2;
/// More pages than any account has.
const MOST_PAGES: usize = 10_000;
/// The API blocks a user who made too many requests for so long.
const BLOCKED: Duration = Duration::from_mins(5);
/// Codes that mean wrong credentials, whatever the status.
const DENIED: [u64; 8] = [1000, 6003, 6111, 9106, 9107, 9109, 10_000, 10_001];
/// Codes that mean that there is no such zone.
const NO_ZONE: [u64; 3] = [1001, 1049, 7003];

/// A refusal: the codes, and the text of all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) codes: Vec<u64>,
    pub(super) reason: String,
}

#[derive(Deserialize)]
struct Envelope<T> {
    #[serde(default)]
    success: bool,
    #[serde(default = "Vec::new")]
    errors: Vec<ApiError>,
    result: Option<T>,
    #[serde(default)]
    result_info: Option<PageInfo>,
}

#[derive(Debug, Deserialize)]
struct ApiError {
    code: u64,
    #[serde(default)]
    message: String,
    #[serde(default)]
    error_chain: Vec<ApiError>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct PageInfo {
    #[serde(default)]
    total_count: usize,
    #[serde(default)]
    total_pages: usize,
}

#[derive(Deserialize)]
struct ApiZone {
    id: String,
    name: String,
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    permissions: Vec<String>,
}

pub(super) struct Client {
    http: Http,
    budget: Arc<Budget>,
    limit: usize,
    refused: RefusedLogin,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("http", &self.http)
            .field("budget", &self.budget)
            .finish_non_exhaustive()
    }
}

impl Client {
    pub(super) fn open(config: &Config, context: &BuildContext) -> Result<Self, SettingsError> {
        let token = config.token.reveal(context).map_err(|problem| SettingsError::new("token", problem))?;
        let key = format!("{} {}", config.url, context.revealed());
        let budget = Budget::shared(key, &context.clock);
        let inner = Arc::clone(&context.calls);
        let counting = Arc::new(Counting { budget: Arc::clone(&budget), inner });
        let http = Http::open(&config.url, &config.tls, &context.clone().with_calls(counting))?;
        Ok(Self {
            http: http.bearer("token", &token)?,
            budget,
            limit: config.rate_limit.get(),
            refused: RefusedLogin::new(Arc::clone(&context.clock)),
        })
    }

    pub(super) fn server(&self) -> String {
        self.http.server().to_owned()
    }

    pub(super) fn budget(&self) -> RequestBudget {
        self.budget.status(self.limit)
    }

    pub(super) fn malformed(&self, reason: impl AsRef<str>) -> ProviderError {
        self.http.malformed(reason).into()
    }

    /// Sends a request if the budget allows it.
    async fn send(&self, request: Request<'_>) -> Result<Reply, ProviderError> {
        self.refused.check()?;
        let busy = |wait| ProviderError::Busy { server: self.server(), retry_after: Some(wait) };
        self.budget.check(self.limit).map_err(busy)?;
        let reply = match request.send().await {
            Ok(reply) => reply,
            Err(HttpError::Busy { retry_after, .. }) => {
                let wait = retry_after.unwrap_or(BLOCKED);
                self.budget.rest(wait);
                return Err(busy(wait));
            }
            Err(error) => return Err(self.refused.remember(error.into())),
        };
        if let Some(wait) = reply.header("ratelimit").and_then(none_left) {
            self.budget.rest(wait);
        }
        Ok(reply)
    }

    /// The result of a call, or why the server refuses it.
    async fn call<T: DeserializeOwned>(
        &self,
        request: Request<'_>,
        writes: bool,
    ) -> Result<Result<(T, Option<PageInfo>), Refusal>, ProviderError> {
        let reply = self.send(request).await?;
        let unclear = |reason: String| match self.http.malformed(reason) {
            // A change that was answered with something else may have been made.
            HttpError::Malformed { server, reason } if writes => ProviderError::Unknown { server, reason },
            error => error.into(),
        };
        let read = reply.json::<Envelope<T>>();
        let envelope = match read {
            Ok(envelope) => envelope,
            Err(error) if reply.is_success() => return Err(unclear(format!("not its JSON: {error}"))),
            Err(_) => {
                return Err(self.malformed(format!("it answers {}: {}", reply.status, reply.text())));
            }
        };
        if reply.is_success() && envelope.success {
            let result = envelope.result.ok_or_else(|| unclear("it has no result".into()))?;
            return Ok(Ok((result, envelope.result_info)));
        }
        let mut codes = Vec::new();
        let mut texts = Vec::new();
        for error in envelope.errors.iter().flat_map(|error| [error].into_iter().chain(&error.error_chain)) {
            codes.push(error.code);
            texts.push(format!("{} ({})", error.message, error.code));
        }
        if texts.is_empty() {
            texts.push(format!("it answers {}", reply.status));
        }
        let HttpError::Malformed { reason, .. } = self.http.malformed(texts.join("; ")) else {
            return Err(unclear("it gives no reason".into()));
        };
        if codes.iter().any(|code| DENIED.contains(code)) {
            return Err(self.refused.remember(ProviderError::Denied { server: self.server(), reason }));
        }
        if reply.status == StatusCode::NOT_FOUND && codes.is_empty() {
            codes.push(7003);
        }
        Ok(Err(Refusal { codes, reason }))
    }

    fn refused(&self, zone: Option<&Name>, refusal: Refusal) -> ProviderError {
        match zone {
            Some(zone) if refusal.is_no_zone() => {
                ProviderError::NoSuchZone { server: self.server(), zone: zone.clone() }
            }
            _ => self.malformed(refusal.reason),
        }
    }

    /// Everything on all pages. What does not fit together is an error.
    async fn pages<T: DeserializeOwned>(
        &self,
        zone: Option<&Name>,
        at: &str,
        query: &[(&str, &str)],
        size: usize,
        id: impl Fn(&T) -> String,
    ) -> Result<Vec<T>, ProviderError> {
        let mut problem = String::new();
        for _ in 0..LISTINGS {
            let (mut all, mut expected, size) = (Vec::new(), 0, size.to_string());
            for page in 1..=MOST_PAGES {
                let number = page.to_string();
                let paging = [("per_page", size.as_str()), ("page", number.as_str()), ("order", "name")];
                let request = self.http.get(at).query(query).query(&paging).operation("list");
                let answer = self.call::<Vec<T>>(request, false).await?;
                let (part, info) = answer.map_err(|refusal| self.refused(zone, refusal))?;
                let info = info.ok_or_else(|| self.malformed("a list does not say how long it is"))?;
                let empty = part.is_empty();
                all.extend(part);
                expected = info.total_count;
                if empty || page >= info.total_pages {
                    break;
                }
            }
            let distinct = all.iter().map(&id).collect::<BTreeSet<String>>().len();
            if distinct == expected && all.len() == expected {
                return Ok(all);
            }
            problem = format!("a list has {distinct} entries and says that there are {expected}");
        }
        Err(self.malformed(problem))
    }

    /// The zones of the token, or the one of this name.
    pub(super) async fn zones(&self, name: Option<&Name>) -> Result<Vec<(Name, String)>, ProviderError> {
        let query: Vec<(&str, &str)> = name.iter().map(|name| ("name", name.as_str())).collect();
        let zones = self.pages(None, "/zones", &query, ZONES, |zone: &ApiZone| zone.id.clone()).await?;
        // The records of a secondary zone come from elsewhere.
        let own = zones.into_iter().filter(|zone| zone.kind != "secondary");
        Ok(own.filter_map(|zone| Some((zone.name.parse().ok()?, zone.id))).collect())
    }

    async fn api_zone(&self, zone: Option<&Name>, id: &str) -> Result<Option<ApiZone>, ProviderError> {
        let request = self.http.get(&path(&["zones", id])).operation("zone");
        match self.call::<ApiZone>(request, false).await? {
            Ok((found, _)) => Ok(Some(found)),
            Err(refusal) if refusal.is_no_zone() => Ok(None),
            Err(refusal) => Err(self.refused(zone, refusal)),
        }
    }

    /// The zone of this id.
    pub(super) async fn zone(&self, id: &str) -> Result<Option<(Name, String)>, ProviderError> {
        let found = self.api_zone(None, id).await?;
        Ok(found.and_then(|zone| Some((zone.name.parse().ok()?, zone.id))))
    }

    /// The permissions of the token in a zone; empty if the API shows none.
    pub(super) async fn permissions(&self, zone: &Name, id: &str) -> Result<Vec<String>, ProviderError> {
        let found = self.api_zone(Some(zone), id).await?;
        found
            .map(|zone| zone.permissions)
            .ok_or_else(|| ProviderError::NoSuchZone { server: self.server(), zone: zone.clone() })
    }

    pub(super) async fn records(&self, zone: &Name, id: &str) -> Result<(Listing, Comments), ProviderError> {
        let at = path(&["zones", id, "dns_records"]);
        let id = |record: &ApiRecord| record.id().to_owned();
        Ok(into_listing(self.pages(Some(zone), &at, &[], RECORDS, id).await?))
    }

    /// Sends a batch. The inner error if the server took nothing of it because of what it says.
    pub(super) async fn batch(
        &self,
        zone: &Name,
        id: &str,
        batch: &Value,
    ) -> Result<Result<(), Refusal>, ProviderError> {
        let at = path(&["zones", id, "dns_records", "batch"]);
        let request = self.http.post(&at).json(batch).operation("batch");
        // The answer repeats every record.
        match self.call::<IgnoredAny>(request, true).await? {
            Ok(_) => Ok(Ok(())),
            Err(refusal) if refusal.is_no_zone() => Err(self.refused(Some(zone), refusal)),
            Err(refusal) => Ok(Err(refusal)),
        }
    }
}

impl Refusal {
    fn is_no_zone(&self) -> bool {
        self.codes.iter().any(|code| NO_ZONE.contains(code))
    }
}

/// The wait that `"default";r=0;t=30` asks for; none while requests are left.
fn none_left(header: &str) -> Option<Duration> {
    let number = |name: &str| {
        let mut parts = header.split([';', ',']).map(str::trim);
        parts.find_map(|part| part.strip_prefix(name)?.strip_prefix('=')?.parse::<u64>().ok())
    };
    (number("r")? == 0).then(|| Duration::from_secs(number("t").unwrap_or(BLOCKED.as_secs())).min(BLOCKED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spent_budget_is_read_from_the_header() {
        assert_eq!(none_left(r#""default";r=0;t=30"#), Some(Duration::from_secs(30)));
        assert_eq!(none_left(r#""default";r=0;t=9999"#), Some(BLOCKED));
        for left in [r#""default";r=7;t=30"#, "", "r", "r=x"] {
            assert_eq!(none_left(left), None, "{left}");
        }
    }
}
