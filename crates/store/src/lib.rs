//! The store: ordered byte keys, changed by commits that are all or nothing.
//!
//! ```text
//!                          trait Store
//!       get  snapshot  commit  watch  lead  health  close
//!    ┌──────────┬──────────┴────┬──────────────┬──────────────────────┐
//!  memory     local           etcd           raft              simulated, faults
//!  (tests)    one process,    transactions   three or more     for tests: a network from a seed,
//!             one directory   of an etcd     nodes, openraft   a store that fails on command
//! ```
//!
//! - [`Commit`]: a list of [`Condition`]s on the versions of keys, and a list of [`Write`]s. The store checks the conditions
//!   and does the writes in one step, or refuses.
//! - [`Version`]: when a key was last written. A key never gets a version again that it had before.
//! - [`Snapshot`]: all keys at one moment. [`Watch`]: every commit after a moment, in order.
//! - [`Epoch`]: the counter under [`EPOCH_KEY`], raised whenever a process takes the lead ([`Store::lead`]). A leader makes its
//!   commits conditional on it, so a former leader can change nothing.
//! - [`Membership`]: the nodes that keep a store together, where Netstead nodes do ([`Store::membership`]).
//! - [`StoreError::Unknown`]: the commit may have landed or not. The caller must read before it does anything else.
//!
//! Every store passes the same `contract`, so the crates above never ask which one they have. Start with the trait
//! [`Store`] and the plainest implementation, [`memory`]; then `local/writer.rs`, `etcd.rs` or `raft.rs`. The feature `testing`
//! adds `contract`, `faults` and `simulated`: tests turn it on, and the released program has none of it.

#[cfg(feature = "testing")]
pub mod contract;
mod damage;
mod epoch;
#[cfg(feature = "etcd")]
pub mod etcd;
#[cfg(feature = "testing")]
pub mod faults;
mod finding;
mod key_range;
pub mod local;
mod membership;
pub mod memory;
#[cfg(feature = "raft")]
pub mod raft;
mod readable;
#[cfg(feature = "testing")]
pub mod simulated;
mod watch;

use std::{collections::HashSet, sync::Arc};

use async_trait::async_trait;

#[cfg(feature = "etcd")]
pub use self::etcd::{EtcdOptions, EtcdStore};
#[cfg(feature = "testing")]
pub use self::faults::FaultyStore;
#[cfg(feature = "raft")]
pub use self::raft::{RaftOptions, RaftSecurity, RaftStore, RaftTimings};
pub use self::{
    damage::{Damage, DamageLog},
    finding::{StoreFinding, StoreFindingGrade},
    local::{LocalReader, LocalStore},
    membership::{LeaderElsewhere, MemberId, MemberInfo, MemberList, Membership},
    memory::MemoryStore,
    readable::{Gap, ReadablePages, each_readable},
    watch::Watch,
};

/// Most writes a commit may carry, on every store: the smallest of their limits.
pub const MAX_WRITES: usize = 100;

/// Most conditions a commit may carry, on every store: etcd counts them like writes.
pub const MAX_CONDITIONS: usize = 100;

/// Most bytes of keys and values a commit may carry, on every store.
pub const MAX_BYTES: usize = 1 << 20;

/// Longest key, on every store: fjall keeps the length in two bytes.
pub const MAX_KEY_BYTES: usize = 32 << 10;

pub type Key = Vec<u8>;
pub type Value = Vec<u8>;

/// When a key was last written. Only equality means something: a key that is deleted and written again
/// never gets a version it had before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u64);

/// A number that only grows: each time any process takes the lead, it is one higher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

/// A key with what stands under it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub key: Key,
    pub value: Value,
    pub version: Version,
}

/// A condition that must be true at the moment of the commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    Absent(Key),
    Version(Key, Version),
}

impl Condition {
    pub fn key(&self) -> &Key {
        match self {
            Self::Absent(key) | Self::Version(key, _) => key,
        }
    }
}

/// One key's new state. A commit names each key at most once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    Put(Key, Value),
    Delete(Key),
}

impl Write {
    pub fn key(&self) -> &Key {
        match self {
            Self::Put(key, _) | Self::Delete(key) => key,
        }
    }

    /// The bytes that this counts towards [`MAX_BYTES`].
    pub fn bytes(&self) -> usize {
        match self {
            Self::Put(key, value) => key.len() + value.len(),
            Self::Delete(key) => key.len(),
        }
    }
}

/// Conditions and writes that take effect together or not at all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Commit {
    pub conditions: Vec<Condition>,
    pub writes: Vec<Write>,
}

/// A commit that is durable. Every key it put now has this version; if it wrote nothing, the version means
/// nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Committed {
    pub version: Version,
}

/// Whether a store can be written to right now, and if not, what a person should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    Ready,
    Failed { reason: String },
}

/// Why a store did not do what was asked: one variant per thing the caller does next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A condition did not hold; nothing changed. Read again and decide anew.
    #[error("the commit was refused: `{}` is not as expected", String::from_utf8_lossy(.key))]
    Refused { key: Key },
    /// The commit may or may not have landed. Read before doing anything else.
    #[error("it is unknown whether the commit landed: {reason}")]
    Unknown { reason: String },
    /// Nothing was done, and nothing can be done until the store is back.
    #[error("the store cannot be used now: {reason}")]
    Unavailable { reason: String },
    /// The commit breaks a rule of every store (its size, a key named twice); nothing changed.
    #[error("the commit is not valid: {reason}")]
    Invalid { reason: String },
    /// Another process holds the store.
    #[error("{reason}")]
    Locked { reason: String },
    /// The content of the disk is not what was written there. A person must act.
    #[error("the store is damaged: {reason}")]
    Damaged { reason: String },
}

/// One transactional, ordered key-value engine.
#[async_trait]
pub trait Store: Send + Sync + std::fmt::Debug {
    /// The entry under `key`. Sees every commit acknowledged before the call, by any process.
    async fn get(&self, key: &[u8]) -> Result<Option<Entry>, StoreError>;

    /// A view of all keys at one moment: it sees every commit acknowledged before the call and none begun after it.
    async fn snapshot(&self) -> Result<Arc<dyn Snapshot>, StoreError>;

    /// A view of all keys at one moment, from the nearest copy: whole, however old, and available also without a majority. For
    /// callers that would rather answer with something old than not at all, and say so.
    async fn own_snapshot(&self) -> Result<Arc<dyn Snapshot>, StoreError> {
        self.snapshot().await
    }

    /// Makes `commit` durable, or says why not. Commits that wait at the same time share one flush to disk.
    /// A caller that stops waiting does not stop the commit.
    async fn commit(&self, commit: Commit) -> Result<Committed, StoreError>;

    /// Every commit after this call that touches a key with `prefix`, in order, each exactly once.
    /// A receiver that falls too far behind gets [`WatchItem::Lost`] and must start from a snapshot.
    async fn watch(&self, prefix: &[u8]) -> Result<Watch, StoreError>;

    /// Waits until this process should lead, be it again, and raises the epoch, which is a counter under [`EPOCH_KEY`].
    async fn lead(&self) -> Result<Epoch, StoreError>;

    /// Why no commit is taken at the moment although reads are answered, if that is known.
    fn refuses_changes(&self) -> Option<String> {
        None
    }

    /// Whether commits can be expected to work, without doing one.
    fn health(&self) -> Health;

    /// Resolves once [`Store::health`] has changed since the last call on this receiver.
    fn health_changes(&self) -> tokio::sync::watch::Receiver<Health>;

    /// Findings of the storage engine, for a person who asks whether all is well. Nothing is changed.
    async fn examine(&self) -> Vec<StoreFinding> {
        Vec::new()
    }

    /// Where this store remembers the damage that its own reads find; none where another program keeps the files.
    fn damage(&self) -> Option<&DamageLog> {
        None
    }

    /// The members that keep this store together, if Netstead nodes do; none where one process or another program keeps it.
    fn membership(&self) -> Option<&dyn Membership> {
        None
    }

    /// Ends all work and gives the files back. Nothing may be asked of the store afterwards.
    async fn close(&self);
}

/// Waits before something is tried again that the store could not do: for `pause`, or until its health changes.
pub async fn pause_for(store: &dyn Store, pause: std::time::Duration) {
    let mut health = store.health_changes();
    let changed = async {
        if health.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = tokio::time::sleep(pause) => {}
        () = changed => {}
    }
}

/// The key under which the epoch is counted, as decimal text.
pub const EPOCH_KEY: &[u8] = b"meta/epoch";

/// All keys at one moment.
#[async_trait]
pub trait Snapshot: Send + Sync + std::fmt::Debug {
    async fn get(&self, key: &[u8]) -> Result<Option<Entry>, StoreError>;

    /// The entries with `prefix` whose key is greater than `after`, in order of key, at most `limit`.
    async fn range(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError>;

    /// As [`Snapshot::range`] from the greatest key down: those with `prefix` whose key is less than `before`.
    async fn range_back(
        &self,
        prefix: &[u8],
        before: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError>;
}

/// One commit as a watcher sees it: only the keys with the watcher's prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchItem {
    Changed {
        version: Version,
        writes: Arc<Vec<Write>>,
    },
    /// Some commits were missed. Nothing follows.
    Lost,
}

impl Commit {
    pub fn new() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn when(mut self, condition: Condition) -> Self {
        self.conditions.push(condition);
        self
    }

    #[must_use]
    pub fn put(mut self, key: impl Into<Key>, value: impl Into<Value>) -> Self {
        self.writes.push(Write::Put(key.into(), value.into()));
        self
    }

    #[must_use]
    pub fn delete(mut self, key: impl Into<Key>) -> Self {
        self.writes.push(Write::Delete(key.into()));
        self
    }

    /// Checks what every store checks before it looks at a condition.
    pub fn validate(&self) -> Result<(), StoreError> {
        let invalid = |reason: String| Err(StoreError::Invalid { reason });
        if self.writes.len() > MAX_WRITES {
            return invalid(format!("{} writes, and at most {MAX_WRITES} are allowed", self.writes.len()));
        }
        if self.conditions.len() > MAX_CONDITIONS {
            return invalid(format!(
                "{} conditions, and at most {MAX_CONDITIONS} are allowed",
                self.conditions.len()
            ));
        }
        let mut seen = HashSet::with_capacity(self.writes.len());
        let mut bytes = 0;
        for write in &self.writes {
            bytes += write.bytes();
            if !seen.insert(write.key()) {
                return invalid(format!("`{}` is written twice", String::from_utf8_lossy(write.key())));
            }
        }
        for key in self.conditions.iter().map(Condition::key).chain(self.writes.iter().map(Write::key)) {
            if key.is_empty() {
                return invalid("a key is empty".into());
            }
            if key.len() > MAX_KEY_BYTES {
                return invalid(format!(
                    "a key of {} bytes, and at most {MAX_KEY_BYTES} are allowed",
                    key.len()
                ));
            }
        }
        if bytes > MAX_BYTES {
            return invalid(format!("{bytes} bytes, and at most {MAX_BYTES} are allowed"));
        }
        Ok(())
    }

    /// The first key whose condition does not hold, given the versions that stand.
    fn refusal<E>(
        &self,
        mut standing: impl FnMut(&Key) -> Result<Option<Version>, E>,
    ) -> Result<Option<&Key>, E> {
        for condition in &self.conditions {
            let wanted = match condition {
                Condition::Absent(_) => None,
                Condition::Version(_, version) => Some(*version),
            };
            if standing(condition.key())? != wanted {
                return Ok(Some(condition.key()));
            }
        }
        Ok(None)
    }
}
