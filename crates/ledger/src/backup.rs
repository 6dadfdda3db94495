//! One file that holds everything, and the way back from it. `docs/reference/store.md` describes it.
//!
//! The file is JSON lines: a header, one line per key, and a last line with the number of keys and the SHA-256 of all
//! that stands before it. Any store can restore it.

use std::{io, path::Path};

use jiff::Timestamp;
use netstead_model::{Clock, Event, EventKind};
use netstead_store::{Commit, Entry, Snapshot, Store, StoreError};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt, BufReader};

use crate::{
    filling::Filling,
    load::{Pages, RESTORING_KEY},
    migrate::SEALED_KEY,
    record::{self, EventGroup, HEAD_KEY, Head, event_key},
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
    #[error("the backup is incomplete or was changed: its checksum does not match; nothing was restored")]
    Checksum,
    #[error("the store is not empty: a backup is restored into an empty one only")]
    NotEmpty,
    #[error("the store holds no ledger yet: there is nothing to back up")]
    NothingThere,
}

#[derive(Serialize, Deserialize)]
struct Header {
    #[serde(rename = "netstead-backup")]
    format: u32,
    ledger: String,
    seq: u64,
    created: Timestamp,
}

#[derive(Serialize, Deserialize)]
struct Line {
    k: String,
    v: String,
    /// Key and value are hexadecimal, because one of them is not text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    hex: bool,
}

#[derive(Serialize, Deserialize)]
struct Footer {
    entries: u64,
    sha256: String,
}

/// Writes everything the store held at one moment.
pub async fn write(
    store: &dyn Store,
    clock: &dyn Clock,
    out: &mut (impl AsyncWrite + Unpin),
) -> Result<Summary, BackupError> {
    write_snapshot(&*store.snapshot().await?, clock, out).await
}

/// Writes everything that this one moment of a store had.
pub async fn write_snapshot(
    snapshot: &dyn Snapshot,
    clock: &dyn Clock,
    out: &mut (impl AsyncWrite + Unpin),
) -> Result<Summary, BackupError> {
    let head = head_of(snapshot).await?.ok_or(BackupError::NothingThere)?;
    let created = clock.wall();
    let mut summary = Summary { ledger: head.ledger, seq: head.seq, created, entries: 0 };
    let mut digest = Sha256::new();
    let header = Header { format: FORMAT, ledger: format!("{:08x}", head.ledger), seq: head.seq, created };
    put_line(out, &mut digest, &header).await?;
    let mut pages = Pages::new("");
    while let Some(page) = pages.next(snapshot).await? {
        for entry in &page {
            put_line(out, &mut digest, &line_of(entry)).await?;
            summary.entries += 1;
        }
    }
    let footer = Footer { entries: summary.entries, sha256: hex(&digest.finalize_reset()) };
    put_line(out, &mut digest, &footer).await?;
    out.flush().await?;
    Ok(summary)
}

async fn put_line<T: Serialize>(
    out: &mut (impl AsyncWrite + Unpin),
    digest: &mut Sha256,
    line: &T,
) -> Result<(), BackupError> {
    let mut bytes = serde_json::to_vec(line).map_err(io::Error::from)?;
    bytes.push(b'\n');
    digest.update(&bytes);
    out.write_all(&bytes).await?;
    Ok(())
}

fn line_of(entry: &Entry) -> Line {
    match (String::from_utf8(entry.key.clone()), String::from_utf8(entry.value.clone())) {
        (Ok(k), Ok(v)) => Line { k, v, hex: false },
        _ => Line { k: hex(&entry.key), v: hex(&entry.value), hex: true },
    }
}

/// Reads a whole file and compares its checksum, without touching any store.
pub async fn verify(path: &Path) -> Result<Summary, BackupError> {
    let mut lines = Lines::open(path).await?;
    while lines.next().await?.is_some() {}
    lines.summary()
}

/// Puts the content of a file into an empty store. Nothing is written before the whole file was found sound.
///
/// The restored ledger draws a new id and starts paused for generated claims. `keep` says which keys come along: the
/// caller leaves out what a restore must revoke.
pub async fn restore(
    store: &dyn Store,
    clock: &dyn Clock,
    path: &Path,
    keep: impl Fn(&[u8], &[u8]) -> bool,
) -> Result<Summary, BackupError> {
    let summary = verify(path).await?;
    if !store.snapshot().await?.range(b"", None, 1).await?.is_empty() {
        return Err(BackupError::NotEmpty);
    }
    // Should this process die half way, the key stays, and nobody takes the half for a whole.
    store.commit(Commit::new().put(RESTORING_KEY, "1")).await?;
    let mut lines = Lines::open(path).await?;
    let mut head: Option<Head> = None;
    let mut filling = Filling::new(store);
    while let Some((key, value)) = lines.next().await? {
        if key == HEAD_KEY.as_bytes() {
            let malformed =
                |error: record::Malformed| BackupError::Malformed { line: 0, reason: error.to_string() };
            head = Some(record::decode(&key, &value).map_err(malformed)?);
            continue;
        }
        // What a store says of itself alone is not the ledger's.
        if key == RESTORING_KEY || key == SEALED_KEY || !keep(&key, &value) {
            continue;
        }
        filling.put(key, value).await?;
    }
    filling.finish().await?;
    let head = head.ok_or(BackupError::NothingThere)?;
    store.commit(final_commit(&head, clock, &summary)).await?;
    Ok(summary)
}

fn final_commit(head: &Head, clock: &dyn Clock, summary: &Summary) -> Commit {
    let seq = head.seq + 1;
    let event = Event {
        seq,
        at: clock.wall(),
        by: "netstead".into(),
        request: None,
        what: EventKind::Restored,
        reason: Some(format!("from a backup of {} with {} keys", summary.created, summary.entries).into()),
        before: None,
        after: None,
    };
    let group = EventGroup { events: vec![event.into()] };
    let head = Head { ledger: rand::random(), seq, batch: rand::random(), paused: true, ..head.clone() };
    Commit::new()
        .put(HEAD_KEY, record::encode(&head))
        .put(event_key(seq), record::encode(&group))
        .delete(RESTORING_KEY)
}

async fn head_of(snapshot: &dyn Snapshot) -> Result<Option<Head>, BackupError> {
    let Some(entry) = snapshot.get(HEAD_KEY.as_bytes()).await? else { return Ok(None) };
    let damaged = |error: record::Malformed| StoreError::Damaged { reason: error.to_string() };
    Ok(Some(record::decode(&entry.key, &entry.value).map_err(damaged)?))
}

/// The lines of a backup, checked as they go by.
struct Lines {
    input: Box<dyn AsyncBufRead + Unpin + Send>,
    header: Header,
    digest: Sha256,
    number: u64,
    entries: u64,
    ended: bool,
}

impl Lines {
    async fn open(path: &Path) -> Result<Self, BackupError> {
        let file = tokio::fs::File::open(path).await?;
        let mut input: Box<dyn AsyncBufRead + Unpin + Send> =
            Box::new(BufReader::with_capacity(1 << 20, file));
        let mut text = Vec::new();
        input.read_until(b'\n', &mut text).await?;
        let malformed = |reason: String| BackupError::Malformed { line: 1, reason };
        let header: Header = serde_json::from_slice(&text)
            .map_err(|_| malformed("this is not the header of a Netstead backup".into()))?;
        if header.format > FORMAT {
            return Err(BackupError::TooNew { found: header.format });
        }
        let mut digest = Sha256::new();
        digest.update(&text);
        Ok(Self { input, header, digest, number: 1, entries: 0, ended: false })
    }

    /// The next key and value; `None` behind the last, which is only reached when the checksum is right.
    async fn next(&mut self) -> Result<Option<(Vec<u8>, Vec<u8>)>, BackupError> {
        let mut text = Vec::new();
        self.number += 1;
        self.input.read_until(b'\n', &mut text).await?;
        if text.is_empty() || self.ended {
            return if self.ended && text.is_empty() { Ok(None) } else { Err(BackupError::Checksum) };
        }
        if let Ok(footer) = serde_json::from_slice::<Footer>(&text) {
            let right =
                footer.entries == self.entries && footer.sha256 == hex(&self.digest.clone().finalize());
            self.ended = true;
            return if right { Box::pin(self.next()).await } else { Err(BackupError::Checksum) };
        }
        self.digest.update(&text);
        let line = self.number;
        let malformed = |reason: String| BackupError::Malformed { line, reason };
        let entry: Line = serde_json::from_slice(&text).map_err(|error| malformed(error.to_string()))?;
        self.entries += 1;
        if !entry.hex {
            return Ok(Some((entry.k.into_bytes(), entry.v.into_bytes())));
        }
        let bytes = |text: &str| unhex(text).ok_or_else(|| malformed("it is not hexadecimal".into()));
        Ok(Some((bytes(&entry.k)?, bytes(&entry.v)?)))
    }

    fn summary(&self) -> Result<Summary, BackupError> {
        let ledger = u32::from_str_radix(&self.header.ledger, 16)
            .map_err(|_| BackupError::Malformed { line: 1, reason: "the ledger's id is not one".into() })?;
        Ok(Summary { ledger, seq: self.header.seq, created: self.header.created, entries: self.entries })
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing into a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect()
}
