//! Sends a snapshot of all data to a node whose log is too far behind.
//!
//! 1. The sender reads all rows in order of their keys from a view of its database, while writes go on. So no copy has to be
//!    kept on disk or in memory.
//! 2. The receiver writes the rows to a file and verifies the checksum. Its own data is not touched before that.
//! 3. The receiver stores the key `i`, which says that a snapshot is being installed, and writes the differences.
//! 4. If the node is killed in step 3, it finds the key at its next start and continues.
//!
//! ```text
//! row    4 bytes length of the key, 4 bytes length of the value, 8 bytes version, key, value
//! end    4 bytes 0xff, 8 bytes number of rows, 32 bytes SHA-256 of all before it
//! ```

use std::{
    fmt,
    io::SeekFrom,
    path::{Path, PathBuf},
};

use aws_lc_rs::digest::{Context, SHA256};
use tokio::{
    fs::{File, OpenOptions},
    io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt, BufReader},
};

use super::disk::{Applied, Disk, applied_write, installing_write};
use crate::{
    Entry, Key, MAX_BYTES, MAX_KEY_BYTES, Snapshot, StoreError, Version,
    local::{
        engine::{DiskWrite, disk_key, disk_value},
        snapshot::LocalSnapshot,
    },
};

const END: u32 = u32::MAX;
const END_BYTES: u64 = 4 + 8 + 32;

/// Rows that are read at a time. Most have a few hundred bytes; the largest have a mebibyte.
const PAGE: usize = 64;

/// Bytes that are sent at a time; a row may be larger.
const CHUNK: usize = 512 << 10;

/// Bytes that are written at a time.
const WRITE_BYTES: usize = 2 << 20;

/// Where openraft's copies come from or go to.
pub(super) enum SnapshotData {
    /// This node's own data at one moment.
    View(LocalSnapshot),
    /// A file that another node sent.
    File(PathBuf),
}

impl fmt::Debug for SnapshotData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::View(_) => f.write_str("View"),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
        }
    }
}

/// Turns a view into bytes, a page at a time.
pub(super) struct Sending {
    standing: ViewRows,
    digest: Context,
    rows: u64,
    done: bool,
}

impl Sending {
    pub(super) fn new(view: LocalSnapshot) -> Self {
        Self { standing: ViewRows::new(view), digest: Context::new(&SHA256), rows: 0, done: false }
    }

    /// The next bytes; none when all were sent.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        if self.done {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        while bytes.len() < CHUNK {
            let Some(entry) = self.standing.next().await? else {
                self.done = true;
                bytes.extend_from_slice(&END.to_be_bytes());
                bytes.extend_from_slice(&self.rows.to_be_bytes());
                self.digest.update(&bytes);
                bytes.extend_from_slice(self.digest.clone().finish().as_ref());
                return Ok(Some(bytes));
            };
            row(&entry, &mut bytes);
            self.rows += 1;
        }
        self.digest.update(&bytes);
        Ok(Some(bytes))
    }
}

fn row(entry: &Entry, bytes: &mut Vec<u8>) {
    let length = |length: usize| u32::try_from(length).unwrap_or(END - 1).to_be_bytes();
    bytes.extend_from_slice(&length(entry.key.len()));
    bytes.extend_from_slice(&length(entry.value.len()));
    bytes.extend_from_slice(&entry.version.0.to_be_bytes());
    bytes.extend_from_slice(&entry.key);
    bytes.extend_from_slice(&entry.value);
}

/// Where the copy that is being received lies.
pub(super) fn incoming_path(dir: &Path) -> PathBuf {
    dir.join("incoming")
}

/// Where a copy lies that is whole and being taken over.
fn installing_path(dir: &Path) -> PathBuf {
    dir.join("taking-over")
}

/// Puts `data` at `offset` of the file; at offset 0 it begins anew.
pub(super) async fn receive(path: &Path, offset: u64, data: &[u8]) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(offset == 0).open(path).await?;
    file.seek(SeekFrom::Start(offset)).await?;
    file.write_all(data).await?;
    file.flush().await
}

/// Whether the file is whole; what it holds is on the disk then.
pub(super) async fn verify(path: &Path) -> Result<(), String> {
    let read = async {
        let file = OpenOptions::new().read(true).write(true).open(path).await?;
        file.sync_all().await?;
        let length = file.metadata().await?.len();
        let mut reader = BufReader::with_capacity(1 << 20, file);
        let mut digest = Context::new(&SHA256);
        let mut left = length.saturating_sub(32);
        let mut chunk = vec![0; 1 << 20];
        while left > 0 {
            let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(chunk.len());
            let part = chunk.get_mut(..wanted).unwrap_or_default();
            reader.read_exact(part).await?;
            digest.update(part);
            left -= wanted as u64;
        }
        let mut sum = [0; 32];
        reader.read_exact(&mut sum).await?;
        Ok::<_, std::io::Error>(length >= END_BYTES && digest.finish().as_ref() == sum)
    };
    match read.await {
        Ok(true) => Ok(()),
        Ok(false) => Err("its checksum is wrong".into()),
        Err(error) => Err(error.to_string()),
    }
}

/// Rows of a file that was verified.
struct FileRows {
    reader: BufReader<File>,
    ended: bool,
}

impl FileRows {
    async fn open(path: &Path) -> std::io::Result<Self> {
        Ok(Self { reader: BufReader::with_capacity(1 << 20, File::open(path).await?), ended: false })
    }

    async fn next(&mut self) -> std::io::Result<Option<Entry>> {
        if self.ended {
            return Ok(None);
        }
        let key = self.reader.read_u32().await?;
        if key == END {
            self.ended = true;
            return Ok(None);
        }
        let value = self.reader.read_u32().await? as usize;
        let version = Version(self.reader.read_u64().await?);
        let key = key as usize;
        if key > MAX_KEY_BYTES || value > MAX_BYTES {
            return Err(std::io::ErrorKind::InvalidData.into());
        }
        let (mut key, mut value) = (vec![0; key], vec![0; value]);
        self.reader.read_exact(&mut key).await?;
        self.reader.read_exact(&mut value).await?;
        Ok(Some(Entry { key, value, version }))
    }
}

/// Rows of a view, in pages.
struct ViewRows {
    view: LocalSnapshot,
    page: std::vec::IntoIter<Entry>,
    after: Option<Key>,
    ended: bool,
}

impl ViewRows {
    fn new(view: LocalSnapshot) -> Self {
        Self { view, page: Vec::new().into_iter(), after: None, ended: false }
    }

    async fn next(&mut self) -> Result<Option<Entry>, StoreError> {
        if let Some(entry) = self.page.next() {
            return Ok(Some(entry));
        }
        if self.ended {
            return Ok(None);
        }
        let page = self.view.range(b"", self.after.as_deref(), PAGE).await?;
        self.ended = page.len() < PAGE;
        if let Some(last) = page.last() {
            self.after = Some(last.key.clone());
        }
        self.page = page.into_iter();
        Ok(self.page.next())
    }
}

/// The source of a snapshot: a file of another node, or a view of the same kind of database.
enum Source {
    File(FileRows),
    View(Box<ViewRows>),
}

impl Source {
    async fn next(&mut self, disk: &Disk) -> Result<Option<Entry>, StoreError> {
        match self {
            Self::File(rows) => rows.next().await.map_err(|error| unusable(disk, &error.to_string())),
            Self::View(standing) => standing.next().await,
        }
    }
}

fn unusable(disk: &Disk, why: &str) -> StoreError {
    StoreError::Unavailable {
        reason: format!("the copy another node sent to {} cannot be read: {why}", disk.dir.display()),
    }
}

/// Makes `data` this node's data, completely or, when it is killed, as soon as it is started again.
pub(super) async fn install_copy(
    disk: &Disk,
    meta: &super::types::SnapshotMeta,
    data: SnapshotData,
) -> Result<(), StoreError> {
    let failed = |error: std::io::Error| unusable(disk, &error.to_string());
    let source = match data {
        SnapshotData::View(view) => Source::View(Box::new(ViewRows::new(view))),
        SnapshotData::File(path) => {
            verify(&path).await.map_err(|why| unusable(disk, &why))?;
            let place = installing_path(&disk.dir);
            tokio::fs::rename(&path, &place).await.map_err(failed)?;
            File::open(&disk.dir).await.map_err(failed)?.sync_all().await.map_err(failed)?;
            disk.store.write_raw(vec![installing_write(Some(meta))], true).await?;
            Source::File(FileRows::open(&place).await.map_err(failed)?)
        }
    };
    merge(disk, source).await?;
    finish(disk, meta).await
}

/// Goes on with what was begun before this process started.
pub(super) async fn resume(disk: &Disk) -> Result<(), StoreError> {
    let Some(meta) = disk.installing()? else {
        // Left by a transfer that never became whole.
        let _ = tokio::fs::remove_file(incoming_path(&disk.dir)).await;
        return Ok(());
    };
    let place = installing_path(&disk.dir);
    let damaged = |why: String| StoreError::Damaged {
        reason: format!(
            "this node was being brought up to date when it stopped, and {} is not whole ({why}); move the directory \
             away and start it again to join as a new node",
            place.display()
        ),
    };
    verify(&place).await.map_err(damaged)?;
    let rows = FileRows::open(&place).await.map_err(|error| damaged(error.to_string()))?;
    merge(disk, Source::File(rows)).await?;
    finish(disk, &meta).await
}

async fn finish(disk: &Disk, meta: &super::types::SnapshotMeta) -> Result<(), StoreError> {
    let applied = Applied { log_id: meta.last_log_id, membership: meta.last_membership.clone() };
    disk.store.write_raw(vec![applied_write(&applied), installing_write(None)], true).await?;
    let _ = tokio::fs::remove_file(installing_path(&disk.dir)).await; // Overwritten by the next one otherwise.
    Ok(())
}

/// Walks both in order of keys and writes where they differ.
async fn merge(disk: &Disk, mut source: Source) -> Result<(), StoreError> {
    let mut standing = ViewRows::new(disk.store.view().await?);
    let mut old = standing.next().await?;
    let mut new = source.next(disk).await?;
    let mut writes: Vec<DiskWrite> = Vec::new();
    let mut bytes = 0;
    loop {
        let order = match (&old, &new) {
            (None, None) => break,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(old), Some(new)) => old.key.cmp(&new.key),
        };
        if order.is_le()
            && let Some(gone) = old.take()
        {
            if order.is_lt() {
                writes.push((disk_key(&gone.key), None));
            } else if new.as_ref().is_some_and(|new| gone == *new) {
                new = source.next(disk).await?;
            }
            // One that differs is written by the next round, in which only the new one is left.
            old = standing.next().await?;
        } else if let Some(entry) = new.take() {
            bytes += entry.key.len() + entry.value.len();
            writes.push((disk_key(&entry.key), Some(disk_value(entry.version, &entry.value))));
            new = source.next(disk).await?;
        }
        if bytes > WRITE_BYTES || writes.len() > 5000 {
            disk.store.write_raw(std::mem::take(&mut writes), false).await?;
            bytes = 0;
        }
    }
    disk.store.write_raw(writes, false).await
}
