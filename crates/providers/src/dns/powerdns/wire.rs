//! The API's own JSON; it never leaves this provider.

use std::collections::BTreeMap;

use netstead_model::{Name, RecordData, RecordType, Service, SetChange};
use netstead_wire::http::Reply;
use serde::{Deserialize, Serialize};

use super::Version;
use crate::dns::{
    preconditions::{ServerRecords, expected, wanted},
    tidy,
};

#[derive(Debug, Deserialize)]
pub(super) struct Server {
    version: String,
}

impl Server {
    /// Zero where it is not understood: then only what every version has is used.
    pub(super) fn version(&self) -> Version {
        let numbers = self.version.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
        let mut numbers = numbers.chain([0, 0, 0]);
        (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct ZoneInfo {
    name: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    serial: Option<u32>,
}

impl ZoneInfo {
    /// The zone, unless its content comes from another server or its name is none of ours.
    pub(super) fn writable(&self) -> Option<netstead_model::Zone> {
        let copy = ["slave", "secondary", "consumer"].iter().any(|kind| self.kind.eq_ignore_ascii_case(kind));
        let name = (!copy).then(|| self.name.parse().ok()).flatten()?;
        Some(netstead_model::Zone { name, sign: self.serial.map(Into::into) })
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Zone {
    #[serde(default)]
    pub(super) serial: Option<u32>,
    pub(super) rrsets: Vec<RrSet>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct RrSet {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    ttl: u32,
    records: Vec<Record>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    content: String,
    #[serde(default)]
    disabled: bool,
}

impl Record {
    pub(super) fn new(content: &impl ToString) -> Self {
        Self { content: content.to_string(), disabled: false }
    }
}

impl RrSet {
    pub(super) fn is_at(&self, name: &Name) -> bool {
        is_same(&self.name, name)
    }
}

/// One result of a search.
#[derive(Debug, Deserialize)]
pub(super) struct Hit {
    name: String,
    #[serde(default)]
    disabled: bool,
}

impl Hit {
    pub(super) fn is_disabled_at(&self, name: &Name) -> bool {
        self.disabled && is_same(&self.name, name)
    }
}

fn is_same(absolute: &str, name: &Name) -> bool {
    absolute.strip_suffix('.').is_some_and(|own| own.eq_ignore_ascii_case(name.as_str()))
}

/// The records on the server, with details that only this API has.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) found: ServerRecords,
    /// Records that are kept but not served.
    disabled: BTreeMap<(Name, RecordType), Vec<Record>>,
}

impl From<Vec<RrSet>> for Changes {
    fn from(rrsets: Vec<RrSet>) -> Self {
        let mut changes = Self::default();
        for rrset in rrsets {
            // What our types cannot name we never wrote, and never will.
            let Ok(name) = rrset.name.parse::<Name>() else { continue };
            let Ok(kind) = rrset.kind.parse::<RecordType>() else {
                changes.found.others.insert(name);
                continue;
            };
            for record in rrset.records {
                if record.disabled {
                    changes.disabled.entry((name.clone(), kind)).or_default().push(record);
                } else if let Ok(value) = RecordData::parse(kind, &record.content) {
                    changes.found.add(name.clone(), kind, rrset.ttl, value);
                } else {
                    changes.found.opaque.insert((name.clone(), kind));
                }
            }
        }
        changes
    }
}

impl From<Changes> for ServerRecords {
    fn from(changes: Changes) -> Self {
        changes.found
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Patch<'a> {
    pub(super) rrsets: Vec<&'a Edit>,
}

/// A change of one set. It never names comments, so they stay as they are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Edit {
    name: String,
    #[serde(rename = "type")]
    kind: &'static str,
    changetype: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    records: Vec<Record>,
}

impl Edit {
    /// About how long it is as JSON, rather more than less.
    pub(super) fn size(&self) -> usize {
        let records = self.records.iter().map(|record| 2 * record.content.len() + 48);
        self.name.len() + 100 + records.sum::<usize>()
    }

    pub(super) fn replace(name: &Name, kind: &'static str, ttl: u32, records: Vec<Record>) -> Self {
        Self { name: name.absolute(), kind, changetype: "REPLACE", ttl: Some(ttl), records }
    }
}

impl Changes {
    /// The edits that make `change` happen; `single` where the server can add and remove single values, so that what
    /// another program writes at this moment survives.
    pub(super) fn edits(&self, change: &SetChange, single: bool) -> Vec<Edit> {
        let Some(set) = change.after.as_ref().or(change.before.as_ref()) else { return Vec::new() };
        let (name, kind) = (&set.name, set.kind);
        let disabled = self.disabled.get(&(name.clone(), kind)).cloned().unwrap_or_default();
        let before = expected(change).cloned().map(tidy);
        let after = wanted(change).cloned().map(tidy);
        let ttl = before.as_ref().or(after.as_ref()).map_or(0, |set| set.ttl);
        let same_ttl = after.as_ref().is_none_or(|set| set.ttl == ttl);
        if let Some(before) =
            before.as_ref().filter(|_| single && same_ttl && is_plain(kind) && disabled.is_empty())
        {
            let new = after.map(|set| set.values).unwrap_or_default();
            let one = |changetype, value: &RecordData| Edit {
                name: name.absolute(),
                kind: kind.as_str(),
                changetype,
                ttl: Some(ttl),
                records: vec![Record::new(&content(value))],
            };
            let extend = new.difference(&before.values).map(|value| one("EXTEND", value));
            let prune = before.values.difference(&new).map(|value| one("PRUNE", value));
            // A CNAME is alone in its set at all times.
            return if kind == RecordType::Cname {
                prune.chain(extend).collect()
            } else {
                extend.chain(prune).collect()
            };
        }
        let values = after.iter().flat_map(|set| &set.values).map(|value| Record::new(&content(value)));
        let records: Vec<Record> = values.chain(disabled).collect();
        if records.is_empty() {
            let name = name.absolute();
            return vec![Edit { name, kind: kind.as_str(), changetype: "DELETE", ttl: None, records }];
        }
        vec![Edit::replace(name, kind.as_str(), after.map_or(ttl, |set| set.ttl), records)]
    }
}

/// Whether a value has one form only: the server finds the one to prune by its text, and passes over it if that differs.
const fn is_plain(kind: RecordType) -> bool {
    !matches!(kind, RecordType::Txt | RecordType::Caa | RecordType::Https | RecordType::Svcb)
}

/// The value as the server would write it itself: it refuses any other form of the same value.
fn content(value: &RecordData) -> String {
    let (RecordData::Https(service) | RecordData::Svcb(service)) = value else { return value.to_string() };
    let head = Service { params: Vec::new(), ..service.clone() }.to_string();
    let mut text = head.clone();
    for param in &service.params {
        let alone = Service { params: vec![param.clone()], ..service.clone() }.to_string();
        let param = alone.strip_prefix(&head).unwrap_or(&alone).trim_start();
        text.push(' ');
        match param.split_once('=') {
            Some((key, value)) if (key == "ech" || key.starts_with("key")) && !value.starts_with('"') => {
                text.push_str(key);
                text.push_str("=\"");
                text.push_str(value);
                text.push('"');
            }
            _ => text.push_str(param),
        }
    }
    text
}

#[derive(Debug, Serialize)]
pub(super) struct NewZone {
    pub(super) name: String,
    pub(super) kind: &'static str,
    pub(super) nameservers: Vec<String>,
    pub(super) rrsets: Vec<Edit>,
}

/// The server's reason: JSON for 422, mostly text for other statuses.
pub(super) fn reason(reply: &Reply) -> String {
    #[derive(Deserialize)]
    struct ErrorBody {
        error: String,
    }
    serde_json::from_slice(&reply.body).map_or_else(|_| reply.text(), |said: ErrorBody| said.error)
}

#[cfg(test)]
mod tests;
