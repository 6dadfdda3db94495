//! The protocol's JSON: an endpoint is a set of records.

use std::collections::{BTreeMap, HashMap};

use netstead_model::{Name, RecordData, RecordSet, RecordType};
use serde::{Deserialize, Deserializer, Serialize};

use super::TYPES;
use crate::dns::per_record::{Listing, Record};

/// The exact media type of requests and answers.
pub const MEDIA_TYPE: &str = "application/external.dns.webhook+json;version=1";

/// A set of records as external-dns writes it. Every field may be absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Endpoint {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub dns_name: String,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "or_null")]
    pub targets: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub record_type: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub set_identifier: String,
    /// Zero leaves it to the provider.
    #[serde(rename = "recordTTL", skip_serializing_if = "is_zero")]
    pub record_ttl: i64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "or_null")]
    pub labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "or_null")]
    pub provider_specific: Vec<ProviderSpecific>,
}

/// A setting of an endpoint that only some providers understand.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProviderSpecific {
    pub name: String,
    pub value: String,
}

/// Changes of one call. `update_old` and `update_new` are pairs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Changes {
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "or_null")]
    pub create: Vec<Endpoint>,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "or_null")]
    pub update_old: Vec<Endpoint>,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "or_null")]
    pub update_new: Vec<Endpoint>,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "or_null")]
    pub delete: Vec<Endpoint>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(ttl: &i64) -> bool {
    *ttl == 0
}

/// Go writes an empty list as `null`.
fn or_null<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl Endpoint {
    /// The endpoint of a set.
    pub fn new(set: &RecordSet) -> Self {
        Self {
            dns_name: set.name.to_string(),
            targets: set.values.iter().map(target).collect(),
            record_type: set.kind.to_string(),
            record_ttl: i64::from(set.ttl),
            ..Self::default()
        }
    }

    /// The name and the type, if Netstead knows both.
    pub fn key(&self) -> Option<(Name, RecordType)> {
        let kind = self.record_type.parse().ok().filter(|kind| TYPES.contains(kind))?;
        Some((self.dns_name.parse().ok()?, kind))
    }

    /// The set, if it is one that Netstead can hold.
    pub fn to_set(&self) -> Option<RecordSet> {
        let (name, kind) = self.key()?;
        let values: Option<Vec<RecordData>> = self.targets.iter().map(|text| data(kind, text)).collect();
        let values = values.filter(|values| !values.is_empty() && self.set_identifier.is_empty())?;
        Some(RecordSet::new(name, kind, self.ttl(), values))
    }

    fn ttl(&self) -> u32 {
        u32::try_from(self.record_ttl.max(0)).unwrap_or(u32::MAX)
    }
}

/// The text of a value. Names have no final dot, but in SRV, as external-dns itself writes them.
fn target(value: &RecordData) -> String {
    let text = value.to_string();
    match value.kind() {
        RecordType::Cname | RecordType::Ns | RecordType::Ptr | RecordType::Mx if !text.ends_with(" .") => {
            text.trim_end_matches('.').to_owned()
        }
        _ => text,
    }
}

/// The value that a text means. A TXT without quotes is the text itself.
fn data(kind: RecordType, text: &str) -> Option<RecordData> {
    let text = text.trim();
    let named = matches!(
        kind,
        RecordType::Cname | RecordType::Ns | RecordType::Ptr | RecordType::Mx | RecordType::Srv
    );
    match kind {
        RecordType::Txt if !text.starts_with('"') => Some(RecordData::txt(text)),
        _ if named && !text.ends_with('.') => RecordData::parse(kind, &format!("{text}.")).ok(),
        _ => RecordData::parse(kind, text).ok(),
    }
}

/// All endpoints of a provider.
#[derive(Debug, Default)]
pub(super) struct Listed {
    /// By name and type; some providers list each value by itself.
    known: BTreeMap<(Name, RecordType), Vec<Endpoint>>,
    /// Names with endpoints of other types.
    others: Vec<Name>,
}

impl Listed {
    pub(super) fn new(endpoints: Vec<Endpoint>) -> Self {
        let mut listed = Self::default();
        for endpoint in endpoints {
            match endpoint.key() {
                Some(key) => listed.known.entry(key).or_default().push(endpoint),
                None => listed.others.extend(endpoint.dns_name.parse::<Name>()),
            }
        }
        listed
    }

    pub(super) fn listing(&self) -> Listing {
        let mut listing = Listing { others: self.others.clone(), ..Listing::default() };
        for ((name, kind), endpoints) in &self.known {
            let sets: Option<Vec<RecordSet>> = endpoints.iter().map(Endpoint::to_set).collect();
            let Some(sets) = sets else {
                listing.opaque.push((name.clone(), *kind));
                continue;
            };
            for set in &sets {
                listing.records.extend(set.values.iter().map(|data| Record {
                    id: String::new(),
                    name: name.clone(),
                    ttl: set.ttl,
                    data: data.clone(),
                    proxied: None,
                }));
            }
        }
        listing
    }

    /// The endpoint of a set as it was listed, with everything that its provider added.
    pub(super) fn endpoint(&self, key: &(Name, RecordType)) -> Option<Endpoint> {
        let mut all = self.known.get(key)?.iter().cloned();
        let first = all.next()?;
        Some(all.fold(first, |mut whole, next| {
            whole.targets.extend(next.targets);
            whole
        }))
    }
}

/// Endpoints by name and type.
pub(super) fn by_key(endpoints: Vec<Endpoint>) -> HashMap<(Name, RecordType), Endpoint> {
    endpoints.into_iter().filter_map(|endpoint| Some((endpoint.key()?, endpoint))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_survive_the_way_there_and_back() {
        let cases = [
            (RecordType::A, "192.0.2.1", "192.0.2.1"),
            (RecordType::Cname, "target.example.net.", "target.example.net"),
            (RecordType::Mx, "10 mail.example.net.", "10 mail.example.net"),
            (RecordType::Mx, "0 .", "0 ."),
            (RecordType::Srv, "1 2 443 host.example.net.", "1 2 443 host.example.net."),
            (RecordType::Txt, r#""a b" "c""#, r#""a b" "c""#),
        ];
        for (kind, text, sent) in cases {
            let value = RecordData::parse(kind, text).unwrap();
            assert_eq!(target(&value), sent);
            assert_eq!(data(kind, sent), Some(value));
        }
        assert_eq!(data(RecordType::Txt, "plain; text"), Some(RecordData::txt("plain; text")));
        assert_eq!(data(RecordType::A, "load-balancer.example.net"), None);
    }

    #[test]
    fn absent_fields_and_null_are_read_alike() {
        let text = r#"{"dnsName":"a.example.test","recordType":"A","targets":null,"labels":null,"providerSpecific":null}"#;
        let endpoint: Endpoint = serde_json::from_str(text).unwrap();
        assert_eq!(endpoint.targets, Vec::<String>::new());
        let written = serde_json::to_string(&endpoint).unwrap();
        assert_eq!(written, r#"{"dnsName":"a.example.test","recordType":"A"}"#);
        assert_eq!(serde_json::from_str::<Changes>(r#"{"create":null}"#).unwrap(), Changes::default());
    }
}
