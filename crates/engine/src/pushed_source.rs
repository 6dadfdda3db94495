//! A source that another program writes into: records that are sent to Netstead, kept in the store.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use netstead_model::{
    Clock, Content, Ended, Ident, Key, Name, RecordSet, RecordType, Report, Source, View, Wish, Workload,
};
use netstead_plan::Digest;
use netstead_store::Write;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{Mutex as AsyncMutex, Notify};

use crate::{EngineError, fenced_store::FencedStore, keys};

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
    /// What was reported before: what of it is not there any more was deleted.
    reported: BTreeSet<Key>,
}

impl Pushed {
    pub(crate) async fn load(
        source: Ident,
        fenced_store: FencedStore,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, EngineError> {
        let stored = fenced_store.all::<PushedRecord>(&keys::pushed(&source, "")).await?;
        let records = Mutex::new(Records { all: stored.into_iter().collect(), reported: BTreeSet::new() });
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
        let mut all = self.lock().all.clone();
        let mut writes = Vec::new();
        let mut put = BTreeSet::new();
        for record in records {
            let place = PushedRecord::place(&record.name, &record.kind);
            if all.get(&place) != Some(&record) {
                writes.push(Write::Put(key(&place), keys::encode(&record)));
                all.insert(place.clone(), record);
            }
            put.insert(place);
        }
        for place in removed.iter().filter(|place| !put.contains(*place)) {
            if all.remove(place).is_some() {
                writes.push(Write::Delete(key(place)));
            }
        }
        if writes.is_empty() {
            return Ok(());
        }
        self.0.fenced_store.put(writes).await?;
        self.lock().all = all;
        self.0.changed.notify_one();
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Records> {
        self.0.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn workload(&self, record: &PushedRecord) -> Option<Workload> {
        let RecordSet { name, kind, ttl, values, .. } = record.set.as_ref()?;
        let wish = Wish {
            name: name.clone(),
            content: Content::Records { kind: *kind, values: values.iter().cloned().collect() },
            ttl: Some(*ttl).filter(|ttl| *ttl > 0),
            providers: Vec::new(),
            reason: record.reason.clone(),
            adopt: false,
            share: false,
            main: matches!(kind, RecordType::A | RecordType::Aaaa) && !name.is_wildcard(),
            borrowed: false,
            moves: false,
            proxied: None,
            entrypoints: Vec::new(),
        };
        let id = id_of(&record.name, &record.kind)?;
        let workload = Workload::new(self.0.source.clone(), id, "endpoint", record.name.as_str());
        Some(Workload { wishes: vec![wish], ..workload })
    }
}

/// Name and type; the longest names by their digest.
fn id_of(name: &Name, kind: &str) -> Option<Key> {
    let plain = PushedRecord::place(name, kind).parse();
    plain.or_else(|_| format!("{}/{kind}", Digest::of([name.as_str()])).parse()).ok()
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
        let there: BTreeSet<Key> = workloads.iter().map(|workload| workload.id.clone()).collect();
        let gone = records.reported.difference(&there).cloned();
        let ended = gone.map(|id| Ended { id, asked: true }).collect();
        records.reported = there;
        drop(records);
        Report::whole(self.0.source.clone(), begun, View::Complete, workloads).with_ended(ended)
    }

    fn remember(&self, reported: Vec<Key>) {
        self.lock().reported.extend(reported);
    }

    async fn changed(&self) {
        self.0.changed.notified().await;
    }
}
