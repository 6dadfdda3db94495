//! When to ask again: a pause per backend that does not answer, one per claim that got no address, and one per pool that could
//! not be compared.

use std::{collections::HashMap, sync::Arc, time::Duration};

use netstead_model::Ident;

const FIRST: Duration = Duration::from_millis(200);
const LONGEST_BACKEND: Duration = Duration::from_secs(15);
const LONGEST_CLAIM: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Copy)]
pub(super) struct Pause {
    pub length: Duration,
    until: Duration,
}

#[derive(Debug, Default)]
pub(super) struct Backoff {
    backends: HashMap<Ident, Pause>,
    claims: HashMap<Arc<str>, Pause>,
}

impl Backoff {
    pub fn is_over_for(&self, backend: &Ident, now: Duration) -> bool {
        self.backends.get(backend).is_none_or(|pause| pause.until <= now)
    }

    pub fn is_over(&self, backend: &Ident, key: &Arc<str>, now: Duration) -> bool {
        self.is_over_for(backend, now) && self.is_over_for_claim(key, now)
    }

    pub fn is_over_for_claim(&self, key: &Arc<str>, now: Duration) -> bool {
        self.claims.get(key).is_none_or(|pause| pause.until <= now)
    }

    pub fn backend_again(&mut self, backend: &Ident, now: Duration) {
        let pause = longer(self.backends.get(backend), now, LONGEST_BACKEND);
        self.backends.insert(backend.clone(), pause);
    }

    pub fn backend_answers(&mut self, backend: &Ident) {
        self.backends.remove(backend);
    }

    pub fn claim_again(&mut self, key: &Arc<str>, now: Duration) {
        let pause = longer(self.claims.get(key), now, LONGEST_CLAIM);
        self.claims.insert(key.clone(), pause);
    }

    pub fn forget(&mut self, key: &Arc<str>) {
        self.claims.remove(key);
    }

    /// Lets every claim ask again at once.
    pub fn forget_claims(&mut self) {
        self.claims.clear();
    }

    pub fn next_end(&self, now: Duration) -> Option<Duration> {
        let ends = self.backends.values().chain(self.claims.values()).map(|pause| pause.until);
        ends.filter(|until| *until > now).min()
    }
}

/// A pause that begins now: twice as long as the one before.
pub(super) fn longer(before: Option<&Pause>, now: Duration, most: Duration) -> Pause {
    let length = before.map_or(FIRST, |pause| {
        // Several jobs may fail in the same moment: that is one failure.
        if pause.until > now { pause.length } else { (pause.length * 2).min(most) }
    });
    Pause { length, until: now.saturating_add(length) }
}
