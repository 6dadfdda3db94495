//! Replaces the ledger's head, so that no commit sent before can land any more.
//!
//! Every commit of the ledger is conditional on the version of the key `ledger/head` and replaces it. A writer whose commit
//! got no answer uses that to learn whether the commit landed:
//!
//! 1. The writer sends a commit with batch id 17 on head version 5. The answer is lost; the commit may still be on its way.
//! 2. The writer loads the ledger from a snapshot. If the head has batch 17, the commit landed.
//! 3. Otherwise the head is still at version 5. The writer replaces it, on condition that its version is 5.
//! 4. The store accepts: the head is at version 6 and the delayed commit, which needs 5, can never land. It did not happen.
//!    The store refuses: the delayed commit, or another writer, was faster. Back to step 2.
//! 5. The answer of step 3 is lost: back to step 2. The head may now have the batch id of the replacement instead of 17, so
//!    whether 17 was seen is remembered in `landed` over all rounds and all calls.
//!
//! If the head of step 2 has a later epoch, another process leads: this one must not replace it.

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
/// `own` is the batch id this process last tried to commit. `landed` becomes true once that id was seen at the head; pass
/// the same variable to every call. Returns `NotLeading` when the stored head has a later epoch.
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
            // Another commit was faster, or the outcome is unknown: load again.
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
