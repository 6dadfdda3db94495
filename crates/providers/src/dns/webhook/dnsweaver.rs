//! [`Dnsweaver`]: a receiver that speaks dnsweaver's protocol: `/list`, `/create`, `/update`, `/delete`.
//!
//! Its `/delete` names a record by host and type, and only newer receivers look at the value: so a name has one value of
//! each type here.

use async_trait::async_trait;
use netstead_model::{
    Capabilities, Marks, Name, ProviderError, RecordData, RecordSet, RecordType, WriteOrder, ZoneSource,
};
use netstead_wire::http::{Effect, Http, Reply, Request, StatusCode};
use serde::{Deserialize, Serialize};

use crate::{
    BuildContext,
    dns::{
        per_record::{Listing, NewRecord, Record, RecordApi, RecordError},
        refused_login::RefusedLogin,
    },
};

#[derive(Debug)]
pub(super) struct Dnsweaver {
    http: Http,
    refused: RefusedLogin,
}

#[derive(Debug, Deserialize)]
struct Listed {
    hostname: String,
    #[serde(rename = "type")]
    kind: String,
    value: String,
    #[serde(default)]
    ttl: u32,
    #[serde(default)]
    id: serde_json::Value,
    srv: Option<Srv>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Srv {
    #[serde(default)]
    priority: u16,
    #[serde(default)]
    weight: u16,
    #[serde(default)]
    port: u16,
}

/// The body of `/create` and `/delete`.
#[derive(Debug, Serialize)]
struct Sent<'a> {
    hostname: &'a Name,
    #[serde(rename = "type")]
    kind: RecordType,
    value: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    srv: Option<Srv>,
}

#[derive(Debug, Serialize)]
struct Update<'a> {
    hostname: &'a Name,
    #[serde(rename = "type")]
    kind: RecordType,
    old_value: String,
    new_value: String,
    ttl: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    srv: Option<Srv>,
    #[serde(skip_serializing_if = "Option::is_none")]
    old_srv: Option<Srv>,
}

#[derive(Debug, Deserialize)]
struct Complaint {
    #[serde(default)]
    error: String,
    #[serde(default)]
    message: String,
}

impl Dnsweaver {
    pub(super) fn new(http: Http, context: &BuildContext) -> Self {
        Self { http, refused: RefusedLogin::new(std::sync::Arc::clone(&context.clock)) }
    }

    /// Sends a change and gives the reply, unless it is a failure that no record is to blame for.
    async fn change(&self, request: Request<'_>) -> Result<Reply, RecordError> {
        self.refused.check()?;
        Ok(self.refused.note(request.send().await.map_err(ProviderError::from))?)
    }
}

impl Listed {
    fn data(&self, kind: RecordType) -> Option<RecordData> {
        match (kind, self.srv) {
            (RecordType::Txt, _) => Some(RecordData::txt(&self.value)),
            (RecordType::Srv, Some(Srv { priority, weight, port })) => {
                Some(RecordData::Srv { priority, weight, port, target: self.value.parse().ok()? })
            }
            _ => RecordData::parse(kind, &self.value).ok(),
        }
    }
}

/// Value and SRV parameters as the protocol has them, or why it has none.
fn value_of(data: &RecordData) -> Result<(String, Option<Srv>), RecordError> {
    match data {
        RecordData::Cname(name) | RecordData::Ptr(name) | RecordData::Ns(name) => {
            Ok((name.to_string(), None))
        }
        RecordData::Srv { priority, weight, port, target } => {
            Ok((target.to_string(), Some(Srv { priority: *priority, weight: *weight, port: *port })))
        }
        RecordData::Txt(strings) => {
            let reason = || "dnsweaver's protocol has only texts in UTF-8".to_owned();
            let text = String::from_utf8(strings.concat());
            text.map(|text| (text, None)).map_err(|_| RecordError::Rejected { reason: reason() })
        }
        other => Ok((other.to_string(), None)),
    }
}

fn rejected(reply: &Reply) -> RecordError {
    let said = reply
        .json::<Complaint>()
        .ok()
        .map(|complaint| if complaint.message.is_empty() { complaint.error } else { complaint.message });
    let said = said.filter(|said| !said.is_empty()).unwrap_or_else(|| reply.text());
    RecordError::Rejected { reason: format!("it answers {}: {said}", reply.status) }
}

#[async_trait]
impl RecordApi for Dnsweaver {
    fn kind(&self) -> &'static str {
        "webhook"
    }

    fn server(&self) -> String {
        self.http.server().to_owned()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            marks: Marks::Txt,
            fenced: false,
            order: WriteOrder::InPlace,
            one_value: true,
            zones: ZoneSource::Domains,
            keeps_foreign: false,
            ..Capabilities::all([
                RecordType::A,
                RecordType::Aaaa,
                RecordType::Cname,
                RecordType::Srv,
                RecordType::Txt,
            ])
        }
    }

    async fn list(&self, _zone: &Name) -> Result<Listing, ProviderError> {
        self.refused.check()?;
        let listed = self.http.get("/list").read::<Option<Vec<Listed>>>().await;
        let listed = self.refused.note(listed.map_err(ProviderError::from))?;
        let mut listing = Listing::default();
        for one in listed.unwrap_or_default() {
            // A receiver may hold names that no DNS server could.
            let Ok(name) = one.hostname.parse::<Name>() else { continue };
            let Ok(kind) = one.kind.parse::<RecordType>() else {
                listing.others.push(name);
                continue;
            };
            match one.data(kind) {
                Some(data) => listing.records.push(Record {
                    id: one.id.as_str().map(str::to_owned).unwrap_or_default(),
                    name,
                    ttl: one.ttl,
                    data,
                    proxied: None,
                }),
                None => listing.opaque.push((name, kind)),
            }
        }
        Ok(listing)
    }

    async fn may_write(&self, _zone: &Name) -> Result<(), ProviderError> {
        self.refused.check()?;
        self.refused.note(self.http.get("/ping").done().await.map_err(ProviderError::from))
    }

    /// The protocol has one text where DNS has several strings.
    fn adjust(&self, mut set: RecordSet) -> RecordSet {
        if set.kind == RecordType::Txt {
            let joined = |data: RecordData| match data {
                RecordData::Txt(strings) => RecordData::txt(strings.concat()),
                other => other,
            };
            set.values = set.values.into_iter().map(joined).collect();
        }
        set
    }

    fn cannot_hold(&self, _name: &Name, data: &RecordData) -> Option<String> {
        match value_of(data) {
            Err(RecordError::Rejected { reason }) => Some(reason),
            _ => None,
        }
    }

    async fn create(&self, _zone: &Name, new: &NewRecord) -> Result<Record, RecordError> {
        let (value, srv) = value_of(&new.data)?;
        let (hostname, kind, ttl) = (&new.name, new.data.kind(), Some(new.ttl));
        let request = self.http.post("/create").json(&Sent { hostname, kind, value, ttl, srv });
        let reply = self.change(request).await?;
        if reply.is_success() { Ok(new.made("")) } else { Err(rejected(&reply)) }
    }

    async fn update(&self, _zone: &Name, old: &Record, new: &NewRecord) -> Result<Record, RecordError> {
        let (old_value, old_srv) = value_of(&old.data)?;
        let (new_value, srv) = value_of(&new.data)?;
        let (hostname, kind, ttl) = (&new.name, new.data.kind(), new.ttl);
        let body = Update { hostname, kind, old_value, new_value, ttl, srv, old_srv };
        // Sent twice it means the same, unless the record was changed in between; then the receiver does not find it.
        let reply = self.change(self.http.put("/update").json(&body)).await?;
        match reply.status {
            StatusCode::NOT_FOUND => Err(RecordError::Gone),
            status if status.is_success() => Ok(new.made(old.id.clone())),
            _ => Err(rejected(&reply)),
        }
    }

    async fn delete(&self, _zone: &Name, old: &Record) -> Result<(), RecordError> {
        let (value, srv) = value_of(&old.data)?;
        let body = Sent { hostname: &old.name, kind: old.data.kind(), value, ttl: None, srv };
        let request = self.http.delete("/delete").json(&body).effect(Effect::Idempotent);
        let reply = self.change(request).await?;
        match reply.status {
            StatusCode::NOT_FOUND => Err(RecordError::Gone),
            status if status.is_success() => Ok(()),
            _ => Err(rejected(&reply)),
        }
    }
}
