//! Records operations while they happen.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use super::{Action, Operation, Outcome};

/// All operations of all clients, in the order of their ends.
#[derive(Debug)]
pub struct History {
    epoch: Instant,
    done: Mutex<Vec<Operation>>,
    count: AtomicUsize,
}

/// An operation that is under way. One that is dropped is unknown: its client may not live to see the answer.
#[derive(Debug)]
pub struct Begun<'a> {
    history: &'a History,
    operation: Option<Operation>,
}

impl Default for History {
    fn default() -> Self {
        Self::new()
    }
}

impl History {
    #[expect(clippy::disallowed_methods, reason = "what is compared are moments of real time")]
    pub fn new() -> Self {
        Self { epoch: Instant::now(), done: Mutex::default(), count: AtomicUsize::new(0) }
    }

    /// The time on the clock of all operations.
    pub fn now(&self) -> Duration {
        self.epoch.elapsed()
    }

    /// Notes that `client` begins to ask.
    pub fn begin(&self, client: usize, action: Action) -> Begun<'_> {
        let now = self.now();
        let operation = Operation { client, start: now, end: now, action, outcome: Outcome::Unknown };
        Begun { history: self, operation: Some(operation) }
    }

    /// How many operations have ended.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// The operations that have ended so far.
    pub fn operations(&self) -> Vec<Operation> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn push(&self, operation: Operation) {
        self.done.lock().unwrap_or_else(PoisonError::into_inner).push(operation);
        self.count.fetch_add(1, Ordering::Relaxed);
    }
}

impl Begun<'_> {
    /// Notes what the client was told.
    pub fn end(mut self, outcome: Outcome) {
        if let Some(mut operation) = self.operation.take() {
            operation.end = self.history.now();
            operation.outcome = outcome;
            self.history.push(operation);
        }
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        if let Some(mut operation) = self.operation.take() {
            operation.end = self.history.now();
            self.history.push(operation);
        }
    }
}
