//! fjall, and how our keys and values lie in it.
//!
//! One keyspace: a second one that is seldom written would pin the journals of the first. Its keys:
//!
//! ```text
//! d<key>   8 bytes of version, big-endian, then the value
//! r        8 bytes: the revision, that is the number of the last commit
//! ```

use std::{
    fs::{self, File},
    io,
    ops::Bound,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use fjall::{
    AbstractTree, Database, Keyspace, KeyspaceCreateOptions, PersistMode, Readable, compaction::Leveled,
};
use netstead_wire::files;

use super::{
    data_dir::{DataDir, sync_directory},
    database_error::DatabaseError,
    journals,
};
use crate::{Entry, Key, MAX_KEY_BYTES, Value, Version, key_range::KeyRange};

/// Data waiting in memory before it becomes a table. Stored when the keyspace is created. Small, because
/// writing a table is what makes a single commit slow, and what is open costs memory and time to recover.
const MEMTABLE_BYTES: u64 = 4 << 20;

/// Tables in level 0 at which they are merged into the next level, all of which is read and written again. Stored when
/// the keyspace is created. Three times fjall's own choice: a reader hardly minds a few more small tables, while merging
/// takes a core from the writers. Well below 20, where fjall slows writers down.
const MERGED_TABLES: u8 = 12;

/// About the size of a table from level 1 on. Stored when the keyspace is created. Level 1 is left alone up to
/// `MERGED_TABLES` of this size, and every merge of level 0 writes all of it again, for level 0 has keys from everywhere.
/// With fjall's own 64 MiB it may grow to 768 MB, and its threads took some 4.5 s instead of 3.5 s for 800,000 claims.
const TABLE_BYTES: u64 = 8 << 20;

/// Threads that write and merge tables. The first does not merge: it puts what it finds to be merged back into the queue,
/// again and again, until another one takes it. With one more than can have something to merge, one does at once.
const WORKERS: usize = 3;

/// All journals together; fjall's smallest.
const JOURNAL_BYTES: u64 = 64 << 20;

/// About how long the journal of a database with a log becomes.
const LONGEST_JOURNAL: usize = 512 << 10;

/// Tables that are kept open. fjall's own choice, 900, would be nearly all that a process may usually have open.
const OPEN_TABLES: usize = 256;

/// About the most files that a local store has open at one time: tables that are kept open, tables that are merged, and
/// logs.
pub const MOST_OPEN_FILES: usize = OPEN_TABLES + 64;

/// Blocks of tables kept in memory. The crates above keep what they need often.
const CACHE_BYTES: u64 = 16 << 20;

/// The end of every table, which says where its parts are, needs more bytes than these.
const SHORTEST_TABLE: u64 = 64;

/// fjall waits for ever inside a commit at 4 sealed memtables and 30 tables in level 0, even when the thread
/// that should make room has died. We wait before that, and look.
const SEALED_MEMTABLES: usize = 3;
const FRESH_TABLES: usize = 28;

const KEYSPACE: &str = "netstead";
const DATA: u8 = b'd';
const REVISION: &[u8] = b"r";

/// The id of a node of a cluster; the raft store has this key and others, see its `disk`.
pub(crate) const NODE: &[u8] = b"n";

/// The new content of a key on disk, or its removal.
pub(crate) type DiskWrite = (Vec<u8>, Option<Vec<u8>>);

/// A key and what lies under it.
#[cfg(feature = "raft")]
pub(crate) type DiskEntry = (Vec<u8>, Vec<u8>);

/// An open database. Every call may block.
pub(super) struct Engine {
    keys: Keyspace,
    db: Database,
    /// The journal, which is never read.
    journal: Option<Journal>,
}

/// fjall flushes its journal with every table. What is cut off before that never takes the disk's time.
struct Journal {
    file: File,
    /// About how much was written to it since it was cut.
    bytes: AtomicUsize,
}

impl Engine {
    /// Creates the database of `dir`, completely or not at all: a process killed in the first moments of
    /// fjall's own creation leaves files that never open again.
    pub(super) fn create(dir: &DataDir) -> Result<(), DatabaseError> {
        let new = dir.new_database();
        if new.exists() {
            fs::remove_dir_all(&new)?;
        }
        // fjall's own directories and files are as open as the umask lets them be; nothing below this one can be reached.
        files::create_private_dir(&new)?;
        let engine = Self::start(&new, WORKERS)?;
        engine.apply(&[], 0)?;
        engine.settle()?;
        engine.close();
        sync_directory(&new)?;
        fs::rename(&new, dir.database())?;
        Ok(sync_directory(dir.path())?)
    }

    /// Opens the database in `path` as its tables have it. Its journals are thrown away: they are never flushed, so after a
    /// crash they may be full of holes; what they would add is in the log.
    pub(super) fn open(path: &Path) -> Result<Self, DatabaseError> {
        Self::open_with(path, WORKERS)
    }

    /// As [`Engine::open`], to be read only: nothing is written to tables, and none are merged. Merging reads every table,
    /// so one that is damaged makes it fail, and with it every write. Only for a database with a log in front of it.
    pub(super) fn open_to_read(path: &Path) -> Result<Self, DatabaseError> {
        Self::open_with(path, 0)
    }

    fn open_with(path: &Path, workers: usize) -> Result<Self, DatabaseError> {
        Self::check_manifests(path)?;
        let file = journals::start_anew(path)?;
        let engine = Self::start(path, workers)?;
        Ok(Self { journal: Some(Journal { file, bytes: AtomicUsize::new(0) }), ..engine })
    }

    /// Opens a database without a log in front of it, whose journals are what makes it durable.
    pub(super) fn open_with_journals(path: &Path) -> Result<Self, DatabaseError> {
        Self::check_manifests(path)?;
        Self::start(path, WORKERS)
    }

    /// Reads every key there is. What makes this fail is returned with the last key before it.
    pub(super) fn find_damage(&self) -> Option<DatabaseError> {
        let mut last = Vec::new();
        let read = guarded(|| {
            for item in self.keys.iter() {
                let (key, _) = item.into_inner()?;
                last = key.to_vec();
            }
            Ok(())
        });
        let trouble = read.err()?.at(last.get(1..).unwrap_or_default());
        trouble.is_damage().then_some(trouble)
    }

    /// Where a file that lists others is missing, fjall would start anew and delete those.
    fn check_manifests(path: &Path) -> Result<(), DatabaseError> {
        for file in ["version", "keyspaces/0/current", "keyspaces/1/current"] {
            let file = path.join(file);
            if !file.try_exists()? {
                return Err(DatabaseError::Damaged(format!("{} is missing", file.display())));
            }
        }
        Ok(())
    }

    fn start(path: &Path, workers: usize) -> Result<Self, DatabaseError> {
        // A table that nothing refers to may be as short as it likes, so the database is opened first.
        Self::try_start(path, workers).map_err(|trouble| match shortest_table(path) {
            Some((table, 0)) if trouble.is_invalid_input() => {
                DatabaseError::Damaged(format!("{} is empty", table.display()))
            }
            Some((table, bytes)) if trouble.is_invalid_input() && bytes < SHORTEST_TABLE => {
                DatabaseError::Damaged(format!("{} was cut: it has {bytes} bytes", table.display()))
            }
            _ => trouble,
        })
    }

    fn try_start(path: &Path, workers: usize) -> Result<Self, DatabaseError> {
        guarded(|| {
            let db = Database::builder(path)
                .cache_size(CACHE_BYTES)
                .max_cached_files(Some(OPEN_TABLES))
                .max_journaling_size(JOURNAL_BYTES)
                .worker_threads_unchecked(workers)
                .open()?;
            let keys = db.keyspace(KEYSPACE, || {
                let merging =
                    Leveled::default().with_l0_threshold(MERGED_TABLES).with_table_target_size(TABLE_BYTES);
                KeyspaceCreateOptions::default()
                    .max_memtable_size(MEMTABLE_BYTES)
                    .compaction_strategy(Arc::new(merging))
            })?;
            Ok(Self { keys, db, journal: None })
        })
    }

    /// From now on the journal is what makes it durable.
    pub(super) fn keep_journal(self) -> Self {
        Self { journal: None, ..self }
    }

    /// Gives the files back, also when fjall is in a state that makes it panic.
    pub(super) fn close(self) {
        let _ = guarded(|| {
            drop(self);
            Ok(())
        });
    }

    /// The number of the last commit.
    pub(super) fn revision(&self) -> Result<u64, DatabaseError> {
        let stored = guarded(|| Ok(self.keys.get(REVISION)?))?;
        match stored.as_deref().map(<[u8; 8]>::try_from) {
            Some(Ok(bytes)) => Ok(u64::from_be_bytes(bytes)),
            _ => Err(DatabaseError::Damaged("the number of the last commit is missing".into())),
        }
    }

    /// Whether a node of a cluster keeps its log here.
    pub(super) fn is_of_a_cluster(&self) -> Result<bool, DatabaseError> {
        guarded(|| Ok(self.keys.contains_key(NODE)?))
    }

    /// The value under `key` now.
    pub(super) fn get(&self, key: &[u8]) -> Result<Option<Entry>, DatabaseError> {
        if key.len() > MAX_KEY_BYTES {
            return Ok(None); // fjall would panic.
        }
        let stored = guarded(|| Ok(self.keys.get(disk_key(key))?)).map_err(|trouble| trouble.at(key))?;
        stored.map(|stored| entry(key, &stored)).transpose()
    }

    /// The version that stands under a key as [`disk_key`] writes it.
    pub(super) fn version(&self, disk_key: &[u8]) -> Result<Option<Version>, DatabaseError> {
        let stored = guarded(|| Ok(self.keys.get(disk_key)?))?;
        stored.map(|stored| split(disk_key, &stored).map(|(version, _)| version)).transpose()
    }

    /// Makes `writes`, each of another key, and the revision durable by the journal alone, with one fsync.
    pub(super) fn write(&self, writes: &[DiskWrite], revision: u64) -> Result<(), DatabaseError> {
        guarded(|| self.write_when(writes, revision, Some(PersistMode::SyncData)))
    }

    /// As [`Engine::write`], and durable only once something after it is.
    #[cfg(feature = "raft")]
    pub(super) fn write_lazily(&self, writes: &[DiskWrite], revision: u64) -> Result<(), DatabaseError> {
        guarded(|| self.write_when(writes, revision, None))
    }

    /// Takes in `writes`, each of another key, and the revision. They can be read then, and are lost in a crash unless
    /// they are in the log. Returns what [`Engine::persisted`] must reach for the tables to have them.
    pub(super) fn apply(&self, writes: &[DiskWrite], revision: u64) -> Result<u64, DatabaseError> {
        guarded(|| {
            self.write_when(writes, revision, None)?;
            if let Some(journal) = &self.journal {
                journal.note(writes)?;
            }
            // Only this thread writes, so the highest number belongs to this batch.
            let tree = &self.keys.tree;
            let number = tree.get_highest_memtable_seqno().or_else(|| tree.get_highest_persisted_seqno());
            Ok(number.unwrap_or(u64::MAX))
        })
    }

    fn write_when(
        &self,
        writes: &[DiskWrite],
        revision: u64,
        durability: Option<PersistMode>,
    ) -> Result<(), DatabaseError> {
        self.wait_for_room()?;
        let mut batch = self.db.batch().durability(durability);
        for (key, content) in writes {
            match content {
                Some(content) => batch.insert(&self.keys, key.as_slice(), content.as_slice()),
                None => batch.remove(&self.keys, key.as_slice()),
            }
        }
        batch.insert(&self.keys, REVISION, revision.to_be_bytes());
        Ok(batch.commit()?)
    }

    /// How far the tables have got, in numbers of [`Engine::apply`]: fjall writes them in order.
    pub(super) fn persisted(&self) -> Result<u64, DatabaseError> {
        guarded(|| Ok(self.keys.tree.get_highest_persisted_seqno().unwrap_or_default()))
    }

    /// Has what is in memory written to a table in the background.
    pub(super) fn seal(&self) -> Result<(), DatabaseError> {
        guarded(|| Ok(self.keys.rotate_memtable().map(drop)?))
    }

    /// Returns once the tables have everything that was applied.
    pub(super) fn settle(&self) -> Result<(), DatabaseError> {
        self.seal()?;
        guarded(|| {
            while self.keys.sealed_memtable_count() > 0 {
                self.db.persist(PersistMode::Buffer)?; // Answers `Poisoned` when nobody will write it any more.
                thread::sleep(Duration::from_millis(1));
            }
            Ok(())
        })
    }

    /// Whether a write would be refused because one in the background failed. Cheap: it writes nothing.
    pub(super) fn check(&self) -> Result<(), DatabaseError> {
        guarded(|| Ok(self.db.persist(PersistMode::Buffer)?))
    }

    fn wait_for_room(&self) -> Result<(), DatabaseError> {
        while self.keys.sealed_memtable_count() >= SEALED_MEMTABLES
            || self.keys.l0_table_count() >= FRESH_TABLES
        {
            self.db.persist(PersistMode::Buffer)?; // Answers `Poisoned` when nobody will make room any more.
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// A view of the database as it is now. Only to be called while no write is under way: fjall moves the
    /// limit of what a view sees when it finishes a table, and a batch that is being written may lie below.
    pub(super) fn view(&self) -> fjall::Snapshot {
        self.db.snapshot()
    }

    pub(super) fn get_at(&self, view: &fjall::Snapshot, key: &[u8]) -> Result<Option<Entry>, DatabaseError> {
        if key.len() > MAX_KEY_BYTES {
            return Ok(None);
        }
        let stored =
            guarded(|| Ok(view.get(&self.keys, disk_key(key))?)).map_err(|trouble| trouble.at(key))?;
        stored.map(|stored| entry(key, &stored)).transpose()
    }

    /// At most `limit` entries of `span`, from its end if `back`. Trouble is said to be at the last key that was read, or at
    /// the beginning of the span.
    pub(super) fn range_at(
        &self,
        view: &fjall::Snapshot,
        span: KeyRange,
        limit: usize,
        back: bool,
    ) -> Result<Vec<Entry>, DatabaseError> {
        let start = match &span.0 {
            Bound::Included(start) | Bound::Excluded(start) => start.clone(),
            Bound::Unbounded => Key::new(),
        };
        let mut entries: Vec<Entry> = Vec::new();
        let read = guarded(|| {
            let mut found = view.range(&self.keys, disk_span(span));
            while entries.len() < limit {
                let Some(item) = (if back { found.next_back() } else { found.next() }) else { break };
                let (key, stored) = item.into_inner()?;
                entries.push(entry(key.get(1..).unwrap_or_default(), &stored)?);
            }
            Ok(())
        });
        match read {
            Ok(()) => Ok(entries),
            Err(trouble) => {
                Err(trouble.at(entries.last().filter(|_| !back).map_or(&start, |entry| &entry.key)))
            }
        }
    }
}

impl Journal {
    fn note(&self, writes: &[DiskWrite]) -> io::Result<()> {
        let bytes: usize =
            writes.iter().map(|(key, content)| key.len() + content.as_ref().map_or(0, Vec::len)).sum();
        if self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > LONGEST_JOURNAL {
            self.bytes.store(0, Ordering::Relaxed);
            self.file.set_len(0)?;
        }
        Ok(())
    }
}

/// Keys of others than the local store itself, as they lie on disk.
#[cfg(feature = "raft")]
impl Engine {
    pub(super) fn raw(&self, disk_key: &[u8]) -> Result<Option<Vec<u8>>, DatabaseError> {
        guarded(|| Ok(self.keys.get(disk_key)?.map(|stored| stored.to_vec())))
    }

    /// Entries from `start` up to `end`, and no more than about `limit` bytes, but at least one.
    pub(super) fn raw_range(
        &self,
        start: &[u8],
        end: &[u8],
        limit: usize,
    ) -> Result<Vec<DiskEntry>, DatabaseError> {
        if start >= end {
            return Ok(Vec::new());
        }
        guarded(|| {
            let mut found = Vec::new();
            let mut bytes = 0;
            for item in self.keys.range(start.to_vec()..end.to_vec()) {
                let (key, stored) = item.into_inner()?;
                bytes += stored.len();
                if bytes > limit && !found.is_empty() {
                    break;
                }
                found.push((key.to_vec(), stored.to_vec()));
            }
            Ok(found)
        })
    }

    /// The last entry from `start` up to `end`.
    pub(super) fn raw_last(&self, start: &[u8], end: &[u8]) -> Result<Option<DiskEntry>, DatabaseError> {
        guarded(|| {
            let Some(item) = self.keys.range(start.to_vec()..end.to_vec()).next_back() else {
                return Ok(None);
            };
            let (key, stored) = item.into_inner()?;
            Ok(Some((key.to_vec(), stored.to_vec())))
        })
    }

    pub(super) fn raw_at(
        &self,
        view: &fjall::Snapshot,
        disk_key: &[u8],
    ) -> Result<Option<Vec<u8>>, DatabaseError> {
        guarded(|| Ok(view.get(&self.keys, disk_key)?.map(|stored| stored.to_vec())))
    }
}

/// The shortest table file of a database, and its length.
fn shortest_table(database: &Path) -> Option<(PathBuf, u64)> {
    let keyspaces = std::fs::read_dir(database.join("keyspaces")).ok()?;
    let tables =
        keyspaces.flatten().filter_map(|keyspace| std::fs::read_dir(keyspace.path().join("tables")).ok());
    let tables =
        tables.flatten().flatten().filter_map(|table| Some((table.path(), table.metadata().ok()?.len())));
    tables.min_by_key(|(_, bytes)| *bytes)
}

/// Runs `work` and turns a panic of fjall into an error.
fn guarded<T>(work: impl FnOnce() -> Result<T, DatabaseError>) -> Result<T, DatabaseError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(DatabaseError::panicked(panic.as_ref())))
}

pub(crate) fn disk_key(key: &[u8]) -> Vec<u8> {
    let mut disk = Vec::with_capacity(1 + key.len());
    disk.push(DATA);
    disk.extend_from_slice(key);
    disk
}

pub(crate) fn disk_value(version: Version, value: &[u8]) -> Vec<u8> {
    let mut disk = Vec::with_capacity(8 + value.len());
    disk.extend_from_slice(&version.0.to_be_bytes());
    disk.extend_from_slice(value);
    disk
}

fn disk_span((start, end): KeyRange) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let end = match end {
        Bound::Unbounded => Bound::Excluded(vec![DATA + 1]),
        end => end.map(|key| disk_key(&key)),
    };
    (start.map(|key| disk_key(&key)), end)
}

/// Copies out of fjall: what it hands out keeps a whole block in memory.
fn entry(key: &[u8], stored: &[u8]) -> Result<Entry, DatabaseError> {
    let (version, value) = split(key, stored)?;
    Ok(Entry { key: Key::from(key), value: Value::from(value), version })
}

fn split<'a>(key: &[u8], stored: &'a [u8]) -> Result<(Version, &'a [u8]), DatabaseError> {
    match stored.split_first_chunk::<8>() {
        Some((version, value)) => Ok((Version(u64::from_be_bytes(*version)), value)),
        None => Err(DatabaseError::Damaged(format!(
            "the value of `{}` has no version",
            String::from_utf8_lossy(key)
        ))),
    }
}
