//! Raises the epoch, in the same way on every store.

use crate::{Commit, Condition, EPOCH_KEY, Epoch, Store, StoreError};

/// Raises the counter under [`EPOCH_KEY`] by one and returns what it is now. Two callers at once get two epochs.
pub(crate) async fn raise(store: &dyn Store) -> Result<Epoch, StoreError> {
    loop {
        let (condition, last) = match store.get(EPOCH_KEY).await? {
            None => (Condition::Absent(EPOCH_KEY.to_vec()), 0),
            Some(entry) => (Condition::Version(entry.key, entry.version), read(&entry.value)?),
        };
        let epoch = last + 1;
        let commit = Commit::new().when(condition).put(EPOCH_KEY, epoch.to_string());
        match store.commit(commit).await {
            Ok(_) => return Ok(Epoch(epoch)),
            Err(StoreError::Refused { .. }) => {} // Somebody else was faster; go on from there.
            Err(error) => return Err(error),
        }
    }
}

pub(crate) fn read(value: &[u8]) -> Result<u64, StoreError> {
    std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()).ok_or_else(|| StoreError::Damaged {
        reason: format!(
            "`{}` holds `{}`, which is not a number",
            String::from_utf8_lossy(EPOCH_KEY),
            String::from_utf8_lossy(value)
        ),
    })
}
