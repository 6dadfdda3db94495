//! Options of a ledger, its counters and its health.

use std::{sync::atomic::AtomicU64, time::Duration};

use netstead_model::Span;
use netstead_store::Damage;

use crate::{randomness::Randomness, sabotage::Sabotage};

/// How long the ledger keeps events, and how patient it is.
#[derive(Debug, Clone)]
pub struct Options {
    /// Events older than this are trimmed.
    pub retention: Span,
    /// Events beyond this number are trimmed.
    pub max_events: u64,
    /// How long callers wait for the ledger to learn what became of a commit before they are told `unknown`.
    pub learn_timeout: Duration,
    /// No other process can commit to this store, and this one has no other ledger on it: while the ledger leads, what it
    /// knows is the newest there is, also when the store cannot be asked.
    pub exclusive: bool,
    /// How often ledger time is stored while something depends on it.
    pub time_interval: Duration,
    /// Where ids and the order `random` come from.
    pub randomness: Randomness,
    /// For tests of tests: what is left out on purpose.
    #[doc(hidden)]
    pub sabotage: Option<Sabotage>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            retention: Span::from_secs(400 * 24 * 3600),
            max_events: 1_000_000,
            learn_timeout: Duration::from_secs(5),
            exclusive: false,
            time_interval: Duration::from_secs(10),
            randomness: Randomness::default(),
            sabotage: None,
        }
    }
}

/// Whether the ledger answers, and what a person should know if not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Health {
    pub ready: bool,
    pub reason: Option<String>,
    pub seq: u64,
    pub epoch: u64,
    pub paused: bool,
    pub events: u64,
    pub waiting_requests: usize,
    pub counters: Counters,
    /// Damage that was found; the rest is served.
    pub damage: Vec<Damage>,
}

/// Counts since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    pub commits: u64,
    /// Requests answered by those commits: divided by `commits`, how well they share.
    pub requests: u64,
    pub refused_commits: u64,
    pub unknown_commits: u64,
    pub rebuilds: u64,
}

#[derive(Debug, Default)]
pub(crate) struct LiveCounters {
    pub commits: AtomicU64,
    pub requests: AtomicU64,
    pub refused_commits: AtomicU64,
    pub unknown_commits: AtomicU64,
    pub rebuilds: AtomicU64,
}

impl LiveCounters {
    pub fn now(&self) -> Counters {
        use std::sync::atomic::Ordering::Relaxed;
        Counters {
            commits: self.commits.load(Relaxed),
            requests: self.requests.load(Relaxed),
            refused_commits: self.refused_commits.load(Relaxed),
            unknown_commits: self.unknown_commits.load(Relaxed),
            rebuilds: self.rebuilds.load(Relaxed),
        }
    }
}
