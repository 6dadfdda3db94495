//! Becoming the one whose commits land.

use netstead_store::{Condition, Store, StoreError};

use crate::{
    book::Book,
    load::{self, Loaded},
    randomness::Randomness,
    record::{self, HEAD_KEY, Head},
    refusal::LedgerError,
};

/// Loads the ledger and replaces its head, so that no commit begun before can land any more.
///
/// `own` is the batch this process last tried, and `landed` becomes true once it was seen at the head. It stays so over
/// several calls: after a take-over whose answer was lost, the head is that of the take-over. When the stored head is
/// of a later epoch, somebody else leads.
pub(crate) async fn fence_and_load(
    store: &dyn Store,
    chance: &Randomness,
    epoch: u64,
    own: Option<u64>,
    landed: &mut bool,
) -> Result<Loaded, LedgerError> {
    for _ in 0..16 {
        let loaded = load::load(store.snapshot().await?).await?;
        *landed |= loaded.as_ref().is_some_and(|loaded| Some(loaded.head.batch) == own);
        if loaded.as_ref().is_some_and(|loaded| loaded.head.epoch > epoch) {
            return Err(LedgerError::NotLeading);
        }
        let (condition, mut loaded) = match loaded {
            Some(loaded) => (Condition::Version(HEAD_KEY.into(), loaded.version), loaded),
            None => (Condition::Absent(HEAD_KEY.into()), new_ledger(chance)),
        };
        loaded.head = Head { epoch, batch: chance.number(), seq: loaded.head.seq + 1, ..loaded.head };
        loaded.book.count_silent_commit();
        let commit =
            netstead_store::Commit::new().when(condition).put(HEAD_KEY, record::encode(&loaded.head));
        match store.commit(commit).await {
            Ok(committed) => {
                loaded.version = committed.version;
                return Ok(loaded);
            }
            // Somebody was quicker, or it is not known: look again.
            Err(StoreError::Refused { .. } | StoreError::Unknown { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(LedgerError::Unavailable { reason: "the head of the ledger keeps changing under us".into() })
}

pub(crate) fn new_ledger(chance: &Randomness) -> Loaded {
    let head = Head { ledger: chance.id(), ..Head::nowhere() };
    Loaded { book: Book::new(&head), head, version: netstead_store::Version(0) }
}
