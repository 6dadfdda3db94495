//! [`Webhook`]: a receiver that speaks the protocol `netstead`.

use async_trait::async_trait;
use netstead_model::{
    Capabilities, ChangeSign, DnsProvider, Name, ProviderError, RecordData, RecordSet, RecordType, SetChange,
    Unit, UnitOutcome, WriteReply, WriteRequest, Zone, ZoneContent,
};
use netstead_wire::http::{Reply, StatusCode, path};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tokio::sync::Mutex;

use super::{capabilities, signed::SignedHttp};
use crate::dns::{
    preconditions::{expected, wanted},
    tidy,
};

/// Units in one request.
const MOST_UNITS: usize = 500;

/// One receiver.
#[derive(Debug)]
pub struct Webhook {
    http: SignedHttp,
    writing: Mutex<()>,
}

#[derive(Debug, Deserialize)]
struct ZoneList {
    zones: Vec<ListedZone>,
}

#[derive(Debug, Deserialize)]
struct ListedZone {
    name: Name,
    sign: String,
    #[serde(default = "yes")]
    writable: bool,
}

fn yes() -> bool {
    true
}

#[derive(Debug, Deserialize)]
struct ZoneRecords {
    sign: String,
    sets: Vec<ListedSet>,
}

#[derive(Debug, Deserialize)]
struct ListedSet {
    name: Name,
    #[serde(rename = "type")]
    kind: String,
    ttl: u32,
    values: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Changes<'a> {
    owner: &'a str,
    epoch: u64,
    generation: u64,
    units: Vec<SentUnit<'a>>,
}

#[derive(Debug, Serialize)]
struct SentUnit<'a> {
    name: &'a Name,
    changes: Vec<SentChange<'a>>,
}

#[derive(Debug, Serialize)]
struct SentChange<'a> {
    name: &'a Name,
    #[serde(rename = "type")]
    kind: RecordType,
    before: Option<SentSet>,
    after: Option<SentSet>,
}

#[derive(Debug, Serialize)]
struct SentSet {
    ttl: u32,
    values: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Outcomes {
    outcomes: Vec<SentOutcome>,
}

#[derive(Debug, Deserialize)]
struct SentOutcome {
    outcome: String,
    #[serde(default)]
    reason: String,
}

#[derive(Debug, Deserialize)]
struct Refusal {
    error: String,
}

impl From<&RecordSet> for SentSet {
    fn from(set: &RecordSet) -> Self {
        let set = tidy(set.clone());
        Self { ttl: set.ttl, values: set.values.iter().map(ToString::to_string).collect() }
    }
}

impl<'a> SentUnit<'a> {
    fn new(unit: &'a Unit) -> Self {
        let change = |change: &'a SetChange| {
            let some = change.after.as_ref().or(change.before.as_ref())?;
            Some(SentChange {
                name: &some.name,
                kind: some.kind,
                before: expected(change).map(SentSet::from),
                after: wanted(change).map(SentSet::from),
            })
        };
        Self { name: &unit.name, changes: unit.changes.iter().filter_map(change).collect() }
    }
}

impl Webhook {
    pub(super) fn new(http: SignedHttp) -> Self {
        Self { http, writing: Mutex::default() }
    }

    async fn list(&self) -> Result<Vec<ListedZone>, ProviderError> {
        let reply = self.http.get("/v1/zones").await?;
        if !reply.is_success() {
            return Err(self.odd(&reply));
        }
        Ok(self.json::<ZoneList>(&reply)?.zones)
    }

    fn json<T: DeserializeOwned>(&self, reply: &Reply) -> Result<T, ProviderError> {
        reply.json().map_err(|error| self.http.malformed(&format!("not its JSON: {error}")))
    }

    fn odd(&self, reply: &Reply) -> ProviderError {
        self.http.malformed(&format!("it answers {}: {}", reply.status, reply.text()))
    }

    fn missing(&self, zone: &Name) -> ProviderError {
        ProviderError::NoSuchZone { server: self.server(), zone: zone.clone() }
    }

    /// Sends some units and gives the outcome of each.
    async fn send(
        &self,
        zone: &Name,
        request: &WriteRequest,
        units: &[Unit],
    ) -> Result<Vec<UnitOutcome>, ProviderError> {
        request.guard.permit().await?;
        let changes = Changes {
            owner: &request.fence.owner,
            epoch: request.fence.epoch,
            generation: request.fence.generation,
            units: units.iter().map(SentUnit::new).collect(),
        };
        let body = serde_json::to_vec(&changes).map_err(|error| self.http.malformed(&error.to_string()))?;
        let reply = self.http.post(&path(&["v1", "zones", zone.as_str(), "changes"]), body).await?;
        match reply.status {
            StatusCode::NOT_FOUND => return Err(self.missing(zone)),
            StatusCode::CONFLICT if reply.json::<Refusal>().is_ok_and(|refusal| refusal.error == "late") => {
                return Err(ProviderError::Late { server: self.server(), zone: zone.clone() });
            }
            status if !status.is_success() => return Err(self.odd(&reply)),
            _ => {}
        }
        let outcomes = self.json::<Outcomes>(&reply)?.outcomes;
        if outcomes.len() != units.len() {
            let reason = format!("{} outcomes for {} units", outcomes.len(), units.len());
            return Err(self.http.malformed(&reason));
        }
        Ok(outcomes.into_iter().map(UnitOutcome::from).collect())
    }
}

impl From<SentOutcome> for UnitOutcome {
    fn from(sent: SentOutcome) -> Self {
        match sent.outcome.as_str() {
            "applied" => Self::Applied,
            "changed" => Self::Changed,
            "rejected" if sent.reason.is_empty() => Self::Rejected { reason: "it gives no reason".into() },
            "rejected" => Self::Rejected { reason: sent.reason },
            "not_tried" => Self::NotTried,
            _ => Self::Unknown,
        }
    }
}

#[async_trait]
impl DnsProvider for Webhook {
    fn kind(&self) -> &'static str {
        "webhook"
    }

    fn server(&self) -> String {
        self.http.server().to_owned()
    }

    fn capabilities(&self) -> Capabilities {
        capabilities()
    }

    async fn zones(&self, domains: &[Name]) -> Result<Vec<Zone>, ProviderError> {
        let near = |zone: &Name, domain: &Name| zone.is_subdomain_of(domain) || domain.is_subdomain_of(zone);
        let listed = self.list().await?.into_iter();
        let listed = listed.filter(|zone| domains.iter().any(|domain| near(&zone.name, domain)));
        let zone = |zone: ListedZone| Zone { name: zone.name, sign: Some(ChangeSign::Opaque(zone.sign)) };
        Ok(listed.map(zone).collect())
    }

    async fn read(&self, zone: &Name) -> Result<ZoneContent, ProviderError> {
        let reply = self.http.get(&path(&["v1", "zones", zone.as_str()])).await?;
        if reply.status == StatusCode::NOT_FOUND {
            return Err(self.missing(zone));
        }
        if !reply.is_success() {
            return Err(self.odd(&reply));
        }
        let found: ZoneRecords = self.json(&reply)?;
        let mut sets = Vec::with_capacity(found.sets.len());
        for set in found.sets {
            // Sets of types that Netstead does not know, or with values that it cannot read, are left alone: the receiver
            // refuses a change whose `before` is not what it has.
            let Ok(kind) = set.kind.parse::<RecordType>() else { continue };
            let values: Result<Vec<RecordData>, _> =
                set.values.iter().map(|value| RecordData::parse(kind, value)).collect();
            if let Ok(values) = values {
                sets.push(RecordSet::new(set.name, kind, set.ttl, values));
            }
        }
        Ok(ZoneContent { sign: Some(ChangeSign::Opaque(found.sign)), sets })
    }

    async fn may_write(&self, zone: &Name) -> Result<(), ProviderError> {
        match self.list().await?.into_iter().find(|listed| listed.name == *zone) {
            None => Err(self.missing(zone)),
            Some(listed) if listed.writable => Ok(()),
            Some(_) => {
                let reason = format!("it says that {zone} is not writable");
                Err(ProviderError::Denied { server: self.server(), reason })
            }
        }
    }

    fn adjust(&self, set: RecordSet, _: &Capabilities) -> RecordSet {
        tidy(set)
    }

    async fn write(&self, zone: &Name, request: &WriteRequest) -> Result<WriteReply, ProviderError> {
        let _alone = self.writing.lock().await;
        let mut outcomes = Vec::with_capacity(request.units.len());
        for units in request.units.chunks(MOST_UNITS) {
            match self.send(zone, request, units).await {
                Ok(done) => outcomes.extend(done),
                Err(error) if outcomes.is_empty() && !error.may_have_acted() => return Err(error),
                Err(error) => {
                    outcomes.extend(WriteReply::failed(units.len(), error.clone()).outcomes);
                    outcomes.resize(request.units.len(), UnitOutcome::NotTried);
                    return Ok(WriteReply { outcomes, stopped: Some(error) });
                }
            }
        }
        Ok(outcomes.into())
    }
}
