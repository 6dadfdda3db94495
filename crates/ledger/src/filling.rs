//! Putting many entries into a store, as many at a time as a commit holds.

use netstead_store::{Commit, MAX_BYTES, MAX_WRITES, Store, StoreError};

/// Entries on their way into a store.
pub(crate) struct Filling<'a> {
    store: &'a dyn Store,
    commit: Commit,
    bytes: usize,
}

impl<'a> Filling<'a> {
    pub fn new(store: &'a dyn Store) -> Self {
        Self { store, commit: Commit::new(), bytes: 0 }
    }

    /// Takes one more; commits those before it if it does not fit beside them.
    pub async fn put(&mut self, key: Vec<u8>, value: Vec<u8>) -> Result<(), StoreError> {
        let size = key.len() + value.len();
        if self.commit.writes.len() == MAX_WRITES || self.bytes + size > MAX_BYTES {
            self.store.commit(std::mem::take(&mut self.commit)).await?;
            self.bytes = 0;
        }
        self.bytes += size;
        self.commit.writes.push(netstead_store::Write::Put(key, value));
        Ok(())
    }

    /// Commits the rest.
    pub async fn finish(self) -> Result<(), StoreError> {
        self.store.commit(self.commit).await.map(drop)
    }
}
