//! The webhook protocol of external-dns: its JSON, which both sides use. An endpoint is a set of records.

use std::collections::BTreeMap;

use netstead_model::{Name, RecordData, RecordSet, RecordType};
use serde::{Deserialize, Deserializer, Serialize};

/// Types that external-dns has a text form for, of those that Netstead knows.
pub const TYPES: [RecordType; 8] = [
    RecordType::A,
    RecordType::Aaaa,
    RecordType::Cname,
    RecordType::Txt,
    RecordType::Srv,
    RecordType::Mx,
    RecordType::Ns,
    RecordType::Ptr,
];

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

    /// The endpoint in the one form that Netstead gives back, and its set. The error says why it cannot be held.
    ///
    /// Texts stay as they were written: the registry of external-dns reads its own again.
    pub fn normalised(&self) -> Result<(Self, RecordSet), String> {
        let Self { dns_name, record_type, .. } = self;
        let refused = |reason: String| Err(format!("`{dns_name}` {record_type}: {reason}"));
        if !self.set_identifier.is_empty() {
            return refused("sets with a set identifier are not held".into());
        }
        let Some((name, kind)) = self.key() else {
            return refused("the name cannot be read, or records of this type are not held".into());
        };
        let Some(set) = self.to_set() else {
            return refused(format!("the targets `{}` cannot be read", self.targets.join("`, `")));
        };
        if kind == RecordType::Cname && set.values.len() > 1 {
            return refused("a name can have only one CNAME".into());
        }
        let targets = if kind == RecordType::Txt {
            let mut targets = self.targets.clone();
            targets.sort();
            targets.dedup();
            targets
        } else {
            set.values.iter().map(target).collect()
        };
        let held = Self {
            dns_name: name.to_string(),
            record_type: kind.to_string(),
            targets,
            record_ttl: i64::from(set.ttl),
            ..self.clone()
        };
        Ok((held, set))
    }

    /// Whether it is a record of ownership that external-dns keeps for itself.
    pub fn is_of_registry(&self) -> bool {
        let heritage = |target: &String| target.trim_start_matches('"').starts_with("heritage=external-dns");
        // An encrypted one is known by its label alone.
        self.record_type == "TXT"
            && (self.targets.iter().any(heritage) || self.labels.contains_key("ownedRecord"))
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

    type Damage = fn(&mut Endpoint);

    #[test]
    fn an_endpoint_has_one_form_and_keeps_what_is_not_understood() {
        let text = r#"{"dnsName":"A.Example.test.","targets":["192.0.2.2","192.0.2.1","192.0.2.2"],"recordType":"A",
            "recordTTL":60,"labels":{"owner":"k8s"},"providerSpecific":[{"name":"webhook/x","value":"1"}]}"#;
        let endpoint: Endpoint = serde_json::from_str(text).unwrap();
        let (held, _) = endpoint.normalised().unwrap();
        assert_eq!(
            serde_json::to_string(&held).unwrap(),
            r#"{"dnsName":"a.example.test","targets":["192.0.2.1","192.0.2.2"],"recordType":"A","recordTTL":60,"#.to_owned()
                + r#""labels":{"owner":"k8s"},"providerSpecific":[{"name":"webhook/x","value":"1"}]}"#
        );
        assert_eq!(held.normalised().unwrap().0, held);
        let refused = |change: fn(&mut Endpoint)| {
            let mut endpoint = endpoint.clone();
            change(&mut endpoint);
            endpoint.normalised().unwrap_err()
        };
        let start = "`A.Example.test.` ";
        let cases: [(Damage, &str); 3] = [
            (|one| one.set_identifier = "blue".into(), "A: sets with a set identifier are not held"),
            (
                |one| one.record_type = "NAPTR".into(),
                "NAPTR: the name cannot be read, or records of this type are not held",
            ),
            (|one| one.targets = vec!["x y".into()], "A: the targets `x y` cannot be read"),
        ];
        for (change, reason) in cases {
            assert_eq!(refused(change), format!("{start}{reason}"));
        }
    }

    #[test]
    fn records_of_the_registry_are_known_plain_and_encrypted() {
        let text = |target: &str| Endpoint {
            dns_name: "a-www.example.test".into(),
            record_type: "TXT".into(),
            targets: vec![target.into()],
            ..Endpoint::default()
        };
        assert!(text(r#""heritage=external-dns,external-dns/owner=k8s""#).is_of_registry());
        assert!(!text(r#""v=spf1 -all""#).is_of_registry());
        let mut secret = text(r#""bm90IHJlYWRhYmxl""#);
        secret.labels.insert("ownedRecord".into(), "www.example.test".into());
        assert!(secret.is_of_registry());
    }
}
