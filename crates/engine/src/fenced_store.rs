//! The engine's access to the store: every commit has two conditions, the leader's epoch and the writer's head.
//!
//! The epoch stops a former leader:
//!
//! 1. Node A leads with epoch 7 and knows the version of the key `meta/epoch`.
//! 2. Node B takes the lead and raises the epoch to 8. The key has a new version.
//! 3. A commits. The condition on the key's version fails, the store refuses the commit, and A writes nothing more.
//!
//! The head stops a commit of the same writer that arrives late. Each writer (`provider/lan`, `inventory`, ...) has a key
//! `engine/head/<writer>`, which every commit replaces on condition that its version is the one before:
//!
//! 1. A writer commits `x = 1` on head version 10. The answer is lost, and the commit may still be on its way.
//! 2. The writer reads the head: version 10. It commits `x = 1` again on version 10. Of the two commits one can land,
//!    because the first one that lands changes the head.
//! 3. If the second try is refused, the first commit landed. The writer reads the new head and writes `x = 1` once more:
//!    writes must be safe to repeat.
//! 4. Later the writer commits `x = 2` on head version 11. If the first commit arrives now, it is refused: it needs version
//!    10. So an old value never replaces a newer one.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use netstead_store::{
    Commit, Condition, Damage, EPOCH_KEY, Entry, MAX_BYTES, MAX_WRITES, Store, StoreError, Version, Write,
    each_readable,
};
use serde::{Serialize, de::DeserializeOwned};
use tokio::{sync::Mutex, time::sleep};

use crate::{EngineError, keys};

const PAGE: usize = 1000;
/// Bytes of a commit left for the head and keys.
const SLACK: usize = 4 << 10;
/// How often a commit is tried when it is unknown whether it landed.
const TRIES: u32 = 4;

/// The epoch in which this process leads, and whether it still does.
#[derive(Debug)]
pub(crate) struct LeaderEpoch {
    pub(crate) epoch: u64,
    version: Version,
    deposed: AtomicBool,
}

impl LeaderEpoch {
    /// Reads the epoch from the store. With `ours`, fails unless it is that one. Without `ours`, takes the lead first if the
    /// store has no epoch yet.
    pub(crate) async fn current(store: &dyn Store, ours: Option<u64>) -> Result<Self, EngineError> {
        if ours.is_none() && store.get(EPOCH_KEY).await?.is_none() {
            store.lead().await?;
        }
        let entry = store.get(EPOCH_KEY).await?.ok_or(EngineError::Deposed)?;
        let text = std::str::from_utf8(&entry.value).ok().and_then(|text| text.parse().ok());
        let epoch = text.ok_or_else(|| EngineError::Damaged {
            key: String::from_utf8_lossy(EPOCH_KEY).into_owned(),
            reason: "it is not a number".into(),
        })?;
        if ours.is_some_and(|ours| ours != epoch) {
            return Err(EngineError::Deposed);
        }
        Ok(Self { epoch, version: entry.version, deposed: AtomicBool::new(false) })
    }

    /// Stops all commits of this engine from now on.
    pub(crate) fn depose(&self) {
        self.deposed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_deposed(&self) -> bool {
        self.deposed.load(Ordering::Relaxed)
    }

    /// Asks the store whether this process leads. The answer may be out of date when it arrives.
    pub(crate) async fn still_leads(&self, store: &dyn Store) -> Result<bool, StoreError> {
        let holds = store.get(EPOCH_KEY).await?.is_some_and(|entry| entry.version == self.version);
        if !holds {
            self.depose();
        }
        Ok(holds && !self.is_deposed())
    }

    fn condition(&self) -> Condition {
        Condition::Version(EPOCH_KEY.to_vec(), self.version)
    }
}

/// The store as one writer uses it. Its commits land in the order they were made, or not at all.
#[derive(Debug)]
pub(crate) struct FencedStore {
    store: Arc<dyn Store>,
    lead: Arc<LeaderEpoch>,
    head: Vec<u8>,
    version: Mutex<Head>,
}

#[derive(Debug, Clone, Copy)]
enum Head {
    Unread,
    Read(Option<Version>),
}

#[derive(Serialize)]
struct HeadRecord {
    epoch: u64,
    batch: u64,
}

impl FencedStore {
    pub(crate) fn new(store: Arc<dyn Store>, lead: Arc<LeaderEpoch>, writer: &str) -> Self {
        let head = format!("{}{writer}", keys::HEAD).into_bytes();
        Self { store, lead, head, version: Mutex::new(Head::Unread) }
    }

    /// Makes `writes` durable, in order, in as many commits as they need. They must be safe to repeat.
    pub(crate) async fn put(&self, writes: Vec<Write>) -> Result<(), EngineError> {
        let mut commit: Vec<Write> = Vec::new();
        let mut bytes = 0;
        for write in writes {
            let more = write.bytes();
            if commit.len() + 1 >= MAX_WRITES || (bytes + more + SLACK > MAX_BYTES && !commit.is_empty()) {
                self.commit(std::mem::take(&mut commit)).await?;
                bytes = 0;
            }
            bytes += more;
            commit.push(write);
        }
        if commit.is_empty() { Ok(()) } else { self.commit(commit).await }
    }

    async fn commit(&self, writes: Vec<Write>) -> Result<(), EngineError> {
        let mut head = self.version.lock().await;
        for trial in 0..TRIES {
            if self.lead.is_deposed() {
                return Err(EngineError::Deposed);
            }
            let before = match *head {
                Head::Read(version) => version,
                Head::Unread => self.store.get(&self.head).await?.map(|entry| entry.version),
            };
            let condition = match before {
                Some(version) => Condition::Version(self.head.clone(), version),
                None => Condition::Absent(self.head.clone()),
            };
            let stand = keys::encode(&HeadRecord { epoch: self.lead.epoch, batch: rand::random() });
            let mut commit =
                Commit::new().when(self.lead.condition()).when(condition).put(self.head.clone(), stand);
            commit.writes.extend(writes.iter().cloned());
            *head = Head::Unread;
            match self.store.commit(commit).await {
                Ok(committed) => {
                    *head = Head::Read(Some(committed.version));
                    return Ok(());
                }
                Err(StoreError::Refused { key }) if key == EPOCH_KEY => {
                    self.lead.depose();
                    return Err(EngineError::Deposed);
                }
                Err(StoreError::Refused { .. }) => {}
                Err(StoreError::Unknown { .. }) if trial + 1 < TRIES => {
                    sleep(Duration::from_millis(20 << trial)).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(StoreError::Unavailable { reason: "somebody else writes the same".into() }.into())
    }

    /// All values under `prefix`, each with the rest of its key.
    pub(crate) async fn all<T: DeserializeOwned>(
        &self,
        prefix: &str,
    ) -> Result<Vec<(String, T)>, EngineError> {
        let found = entries(&*self.store, prefix).await?;
        let rest =
            |key: &[u8]| String::from_utf8_lossy(key.get(prefix.len()..).unwrap_or_default()).into_owned();
        found.iter().map(|entry| Ok((rest(&entry.key), keys::decode(&entry.key, &entry.value)?))).collect()
    }

    /// As [`FencedStore::all`], for what tells of the past: what is damaged is left out, and the store remembers it.
    pub(crate) async fn all_readable<T: DeserializeOwned>(
        &self,
        prefix: &str,
    ) -> Result<Vec<(String, T)>, EngineError> {
        let (snapshot, mut found) = (self.store.snapshot().await?, Vec::new());
        let note = |damage: Damage| {
            if let Some(log) = self.store.damage() {
                log.note(damage);
            } else {
                tracing::error!(key = damage.key, reason = damage.reason, "Stored data is damaged.");
            }
        };
        let gap = each_readable(&*snapshot, prefix.as_bytes(), |entry| {
            match keys::decode(&entry.key, &entry.value) {
                Ok(value) => {
                    let rest = entry.key.get(prefix.len()..).unwrap_or_default();
                    found.push((String::from_utf8_lossy(rest).into_owned(), value));
                }
                Err(error) => note(Damage::new(&entry.key, error.to_string())),
            }
            Ok::<(), StoreError>(())
        });
        if let Some(gap) = gap.await? {
            note(gap.damage());
        }
        Ok(found)
    }

    /// The bytes of a key that another part of the program writes.
    pub(crate) async fn get_bytes(&self, key: &str) -> Result<Option<Vec<u8>>, EngineError> {
        Ok(self.store.get(key.as_bytes()).await?.map(|entry| entry.value))
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, EngineError> {
        let found = self.store.get(key.as_bytes()).await?;
        found.map(|entry| keys::decode(&entry.key, &entry.value)).transpose()
    }
}

/// All entries under `prefix` at one moment.
pub(crate) async fn entries(store: &dyn Store, prefix: &str) -> Result<Vec<Entry>, StoreError> {
    let snapshot = store.snapshot().await?;
    let mut found: Vec<Entry> = Vec::new();
    loop {
        let after = found.last().map(|entry| entry.key.clone());
        let page = snapshot.range(prefix.as_bytes(), after.as_deref(), PAGE).await?;
        let full = page.len() == PAGE;
        found.extend(page);
        if !full {
            return Ok(found);
        }
    }
}
