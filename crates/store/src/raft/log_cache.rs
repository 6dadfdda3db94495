//! The end of the log in memory: new entries are read again at once, to be sent to other nodes and applied.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::types::Entry;

/// Bytes that are kept.
const MAX_BYTES: usize = 8 << 20;

/// Entries without a hole up to the last one of the log. What is in here is on the disk.
#[derive(Debug, Default)]
pub(super) struct LogCache {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    entries: BTreeMap<u64, (Entry, usize)>,
    bytes: usize,
}

impl LogCache {
    /// Adds what was written at the end, with the bytes of each.
    pub(super) fn add(&self, entries: Vec<(Entry, usize)>) {
        let mut inner = self.lock();
        for (entry, bytes) in entries {
            let index = entry.log_id.index;
            // One that is written over has nothing behind it any more.
            inner.cut(index);
            if inner.entries.last_key_value().is_some_and(|(last, _)| last + 1 != index) {
                inner.forget();
            }
            inner.entries.insert(index, (entry, bytes));
            inner.bytes += bytes;
        }
        while inner.bytes > MAX_BYTES
            && let Some((_, (_, bytes))) = inner.entries.pop_first()
        {
            inner.bytes -= bytes;
        }
    }

    /// The entries from `start` up to `end`, no more than about `limit` bytes of them, but at least one; `None` when they are
    /// not all in here.
    pub(super) fn get(&self, start: u64, end: u64, limit: usize) -> Option<Vec<Entry>> {
        let inner = self.lock();
        let (first, last) = (*inner.entries.first_key_value()?.0, *inner.entries.last_key_value()?.0);
        if start < first || start > last || start >= end {
            return None;
        }
        let mut bytes = 0;
        let mut found = Vec::new();
        for (entry, size) in inner.entries.range(start..end).map(|(_, entry)| entry) {
            bytes += size;
            if bytes > limit && !found.is_empty() {
                break;
            }
            found.push(entry.clone());
        }
        Some(found)
    }

    /// The entries from `index` on are gone.
    pub(super) fn cut(&self, index: u64) {
        self.lock().cut(index);
    }

    /// Nothing is certain any more.
    pub(super) fn forget(&self) {
        self.lock().forget();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn cut(&mut self, index: u64) {
        for (_, (_, bytes)) in self.entries.split_off(&index) {
            self.bytes -= bytes;
        }
    }

    fn forget(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use openraft::{CommittedLeaderId, EntryPayload, LogId};

    use super::*;

    fn entry(index: u64) -> (Entry, usize) {
        let log_id = LogId::new(CommittedLeaderId::new(1, 0), index);
        (Entry { log_id, payload: EntryPayload::Blank }, 1 << 20)
    }

    fn indexes(entries: Option<Vec<Entry>>) -> Option<Vec<u64>> {
        Some(entries?.iter().map(|entry| entry.log_id.index).collect())
    }

    #[test]
    fn the_end_is_kept_and_what_is_cut_is_gone() {
        let recent = LogCache::default();
        assert_eq!(indexes(recent.get(0, 5, usize::MAX)), None);
        recent.add((0..20).map(entry).collect());
        assert_eq!(indexes(recent.get(5, 20, usize::MAX)), None, "that is too long ago");
        assert_eq!(indexes(recent.get(17, 99, usize::MAX)), Some(vec![17, 18, 19]));
        assert_eq!(indexes(recent.get(12, 20, 2 << 20)), Some(vec![12, 13]));
        assert_eq!(indexes(recent.get(12, 20, 1)), Some(vec![12]), "at least one");
        recent.cut(18);
        assert_eq!(indexes(recent.get(18, 20, usize::MAX)), None);
        recent.add(vec![entry(16)]);
        assert_eq!(indexes(recent.get(15, 99, usize::MAX)), Some(vec![15, 16]), "written over");
        recent.add(vec![entry(30)]);
        assert_eq!(indexes(recent.get(16, 31, usize::MAX)), None, "no hole");
        assert_eq!(indexes(recent.get(30, 31, usize::MAX)), Some(vec![30]));
    }
}
