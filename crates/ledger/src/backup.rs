//! One file that holds everything, and the way back from it. `docs/reference/store.md` describes it.
//!
//! The file is JSON lines: a header, one line per key, and a last line with the number of keys and the SHA-256 of all
//! that stands before it. Any store can restore it. What was restored is read back before it may be used.

mod lines;

use std::{collections::BTreeMap, io, path::Path};

use jiff::Timestamp;
use netstead_model::{Clock, Event, EventKind};
use netstead_store::{Commit, Damage, Entry, ReadablePages, Snapshot, Store, StoreError};
use serde::{Serialize, de::IgnoredAny};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncWrite, AsyncWriteExt};

pub(crate) use self::lines::hex;
use self::lines::{Footer, Header, Line, Lines};
use crate::{
    bulk_load::{BulkLoad, Content, is_content},
    check::{FORMAT_KEY, check},
    damage::{self, describe},
    load::{Pages, RESTORING_KEY},
    record::{self, EVENT, EventGroup, HEAD_KEY, Head, Malformed, event_key},
};

/// The version of the file this binary writes, and the newest it reads.
pub const FORMAT: u32 = 1;

/// What went into a file, or came out of one.
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
        "the store does not hold what was restored into it, and nobody can use it so; restore into another one"
    )]
    Differs,
    #[error("everything is restored as it was, and that was not sound: `{key}`: {problem}")]
    Unsound { key: String, problem: String },
}

fn described(damage: &[Damage]) -> String {
    damage.iter().map(describe).collect::<Vec<_>>().join("; ")
}

/// Behaviour of a backup when keys cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDamage {
    /// It fails.
    #[default]
    Fail,
    /// It goes without them if they are history. Anything else must be there: an address whose holder is left out could
    /// be handed out again.
    LeaveOutHistory,
}

/// Writes everything the store held at one moment.
pub async fn write(
    store: &dyn Store,
    clock: &dyn Clock,
    out: &mut (impl AsyncWrite + Unpin),
) -> Result<Summary, BackupError> {
    write_snapshot(&*store.snapshot().await?, clock, out, OnDamage::Fail).await
}

/// Writes everything that this one moment of a store had.
pub async fn write_snapshot(
    snapshot: &dyn Snapshot,
    clock: &dyn Clock,
    out: &mut (impl AsyncWrite + Unpin),
    on_damage: OnDamage,
) -> Result<Summary, BackupError> {
    match write_lines(snapshot, clock, out, on_damage).await {
        Err(BackupError::Store(StoreError::Damaged { reason })) => {
            let mut damage = damage::find(snapshot).await?;
            if damage.is_empty() {
                damage.push(Damage::new(b"", reason));
            }
            Err(BackupError::Damaged { damage, left_out: on_damage == OnDamage::LeaveOutHistory })
        }
        written => written,
    }
}

async fn write_lines(
    snapshot: &dyn Snapshot,
    clock: &dyn Clock,
    out: &mut (impl AsyncWrite + Unpin),
    on_damage: OnDamage,
) -> Result<Summary, BackupError> {
    let head = head_of(snapshot).await?.ok_or(BackupError::NothingThere)?;
    let (ledger, seq, created) = (head.ledger, head.seq, clock.wall());
    let mut lines = LineWriter { out, digest: Sha256::new(), entries: 0 };
    lines.put(&Header { format: FORMAT, ledger: format!("{ledger:08x}"), seq, created }).await?;
    let mut left_out = Vec::new();
    match on_damage {
        OnDamage::Fail => {
            let mut pages = Pages::new("");
            while let Some(page) = pages.next(snapshot).await? {
                lines.put_entries(&page).await?;
            }
        }
        OnDamage::LeaveOutHistory => {
            for prefix in damage::prefixes() {
                left_out.extend(lines.put_readable(snapshot, prefix).await?);
            }
        }
    }
    let (entries, sha256) = (lines.entries, hex(&lines.digest.clone().finalize()));
    lines.put(&Footer { entries, sha256, left_out: left_out.clone() }).await?;
    lines.out.flush().await?;
    Ok(Summary { ledger, seq, created, entries, left_out })
}

struct LineWriter<'a, W> {
    out: &'a mut W,
    digest: Sha256,
    entries: u64,
}

impl<W: AsyncWrite + Unpin> LineWriter<'_, W> {
    async fn put<T: Serialize>(&mut self, line: &T) -> Result<(), BackupError> {
        let mut bytes = serde_json::to_vec(line).map_err(io::Error::from)?;
        bytes.push(b'\n');
        self.digest.update(&bytes);
        self.out.write_all(&bytes).await?;
        Ok(())
    }

    async fn put_entries(&mut self, entries: &[Entry]) -> Result<(), BackupError> {
        for entry in entries {
            self.put(&Line::from(entry)).await?;
            self.entries += 1;
        }
        Ok(())
    }

    /// Writes what can be read and understood of the keys with `prefix`, and says what is left out. An error if that is
    /// not history.
    async fn put_readable(
        &mut self,
        snapshot: &dyn Snapshot,
        prefix: &str,
    ) -> Result<Vec<String>, BackupError> {
        let mut left_out = Vec::new();
        let mut pages = ReadablePages::new(snapshot, prefix.as_bytes());
        while let Some(mut page) = pages.next().await? {
            if damage::is_history(prefix) {
                page.retain(|entry| match understood(prefix, entry) {
                    Ok(()) => true,
                    Err(error) => {
                        left_out.push(error.to_string());
                        false
                    }
                });
            }
            self.put_entries(&page).await?;
        }
        if let Some(gap) = pages.gap() {
            if !damage::is_history(prefix) {
                return Err(StoreError::Damaged { reason: gap.reason.clone() }.into());
            }
            left_out.push(damage::describe_gap(gap));
        }
        Ok(left_out)
    }
}

fn understood(prefix: &str, entry: &Entry) -> Result<(), Malformed> {
    if prefix == EVENT {
        return record::decode::<EventGroup>(&entry.key, &entry.value).map(drop);
    }
    record::decode::<IgnoredAny>(&entry.key, &entry.value).map(drop)
}

/// Reads a whole file and compares its checksum, without touching any store.
pub async fn verify(path: &Path) -> Result<Summary, BackupError> {
    read_through(path).await.map(|content| content.summary)
}

/// What a whole and sound file tells before it is restored.
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

/// Puts the content of a file into an empty store. Nothing is written before the whole file was found sound, and nothing of
/// a store whose format is above `highest`, the highest that the program understands.
///
/// The restored ledger draws a new id and starts paused for generated claims. `keep` says which keys come along: the
/// caller leaves out what a restore must revoke. All that was written is read back, and only a store that holds exactly
/// that can be opened. A backup may be of a store that was not sound, and be all that somebody has: it is restored as it
/// is, and [`BackupError::Unsound`] says so.
pub async fn restore(
    store: &dyn Store,
    clock: &dyn Clock,
    path: &Path,
    highest: u32,
    keep: impl Fn(&[u8], &[u8]) -> bool,
) -> Result<Summary, BackupError> {
    let Read { summary, head, stored } = read_through(path).await?;
    if let Some(stored) = stored.filter(|stored| *stored > highest) {
        return Err(BackupError::NewerStore { stored, highest });
    }
    if !store.snapshot().await?.range(b"", None, 1).await?.is_empty() {
        return Err(BackupError::NotEmpty);
    }
    // Should this process die half way, the key stays, and no process takes the half for a whole.
    store.commit(Commit::new().put(RESTORING_KEY, "1")).await?;
    let written = fill(store, path, begin_anew(&head, clock, &summary), keep).await?;
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

/// What a restored ledger begins with: another id, a pause, and an event that says so.
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
