//! A named record: `netstead.records.<n>.*`.

use netstead_model::{RecordData, RecordType};

use super::{
    NameRequest, RequestedContent, TargetSpec,
    diagnostics::Diagnostics,
    fields::{Fields, Unusable},
};

/// The preference of a mail server that states none.
const PREFERENCE: u16 = 10;

/// The asks of one named record, one per host name. What it lacks is noted.
pub(super) fn read(fields: &Fields<'_>, notes: &mut Diagnostics) -> Vec<NameRequest> {
    if fields.flag("enabled", notes) == Some(false) {
        notes.add(format!("{} is false", fields.label("enabled")));
        return Vec::new();
    }
    let names = fields.names(&["hostname", "hostnames"], notes);
    if names.is_empty() {
        if !fields.has("hostname") && !fields.has("hostnames") {
            fields.note("hostname", "it is missing, so the record has no name", notes);
        }
        return Vec::new();
    }
    let (Ok(content), Ok(providers)) =
        (content(fields, notes), fields.providers(&["provider", "providers"], notes))
    else {
        return Vec::new();
    };
    let (ttl, adopt) = (fields.ttl(notes), fields.flag("adopt", notes));
    let (share, proxied) = (fields.flag("share", notes), fields.flag("proxied", notes));
    let ask = |(name, reason)| NameRequest {
        name,
        content: content.clone(),
        ttl,
        providers: providers.clone(),
        adopt,
        share,
        proxied,
        entrypoints: Vec::new(),
        reason,
    };
    names.into_iter().map(ask).collect()
}

fn content(fields: &Fields<'_>, notes: &mut Diagnostics) -> Result<RequestedContent, Unusable> {
    let kind = match fields.kind(notes)? {
        // A port is of no use to anything else.
        None if fields.has("port") => Some(RecordType::Srv),
        kind => kind,
    };
    if let (Some(text), Some(kind)) = (fields.text("value"), kind) {
        return exactly(kind, text, "value", fields, notes);
    }
    match kind {
        None if fields.has("value") => Err(fields.unusable("value", "it has no type beside it", notes)),
        None | Some(RecordType::A | RecordType::Aaaa) => match fields.target(notes)? {
            Some(TargetSpec::Name(_)) if kind.is_some() => {
                Err(fields.unusable("target", "a record of this type needs an address", notes))
            }
            target => Ok(RequestedContent::Points { target: target.unwrap_or(TargetSpec::Source), kind }),
        },
        Some(RecordType::Cname) => match fields.text("target") {
            Some(text) => exactly(RecordType::Cname, text, "target", fields, notes),
            None => Ok(RequestedContent::Points { target: TargetSpec::Source, kind }),
        },
        Some(RecordType::Srv) => {
            let Some(port) = fields.number("port", notes)? else { return missing("port", fields, notes) };
            let Some(target) = fields.parsed("target", notes)? else {
                return missing("target", fields, notes);
            };
            let priority = fields.number("priority", notes)?.unwrap_or(0);
            let weight = fields.number("weight", notes)?.unwrap_or(0);
            Ok(of(RecordData::Srv { priority, weight, port, target }))
        }
        Some(RecordType::Mx) => {
            let Some(exchange) = fields.parsed("target", notes)? else {
                return missing("target", fields, notes);
            };
            let preference = fields.number("priority", notes)?.unwrap_or(PREFERENCE);
            Ok(of(RecordData::Mx { preference, exchange: Some(exchange) }))
        }
        Some(kind) => match fields.text("target") {
            Some(text) => exactly(kind, text, "target", fields, notes),
            None => missing("value", fields, notes),
        },
    }
}

fn of(data: RecordData) -> RequestedContent {
    RequestedContent::Records { kind: data.kind(), values: vec![data] }
}

/// One value as a zone file has it.
fn exactly(
    kind: RecordType,
    text: &str,
    field: &str,
    fields: &Fields<'_>,
    notes: &mut Diagnostics,
) -> Result<RequestedContent, Unusable> {
    RecordData::parse(kind, text).map(of).map_err(|error| fields.unusable(field, error, notes))
}

fn missing(field: &str, fields: &Fields<'_>, notes: &mut Diagnostics) -> Result<RequestedContent, Unusable> {
    Err(fields.unusable(field, "it is missing, and a record of this type needs it", notes))
}
