//! DNSEndpoint of external-dns: records as they are written.

use netstead_model::{Name, RecordData, RecordType};
use serde::Deserialize;

use super::{super::object::Object, asked::Asked};
use crate::dialects::{NameRequest, RequestedContent, boolean, diagnostics::excerpt};

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(in crate::kubernetes) struct DnsEndpoint {
    endpoints: Vec<Endpoint>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Endpoint {
    dns_name: String,
    targets: Vec<String>,
    record_type: String,
    #[serde(rename = "recordTTL")]
    record_ttl: Option<i64>,
    set_identifier: String,
    provider_specific: Vec<Property>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Property {
    name: String,
    value: String,
}

pub(super) fn read(object: &Object) -> Result<DnsEndpoint, String> {
    object.spec()
}

pub(in crate::kubernetes) fn ask(endpoint: &DnsEndpoint) -> Asked {
    let mut asked = Asked::default();
    for (number, endpoint) in endpoint.endpoints.iter().enumerate() {
        match endpoint.request(number) {
            Ok(request) => asked.names.push(request),
            Err(why) => asked.notes.unreadable(format!("endpoints[{number}]: {why}")),
        }
    }
    asked
}

impl Endpoint {
    fn request(&self, number: usize) -> Result<NameRequest, String> {
        let name: Name = self
            .dns_name
            .trim_end_matches('.')
            .parse()
            .map_err(|error: netstead_model::ParseError| error.to_string())?;
        if !self.set_identifier.is_empty() {
            return Err(
                "setIdentifier asks for weighted or regional records, which Netstead has none of".into()
            );
        }
        if self.targets.is_empty() {
            return Err(format!("{name} has no target"));
        }
        let kind = self.kind()?;
        let values: Result<Vec<RecordData>, String> =
            self.targets.iter().map(|text| value(kind, text)).collect();
        let proxied =
            self.provider_specific.iter().find(|property| property.name.ends_with("cloudflare-proxied"));
        let proxied = proxied.and_then(|property| boolean::read(&property.value).ok());
        let ttl = self.record_ttl.and_then(|ttl| u32::try_from(ttl).ok()).filter(|ttl| *ttl > 0);
        Ok(NameRequest {
            content: RequestedContent::Records { kind, values: values? },
            ttl,
            proxied,
            ..NameRequest::new(name, format!("endpoints[{number}]"))
        })
    }

    /// Its type; without one, whatever its first target is.
    fn kind(&self) -> Result<RecordType, String> {
        if self.record_type.is_empty() {
            let first = self.targets.first().map(String::as_str).unwrap_or_default();
            return Ok(first.parse().map_or(RecordType::Cname, |ip| RecordData::address(ip).kind()));
        }
        self.record_type.parse().map_err(|error: netstead_model::ParseError| error.to_string())
    }
}

fn value(kind: RecordType, text: &str) -> Result<RecordData, String> {
    let text = if kind == RecordType::Txt { quoted(text) } else { text.to_owned() };
    RecordData::parse(kind, &text).map_err(|error| format!("`{}`: {error}", excerpt(&text)))
}

/// A text record as a zone file has it; external-dns takes it with or without its quotes.
pub(super) fn quoted(text: &str) -> String {
    if text.starts_with('"') {
        return text.to_owned();
    }
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
