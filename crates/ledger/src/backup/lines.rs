//! The lines of a backup: a header, one per key in the order of the keys, and a footer.

use std::path::Path;

use jiff::Timestamp;
use netstead_store::Entry;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt as _, BufReader};

use super::{BackupError, FORMAT, Summary};

/// The most bytes of a line. A value has at most one megabyte, and JSON may write a byte of it with six.
const MOST_OF_LINE: u64 = 16 << 20;

#[derive(Serialize, Deserialize)]
pub(super) struct Header {
    #[serde(rename = "netstead-backup")]
    pub format: u32,
    pub ledger: String,
    pub seq: u64,
    pub created: Timestamp,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Line {
    k: String,
    v: String,
    /// Key and value are hexadecimal, because one of them is not text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    hex: bool,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Footer {
    pub entries: u64,
    pub sha256: String,
    /// Parts of the store that could not be read when the backup was made, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

impl From<&Entry> for Line {
    fn from(entry: &Entry) -> Self {
        match (String::from_utf8(entry.key.clone()), String::from_utf8(entry.value.clone())) {
            (Ok(k), Ok(v)) => Self { k, v, hex: false },
            _ => Self { k: hex(&entry.key), v: hex(&entry.value), hex: true },
        }
    }
}

impl Line {
    fn entry(self) -> Option<(Vec<u8>, Vec<u8>)> {
        if self.hex {
            return Some((unhex(&self.k)?, unhex(&self.v)?));
        }
        Some((self.k.into_bytes(), self.v.into_bytes()))
    }
}

/// The lines of a backup, checked as they go by.
pub(super) struct Lines {
    input: Box<dyn AsyncBufRead + Unpin + Send>,
    header: Header,
    digest: Sha256,
    number: u64,
    entries: u64,
    /// The key before; each comes after it.
    last: Vec<u8>,
    ended: bool,
    left_out: Vec<String>,
}

impl Lines {
    pub async fn open(path: &Path) -> Result<Self, BackupError> {
        let file = tokio::fs::File::open(path).await?;
        let mut input: Box<dyn AsyncBufRead + Unpin + Send> =
            Box::new(BufReader::with_capacity(1 << 20, file));
        let text = line(&mut input, 1).await?;
        let malformed = |reason: String| BackupError::Malformed { line: 1, reason };
        let header: Header = serde_json::from_slice(&text)
            .map_err(|_| malformed("this is not the header of a Netstead backup".into()))?;
        if header.format > FORMAT {
            return Err(BackupError::TooNew { found: header.format });
        }
        let mut digest = Sha256::new();
        digest.update(&text);
        Ok(Self {
            input,
            header,
            digest,
            number: 1,
            entries: 0,
            last: Vec::new(),
            ended: false,
            left_out: Vec::new(),
        })
    }

    /// The next key and value; `None` behind the last, which is only reached when the checksum is right.
    pub async fn next(&mut self) -> Result<Option<(Vec<u8>, Vec<u8>)>, BackupError> {
        self.number += 1;
        let text = line(&mut self.input, self.number).await?;
        if text.is_empty() || self.ended {
            return if self.ended && text.is_empty() { Ok(None) } else { Err(BackupError::Checksum) };
        }
        if let Ok(footer) = serde_json::from_slice::<Footer>(&text) {
            let right =
                footer.entries == self.entries && footer.sha256 == hex(&self.digest.clone().finalize());
            self.ended = true;
            self.left_out = footer.left_out;
            return if right { Box::pin(self.next()).await } else { Err(BackupError::Checksum) };
        }
        self.digest.update(&text);
        let line: Line = serde_json::from_slice(&text).map_err(|error| self.malformed(error.to_string()))?;
        let (key, value) = line.entry().ok_or_else(|| self.malformed("it is not hexadecimal"))?;
        if self.entries > 0 && key <= self.last {
            return Err(self.malformed("its key does not come after the one before"));
        }
        self.entries += 1;
        self.last.clone_from(&key);
        Ok(Some((key, value)))
    }

    /// The line that was read last is not as it should be.
    pub fn malformed(&self, reason: impl Into<String>) -> BackupError {
        BackupError::Malformed { line: self.number, reason: reason.into() }
    }

    pub fn summary(&self) -> Result<Summary, BackupError> {
        let ledger = u32::from_str_radix(&self.header.ledger, 16)
            .map_err(|_| BackupError::Malformed { line: 1, reason: "the ledger's id is not one".into() })?;
        let (seq, created, left_out) = (self.header.seq, self.header.created, self.left_out.clone());
        Ok(Summary { ledger, seq, created, entries: self.entries, left_out })
    }
}

/// The next line with its end; nothing behind the last.
async fn line(input: &mut (dyn AsyncBufRead + Unpin + Send), number: u64) -> Result<Vec<u8>, BackupError> {
    let mut text = Vec::new();
    input.take(MOST_OF_LINE + 1).read_until(b'\n', &mut text).await?;
    if text.len() as u64 > MOST_OF_LINE {
        let reason = format!("it has more than {MOST_OF_LINE} bytes");
        return Err(BackupError::Malformed { line: number, reason });
    }
    Ok(text)
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
