//! [`Budget`]: the requests that may still be made.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use netstead_model::{Call, CallObserver, Clock, RequestBudget};

/// The time that the limit is for.
const WINDOW: Duration = Duration::from_mins(5);
/// A request that gets no answer is repeated at most so often.
const REPETITIONS: usize = 2;

/// Counts the requests of the last five minutes. All providers with one token share it, also after a reload.
#[derive(Debug)]
pub(super) struct Budget {
    clock: Arc<dyn Clock>,
    spent: Mutex<Spent>,
}

#[derive(Debug, Default)]
struct Spent {
    /// When each request was made, the oldest first.
    requests: VecDeque<Duration>,
    /// The server wants none before this time.
    rest_until: Duration,
}

/// Budgets by server and token digest. They are few and small, and stay.
static SHARED: LazyLock<Mutex<BTreeMap<String, Arc<Budget>>>> = LazyLock::new(Mutex::default);

impl Budget {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, spent: Mutex::default() }
    }

    /// The budget of `key`.
    pub(super) fn shared(key: String, clock: &Arc<dyn Clock>) -> Arc<Self> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(shared.entry(key).or_insert_with(|| Arc::new(Self::new(Arc::clone(clock)))))
    }

    /// Call before each request: the time to wait if `limit` requests were made.
    pub(super) fn check(&self, limit: usize) -> Result<(), Duration> {
        let now = self.clock.monotonic();
        Self::wait(&self.spent(now), now, limit).map_or(Ok(()), Err)
    }

    /// For people.
    pub(super) fn status(&self, limit: usize) -> RequestBudget {
        let now = self.clock.monotonic();
        let spent = self.spent(now);
        let wait = Self::wait(&spent, now, limit);
        RequestBudget { made: spent.requests.len(), limit, window: WINDOW, wait }
    }

    fn wait(spent: &Spent, now: Duration, limit: usize) -> Option<Duration> {
        if spent.rest_until > now {
            return Some(spent.rest_until.saturating_sub(now));
        }
        let most = limit.saturating_sub(REPETITIONS).max(1);
        let over = spent.requests.len().checked_sub(most)?;
        // There is room once the oldest that are too many are out of the window.
        let frees = spent.requests.get(over).copied().unwrap_or(now);
        Some((frees + WINDOW).saturating_sub(now).max(Duration::from_secs(1)))
    }

    /// Notes that the server wants no request for some time.
    pub(super) fn rest(&self, wait: Duration) {
        let now = self.clock.monotonic();
        let mut spent = self.spent(now);
        spent.rest_until = spent.rest_until.max(now.saturating_add(wait));
    }

    /// Notes a request.
    fn note(&self) {
        let now = self.clock.monotonic();
        self.spent(now).requests.push_back(now);
    }

    /// Without requests that are out of the window.
    fn spent(&self, now: Duration) -> MutexGuard<'_, Spent> {
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        while spent.requests.front().is_some_and(|at| *at + WINDOW <= now) {
            spent.requests.pop_front();
        }
        spent
    }
}

/// Counts every request, repetitions too, and passes it on.
#[derive(Debug)]
pub(super) struct Counting {
    pub(super) budget: Arc<Budget>,
    pub(super) inner: Arc<dyn CallObserver>,
}

impl CallObserver for Counting {
    fn called(&self, call: Call) {
        self.budget.note();
        self.inner.called(call);
    }
}

#[cfg(test)]
mod tests {
    use netstead_model::ManualClock;

    use super::*;

    #[test]
    fn requests_count_for_five_minutes() {
        let clock = ManualClock::at(jiff::Timestamp::UNIX_EPOCH);
        let budget = Budget::new(clock.shared());
        let minute = Duration::from_mins(1);
        for _ in 0..8 {
            assert_eq!(budget.check(10), Ok(()));
            budget.note();
            clock.advance(Duration::from_secs(1));
        }
        clock.advance(minute);
        assert_eq!(budget.check(10), Err(Duration::from_secs(300 - 68)), "two are left for repetitions");
        clock.advance(Duration::from_secs(300 - 68));
        assert_eq!(budget.check(10), Ok(()));
        budget.rest(minute);
        assert_eq!(budget.check(10), Err(minute));
    }
}
