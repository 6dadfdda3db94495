//! The source `manual`: records that people set by hand.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use jiff::Timestamp;
use netstead_model::{
    Clock, Ident, Key, Name, RecordData, RecordType, Report, Source, SourceFlags, Workload,
};
use netstead_plan::marks::is_mark;
use netstead_store::Write;
use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex as AsyncMutex, Notify};

use crate::{
    EngineError,
    fenced_store::FencedStore,
    history::{EngineEvent, EngineEventKind, History},
    keys,
    stored_records::{Reported, id_of, wish},
};

/// A record set that a person set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManualRecord {
    pub name: Name,
    #[serde(rename = "type")]
    pub kind: RecordType,
    pub values: Vec<RecordData>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<u32>,
    pub by: String,
    pub at: Timestamp,
}

/// Records that people set and delete, kept in the store. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Manual(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    source: Ident,
    fenced_store: FencedStore,
    clock: Arc<dyn Clock>,
    history: Arc<History>,
    records: Mutex<Records>,
    /// Changes follow one another, in the store as here.
    write_lock: AsyncMutex<()>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Records {
    all: BTreeMap<(Name, RecordType), ManualRecord>,
    reported: Reported,
}

const MOST_TTL: u32 = i32::MAX.cast_unsigned();

impl Manual {
    pub(crate) async fn load(
        source: Ident,
        fenced_store: FencedStore,
        clock: Arc<dyn Clock>,
        history: Arc<History>,
    ) -> Result<Self, EngineError> {
        let stored = fenced_store.all::<ManualRecord>(keys::MANUAL).await?;
        let all =
            stored.into_iter().map(|(_, record)| ((record.name.clone(), record.kind), record)).collect();
        let records = Mutex::new(Records { all, reported: Reported::default() });
        let (turn, changed) = (AsyncMutex::new(()), Notify::new());
        Ok(Self(Arc::new(Inner { source, fenced_store, clock, history, records, write_lock: turn, changed })))
    }

    /// Sets the records of one type at a name, in place of those set before.
    pub async fn set(
        &self,
        name: Name,
        kind: RecordType,
        values: Vec<RecordData>,
        ttl: Option<u32>,
        by: &str,
    ) -> Result<ManualRecord, EngineError> {
        let invalid = |field, reason: &str| Err(EngineError::Invalid { field, reason: reason.to_owned() });
        if is_mark(name.as_str()).is_some() {
            return invalid("name", "it is that of an ownership mark, which only Netstead itself writes");
        }
        if values.is_empty() {
            return invalid("values", "at least one is needed; to remove the record, delete it");
        }
        if let Some(value) = values.iter().find(|value| value.kind() != kind) {
            return invalid("values", &format!("`{value}` is of type {}, not {kind}", value.kind()));
        }
        if kind == RecordType::Cname && values.len() > 1 {
            return invalid("values", "a name can have only one CNAME");
        }
        if ttl.is_some_and(|ttl| ttl > MOST_TTL) {
            return invalid("ttl", &format!("the most is {MOST_TTL}"));
        }
        let _turn = self.0.write_lock.lock().await;
        let alias = |other: RecordType| (other == RecordType::Cname) != (kind == RecordType::Cname);
        if self.lock().all.keys().any(|(other, other_kind)| *other == name && alias(*other_kind)) {
            return invalid("type", "a CNAME cannot be beside other types; delete those first");
        }
        let at = self.0.clock.wall();
        let record = ManualRecord { name, kind, values, ttl, by: by.to_owned(), at };
        let key = keys::manual(&record.name, kind);
        self.0.fenced_store.put(vec![Write::Put(key, keys::encode(&record))]).await?;
        let before = self.lock().all.insert((record.name.clone(), kind), record.clone());
        self.0.changed.notify_one();
        let asks = |record: &ManualRecord| (record.values.clone(), record.ttl);
        if before.as_ref().map(asks) != Some(asks(&record)) {
            let values: Vec<String> = record.values.iter().map(ToString::to_string).collect();
            let text = format!("{kind} {} was set by hand", values.join(", "));
            self.record_manual_event(EngineEventKind::Set, text, &record.name, by).await;
        }
        Ok(record)
    }

    /// Deletes what was set at a name, of one type or of all. False if there was nothing.
    pub async fn delete(&self, name: &Name, kind: Option<RecordType>, by: &str) -> Result<bool, EngineError> {
        let _turn = self.0.write_lock.lock().await;
        let meant = |(other, of): &(Name, RecordType)| other == name && kind.is_none_or(|kind| kind == *of);
        let found: Vec<_> = self.lock().all.keys().filter(|place| meant(place)).cloned().collect();
        if found.is_empty() {
            return Ok(false);
        }
        let writes = found.iter().map(|(name, kind)| Write::Delete(keys::manual(name, *kind))).collect();
        self.0.fenced_store.put(writes).await?;
        tracing::info!(%name, by, "A record that was set by hand is deleted.");
        {
            let mut records = self.lock();
            for place in found {
                records.all.remove(&place);
            }
        }
        self.0.changed.notify_one();
        let what = kind.map_or("everything".to_owned(), |kind| format!("the {kind} record"));
        self.record_manual_event(
            EngineEventKind::Deleted,
            format!("{what} that was set by hand is deleted"),
            name,
            by,
        )
        .await;
        Ok(true)
    }

    /// Everything that is set, by name and type.
    /// The name of the source.
    pub(crate) fn source(&self) -> &Ident {
        &self.0.source
    }

    pub fn list(&self) -> Vec<ManualRecord> {
        self.lock().all.values().cloned().collect()
    }

    async fn record_manual_event(&self, what: EngineEventKind, text: String, name: &Name, by: &str) {
        let event = EngineEvent::new(what, text).of_source(&self.0.source).at_name(name).by(by);
        self.0.history.add(EngineEvent { at: self.0.clock.wall(), ..event }).await;
    }

    fn lock(&self) -> MutexGuard<'_, Records> {
        self.0.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn workload(&self, record: &ManualRecord) -> Option<Workload> {
        let ManualRecord { name, kind, values, ttl, by, .. } = record;
        let wish = wish(name, *kind, values.clone(), *ttl, format!("record set by {by}"));
        let id = id_of(name, kind.as_str())?;
        let workload = Workload::new(self.0.source.clone(), id, "record", name.as_str());
        Some(Workload { wishes: vec![wish], ..workload })
    }
}

#[async_trait]
impl Source for Manual {
    fn name(&self) -> &Ident {
        &self.0.source
    }

    fn kind(&self) -> &'static str {
        "manual"
    }

    fn flags(&self) -> SourceFlags {
        SourceFlags { commanded: true, ..SourceFlags::default() }
    }

    async fn report(&self) -> Report {
        let begun = self.0.clock.wall();
        let mut records = self.lock();
        let workloads: Vec<Workload> =
            records.all.values().filter_map(|record| self.workload(record)).collect();
        records.reported.report(&self.0.source, begun, workloads)
    }

    fn remember(&self, reported: Vec<Key>) {
        self.lock().reported.extend(reported);
    }

    async fn changed(&self) {
        self.0.changed.notified().await;
    }
}
