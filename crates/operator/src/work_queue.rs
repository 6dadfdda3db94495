//! [`WorkQueue`]: keys of objects to look at. A key is handed out to one worker at a time, and however often it is added
//! meanwhile, it comes once more.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use netstead_model::Clock;
use tokio::{sync::Notify, time::sleep};

/// The pause after a failure: it doubles with each, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// More doublings than it takes.
const MOST_DOUBLINGS: u32 = 9;

#[derive(Debug)]
pub(crate) struct WorkQueue<K> {
    state: Mutex<State<K>>,
    changed: Notify,
    clock: Arc<dyn Clock>,
}

#[derive(Debug)]
struct State<K> {
    ready: VecDeque<K>,
    queued: HashSet<K>,
    working: HashSet<K>,
    /// Added while it was worked on.
    again: HashSet<K>,
    /// By the time they are due; the number makes each entry differ.
    later: BTreeMap<(Duration, u64), K>,
    due: HashMap<K, (Duration, u64)>,
    number: u64,
    failures: HashMap<K, u32>,
}

impl<K: Clone + Eq + Hash> WorkQueue<K> {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        let state = State {
            ready: VecDeque::new(),
            queued: HashSet::new(),
            working: HashSet::new(),
            again: HashSet::new(),
            later: BTreeMap::new(),
            due: HashMap::new(),
            number: 0,
            failures: HashMap::new(),
        };
        Self { state: Mutex::new(state), changed: Notify::new(), clock }
    }

    fn state(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A key to look at as soon as a worker is free.
    pub(crate) fn add(&self, key: K) {
        let mut state = self.state();
        // Something happened: a pause after failures is over.
        if let Some(due) = state.due.remove(&key) {
            state.later.remove(&due);
        }
        state.push(key);
        drop(state);
        self.changed.notify_one();
    }

    pub(crate) fn add_all(&self, keys: impl IntoIterator<Item = K>) {
        for key in keys {
            self.add(key);
        }
    }

    /// A key to look at after a pause. An earlier time that is already set stays.
    pub(crate) fn add_after(&self, key: K, pause: Duration) {
        let at = self.clock.monotonic().saturating_add(pause);
        let mut state = self.state();
        if state.due.get(&key).is_some_and(|(known, _)| *known <= at) {
            return;
        }
        if let Some(due) = state.due.remove(&key) {
            state.later.remove(&due);
        }
        state.number += 1;
        let due = (at, state.number);
        state.later.insert(due, key.clone());
        state.due.insert(key, due);
        drop(state);
        self.changed.notify_one();
    }

    /// The next key; it must be given back with [`WorkQueue::done`].
    pub(crate) async fn next(&self) -> K {
        loop {
            let changed = self.changed.notified();
            let pause = {
                let mut state = self.state();
                state.release_due(self.clock.monotonic());
                if let Some(key) = state.ready.pop_front() {
                    state.queued.remove(&key);
                    state.working.insert(key.clone());
                    let more = !state.ready.is_empty();
                    drop(state);
                    if more {
                        self.changed.notify_one();
                    }
                    return key;
                }
                let next = state.later.keys().next().map(|(at, _)| *at);
                next.map(|at| at.saturating_sub(self.clock.monotonic()))
            };
            match pause {
                None => changed.await,
                Some(pause) => {
                    tokio::select! {
                        () = changed => {}
                        () = sleep(pause) => {}
                    }
                }
            }
        }
    }

    /// The key was looked at, with success.
    pub(crate) fn done(&self, key: &K) {
        self.state().failures.remove(key);
        self.finish(key);
    }

    /// Looking at the key failed; it comes again after a pause.
    pub(crate) fn failed(&self, key: &K) {
        let failures = {
            let mut state = self.state();
            let failures = state.failures.entry(key.clone()).or_default();
            *failures = (*failures + 1).min(MOST_DOUBLINGS);
            *failures
        };
        // A third of the pause is by chance, so that many that failed together do not come back together.
        let pause = (FIRST_PAUSE * (1 << (failures - 1))).min(LONGEST_PAUSE);
        let pause = pause.mul_f64(1.0 + rand::random::<f64>() / 3.0);
        self.finish(key);
        self.add_after(key.clone(), pause);
    }

    fn finish(&self, key: &K) {
        let mut state = self.state();
        state.working.remove(key);
        if state.again.remove(key) {
            state.push(key.clone());
        }
        drop(state);
        self.changed.notify_one();
    }
}

impl<K: Clone + Eq + Hash> State<K> {
    fn push(&mut self, key: K) {
        if self.working.contains(&key) {
            self.again.insert(key);
        } else if self.queued.insert(key.clone()) {
            self.ready.push_back(key);
        }
    }

    fn release_due(&mut self, now: Duration) {
        while let Some(entry) = self.later.first_entry().filter(|entry| entry.key().0 <= now) {
            let key = entry.remove();
            self.due.remove(&key);
            self.push(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use netstead_model::{ManualClock, SystemClock};

    use super::*;

    #[tokio::test]
    async fn a_key_is_worked_on_once_at_a_time() {
        let queue = WorkQueue::new(SystemClock::shared());
        queue.add("a");
        queue.add("a");
        assert_eq!(queue.next().await, "a");
        queue.add("a");
        queue.add("b");
        assert_eq!(queue.next().await, "b");
        queue.done(&"a");
        assert_eq!(queue.next().await, "a");
        queue.done(&"a");
        queue.done(&"b");
        let state = queue.state();
        assert!(state.ready.is_empty() && state.working.is_empty() && state.again.is_empty());
    }

    #[tokio::test]
    async fn a_failure_waits_longer_each_time_and_news_end_the_wait() {
        let clock = ManualClock::default();
        let queue = WorkQueue::new(clock.shared());
        let mut pauses = Vec::new();
        for _ in 0..4 {
            queue.add("a");
            let key = queue.next().await;
            queue.failed(&key);
            let (at, _) = *queue.state().later.keys().next().unwrap();
            pauses.push(at.saturating_sub(clock.monotonic()).as_millis());
        }
        let wanted = [100..=134, 200..=267, 400..=534, 800..=1067];
        assert!(pauses.iter().zip(&wanted).all(|(pause, range)| range.contains(pause)), "{pauses:?}");
        queue.add("a");
        assert_eq!(queue.next().await, "a");
        queue.done(&"a");
        queue.add("a");
        let key = queue.next().await;
        queue.failed(&key);
        clock.advance(Duration::from_millis(134));
        assert_eq!(queue.next().await, "a");
    }
}
