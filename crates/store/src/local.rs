//! The embedded store: one process, one directory, one fsync for all commits that wait.
//!
//! - `writer`: the one thread that decides and writes. `commit_group`: commits that share a flush.
//! - `log`: makes a commit durable. `applier`: puts it into the database afterwards.
//! - `engine`: the database, which is fjall. `journals`: its journal files.
//! - `recovery`: opens the store at the start. `write_failure`: opens it again after the disk failed.
//! - `data_dir`, `high_water_mark`, `housekeeper`: the directory, a second record of the last revision, the thread that
//!   writes it.
//! - `raw_keys`: access for the raft store.
//!
//! `docs/decisions/0001-embedded-store.md` says why fjall and with which settings, `0005-a-log-of-our-own.md` why a log of
//! our own instead of its journal.
//!
//! # Reading
//!
//! Reading one key calls fjall on the caller's thread. It is found in memory or in the page cache in about a
//! microsecond, which is less than handing the call to another thread; at worst it waits for one read from
//! the disk, or for fjall to finish listing a new table. A cache of our own in front of it would be wrong: a
//! caller could see a commit through one key and miss it through another. Ranges go to a thread that may
//! block. A snapshot is taken between two batches by the thread that applies them, see `Engine::view`.
//!
//! A commit can be read once it is durable and not before, and a read waits until everything that was acknowledged
//! before it began can be read.

mod applier;
pub(crate) mod commit_group;
mod data_dir;
mod database_error;
pub(crate) mod engine;
mod high_water_mark;
mod housekeeper;
mod journals;
mod log;
#[cfg(feature = "raft")]
mod raw_keys;
mod reader;
mod recovery;
mod shared_state;
pub(crate) mod snapshot;
mod write_failure;
mod writer;

use std::{
    fmt, io,
    path::Path,
    sync::{Arc, mpsc},
    thread,
};

use async_trait::async_trait;
use tokio::sync::{oneshot, watch};

pub use self::engine::MOST_OPEN_FILES;
use self::{
    applier::Applier,
    data_dir::DataDir,
    database_error::DatabaseError,
    engine::Engine,
    housekeeper::Housekeeper,
    log::Log,
    recovery::Opened,
    shared_state::{DatabaseKind, LocalShared},
    writer::{Answer, Request, Writer},
};
use crate::{Commit, Committed, DamageLog, Entry, Epoch, Health, Snapshot, Store, StoreError, Watch, epoch};

pub use self::reader::LocalReader;

/// A store in a directory of this machine.
///
/// After a write that failed, commits under way answer [`StoreError::Unknown`], every call answers
/// [`StoreError::Unavailable`] and health says why, until the database has been opened again and a durable
/// write has worked. Snapshots from before stay unavailable; watchers go on, or get
/// [`crate::WatchItem::Lost`] if an unknown commit turns out to have landed.
///
/// Dropping it without [`Store::close`] gives the files back as well, a moment later.
pub struct LocalStore {
    shared: Arc<LocalShared>,
    requests: mpsc::Sender<Request>,
    /// Closes when the writer thread has given everything back.
    gone: watch::Receiver<()>,
}

impl fmt::Debug for LocalStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalStore")
            .field("path", &self.shared.path())
            .field("health", &self.health())
            .finish_non_exhaustive()
    }
}

impl LocalStore {
    /// Opens the store in `dir`, and creates both if they are not there.
    ///
    /// [`StoreError::Locked`]: another process has it. [`StoreError::Damaged`]: it is not as it was left, and
    /// serving it could hand out an address that is held.
    pub async fn open(dir: &Path) -> Result<Self, StoreError> {
        Self::open_as(dir, DatabaseKind::Own).await
    }

    /// As [`LocalStore::open`], for a node of a cluster: the keys of its own log lie in the same database, and what is
    /// written lazily there needs the order of one journal, so it has none of ours in front.
    #[cfg(feature = "raft")]
    pub(crate) async fn open_for_cluster(dir: &Path) -> Result<Self, StoreError> {
        Self::open_as(dir, DatabaseKind::Node).await
    }

    async fn open_as(dir: &Path, kind: DatabaseKind) -> Result<Self, StoreError> {
        let dir = dir.to_path_buf();
        tokio::task::spawn_blocking(move || Self::open_blocking(&dir, kind))
            .await
            .unwrap_or_else(|error| Err(StoreError::Unavailable { reason: error.to_string() }))
    }

    fn open_blocking(dir: &Path, kind: DatabaseKind) -> Result<Self, StoreError> {
        let dir = DataDir::acquire(dir)?;
        let Opened { engine, log, revision } = recovery::open(&dir, kind)
            .map_err(|trouble| explained(&dir, trouble).into_error(dir.path(), kind))?;
        let shared = Arc::new(LocalShared::closed(dir.path(), kind, revision));
        shared.publish_engine(engine);
        let (requests, received) = mpsc::channel();
        let (leave, gone) = watch::channel(());
        start_threads(Arc::clone(&shared), dir, log, received, revision, leave)
            .map_err(|error| DatabaseError::Io(error).into_error(shared.path(), kind))?;
        Ok(Self { shared, requests, gone })
    }

    /// Asks the writer thread, and waits for its answer.
    async fn ask<T>(&self, request: impl FnOnce(Answer<T>) -> Request) -> Result<T, StoreError> {
        self.shared.ready()?;
        let (answer, answered) = oneshot::channel();
        self.requests.send(request(answer)).map_err(|_| self.shared.unavailable())?;
        answered.await.unwrap_or_else(|_| {
            Err(StoreError::Unknown { reason: "the store ended before it answered".into() })
        })
    }
}

/// Finds the cause of a failure in fjall's background while the store was opened, if the files of the store show it.
fn explained(dir: &DataDir, trouble: DatabaseError) -> DatabaseError {
    if !trouble.hides_its_cause() {
        return trouble;
    }
    Engine::find_damage(&dir.database()).filter(DatabaseError::is_damage).unwrap_or(trouble)
}

fn start_threads(
    shared: Arc<LocalShared>,
    dir: DataDir,
    log: Option<Log>,
    requests: mpsc::Receiver<Request>,
    revision: u64,
    leave: watch::Sender<()>,
) -> io::Result<()> {
    let housekeeper = Housekeeper::start(Arc::clone(&shared), revision)?;
    let applier = Applier::start(Arc::clone(&shared), revision)?;
    let farewell = WriterEndGuard(Arc::clone(&shared));
    let writer = Writer {
        shared,
        dir,
        requests,
        housekeeper,
        applier,
        log,
        numbered: revision,
        busy: false,
        unseen: 0,
        broken: None,
        damaged: None,
        unexplained: false,
    };
    thread::Builder::new().name("netstead-store".into()).spawn(move || {
        writer.run();
        drop(farewell);
        drop(leave);
    })?;
    Ok(())
}

/// Makes sure that no caller waits for a writer that has ended.
struct WriterEndGuard(Arc<LocalShared>);

impl Drop for WriterEndGuard {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.fail("the store ended by a fault of its own; restart netstead".into());
        }
        self.0.watchers.end_all();
    }
}

#[async_trait]
impl Store for LocalStore {
    async fn get(&self, key: &[u8]) -> Result<Option<Entry>, StoreError> {
        self.shared.settled().await?;
        self.shared.read(|engine, _| engine.get(key))
    }

    async fn snapshot(&self) -> Result<Arc<dyn Snapshot>, StoreError> {
        let snapshot = self.ask(Request::Snapshot).await?;
        Ok(Arc::new(snapshot))
    }

    async fn commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        commit.validate()?;
        self.ask(|answer| Request::Commit(commit, answer)).await
    }

    async fn watch(&self, prefix: &[u8]) -> Result<Watch, StoreError> {
        self.shared.ready()?;
        Ok(self.shared.watchers.add(prefix))
    }

    /// At once: who has the directory leads.
    async fn lead(&self) -> Result<Epoch, StoreError> {
        epoch::raise(self).await
    }

    fn health(&self) -> Health {
        self.shared.health().borrow().clone()
    }

    fn health_changes(&self) -> watch::Receiver<Health> {
        self.shared.health().subscribe()
    }

    fn damage(&self) -> Option<&DamageLog> {
        Some(&self.shared.damage)
    }

    async fn close(&self) {
        let _ = self.requests.send(Request::Close); // An error means that it is closed already.
        let mut gone = self.gone.clone();
        while gone.changed().await.is_ok() {}
    }
}
