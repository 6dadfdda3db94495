//! The engine's access to the store: every commit has two conditions, the leader's epoch and the writer's head.
//!
//! The epoch stops a former leader:
//!
//! 1. Node A leads with epoch 7 and knows the version of the key `meta/epoch`.
//! 2. Node B takes the lead and raises the epoch to 8. The key has a new version.
//! 3. A commits. The condition on the key's version fails, the store refuses the commit, and A writes nothing more.
//!
//! The head stops a commit of the same writer that arrives late. Each writer (`provider/lan`, `inventory`, ...) has a key
//! `engine/head/<writer>`, which every `put` replaces on condition that its version is the one before:
//!
//! 1. A writer puts `x = 1` on head version 10. The answer is lost, and the commit may still be on its way.
//! 2. The writer reads the head: version 10. It commits `x = 1` again on version 10. Of the two commits one can land,
//!    because the first one that lands changes the head.
//! 3. If the second try is refused, the first commit landed. The writer reads the new head and writes `x = 1` once more:
//!    writes must be safe to repeat.
//! 4. Later the writer puts `x = 2` on head version 11. If the first commit arrives now, it is refused: it needs version
//!    10. So an old value never replaces a newer one.
//!
//! A `put` of many writes is several commits. The first replaces the head, as above. The others have the new version as their
//! condition and leave it as it is, so they need not wait for one another: the store makes many durable with one flush. One of
//! them that arrives late is refused as soon as the next `put` has replaced the head.

use std::{
    collections::{HashSet, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::{StreamExt, TryStreamExt, stream};
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
/// So many commits of one `put` are under way together, and fewer if they are large: so many bytes.
const UNDER_WAY: usize = 32;
const BYTES_UNDER_WAY: usize = 8 << 20;

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

/// The store as one writer uses it. What one `put` writes lands before what the next one writes, or not at all.
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

/// Outcome of one try.
enum Attempt {
    Landed(Version),
    /// The head has another version.
    OtherHead,
    /// It may have landed.
    Unknown(StoreError),
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

    /// Makes `writes` durable, in as many commits as they need. The first commit lands before the others and the last one
    /// after them; those between land in any order. The writes must be safe to repeat. Of two with one key the later counts.
    pub(crate) async fn put(&self, writes: Vec<Write>) -> Result<(), EngineError> {
        let mut commits = split_into_commits(writes);
        let Some(first) = commits.pop_front() else { return Ok(()) };
        let last = commits.pop_back();
        // No other `put` replaces the head before this one has ended.
        let mut head = self.version.lock().await;
        let version = self.replace_head(&mut head, &first).await?;
        let largest =
            commits.iter().map(|writes| writes.iter().map(Write::bytes).sum::<usize>()).max().unwrap_or(1);
        let under_way = (BYTES_UNDER_WAY / largest.max(1)).clamp(1, UNDER_WAY);
        let between = stream::iter(commits);
        let between = between.map(|writes| async move { self.commit_at_head(version, &writes).await });
        between.buffer_unordered(under_way).try_collect::<()>().await?;
        match last {
            Some(last) => self.commit_at_head(version, &last).await,
            None => Ok(()),
        }
    }

    /// Commits `writes` together with a new head. Returns the version of that head.
    async fn replace_head(&self, head: &mut Head, writes: &[Write]) -> Result<Version, EngineError> {
        for trial in 0..TRIES {
            let before = match *head {
                Head::Read(version) => version,
                Head::Unread => self.store.get(&self.head).await?.map(|entry| entry.version),
            };
            let condition = match before {
                Some(version) => Condition::Version(self.head.clone(), version),
                None => Condition::Absent(self.head.clone()),
            };
            let record = keys::encode(&HeadRecord { epoch: self.lead.epoch, batch: rand::random() });
            *head = Head::Unread;
            match self.commit(condition, Some(Write::Put(self.head.clone(), record)), writes).await? {
                Attempt::Landed(version) => {
                    *head = Head::Read(Some(version));
                    return Ok(version);
                }
                Attempt::OtherHead => {}
                Attempt::Unknown(error) => pause_before_retry(trial, error).await?,
            }
        }
        Err(written_by_another())
    }

    /// Commits `writes` if the head still has this version.
    async fn commit_at_head(&self, version: Version, writes: &[Write]) -> Result<(), EngineError> {
        for trial in 0..TRIES {
            let condition = Condition::Version(self.head.clone(), version);
            match self.commit(condition, None, writes).await? {
                Attempt::Landed(_) => return Ok(()),
                Attempt::OtherHead => break,
                Attempt::Unknown(error) => pause_before_retry(trial, error).await?,
            }
        }
        Err(written_by_another())
    }

    /// Tries `writes` once on a condition on the head, with a new head if there is one. That this process leads is the first
    /// condition: a former leader learns it even if the head has moved, too.
    async fn commit(
        &self,
        condition: Condition,
        new_head: Option<Write>,
        writes: &[Write],
    ) -> Result<Attempt, EngineError> {
        if self.lead.is_deposed() {
            return Err(EngineError::Deposed);
        }
        let mut commit = Commit::new().when(self.lead.condition()).when(condition);
        commit.writes.extend(new_head);
        commit.writes.extend_from_slice(writes);
        match self.store.commit(commit).await {
            Ok(committed) => Ok(Attempt::Landed(committed.version)),
            Err(StoreError::Refused { key }) if key == EPOCH_KEY => {
                self.lead.depose();
                Err(EngineError::Deposed)
            }
            Err(StoreError::Refused { .. }) => Ok(Attempt::OtherHead),
            Err(error @ StoreError::Unknown { .. }) => Ok(Attempt::Unknown(error)),
            Err(error) => Err(error.into()),
        }
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

/// As few commits as the limits of a store allow, each with room for the head.
fn split_into_commits(mut writes: Vec<Write>) -> VecDeque<Vec<Write>> {
    if writes.len() >= MAX_WRITES {
        keep_last_of_each_key(&mut writes);
    }
    let mut commits: VecDeque<Vec<Write>> = VecDeque::new();
    let mut bytes = 0;
    for write in writes {
        let more = write.bytes();
        let fits = |last: &&mut Vec<Write>| last.len() + 1 < MAX_WRITES && bytes + more + SLACK <= MAX_BYTES;
        if let Some(last) = commits.back_mut().filter(fits) {
            bytes += more;
            last.push(write);
        } else {
            bytes = more;
            commits.push_back(vec![write]);
        }
    }
    commits
}

/// Commits that land in any order name no key twice.
fn keep_last_of_each_key(writes: &mut Vec<Write>) {
    let mut seen: HashSet<&[u8]> = HashSet::with_capacity(writes.len());
    let mut kept: Vec<bool> = writes.iter().rev().map(|write| seen.insert(write.key())).collect();
    writes.retain(|_| kept.pop().unwrap_or(true));
}

/// Waits before the next try, or gives the error back if that was the last.
async fn pause_before_retry(trial: u32, error: StoreError) -> Result<(), EngineError> {
    if trial + 1 >= TRIES {
        return Err(error.into());
    }
    sleep(Duration::from_millis(20 << trial)).await;
    Ok(())
}

fn written_by_another() -> EngineError {
    StoreError::Unavailable { reason: "another process writes the same".into() }.into()
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

#[cfg(test)]
mod tests;
