//! The API's own JSON; it never leaves this provider.

use netstead_model::{Name, RecordData, RecordType};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::rdata;
use crate::dns::per_record::{Listing, Record};

/// Types that the server makes by itself beside others, a CNAME too.
const DNSSEC: [&str; 5] = ["RRSIG", "NSEC", "NSEC3", "NSEC3PARAM", "DNSKEY"];

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Envelope {
    pub(super) status: String,
    #[serde(default)]
    pub(super) error_message: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Session {
    info: Info,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Info {
    #[serde(default)]
    cluster_domain: Option<String>,
    #[serde(default)]
    cluster_nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
struct Node {
    #[serde(default)]
    name: String,
    #[serde(default)]
    url: String,
    #[serde(rename = "type")]
    kind: String,
    state: String,
}

impl Session {
    pub(super) fn cluster_domain(&self) -> &str {
        self.info.cluster_domain.as_deref().unwrap_or_default()
    }

    /// The primary node, if this one is a secondary.
    pub(super) fn primary_elsewhere(&self) -> Option<&str> {
        let nodes = &self.info.cluster_nodes;
        let own = nodes.iter().find(|node| node.state == "Self")?;
        if own.kind == "Primary" {
            return None;
        }
        let primary = nodes.iter().find(|node| node.kind == "Primary");
        Some(primary.map_or("which it does not name", |node| {
            if node.url.is_empty() { &node.name } else { &node.url }
        }))
    }

    /// The catalog zone whose members the secondaries of the cluster copy.
    pub(super) fn cluster_catalog(&self) -> Option<String> {
        let domain = self.info.cluster_domain.as_deref().filter(|domain| !domain.is_empty())?;
        Some(format!("cluster-catalog.{domain}"))
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct ZoneList {
    response: Zones,
}

#[derive(Debug, Deserialize)]
struct Zones {
    zones: Vec<ZoneInfo>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ZoneInfo {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    internal: bool,
    /// Since version 11.
    #[serde(default)]
    soa_serial: Option<u32>,
}

impl ZoneList {
    /// The zones whose records are kept here and not copied from elsewhere.
    pub(super) fn writable(self) -> Vec<netstead_model::Zone> {
        let own = |zone: &ZoneInfo| !zone.internal && matches!(zone.kind.as_str(), "Primary" | "Forwarder");
        let named = self.response.zones.into_iter().filter(own).filter_map(|zone| {
            let name = zone.name.parse().ok()?;
            Some(netstead_model::Zone { name, sign: zone.soa_serial.map(Into::into) })
        });
        named.collect()
    }
}

/// The answer to a question for records.
#[derive(Debug, Deserialize)]
pub(super) struct Found {
    response: FoundRecords,
}

#[derive(Debug, Deserialize)]
struct FoundRecords {
    zone: ZoneInfo,
    records: Vec<ApiRecord>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ApiRecord {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    ttl: u32,
    #[serde(default)]
    disabled: bool,
    #[serde(default)]
    comments: String,
    #[serde(default)]
    expiry_ttl: u32,
    r_data: Value,
}

impl Found {
    pub(super) fn is_of(&self, zone: &Name) -> bool {
        self.response.zone.name.eq_ignore_ascii_case(zone.as_str())
    }

    /// The records, sorted into those that are understood and the rest. Disabled ones are not served, so they are none.
    pub(super) fn into_listing(self) -> Listing {
        let mut listing = Listing::default();
        for record in self.response.records {
            if record.kind == "SOA" {
                let serial = record.r_data.get("serial").and_then(Value::as_u64);
                listing.sign = serial.and_then(|serial| u32::try_from(serial).ok()).map(Into::into);
            }
            // A name that our types cannot hold we never wrote, and never will.
            let Ok(name) = record.name.parse::<Name>() else { continue };
            if record.disabled || DNSSEC.contains(&record.kind.as_str()) {
                continue;
            }
            let Ok(kind) = record.kind.parse::<RecordType>() else {
                listing.others.push(name);
                continue;
            };
            match rdata::read(kind, &record.r_data) {
                Some(data) => {
                    let id = Kept { comments: record.comments, expiry: record.expiry_ttl }.to_id();
                    listing.records.push(Record { id, name, ttl: record.ttl, data, proxied: None });
                }
                None => listing.opaque.push((name, kind)),
            }
        }
        listing
    }
}

/// The value that an `add` or `update` says it made. None if it says nothing that can be read.
pub(super) fn answered(body: &Value) -> Option<RecordData> {
    let response = body.get("response")?;
    let record = response.get("addedRecord").or_else(|| response.get("updatedRecord"))?;
    let kind = record.get("type")?.as_str()?.parse().ok()?;
    rdata::read(kind, record.get("rData")?)
}

/// Parts of a record that an update must repeat. They travel as the id of the record: the server has no ids.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Kept {
    comments: String,
    expiry: u32,
}

impl Kept {
    pub(super) fn of(id: &str) -> Self {
        serde_json::from_str(id).unwrap_or_default()
    }

    fn to_id(&self) -> String {
        if *self == Self::default() {
            return String::new();
        }
        serde_json::to_string(self).unwrap_or_default()
    }

    pub(super) fn parameters(&self) -> Vec<(&'static str, String)> {
        let comments = Some(&self.comments).filter(|text| !text.is_empty());
        let expiry = Some(self.expiry).filter(|seconds| *seconds > 0);
        let comments = comments.map(|text| ("comments", text.clone()));
        comments.into_iter().chain(expiry.map(|seconds| ("expiryTtl", seconds.to_string()))).collect()
    }
}
