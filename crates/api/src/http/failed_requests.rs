//! [`FailedRequests`]: the ids of requests that failed lately. A client repeats a request under the same id.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

/// So many ids are remembered.
const MOST: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct FailedRequests(Mutex<VecDeque<Arc<str>>>);

impl FailedRequests {
    /// Whether a request with this id has not failed lately; it counts as failed from now on.
    pub(crate) fn is_new(&self, id: &Arc<str>) -> bool {
        let mut ids = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if ids.contains(id) {
            return false;
        }
        if ids.len() >= MOST {
            ids.pop_front();
        }
        ids.push_back(Arc::clone(id));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_request_is_known_until_many_others_have_failed() {
        let failed = FailedRequests::default();
        assert!(failed.is_new(&"one".into()));
        assert!(!failed.is_new(&"one".into()));
        for number in 0..MOST {
            assert!(failed.is_new(&number.to_string().into()));
        }
        assert!(failed.is_new(&"one".into()));
    }
}
