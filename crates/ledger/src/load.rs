//! Building a Book out of what the store holds.

use std::{collections::HashSet, hash::Hash, sync::Arc};

use netstead_model::Ident;
use netstead_store::{Entry, Snapshot, Store, StoreError, Version};

use crate::{
    book::Book,
    record::{self, HEAD_KEY, Head, Malformed, Record, Slot},
    refusal::LedgerError,
};

/// Stands while a backup is being restored; whoever finds it has half a ledger before them.
pub(crate) const RESTORING_KEY: &[u8] = b"meta/restoring";

/// Bytes read from the store at a time, about: what a page takes is not given back to the machine at once.
const PAGE_BYTES: usize = 512 << 10;
/// Entries of a page, to begin with and at most.
const FIRST_PAGE: usize = 64;
const LARGEST_PAGE: usize = 4096;

/// A Book as of one moment of the store, with the head it was built from.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub book: Book,
    pub head: Head,
    pub version: Version,
}

/// Reads the whole ledger at one moment; `None` when there is none yet.
pub(crate) async fn load(store: &dyn Store) -> Result<Option<Loaded>, LedgerError> {
    let snapshot = store.snapshot().await?;
    if snapshot.get(RESTORING_KEY).await?.is_some() {
        return Err(LedgerError::Damaged {
            reason: "a restore was interrupted; empty the store and restore again".into(),
        });
    }
    let Some(entry) = snapshot.get(HEAD_KEY.as_bytes()).await? else { return Ok(None) };
    let head: Head = record::decode(&entry.key, &entry.value).map_err(damaged)?;
    let mut book = Book::new(&head);
    let mut words = Words::default();
    // Pools first: the rest finds its place in them.
    for prefix in [record::POOL, record::RESERVED, record::SLOT, record::SEEN, record::WAIT] {
        each_entry(&*snapshot, prefix, |entry| {
            if let Some(record) = Record::decode(&entry.key, &entry.value).map_err(damaged)? {
                book.absorb(words.share(record));
            }
            Ok::<(), LedgerError>(())
        })
        .await?;
    }
    book.pack();
    Ok(Some(Loaded { book, head, version: entry.version }))
}

/// Names that stand in many claims, each kept once.
#[derive(Default)]
struct Words {
    owners: HashSet<Arc<str>>,
    pools: HashSet<Ident>,
}

impl Words {
    fn share(&mut self, record: Record) -> Record {
        let Record::Slot(place, Some(Slot::Held(mut claim))) = record else { return record };
        // It was just decoded, so nobody else has it.
        if let Some(claim) = Arc::get_mut(&mut claim) {
            claim.owner = shared(&mut self.owners, &claim.owner);
            claim.pool = shared(&mut self.pools, &claim.pool);
        }
        Record::Slot(place, Some(Slot::Held(claim)))
    }
}

fn shared<T: Clone + Eq + Hash>(known: &mut HashSet<T>, word: &T) -> T {
    if let Some(known) = known.get(word) {
        return known.clone();
    }
    known.insert(word.clone());
    word.clone()
}

/// Calls `visit` for every entry with `prefix`, in order.
pub(crate) async fn each_entry<E: From<StoreError>>(
    snapshot: &dyn Snapshot,
    prefix: &str,
    mut visit: impl FnMut(&Entry) -> Result<(), E>,
) -> Result<(), E> {
    let mut after: Option<Vec<u8>> = None;
    let mut limit = FIRST_PAGE;
    loop {
        let mut page = snapshot.range(prefix.as_bytes(), after.as_deref(), limit).await?;
        for entry in &page {
            visit(entry)?;
        }
        if page.len() < limit {
            return Ok(());
        }
        let bytes: usize = page.iter().map(|entry| entry.key.len() + entry.value.len()).sum();
        limit = (page.len() * PAGE_BYTES / bytes.max(1)).clamp(1, LARGEST_PAGE);
        after = page.pop().map(|last| last.key);
    }
}

#[allow(clippy::needless_pass_by_value, reason = "the shape `map_err` wants")]
pub(crate) fn damaged(error: Malformed) -> LedgerError {
    LedgerError::Damaged { reason: error.to_string() }
}

impl From<StoreError> for LedgerError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unknown { reason } => Self::Unknown { reason },
            StoreError::Damaged { reason } => Self::Damaged { reason },
            other => Self::Unavailable { reason: other.to_string() },
        }
    }
}
