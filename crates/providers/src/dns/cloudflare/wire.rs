//! The API's own JSON of records; it never leaves this provider.

use std::collections::HashMap;

use netstead_model::{Name, RecordData, RecordType, Service};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::dns::per_record::{Listing, NewRecord, Record};

#[derive(Debug, Deserialize)]
pub(super) struct ApiRecord {
    id: String,
    name: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    content: String,
    #[serde(default)]
    data: Value,
    #[serde(default)]
    priority: Option<u16>,
    ttl: u32,
    #[serde(default)]
    proxied: bool,
    #[serde(default)]
    comment: Option<String>,
}

impl ApiRecord {
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// The value. None if our types cannot hold it.
    fn value(&self, kind: RecordType) -> Option<RecordData> {
        let text = |key: &str| self.data.get(key)?.as_str();
        let short = |key: &str| u16::try_from(self.data.get(key)?.as_u64()?).ok();
        let target = || match text("target")? {
            "." | "" => Some(None),
            name => name.parse::<Name>().ok().map(Some),
        };
        Some(match kind {
            RecordType::A => RecordData::A(self.content.parse().ok()?),
            RecordType::Aaaa => RecordData::Aaaa(self.content.parse().ok()?),
            RecordType::Cname => RecordData::Cname(self.content.parse().ok()?),
            RecordType::Ptr => RecordData::Ptr(self.content.parse().ok()?),
            RecordType::Ns => RecordData::Ns(self.content.parse().ok()?),
            RecordType::Txt if self.content.starts_with('"') => {
                RecordData::parse(kind, &self.content).unwrap_or_else(|_| RecordData::txt(&self.content))
            }
            // As older records have it.
            RecordType::Txt => RecordData::txt(&self.content),
            RecordType::Mx => {
                let exchange = match self.content.as_str() {
                    "." => None,
                    name => Some(name.parse().ok()?),
                };
                RecordData::Mx { preference: self.priority?, exchange }
            }
            RecordType::Srv => RecordData::Srv {
                priority: short("priority").or(self.priority)?,
                weight: short("weight")?,
                port: short("port")?,
                target: target()??,
            },
            RecordType::Caa => RecordData::Caa {
                flags: u8::try_from(short("flags")?).ok()?,
                tag: text("tag")?.to_ascii_lowercase(),
                value: text("value")?.as_bytes().to_vec(),
            },
            RecordType::Https | RecordType::Svcb => {
                let target = target()?.map_or_else(|| ".".to_owned(), |name| format!("{name}."));
                let value = text("value").unwrap_or_default();
                let line = format!("{} {target} {value}", short("priority").or(self.priority)?);
                RecordData::parse(kind, line.trim_end()).ok()?
            }
        })
    }
}

/// Comments by the id of their record.
pub(super) type Comments = HashMap<String, String>;

/// Records, sorted into those that are understood and the rest.
pub(super) fn into_listing(records: Vec<ApiRecord>) -> (Listing, Comments) {
    let (mut listing, mut comments) = (Listing::default(), Comments::new());
    for mut record in records {
        if let Some(comment) = record.comment.take().filter(|comment| !comment.is_empty()) {
            comments.insert(record.id.clone(), comment);
        }
        // A name that our types cannot hold we never wrote, and never will.
        let Ok(name) = record.name.parse::<Name>() else { continue };
        let Ok(kind) = record.kind.parse::<RecordType>() else {
            listing.others.push(name);
            continue;
        };
        match record.value(kind) {
            Some(data) => {
                let proxied = can_be_proxied(kind).then_some(record.proxied);
                listing.records.push(Record { id: record.id, name, ttl: record.ttl, data, proxied });
            }
            None => listing.opaque.push((name, kind)),
        }
    }
    (listing, comments)
}

fn can_be_proxied(kind: RecordType) -> bool {
    matches!(kind, RecordType::A | RecordType::Aaaa | RecordType::Cname)
}

/// A record as the API takes it.
pub(super) fn to_json(record: &NewRecord) -> Map<String, Value> {
    let kind = record.data.kind();
    let mut json = Map::new();
    json.insert("name".into(), json!(record.name.as_str()));
    json.insert("type".into(), json!(kind.as_str()));
    json.insert("ttl".into(), json!(record.ttl));
    if let Some(proxied) = record.proxied.filter(|_| can_be_proxied(kind)) {
        json.insert("proxied".into(), json!(proxied));
    }
    let or_root = |name: &Option<Name>| name.as_ref().map_or(".", Name::as_str).to_owned();
    let (key, value) = match &record.data {
        RecordData::A(address) => ("content", json!(address.to_string())),
        RecordData::Aaaa(address) => ("content", json!(address.to_string())),
        RecordData::Cname(name) | RecordData::Ptr(name) | RecordData::Ns(name) => {
            ("content", json!(name.as_str()))
        }
        RecordData::Txt(_) => ("content", json!(record.data.to_string())),
        RecordData::Mx { preference, exchange } => {
            json.insert("priority".into(), json!(preference));
            ("content", json!(or_root(exchange)))
        }
        RecordData::Srv { priority, weight, port, target } => {
            let target = target.as_str();
            ("data", json!({ "priority": priority, "weight": weight, "port": port, "target": target }))
        }
        RecordData::Caa { flags, tag, value } => {
            let value = String::from_utf8_lossy(value);
            ("data", json!({ "flags": flags, "tag": tag, "value": value }))
        }
        RecordData::Https(service) | RecordData::Svcb(service) => {
            let head = Service { params: Vec::new(), ..service.clone() }.to_string();
            let whole = service.to_string();
            let params = whole.strip_prefix(&head).unwrap_or_default().trim_start();
            let target = or_root(&service.target);
            ("data", json!({ "priority": service.priority, "target": target, "value": params }))
        }
    };
    json.insert(key.into(), value);
    json
}
