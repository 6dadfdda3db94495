//! The embedded store: one process, one directory, one fsync for all commits that wait.
//!
//! fjall holds the keys; `docs/decisions/0001-embedded-store.md` says why, with what settings, and what it
//! does not do for us. Everything that writes happens on one thread of our own, `writer`. When the disk
//! fails, that thread opens the database again until it works, see `heal`.
//!
//! # Reading
//!
//! Reading one key calls fjall on the caller's thread. It is found in memory or in the page cache in about a
//! microsecond, which is less than handing the call to another thread; at worst it waits for one read from
//! the disk, or for fjall to finish listing a new table. A cache of our own in front of it would be wrong: a
//! caller could see a commit through one key and miss it through another. Ranges go to a thread that may
//! block. A snapshot is taken by the writer between two groups, see `Engine::view`.
//!
//! A commit can be read once it is durable and not before, so every read sees at least what was
//! acknowledged before it began.

mod data_dir;
pub(crate) mod engine;
pub(crate) mod group;
mod heal;
mod housekeeper;
mod journals;
mod mark;
#[cfg(feature = "raft")]
mod raw;
mod shared;
mod trouble;
pub(crate) mod view;
mod writer;

use std::{
    fmt, io,
    path::Path,
    sync::{Arc, mpsc},
    thread,
};

use async_trait::async_trait;
use tokio::sync::{oneshot, watch};

use self::{
    data_dir::{DataDir, sync_directory},
    engine::Engine,
    housekeeper::Housekeeper,
    mark::Mark,
    shared::Shared,
    trouble::Trouble,
    writer::{Answer, Request, Writer},
};
use crate::{Commit, Committed, Entry, Epoch, Health, Snapshot, Store, StoreError, Watch, epoch};

/// A store in a directory of this machine.
///
/// After a write that failed, commits under way answer [`StoreError::Unknown`], every call answers
/// [`StoreError::Unavailable`] and health says why, until the database has been opened again and a durable
/// write has worked. Snapshots from before stay unavailable; watchers go on, or get
/// [`crate::WatchItem::Lost`] if an unknown commit turns out to have landed.
///
/// Dropping it without [`Store::close`] gives the files back as well, a moment later.
pub struct LocalStore {
    shared: Arc<Shared>,
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
    /// serving it could hand out what somebody holds.
    pub async fn open(dir: &Path) -> Result<Self, StoreError> {
        let store = Self::open_whoever(dir).await?;
        if store.shared.read(|engine, _| engine.is_of_a_cluster())? {
            store.close().await;
            let reason = format!(
                "{} holds a node of a cluster, not a store of its own; say `type = \"raft\"`, or name another directory",
                dir.display()
            );
            return Err(StoreError::Unavailable { reason });
        }
        Ok(store)
    }

    /// As [`LocalStore::open`], also where the directory is a node of a cluster.
    pub(crate) async fn open_whoever(dir: &Path) -> Result<Self, StoreError> {
        let dir = dir.to_path_buf();
        tokio::task::spawn_blocking(move || Self::open_blocking(&dir))
            .await
            .unwrap_or_else(|error| Err(StoreError::Unavailable { reason: error.to_string() }))
    }

    fn open_blocking(dir: &Path) -> Result<Self, StoreError> {
        let dir = DataDir::take(dir)?;
        let (engine, revision) = open_database(&dir).map_err(|trouble| trouble.into_error(dir.path()))?;
        let shared = Arc::new(Shared::closed(dir.path(), revision));
        shared.lend(engine);
        let (requests, received) = mpsc::channel();
        let (leave, gone) = watch::channel(());
        start_threads(Arc::clone(&shared), dir, received, revision, leave)
            .map_err(|error| Trouble::Io(error).into_error(shared.path()))?;
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

/// Opens or creates the database in `dir`, and makes sure that it is the one that was left there.
fn open_database(dir: &DataDir) -> Result<(Engine, u64), Trouble> {
    let database = dir.database();
    let place = dir.path().display();
    let mark = Mark::read(dir.path())?;
    if !database.exists() {
        if let Some(Mark { revision, .. }) = mark {
            return Err(Trouble::Damaged(format!("{place} once had {revision} commits and has no database")));
        }
        Engine::create(dir)?;
    } else if !mark.is_some_and(|mark| mark.closed) {
        // Again if need be: the first attempt may only have learned of a failure before our time.
        journals::write_again(&database).or_else(|_| journals::write_again(&database))?;
    }

    let engine = Engine::open(&database)?;
    let revision = engine.revision()?;
    if let Some(Mark { revision: marked, .. }) = mark
        && revision < marked
    {
        engine.close();
        return Err(Trouble::Damaged(format!(
            "{place} ends at commit {revision}, and commit {marked} was once there: a journal was cut short or \
             old files were put in its place. To go on without those commits, which may hand out addresses \
             that are in use, delete {}; otherwise",
            dir.path().join(mark::FILE).display()
        )));
    }
    Mark { revision, closed: false }.write(dir.path())?;
    sync_directory(dir.path())?;
    Ok((engine, revision))
}

fn start_threads(
    shared: Arc<Shared>,
    dir: DataDir,
    requests: mpsc::Receiver<Request>,
    revision: u64,
    leave: watch::Sender<()>,
) -> io::Result<()> {
    let housekeeper = Housekeeper::start(Arc::clone(&shared), revision)?;
    let farewell = Farewell(Arc::clone(&shared));
    let writer = Writer { shared, dir, requests, housekeeper, numbered: revision, broken: None };
    thread::Builder::new().name("netstead-store".into()).spawn(move || {
        writer.run();
        drop(farewell);
        drop(leave);
    })?;
    Ok(())
}

/// Makes sure that nobody waits for a writer that has ended, however it did.
struct Farewell(Arc<Shared>);

impl Drop for Farewell {
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

    async fn close(&self) {
        let _ = self.requests.send(Request::Close); // An error means that it is closed already.
        let mut gone = self.gone.clone();
        while gone.changed().await.is_ok() {}
    }
}
