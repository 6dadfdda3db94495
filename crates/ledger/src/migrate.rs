//! Moving everything to another store.
//!
//! All keys are copied and compared, the old store is sealed, and only then does the new one open: at no moment can both
//! be used, and whatever moment the mover dies at, moving again ends it. Nothing can have been handed out in between, so
//! unlike a restored ledger a moved one is the same ledger: it keeps its id and its tokens, and does not pause.

use jiff::Timestamp;
use netstead_model::Clock;
use netstead_store::{Commit, Condition, Entry, Snapshot, Store, StoreError};
use serde::{Deserialize, Serialize};

use crate::{
    bulk_load::{BulkLoad, Content, Room, is_content, make_room},
    check::check,
    load::{Filling, Pages, RESTORING_KEY},
    record::{self, HEAD_KEY, Malformed},
};

/// Exists in a store whose content was moved; no process leads it any more.
pub(crate) const SEALED_KEY: &[u8] = b"meta/sealed";

/// Where the content of a sealed store is now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seal {
    /// In words, as `netstead status` has it.
    pub to: String,
    pub at: Timestamp,
}

/// A claim that was moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migrated {
    pub entries: u64,
    /// Over all keys and values, the same in both stores.
    pub sha256: String,
}

/// Why nothing was moved. The old store is as it was, unless it is said otherwise.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MigrateError {
    #[error("the old store: {0}")]
    From(StoreError),
    #[error("the new store: {0}")]
    To(StoreError),
    #[error("the store holds no ledger yet: there is nothing to move")]
    NothingThere,
    #[error("the new store is not empty: everything is moved into an empty one only")]
    NotEmpty,
    #[error("this store was moved to {to} at {at:.0} already", to = .0.to, at = .0.at)]
    MovedAlready(Seal),
    #[error("`{key}`: {problem}; nothing is moved that is not sound")]
    Unsound { key: String, problem: String },
    #[error("the new store does not hold what was written to it")]
    Differs,
    #[error("the old store changed while it was copied")]
    Changed,
    #[error("the old store does not hold the seal that was written to it")]
    NotSealed,
}

/// Moves everything in `from`, which the caller leads, into `to`, which is empty. `name` is what `to` is called.
pub async fn migrate(
    from: &dyn Store,
    to: &dyn Store,
    clock: &dyn Clock,
    name: &str,
) -> Result<Migrated, MigrateError> {
    let old = from.snapshot().await.map_err(MigrateError::From)?;
    let head = old.get(HEAD_KEY.as_bytes()).await.map_err(MigrateError::From)?;
    let head = head.ok_or(MigrateError::NothingThere)?;
    let seal = seal_of(&*old).await.map_err(MigrateError::From)?;
    if let Some(seal) = seal.as_ref().filter(|seal| seal.to != name) {
        return Err(MigrateError::MovedAlready(seal.clone()));
    }
    let report = check(from).await.map_err(MigrateError::From)?;
    if let Some(problem) = report.problems.into_iter().find(|problem| problem.key.as_bytes() != SEALED_KEY) {
        return Err(MigrateError::Unsound { key: problem.key, problem: problem.problem });
    }
    if make_room(to, Filling::Migrate).await.map_err(MigrateError::To)? != Room::Made {
        return Err(seal.map_or(MigrateError::NotEmpty, MigrateError::MovedAlready));
    }
    let written = copy(&*old, to).await?;
    let new = to.snapshot().await.map_err(MigrateError::To)?;
    if Content::of(&*new).await.map_err(MigrateError::To)? != written {
        return Err(MigrateError::Differs);
    }
    if seal.is_none() {
        let seal = Seal { to: name.to_owned(), at: clock.wall() };
        // The head is replaced as well: a commit that is under way must not land behind the seal.
        let commit = Commit::new()
            .when(Condition::Version(head.key.clone(), head.version))
            .put(head.key, head.value)
            .put(SEALED_KEY, record::encode(&seal));
        from.commit(commit).await.map_err(|error| match error {
            StoreError::Refused { .. } => MigrateError::Changed,
            error => MigrateError::From(error),
        })?;
        // While the old one can be opened, the new one must not.
        if from.get(SEALED_KEY).await.map_err(MigrateError::From)?.is_none() {
            return Err(MigrateError::NotSealed);
        }
    }
    to.commit(Commit::new().delete(RESTORING_KEY)).await.map_err(MigrateError::To)?;
    if to.get(RESTORING_KEY).await.map_err(MigrateError::To)?.is_some() {
        return Err(MigrateError::Differs);
    }
    Ok(Migrated { entries: written.entries, sha256: written.sha256 })
}

/// Where the content of a store went, if it did.
pub(crate) async fn seal_of(snapshot: &dyn Snapshot) -> Result<Option<Seal>, StoreError> {
    let Some(entry) = snapshot.get(SEALED_KEY).await? else { return Ok(None) };
    let damaged = |error: Malformed| StoreError::Damaged { reason: error.to_string() };
    record::decode(&entry.key, &entry.value).map(Some).map_err(damaged)
}

async fn copy(old: &dyn Snapshot, to: &dyn Store) -> Result<Content, MigrateError> {
    let (mut pages, mut filling) = (Pages::new(""), BulkLoad::new(to));
    while let Some(page) = pages.next(old).await.map_err(MigrateError::From)? {
        for Entry { key, value, .. } in page.into_iter().filter(|entry| is_content(&entry.key)) {
            filling.put(key, value).await.map_err(MigrateError::To)?;
        }
    }
    filling.finish().await.map_err(MigrateError::To)
}
