//! The store in an etcd. A commit is one etcd transaction, and a version is an etcd revision.
//!
//! - [`netstead_wire::etcd`]: requests to several endpoints. `send_once`: writes, which must not be sent twice.
//! - `leadership`: the leader key, its lease and the epoch.
//! - `watch`, `snapshot`: following revisions, and reading at one.
//! - `examine`, `quota`: findings for the doctor.
//!
//! If the answer to a commit is lost, etcd may have done it or not: the store answers `Unknown`.

mod alarm;
mod examine;
mod leadership;
mod options;
mod quota;
mod send_once;
mod snapshot;
mod watch;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use netstead_wire::etcd::{
    EtcdClient, KV_RANGE, describe_error, describe_first_error,
    messages::{
        Compare, CompareTarget, DeleteRangeRequest, KeyValue, Operand, Operation, PutRequest, RangeRequest,
        RangeResponse, RequestOp, TxnRequest,
    },
    never_left,
};
use tokio::sync::{Mutex as AsyncMutex, watch as tokio_watch};
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status};

pub use self::options::EtcdOptions;
use self::{leadership::Leading, snapshot::EtcdSnapshot, watch::EtcdWatch};
use crate::{
    Commit, Committed, Condition, EPOCH_KEY, Entry, Epoch, Health, Key, Snapshot, Store, StoreError,
    StoreFinding, Version, Watch, Write, key_range, watch::channel,
};

/// Where the keys of a store are, below its prefix.
pub const KEYS: &str = "kv/";

/// A store in an etcd that others may use as well: only keys below our prefix are touched.
#[derive(Debug)]
pub struct EtcdStore {
    shared: Arc<EtcdShared>,
}

#[derive(Debug)]
struct EtcdShared {
    client: EtcdClient,
    /// The prefix of every key, and the first key past all that have it.
    prefix: Key,
    end: Key,
    /// The leader key; beside our keys, so that it is in no snapshot and no backup.
    leader: Key,
    lease: Duration,
    leading: Mutex<Option<Leading>>,
    /// Held while the lease is renewed or replaced.
    keeping: AsyncMutex<()>,
    /// The highest revision of a commit of ours.
    last: AtomicI64,
    /// The newest leader of etcd's members that spoke.
    term: AtomicU64,
    health: tokio_watch::Sender<Health>,
    /// etcd has used up its quota.
    full: AtomicBool,
    closed: CancellationToken,
}

impl EtcdStore {
    /// Connects, and answers only once etcd did.
    pub async fn open(options: &EtcdOptions) -> Result<Self, StoreError> {
        let mut prefix = options.prefix.clone().into_bytes();
        if prefix.last() != Some(&b'/') {
            prefix.push(b'/');
        }
        let leader = [prefix.as_slice(), b"leader"].concat();
        prefix.extend_from_slice(KEYS.as_bytes());
        let end = key_range::after_all(&prefix).unwrap_or_else(|| vec![0]);
        let shared = Arc::new(EtcdShared {
            client: EtcdClient::new(&options.connection())
                .map_err(|error| StoreError::Unavailable { reason: error.to_string() })?,
            prefix,
            end,
            leader,
            lease: options.lease,
            leading: Mutex::new(None),
            keeping: AsyncMutex::default(),
            last: AtomicI64::new(0),
            term: AtomicU64::new(0),
            health: tokio_watch::Sender::new(Health::Ready),
            full: AtomicBool::new(false),
            closed: CancellationToken::new(),
        });
        shared.revision().await.map_err(|error| match error {
            StoreError::Unavailable { reason } => {
                StoreError::Unavailable { reason: describe_first_error(reason, shared.client.url()) }
            }
            other => other,
        })?;
        tokio::spawn(alarm::watch(Arc::clone(&shared)));
        Ok(Self { shared })
    }
}

impl EtcdShared {
    fn full(&self, key: &[u8]) -> Key {
        [self.prefix.as_slice(), key].concat()
    }

    /// A revision that has everything acknowledged before this call.
    async fn revision(&self) -> Result<i64, StoreError> {
        Ok(self.range(self.probe_request()).await?.header.map_or(0, |header| header.revision))
    }

    /// The revision the member that answers has itself. That it answers says nothing about a majority.
    async fn own_revision(&self) -> Result<i64, StoreError> {
        self.ensure_open()?;
        let question = RangeRequest { serializable: true, ..self.probe_request() };
        let answer: RangeResponse =
            self.client.read(KV_RANGE, question).await.map_err(|status| self.unavailable(&status))?;
        Ok(answer.header.map_or(0, |header| header.revision))
    }

    async fn range(&self, question: RangeRequest) -> Result<RangeResponse, StoreError> {
        self.ensure_open()?;
        let answer: RangeResponse =
            self.client.read(KV_RANGE, question).await.map_err(|status| self.unavailable(&status))?;
        self.note_term(answer.header.as_ref());
        self.note_ready();
        Ok(answer)
    }

    fn ensure_open(&self) -> Result<(), StoreError> {
        if self.closed.is_cancelled() { Err(Self::closed_error()) } else { Ok(()) }
    }

    fn closed_error() -> StoreError {
        StoreError::Unavailable { reason: "the store is closed".into() }
    }

    fn last_commit(&self) -> i64 {
        self.last.load(Ordering::Relaxed)
    }

    /// etcd answered.
    fn note_ready(&self) {
        self.set_health(Health::Ready);
    }

    /// A store that was closed stays closed.
    fn set_health(&self, new: Health) {
        if self.closed.is_cancelled() {
            return;
        }
        self.health.send_if_modified(|health| {
            let changed = *health != new;
            *health = new;
            changed
        });
    }

    /// Notes that etcd did not answer, or refuses us, and says so to the caller.
    fn unavailable(&self, status: &Status) -> StoreError {
        let reason = format!("etcd at {}: {}", self.client.url(), describe_error(status));
        self.set_health(Health::Failed { reason: reason.clone() });
        StoreError::Unavailable { reason }
    }

    /// The outcome of a commit that got no answer.
    fn failed_commit(&self, status: &Status) -> StoreError {
        let unavailable = self.unavailable(status);
        let reason = unavailable.to_string();
        let full = status.message().contains("database space exceeded");
        let nobody = status.message().contains("user name is empty");
        if full {
            self.full.store(true, Ordering::Relaxed);
        }
        match status.code() {
            Code::InvalidArgument if nobody => unavailable,
            Code::InvalidArgument => StoreError::Invalid { reason },
            Code::ResourceExhausted if full => unavailable,
            Code::PermissionDenied | Code::Unauthenticated => unavailable,
            _ if never_left(status) => unavailable,
            _ => StoreError::Unknown { reason },
        }
    }
}

#[async_trait]
impl Store for EtcdStore {
    async fn get(&self, key: &[u8]) -> Result<Option<Entry>, StoreError> {
        let question = RangeRequest { key: self.shared.full(key), ..RangeRequest::default() };
        let answer = self.shared.range(question).await?;
        Ok(answer.kvs.into_iter().next().and_then(|kv| entry(&self.shared.prefix, kv)))
    }

    async fn snapshot(&self) -> Result<Arc<dyn Snapshot>, StoreError> {
        let revision = self.shared.revision().await?;
        Ok(Arc::new(EtcdSnapshot { shared: Arc::clone(&self.shared), revision, serializable: false }))
    }

    async fn own_snapshot(&self) -> Result<Arc<dyn Snapshot>, StoreError> {
        let revision = self.shared.own_revision().await?;
        Ok(Arc::new(EtcdSnapshot { shared: Arc::clone(&self.shared), revision, serializable: true }))
    }

    async fn commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        commit.validate()?;
        self.shared.ensure_open()?;
        let shared = Arc::clone(&self.shared);
        // In a task of its own: who stops waiting does not stop the commit.
        let work = tokio::spawn(async move { shared.commit(commit).await });
        work.await.unwrap_or_else(|error| Err(StoreError::Unknown { reason: error.to_string() }))
    }

    async fn watch(&self, prefix: &[u8]) -> Result<Watch, StoreError> {
        let revision = self.shared.revision().await?;
        let (watcher, watch) = channel(prefix);
        let first = self.shared.full(prefix);
        let end = key_range::after_all(&first).unwrap_or_else(|| vec![0]);
        let follow = EtcdWatch {
            shared: Arc::clone(&self.shared),
            watcher,
            first,
            end,
            next: revision.saturating_add(1),
        };
        tokio::spawn(follow.run());
        Ok(watch)
    }

    async fn lead(&self) -> Result<Epoch, StoreError> {
        self.shared.ensure_open()?;
        leadership::lead(&self.shared).await
    }

    fn health(&self) -> Health {
        self.shared.health.borrow().clone()
    }

    fn health_changes(&self) -> tokio_watch::Receiver<Health> {
        self.shared.health.subscribe()
    }

    fn refuses_changes(&self) -> Option<String> {
        self.shared.full.load(Ordering::Relaxed).then(|| alarm::NO_SPACE.to_owned())
    }

    async fn examine(&self) -> Vec<StoreFinding> {
        examine::examine(&self.shared).await
    }

    async fn close(&self) {
        self.shared.closed.cancel();
        leadership::resign(&self.shared).await;
        self.shared.health.send_replace(Health::Failed { reason: "the store is closed".into() });
    }
}

impl EtcdShared {
    async fn commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        // A leader's commit is conditional on its epoch. Commits that raise the epoch themselves do not exist: `lead` does.
        let fence = self.leading().map(|leading| leading.fence);
        let wanted: Vec<(Key, i64)> = fence
            .map(|fence| (EPOCH_KEY.to_vec(), fence))
            .into_iter()
            .chain(commit.conditions.into_iter().map(condition))
            .collect();
        let look = |key: &Key| {
            let key = self.full(key);
            Operation::Range(RangeRequest { key, keys_only: true, ..RangeRequest::default() }).into()
        };
        let question = TxnRequest {
            compare: wanted.iter().map(|(key, revision)| is_at(self.full(key), *revision)).collect(),
            success: commit.writes.into_iter().map(|write| self.operation(write)).collect(),
            failure: wanted.iter().map(|(key, _)| look(key)).collect(),
        };
        let answer = self.send_once(question).await.map_err(|status| self.failed_commit(&status))?;
        self.note_ready();
        let revision = answer.header.map_or(0, |header| header.revision);
        if answer.succeeded {
            self.last.fetch_max(revision, Ordering::Relaxed);
            return Ok(Committed { version: Version(revision.unsigned_abs()) });
        }
        let standing = answer.responses.into_iter().map(|op| {
            let first = op.range.unwrap_or_default().kvs.into_iter().next();
            first.map_or(0, |kv| kv.mod_revision)
        });
        let broken = wanted.into_iter().zip(standing).find(|((_, wanted), standing)| wanted != standing);
        let key = broken.map_or_else(|| EPOCH_KEY.to_vec(), |((key, _), _)| key);
        if key == EPOCH_KEY && fence.is_some() && fence == self.leading().map(|leading| leading.fence) {
            self.deposed();
        }
        Err(StoreError::Refused { key })
    }

    fn operation(&self, write: Write) -> RequestOp {
        match write {
            Write::Put(key, value) => {
                Operation::Put(PutRequest { key: self.full(&key), value, lease: 0 }).into()
            }
            Write::Delete(key) => Operation::DeleteRange(DeleteRangeRequest {
                key: self.full(&key),
                ..DeleteRangeRequest::default()
            })
            .into(),
        }
    }
}

fn condition(condition: Condition) -> (Key, i64) {
    match condition {
        Condition::Absent(key) => (key, 0),
        Condition::Version(key, Version(version)) => (key, i64::try_from(version).unwrap_or(i64::MAX)),
    }
}

/// Holds when `key` was last written at `revision`, or is not there and that is 0.
fn is_at(key: Key, revision: i64) -> Compare {
    Compare {
        target: CompareTarget::Mod.into(),
        key,
        operand: Some(Operand::ModRevision(revision)),
        ..Compare::default()
    }
}

fn entry(prefix: &[u8], kv: KeyValue) -> Option<Entry> {
    let key = kv.key.strip_prefix(prefix)?.to_vec();
    Some(Entry { key, value: kv.value, version: Version(kv.mod_revision.unsigned_abs()) })
}

/// Takes the prefix off a write's key.
fn bare(prefix: &[u8], write: &mut Write) {
    let (Write::Put(key, _) | Write::Delete(key)) = write;
    key.drain(..prefix.len().min(key.len()));
}
