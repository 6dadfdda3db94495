//! One file that holds everything, and the way back from it. `docs/reference/store.md` describes it.
//!
//! The file is JSON lines: a header, one line per key, and a last line with the number of keys and the SHA-256 of all
//! that stands before it. Any store can restore it. What was restored is read back before it may be used.

mod lines;
mod write;

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use netstead_model::{Clock, Event, EventKind};
use netstead_store::{Commit, Damage, Snapshot, Store, StoreError};

use self::lines::Lines;
pub(crate) use self::lines::hex;
pub use self::write::{OnDamage, write, write_snapshot};
use crate::{
    bulk_load::{BulkLoad, Content, Room, is_content, make_room},
    check::{FORMAT_KEY, check},
    damage::describe,
    load::{Filling, RESTORING_KEY},
    record::{self, EventGroup, HEAD_KEY, Head, event_key},
};

/// The version of the file this binary writes, and the newest it reads.
pub const FORMAT: u32 = 1;

/// The content of a backup file, in numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    pub ledger: u32,
    pub seq: u64,
    pub created: Timestamp,
    pub entries: u64,
    /// Parts of the store that could not be read when the backup was made and are not in it, one sentence each.
    pub left_out: Vec<String>,
}

/// Why a backup could not be written or restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    #[error("the file cannot be read or written")]
    File(#[from] io::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("line {line} of the backup is not valid: {reason}; nothing was restored")]
    Malformed { line: u64, reason: String },
    #[error(
        "the backup has format {found}, and this version of Netstead reads up to {FORMAT}; use a newer one"
    )]
    TooNew { found: u32 },
    #[error(
        "the backup is of a store of format {stored}, and this version of Netstead understands formats up to {highest}; \
         nothing was restored"
    )]
    NewerStore { stored: u32, highest: u32 },
    #[error("the backup is incomplete or was changed: its checksum does not match; nothing was restored")]
    Checksum,
    #[error("the store is not empty: a backup is restored into an empty one only")]
    NotEmpty,
    #[error("everything was being moved into this store from another one, and that was interrupted")]
    HalfMoved,
    #[error("the store holds no ledger yet: there is nothing to back up")]
    NothingThere,
    /// Without what cannot be read it would not be a whole backup. `left_out`: it was to go without that, and cannot,
    /// because it is not history alone.
    #[error("the store is damaged: {}; {}", described(.damage), if *.left_out {
        "that is more than history, and a backup without it must not be restored"
    } else {
        "a whole backup cannot be made"
    })]
    Damaged { damage: Vec<Damage>, left_out: bool },
    #[error(
        "the store does not hold what was restored into it, so it cannot be used; restore into another one"
    )]
    Differs,
    #[error("everything is restored as it was, and that was not sound: `{key}`: {problem}")]
    Unsound { key: String, problem: String },
}

fn described(damage: &[Damage]) -> String {
    damage.iter().map(describe).collect::<Vec<_>>().join("; ")
}

/// Reads a whole file and compares its checksum, without touching any store.
pub async fn verify(path: &Path) -> Result<Summary, BackupError> {
    read_through(path).await.map(|content| content.summary)
}

/// The facts of a file that was checked before it is restored.
#[derive(Debug)]
struct Read {
    summary: Summary,
    head: Head,
    /// The format of the store it was made of, if that says one.
    stored: Option<u32>,
}

async fn read_through(path: &Path) -> Result<Read, BackupError> {
    let (mut lines, mut head, mut stored) = (Lines::open(path).await?, None, None);
    while let Some((key, value)) = lines.next().await? {
        if key == HEAD_KEY.as_bytes() {
            let read = record::decode(&key, &value);
            head = Some(read.map_err(|error| lines.malformed(error.to_string()))?);
        } else if key == FORMAT_KEY.as_bytes() {
            // What is no number is restored as it was, and the check tells of it.
            stored = std::str::from_utf8(&value).ok().and_then(|text| text.parse().ok());
        }
    }
    let head = head.ok_or_else(|| lines.malformed("the head of the ledger is not before it"))?;
    Ok(Read { summary: lines.summary()?, head, stored })
}

/// A file that was read whole and found sound. No store was touched for it.
#[derive(Debug)]
pub struct SoundBackup {
    path: PathBuf,
    read: Read,
}

impl SoundBackup {
    /// Reads the whole file. One of a store whose format is above `highest`, the highest that the program understands, is
    /// refused.
    pub async fn read(path: &Path, highest: u32) -> Result<Self, BackupError> {
        let read = read_through(path).await?;
        if let Some(stored) = read.stored.filter(|stored| *stored > highest) {
            return Err(BackupError::NewerStore { stored, highest });
        }
        Ok(Self { path: path.to_owned(), read })
    }
}

/// [`SoundBackup::read`] and [`SoundBackup::restore`] in one.
pub async fn restore(
    store: &dyn Store,
    clock: &dyn Clock,
    path: &Path,
    highest: u32,
    keep: impl Fn(&[u8], &[u8]) -> bool,
) -> Result<Summary, BackupError> {
    SoundBackup::read(path, highest).await?.restore(store, clock, keep).await
}

impl SoundBackup {
    /// Puts the content of the file into an empty store, or into one that an interrupted restore left: that begins anew.
    ///
    /// The restored ledger draws a new id and starts paused for generated claims. `keep` says which keys come along: the
    /// caller leaves out what a restore must revoke. All that was written is read back, and only a store that holds exactly
    /// that can be opened. A backup may be of a store that was not sound, and be all that is left: it is restored as it
    /// is, and [`BackupError::Unsound`] says so.
    pub async fn restore(
        self,
        store: &dyn Store,
        clock: &dyn Clock,
        keep: impl Fn(&[u8], &[u8]) -> bool,
    ) -> Result<Summary, BackupError> {
        let Self { path, read: Read { summary, head, .. } } = self;
        // Should this process die half way, the mark stays, and nothing takes the half for a whole.
        match make_room(store, Filling::Restore).await? {
            Room::Made => {}
            Room::Occupied => return Err(BackupError::NotEmpty),
            Room::HalfMoved => return Err(BackupError::HalfMoved),
        }
        let written = fill(store, &path, begin_anew(&head, clock, &summary), keep).await?;
        if Content::of(&*store.snapshot().await?).await? != written {
            return Err(BackupError::Differs);
        }
        let problems = check(store).await?.problems;
        store.commit(Commit::new().delete(RESTORING_KEY)).await?;
        if store.get(RESTORING_KEY).await?.is_some() {
            return Err(BackupError::Differs);
        }
        match problems.into_iter().find(|problem| problem.key.as_bytes() != RESTORING_KEY) {
            Some(unsound) => Err(BackupError::Unsound { key: unsound.key, problem: unsound.problem }),
            None => Ok(summary),
        }
    }
}

/// Writes what is in the file, with `ours` in the place of what has the same key.
async fn fill(
    store: &dyn Store,
    path: &Path,
    mut ours: BTreeMap<Vec<u8>, Vec<u8>>,
    keep: impl Fn(&[u8], &[u8]) -> bool,
) -> Result<Content, BackupError> {
    let (mut lines, mut filling) = (Lines::open(path).await?, BulkLoad::new(store));
    while let Some((key, value)) = lines.next().await? {
        if ours.contains_key(&key) || !is_content(&key) || !keep(&key, &value) {
            continue;
        }
        // Everything goes in the order of its keys, as it is read back.
        while let Some(own) = ours.first_entry().filter(|own| *own.key() < key) {
            let (key, value) = own.remove_entry();
            filling.put(key, value).await?;
        }
        filling.put(key, value).await?;
    }
    for (key, value) in ours {
        filling.put(key, value).await?;
    }
    Ok(filling.finish().await?)
}

/// Begins a restored ledger: with another id, a pause, and an event that says so.
fn begin_anew(head: &Head, clock: &dyn Clock, summary: &Summary) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let seq = head.seq + 1;
    let event = Event {
        seq,
        at: clock.wall(),
        by: "netstead".into(),
        request: None,
        what: EventKind::Restored,
        reason: Some(restored_from(summary).into()),
        before: None,
        after: None,
    };
    let group = EventGroup { events: vec![event.into()] };
    let head = Head { ledger: rand::random(), seq, batch: rand::random(), paused: true, ..head.clone() };
    let entries = [(HEAD_KEY.to_owned(), record::encode(&head)), (event_key(seq), record::encode(&group))];
    entries.into_iter().map(|(key, value)| (key.into_bytes(), value)).collect()
}

fn restored_from(summary: &Summary) -> String {
    let mut text = format!("from a backup of {} with {} keys", summary.created, summary.entries);
    if !summary.left_out.is_empty() {
        text.push_str(", without what could not be read: ");
        text.push_str(&summary.left_out.join("; "));
    }
    text
}

async fn head_of(snapshot: &dyn Snapshot) -> Result<Option<Head>, BackupError> {
    let Some(entry) = snapshot.get(HEAD_KEY.as_bytes()).await? else { return Ok(None) };
    let damaged = |error: record::Malformed| StoreError::Damaged { reason: error.to_string() };
    Ok(Some(record::decode(&entry.key, &entry.value).map_err(damaged)?))
}
