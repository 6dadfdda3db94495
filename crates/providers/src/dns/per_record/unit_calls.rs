//! Turns a unit into calls, in the order that a server needs.

use netstead_model::{RecordSet, RecordType, SetChange, Unit, WriteOrder};

use super::record::{NewRecord, Record};
use crate::dns::preconditions::{kind_of, removals_first, wanted};

/// One call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::dns) enum RecordCall {
    Create(NewRecord),
    Update(Record, NewRecord),
    Delete(Record),
}

/// The calls that make a unit true, given the records that are there.
///
/// New records come before old ones go, so that a name is never without a value. Only where they cannot stand together, an
/// alias and anything else or two values on a server with one, the old goes first.
pub(in crate::dns) fn unit_calls(unit: &Unit, records: &[Record], order: WriteOrder) -> Vec<RecordCall> {
    let changes: Vec<&SetChange> = if switches_alias(unit) {
        removals_first(unit).collect()
    } else {
        let comes = unit.changes.iter().filter(|change| wanted(change).is_some());
        comes.chain(unit.changes.iter().filter(|change| wanted(change).is_none())).collect()
    };
    changes.into_iter().flat_map(|change| set_calls(change, records, order)).collect()
}

/// Whether a CNAME takes the place of other records, or they that of a CNAME.
fn switches_alias(unit: &Unit) -> bool {
    let kinds = |comes: bool| {
        let changes = unit.own_changes().filter(move |change| wanted(change).is_some() == comes);
        changes.filter_map(kind_of)
    };
    let alias = |kind: RecordType| kind == RecordType::Cname;
    (kinds(true).any(alias) && kinds(false).next().is_some())
        || (kinds(false).any(alias) && kinds(true).next().is_some())
}

fn set_calls(change: &SetChange, records: &[Record], order: WriteOrder) -> Vec<RecordCall> {
    let Some(some) = change.after.as_ref().or(change.before.as_ref()) else { return Vec::new() };
    let there: Vec<&Record> =
        records.iter().filter(|record| record.name == some.name && record.data.kind() == some.kind).collect();
    let new = wanted(change).map(new_records).unwrap_or_default();
    let (mut updates, mut creates, mut deletes) = (Vec::new(), Vec::new(), Vec::new());
    for wanted in &new {
        match there.iter().find(|record| record.data == wanted.data) {
            Some(record) if is_like(record, wanted) => {}
            Some(record) => updates.push(((*record).clone(), wanted.clone())),
            None => creates.push(wanted.clone()),
        }
    }
    for record in there {
        if new.iter().all(|wanted| wanted.data != record.data) {
            deletes.push(record.clone());
        }
    }
    let mut calls = Vec::new();
    if order == WriteOrder::InPlace {
        let pairs = deletes.len().min(creates.len());
        updates.extend(deletes.drain(..pairs).zip(creates.drain(..pairs)));
        calls.extend(updates.into_iter().map(|(old, new)| RecordCall::Update(old, new)));
    } else {
        // The same value with another time to live cannot stand beside itself.
        for (old, new) in updates {
            calls.extend([RecordCall::Delete(old), RecordCall::Create(new)]);
        }
    }
    let creates = creates.into_iter().map(RecordCall::Create);
    let deletes = deletes.into_iter().map(RecordCall::Delete);
    if order == WriteOrder::RemoveFirst || single(some.kind) {
        calls.extend(deletes);
        calls.extend(creates);
    } else {
        calls.extend(creates);
        calls.extend(deletes);
    }
    calls
}

/// Whether DNS itself allows one value of this type only.
fn single(kind: RecordType) -> bool {
    kind == RecordType::Cname
}

fn new_records(set: &RecordSet) -> Vec<NewRecord> {
    let new = |data: &netstead_model::RecordData| NewRecord {
        name: set.name.clone(),
        ttl: set.ttl,
        data: data.clone(),
        proxied: set.proxied,
    };
    set.values.iter().map(new).collect()
}

/// Whether nothing needs to change. A set that says nothing of proxies leaves them as they are.
fn is_like(record: &Record, wanted: &NewRecord) -> bool {
    record.ttl == wanted.ttl && wanted.proxied.is_none_or(|proxied| record.proxied == Some(proxied))
}
