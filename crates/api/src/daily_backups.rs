//! How the daily backups stand.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

/// The state of the daily backups: whatever writes them reports here, and whatever shows the state of the server reads it.
/// Cheap to clone; clones are the same.
#[derive(Debug, Clone, Default)]
pub struct DailyBackups(Arc<Mutex<BackupState>>);

/// State of the daily backups.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackupState {
    /// When the newest whole one was written; none if there is none.
    pub last: Option<Timestamp>,
    /// Why none could be written since then.
    pub failure: Option<BackupFailure>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupFailure {
    /// The first time it failed.
    pub since: Timestamp,
    /// The newest cause.
    pub reason: String,
    /// The commands that help.
    pub hint: String,
}

impl DailyBackups {
    /// A backup was written, or found, that is whole.
    pub fn succeeded(&self, at: Timestamp) {
        *self.lock() = BackupState { last: Some(at), failure: None };
    }

    pub fn failed(&self, at: Timestamp, reason: String, hint: String) {
        let mut state = self.lock();
        let since = state.failure.as_ref().map_or(at, |failure| failure.since);
        state.failure = Some(BackupFailure { since, reason, hint });
    }

    pub fn state(&self) -> BackupState {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, BackupState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
