//! Writes many entries to a store, as many at a time as a commit holds, and reads them back.

use netstead_store::{Commit, MAX_BYTES, MAX_WRITES, Snapshot, Store, StoreError, Write};
use sha2::{Digest, Sha256};

use crate::{
    backup::hex,
    load::{Filling, RESTORING_KEY, each_entry},
    migrate::SEALED_KEY,
};

/// Entries on their way into a store, in the order of their keys.
pub(crate) struct BulkLoad<'a> {
    store: &'a dyn Store,
    commit: Commit,
    bytes: usize,
    sum: Sum,
}

impl<'a> BulkLoad<'a> {
    pub fn new(store: &'a dyn Store) -> Self {
        Self { store, commit: Commit::new(), bytes: 0, sum: Sum::default() }
    }

    /// Takes one more; commits those before it if it does not fit beside them.
    pub async fn put(&mut self, key: Vec<u8>, value: Vec<u8>) -> Result<(), StoreError> {
        let size = key.len() + value.len();
        if self.commit.writes.len() == MAX_WRITES || self.bytes + size > MAX_BYTES {
            self.store.commit(std::mem::take(&mut self.commit)).await?;
            self.bytes = 0;
        }
        self.sum.add(&key, &value);
        self.bytes += size;
        self.commit.writes.push(Write::Put(key, value));
        Ok(())
    }

    /// Commits the rest; what the store has to hold now.
    pub async fn finish(self) -> Result<Content, StoreError> {
        self.store.commit(self.commit).await?;
        Ok(self.sum.finish())
    }
}

/// Whether a store can be filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    /// It holds nothing but the mark that it is being filled.
    Made,
    Occupied,
    /// A move into it was interrupted. The old store may be sealed already, so a restore does not take its place.
    HalfMoved,
}

/// Marks the store as half filled. What an earlier try left is deleted first.
pub(crate) async fn make_room(store: &dyn Store, filling: Filling) -> Result<Room, StoreError> {
    let snapshot = store.snapshot().await?;
    let Some(mark) = snapshot.get(RESTORING_KEY).await? else {
        if !snapshot.range(b"", None, 1).await?.is_empty() {
            return Ok(Room::Occupied);
        }
        store.commit(Commit::new().put(RESTORING_KEY, filling.value())).await?;
        return Ok(Room::Made);
    };
    if (filling, Filling::of(&mark.value)) == (Filling::Restore, Filling::Migrate) {
        return Ok(Room::HalfMoved);
    }
    let mut left: Vec<Write> = Vec::new();
    each_entry(&*snapshot, "", |entry| {
        left.extend((entry.key != RESTORING_KEY).then(|| Write::Delete(entry.key.clone())));
        Ok::<(), StoreError>(())
    })
    .await?;
    for writes in left.chunks(MAX_WRITES) {
        store.commit(Commit { conditions: Vec::new(), writes: writes.to_vec() }).await?;
    }
    if mark.value != filling.value() {
        store.commit(Commit::new().put(RESTORING_KEY, filling.value())).await?;
    }
    Ok(Room::Made)
}

/// All keys and values of a store, in short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Content {
    pub entries: u64,
    pub sha256: String,
}

impl Content {
    /// Reads every key there was at one moment, a page at a time.
    pub async fn of(snapshot: &dyn Snapshot) -> Result<Self, StoreError> {
        let mut sum = Sum::default();
        each_entry(snapshot, "", |entry| {
            if is_content(&entry.key) {
                sum.add(&entry.key, &entry.value);
            }
            Ok::<(), StoreError>(())
        })
        .await?;
        Ok(sum.finish())
    }
}

/// Keys about one store alone are not copied to another.
pub(crate) fn is_content(key: &[u8]) -> bool {
    key != RESTORING_KEY && key != SEALED_KEY
}

#[derive(Default)]
struct Sum {
    entries: u64,
    digest: Sha256,
}

impl Sum {
    fn add(&mut self, key: &[u8], value: &[u8]) {
        self.entries += 1;
        for part in [key, value] {
            // Its length first, so that nothing can slip from one part into the next.
            self.digest.update((part.len() as u64).to_be_bytes());
            self.digest.update(part);
        }
    }

    fn finish(self) -> Content {
        Content { entries: self.entries, sha256: hex(&self.digest.finalize()) }
    }
}
