//! A store that several machines share over a network that misbehaves, all of it in one thread and from one seed.
//!
//! Nothing here happens by itself: the simulation calls [`Network::advance`] with the time, and then what is due by then
//! arrives. Questions and answers take their time, get lost, and arrive long after anybody waits for them;
//! machines are cut off in either direction; a process that stands still sends what it had in hand when it goes on.
//! A lease decides which process leads, or nothing does. The same seed and the same calls give the same history.

mod dice;
mod message_queue;
mod server;
mod simulated_store;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

pub use self::{dice::Dice, simulated_store::SimulatedStore};
use self::{message_queue::MessageQueue, server::Server};
use crate::{Commit, Version};

/// How the network treats what is sent over it. Chances are out of a thousand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weather {
    /// Longest a question or an answer takes when nothing is wrong, in milliseconds.
    pub delay: u64,
    /// A question or an answer is lost.
    pub lost: u64,
    /// A question takes up to [`Weather::late_by`], in which its sender gives up.
    pub late: u64,
    pub late_by: Duration,
    /// A question is not even sent, and its sender knows.
    pub refused: u64,
    /// Longest a commit takes to reach the watchers, in milliseconds.
    pub watch_lag: u64,
    /// A commit is the one at which a watch breaks.
    pub watch_lost: u64,
}

impl Weather {
    /// Everything arrives, soon.
    pub fn fair() -> Self {
        Self { delay: 3, lost: 0, late: 0, late_by: Duration::ZERO, refused: 0, watch_lag: 3, watch_lost: 0 }
    }
}

/// The behaviour of the store. Without [`Rules::broken`] it keeps the contract.
#[derive(Debug, Clone)]
pub struct Rules {
    /// How long a silent leader keeps the lead; `None`: any process that asks leads, as on a store without a lock.
    pub lease: Option<Duration>,
    /// Commits of a former leader are refused, as on etcd.
    pub fenced: bool,
    /// How long a process waits for an answer.
    pub patience: Duration,
    /// A promise that is broken on purpose, to see whether the tests notice.
    pub broken: Option<Broken>,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            lease: Some(Duration::from_secs(2)),
            fenced: true,
            patience: Duration::from_secs(2),
            broken: None,
        }
    }
}

/// A promise of every store that this one breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// Commits land whatever their conditions say.
    Conditions,
    /// Now and then a commit is acknowledged and never lands.
    Durability,
    /// Now and then only half of a commit lands.
    Atomicity,
    /// Reads answer with what a machine nearby has, however old.
    Freshness,
    /// Now and then watchers miss a commit without being told.
    Watching,
}

/// Which way a machine cannot reach the store, or be reached by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cut {
    pub questions: bool,
    pub answers: bool,
}

/// Sees every commit as it lands: when, from which machine, what, and which version it got.
pub type Witness = Box<dyn FnMut(Duration, usize, &Commit, Version) + Send>;

/// The store and all ways to it. Clones are the same.
#[derive(Clone)]
pub struct Network {
    world: Arc<Mutex<World>>,
    patience: Duration,
}

/// Everything there is outside of the processes.
struct World {
    now: Duration,
    dice: Dice,
    weather: Weather,
    rules: Rules,
    server: Server,
    messages: MessageQueue,
    processes: u64,
    witness: Option<Witness>,
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network").finish_non_exhaustive()
    }
}

impl Network {
    pub fn new(seed: u64, machines: usize, rules: Rules) -> Self {
        let patience = rules.patience;
        let world = World {
            now: Duration::ZERO,
            dice: Dice::new(seed),
            weather: Weather::fair(),
            server: Server::new(machines),
            messages: MessageQueue::new(machines),
            processes: 0,
            witness: None,
            rules,
        };
        Self { world: Arc::new(Mutex::new(world)), patience }
    }

    /// The store as a new process on a machine has it.
    pub fn process(&self, machine: usize) -> Arc<SimulatedStore> {
        let mut world = self.lock();
        world.processes += 1;
        Arc::new(SimulatedStore::new(self.clone(), machine, world.processes))
    }

    /// It is `now`: what is due arrives.
    pub fn advance(&self, now: Duration) {
        self.lock().advance(now);
    }

    pub fn set_weather(&self, weather: Weather) {
        self.lock().weather = weather;
    }

    pub fn set_witness(&self, witness: Witness) {
        self.lock().witness = Some(witness);
    }

    pub fn cut(&self, machine: usize, cut: Cut) {
        self.lock().messages.cut(machine, cut);
    }

    /// The processes of a machine stand still. With `holding`, so does what they sent and what has not arrived.
    pub fn stop(&self, machine: usize, holding: bool) {
        self.lock().messages.stop(machine, holding);
    }

    /// They go on, and what they held goes on its way.
    pub fn go_on(&self, machine: usize) {
        self.lock().go_on(machine);
    }

    /// Every watch of a machine breaks.
    pub fn lose_watches(&self, machine: usize) {
        self.lock().server.lose_watches(machine);
    }

    /// Snapshots of the past can be read no more.
    pub fn compact(&self) {
        self.lock().server.compact();
    }

    fn lock(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
