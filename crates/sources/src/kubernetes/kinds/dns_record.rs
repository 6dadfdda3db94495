//! DNSRecord of Netstead: one record set as it is written.

use netstead_model::{Ident, Name, ParseError, RecordData, RecordType};
use serde::Deserialize;

use super::{super::object::Object, asked::Asked, dns_endpoint::quoted};
use crate::dialects::{NameRequest, RequestedContent, diagnostics::excerpt};

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(in crate::kubernetes) struct DnsRecord {
    name: String,
    r#type: String,
    values: Vec<String>,
    ttl: Option<u32>,
    providers: Vec<String>,
    proxied: Option<bool>,
}

pub(super) fn read(object: &Object) -> Result<DnsRecord, String> {
    object.spec()
}

pub(in crate::kubernetes) fn ask(record: &DnsRecord) -> Asked {
    let mut asked = Asked::default();
    match record.request() {
        Ok(request) => asked.names.push(request),
        // What it asked for before is unknown now, so that stays.
        Err(why) => asked.notes.unreadable(why),
    }
    asked
}

impl DnsRecord {
    fn request(&self) -> Result<NameRequest, String> {
        let at = |field: &'static str| move |error: ParseError| format!("{field}: {error}");
        let name: Name = self.name.trim_end_matches('.').parse().map_err(at("name"))?;
        let kind: RecordType = self.r#type.parse().map_err(at("type"))?;
        if self.values.is_empty() {
            return Err("values: write at least one".to_owned());
        }
        let values = self.values.iter().enumerate().map(|(number, text)| {
            let text = if kind == RecordType::Txt { quoted(text) } else { text.clone() };
            RecordData::parse(kind, &text)
                .map_err(|error| format!("values[{number}]: `{}`: {error}", excerpt(&text)))
        });
        let providers = self.providers.iter().map(|text| text.parse::<Ident>().map_err(at("providers")));
        Ok(NameRequest {
            content: RequestedContent::Records { kind, values: values.collect::<Result<_, _>>()? },
            ttl: self.ttl.filter(|ttl| *ttl > 0),
            providers: providers.collect::<Result<_, _>>()?,
            proxied: self.proxied,
            ..NameRequest::new(name, "spec")
        })
    }
}
