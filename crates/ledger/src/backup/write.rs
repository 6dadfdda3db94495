//! Writing a backup, around damage if that is wanted.

use std::io;

use netstead_model::Clock;
use netstead_store::{Damage, Entry, ReadablePages, Snapshot, Store, StoreError};
use serde::{Serialize, de::IgnoredAny};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::{
    BackupError, FORMAT, Summary, head_of,
    lines::{Footer, Header, Line, hex},
};
use crate::{
    damage,
    load::Pages,
    record::{self, EVENT, EventGroup, Malformed},
};

/// How a backup treats keys that cannot be read.
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
