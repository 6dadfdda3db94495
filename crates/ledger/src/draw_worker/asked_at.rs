//! [`AskedAt`]: when each key was last in a request.

use std::{collections::HashMap, sync::Mutex, time::Duration};

use super::backends::lock;

/// When each key was last in a request.
#[derive(Debug)]
pub(super) struct AskedAt {
    /// Requests of an earlier leader count as sent at this moment.
    begun: Duration,
    keys: Mutex<HashMap<String, Duration>>,
}

impl AskedAt {
    pub fn since(begun: Duration) -> Self {
        Self { begun, keys: Mutex::default() }
    }

    pub fn note(&self, key: &str, now: Duration) {
        lock(&self.keys).insert(key.to_owned(), now);
    }

    pub fn forget(&self, key: &str) {
        lock(&self.keys).remove(key);
    }

    pub fn last_claim(&self, key: &str) -> Duration {
        lock(&self.keys).get(key).copied().unwrap_or(self.begun)
    }
}
