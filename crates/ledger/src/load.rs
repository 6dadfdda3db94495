//! Loads a Book from the store.

use std::{collections::HashSet, hash::Hash, sync::Arc};

use netstead_model::Ident;
use netstead_store::{Entry, Snapshot, StoreError, Version};
use tokio::sync::mpsc;

use crate::{
    book::Book,
    migrate::{Seal, seal_of},
    record::{self, HEAD_KEY, Head, Malformed, Record, Slot},
    refusal::LedgerError,
};

/// Exists while a backup is being restored: the ledger is incomplete.
pub(crate) const RESTORING_KEY: &[u8] = b"meta/restoring";

/// Bytes read from the store at a time, about: what a page takes is not given back to the machine at once.
const PAGE_BYTES: usize = 512 << 10;
/// Entries of a page, to begin with and at most.
const FIRST_PAGE: usize = 64;
const LARGEST_PAGE: usize = 4096;
/// Pages that may wait to be put into the Book.
const PAGES_AHEAD: usize = 4;

/// A Book as of one moment of the store, with the head it was built from.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub book: Book,
    pub head: Head,
    pub version: Version,
}

/// Reads the whole ledger at the moment of `snapshot`; `None` when there is none yet.
pub(crate) async fn load(snapshot: Arc<dyn Snapshot>) -> Result<Option<Loaded>, LedgerError> {
    if snapshot.get(RESTORING_KEY).await?.is_some() {
        return Err(LedgerError::Damaged {
            reason: "a restore was interrupted; empty the store and restore again".into(),
        });
    }
    if let Some(Seal { to, at }) = seal_of(&*snapshot).await? {
        return Err(LedgerError::Moved { to, at });
    }
    let Some(entry) = snapshot.get(HEAD_KEY.as_bytes()).await? else { return Ok(None) };
    let head: Head = record::decode(&entry.key, &entry.value).map_err(damaged)?;
    let mut book = Book::new(&head);
    // One reads and decodes, the other puts in: where there are two cores, a start takes half the time.
    let (sender, mut decoded) = mpsc::channel(PAGES_AHEAD);
    let reading = tokio::spawn(async move { read(&*snapshot, sender).await });
    while let Some(records) = decoded.recv().await {
        for record in records {
            book.absorb(record);
        }
    }
    reading.await.map_err(|error| LedgerError::Unavailable { reason: error.to_string() })??;
    book.pack();
    Ok(Some(Loaded { book, head, version: entry.version }))
}

/// Sends every record a Book is made of, a page at a time.
async fn read(snapshot: &dyn Snapshot, sender: mpsc::Sender<Vec<Record>>) -> Result<(), LedgerError> {
    let mut words = Interner::default();
    // Pools first: the rest finds its place in them.
    for prefix in [record::POOL, record::RESERVED, record::SLOT, record::SEEN, record::WAIT] {
        let mut pages = Pages::new(prefix);
        while let Some(page) = pages.next(snapshot).await? {
            let mut records = Vec::with_capacity(page.len());
            for entry in &page {
                let record = Record::decode(&entry.key, &entry.value).map_err(damaged)?;
                records.extend(record.map(|record| words.share(record)));
            }
            if sender.send(records).await.is_err() {
                // The receiver was dropped.
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Names that stand in many claims, each kept once.
#[derive(Default)]
struct Interner {
    owners: HashSet<Arc<str>>,
    pools: HashSet<Ident>,
}

impl Interner {
    fn share(&mut self, record: Record) -> Record {
        let Record::Slot(place, Some(Slot::Held(mut claim))) = record else { return record };
        // It was just decoded, so there is no other reference.
        if let Some(claim) = Arc::get_mut(&mut claim) {
            claim.owner = intern(&mut self.owners, &claim.owner);
            claim.pool = intern(&mut self.pools, &claim.pool);
        }
        Record::Slot(place, Some(Slot::Held(claim)))
    }
}

fn intern<T: Clone + Eq + Hash>(known: &mut HashSet<T>, word: &T) -> T {
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
    let mut pages = Pages::new(prefix);
    while let Some(page) = pages.next(snapshot).await? {
        page.iter().try_for_each(&mut visit)?;
    }
    Ok(())
}

/// All entries with a prefix, in pages of about the same bytes.
pub(crate) struct Pages<'a> {
    prefix: &'a str,
    after: Option<Vec<u8>>,
    limit: usize,
    ended: bool,
}

impl<'a> Pages<'a> {
    pub fn new(prefix: &'a str) -> Self {
        Self { prefix, after: None, limit: FIRST_PAGE, ended: false }
    }

    /// The next page; `None` behind the last.
    pub async fn next(&mut self, snapshot: &dyn Snapshot) -> Result<Option<Vec<Entry>>, StoreError> {
        if self.ended {
            return Ok(None);
        }
        let page = snapshot.range(self.prefix.as_bytes(), self.after.as_deref(), self.limit).await?;
        self.ended = page.len() < self.limit;
        let bytes: usize = page.iter().map(|entry| entry.key.len() + entry.value.len()).sum();
        self.limit = (page.len() * PAGE_BYTES / bytes.max(1)).clamp(1, LARGEST_PAGE);
        self.after = page.last().map(|last| last.key.clone());
        Ok(Some(page))
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
