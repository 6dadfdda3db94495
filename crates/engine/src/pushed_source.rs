//! A source that another program writes into: records that are sent to Netstead, kept in the store.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use netstead_model::{Clock, Ident, Key, Name, RecordSet, Report, Source, Workload};
use netstead_store::Write;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{Mutex as AsyncMutex, Notify};

use crate::{
    EngineError,
    fenced_store::FencedStore,
    keys,
    stored_records::{Reported, id_of, wish},
};

/// A record set that another program sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushedRecord {
    pub name: Name,
    /// Its type, as the program calls it.
    #[serde(rename = "type")]
    pub kind: String,
    /// The values to publish; none of what is only held for the program. A time to live of 0 leaves it to the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<RecordSet>,
    /// Why it is there, for people.
    pub reason: String,
    /// As the program sent it, to be given back.
    pub document: Value,
}

impl PushedRecord {
    /// Its place: a name has one set of each type.
    pub fn place(name: &Name, kind: &str) -> String {
        format!("{name}/{kind}")
    }
}

/// The records of one program. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Pushed(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    source: Ident,
    fenced_store: FencedStore,
    clock: Arc<dyn Clock>,
    records: Mutex<Records>,
    /// Changes follow one another, in the store as here.
    write_lock: AsyncMutex<()>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Records {
    all: BTreeMap<String, PushedRecord>,
    reported: Reported,
}

impl Pushed {
    pub(crate) async fn load(
        source: Ident,
        fenced_store: FencedStore,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, EngineError> {
        let stored = fenced_store.all::<PushedRecord>(&keys::pushed(&source, "")).await?;
        let records =
            Mutex::new(Records { all: stored.into_iter().collect(), reported: Reported::default() });
        let (write_lock, changed) = (AsyncMutex::new(()), Notify::new());
        Ok(Self(Arc::new(Inner { source, fenced_store, clock, records, write_lock, changed })))
    }

    /// Everything that is held, by place.
    pub fn list(&self) -> Vec<PushedRecord> {
        self.lock().all.values().cloned().collect()
    }

    /// Puts `records` in place of what is held at their places, and removes what is held at the other places of `removed`. When
    /// this returns without an error, it is durable. Repeating it changes nothing.
    pub async fn change(&self, removed: &[String], records: Vec<PushedRecord>) -> Result<(), EngineError> {
        let _turn = self.0.write_lock.lock().await;
        let key = |place: &str| keys::pushed(&self.0.source, place).into_bytes();
        let mut after: BTreeMap<String, Option<PushedRecord>> =
            removed.iter().map(|place| (place.clone(), None)).collect();
        after.extend(
            records.into_iter().map(|record| (PushedRecord::place(&record.name, &record.kind), Some(record))),
        );
        {
            let held = self.lock();
            after.retain(|place, record| held.all.get(place) != record.as_ref());
        }
        if after.is_empty() {
            return Ok(());
        }
        let writes = after.iter().map(|(place, record)| match record {
            Some(record) => Write::Put(key(place), keys::encode(record)),
            None => Write::Delete(key(place)),
        });
        self.0.fenced_store.put(writes.collect()).await?;
        {
            let mut held = self.lock();
            for (place, record) in after {
                match record {
                    Some(record) => held.all.insert(place, record),
                    None => held.all.remove(&place),
                };
            }
        }
        self.0.changed.notify_one();
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Records> {
        self.0.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn workload(&self, record: &PushedRecord) -> Option<Workload> {
        let RecordSet { name, kind, ttl, values, .. } = record.set.as_ref()?;
        let values = values.iter().cloned().collect();
        let ttl = Some(*ttl).filter(|ttl| *ttl > 0);
        let wish = wish(name, *kind, values, ttl, record.reason.clone());
        let id = id_of(&record.name, &record.kind)?;
        let workload = Workload::new(self.0.source.clone(), id, "endpoint", record.name.as_str());
        Some(Workload { wishes: vec![wish], ..workload })
    }
}

#[async_trait]
impl Source for Pushed {
    fn name(&self) -> &Ident {
        &self.0.source
    }

    fn kind(&self) -> &'static str {
        "external-dns"
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
