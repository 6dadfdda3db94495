//! The simulated server: keys, leadership and watchers.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use super::{Broken, World, message_queue::Direction};
use crate::{
    Commit, Committed, EPOCH_KEY, Entry, StoreError, Version, Write, epoch,
    memory::{Keys, State, find},
    watch::Watcher,
};

pub(super) struct Server {
    state: State,
    lease: Option<Lease>,
    watches: Vec<Watched>,
    /// The copy of each machine, which may be old.
    copies: Vec<Arc<Keys>>,
    /// Views of before this can be read no more.
    compacted: u64,
}

/// Which process leads, and until when if it is not heard of.
struct Lease {
    process: u64,
    until: Duration,
}

/// A watcher, and what is on its way to it.
struct Watched {
    machine: usize,
    process: u64,
    watcher: Watcher,
    queue: VecDeque<(Duration, Option<Change>)>,
}

type Change = (Version, Arc<Vec<Write>>);

/// A granted lead: the epoch, and the version of the key that counts it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lead {
    pub epoch: u64,
    pub fence: Version,
}

impl Server {
    pub fn new(machines: usize) -> Self {
        let state = State::default();
        let copies = vec![Arc::clone(&state.keys); machines];
        Self { state, lease: None, watches: Vec::new(), copies, compacted: 0 }
    }

    pub fn lose_watches(&mut self, machine: usize) {
        for watched in self.watches.iter_mut().filter(|watched| watched.machine == machine) {
            watched.queue.push_back((Duration::ZERO, None));
        }
    }

    pub fn end_watches(&mut self, process: u64) {
        self.watches.retain(|watched| watched.process != process);
    }

    pub fn compact(&mut self) {
        self.compacted = self.state.revision;
    }

    pub fn is_compacted(&self, revision: u64) -> bool {
        revision < self.compacted
    }

    pub fn copy(&self, machine: usize) -> Arc<Keys> {
        self.copies.get(machine).cloned().unwrap_or_default()
    }

    pub fn watch(&mut self, machine: usize, process: u64, watcher: Watcher) {
        self.watches.push(Watched { machine, process, watcher, queue: VecDeque::new() });
    }

    /// The lead is the process' own, for another while.
    pub fn renew(&mut self, process: u64, now: Duration, lease: Duration) -> bool {
        match &mut self.lease {
            Some(held) if held.process == process => {
                held.until = now + lease;
                true
            }
            _ => false,
        }
    }

    pub fn resign(&mut self, process: u64) {
        self.lease.take_if(|lease| lease.process == process);
    }
}

impl World {
    /// The keys that a reader sees, and their revision.
    pub fn view(&self, machine: usize) -> (Arc<Keys>, u64) {
        let server = &self.server;
        if self.rules.broken == Some(Broken::Freshness) {
            return (server.copy(machine), server.state.revision);
        }
        (Arc::clone(&server.state.keys), server.state.revision)
    }

    pub fn read(&self, machine: usize, key: &[u8]) -> Option<Entry> {
        find(&self.view(machine).0, key)
    }

    pub fn commit(
        &mut self,
        machine: usize,
        mut commit: Commit,
        fence: Option<Version>,
    ) -> Result<Committed, StoreError> {
        let leads = find(&self.server.state.keys, EPOCH_KEY).map(|entry| entry.version);
        if fence.is_some() && fence != leads {
            return Err(StoreError::Refused { key: EPOCH_KEY.to_vec() });
        }
        if self.rules.broken == Some(Broken::Conditions) {
            commit.conditions.clear();
        }
        if self.rules.broken == Some(Broken::Durability) && self.dice.hits(30) {
            return Ok(Committed { version: Version(self.server.state.revision + 1) });
        }
        if self.rules.broken == Some(Broken::Atomicity) && commit.writes.len() > 2 && self.dice.hits(30) {
            commit.writes.truncate(commit.writes.len() / 2);
        }
        let committed = self.server.state.apply(&commit)?;
        if commit.writes.is_empty() {
            return Ok(committed);
        }
        if let Some(witness) = &mut self.witness {
            witness(self.now, machine, &commit, committed.version);
        }
        self.spread(committed.version, commit.writes);
        Ok(committed)
    }

    fn spread(&mut self, version: Version, writes: Vec<Write>) {
        let writes = Arc::new(writes);
        if self.rules.broken == Some(Broken::Watching) && self.dice.hits(50) {
            return;
        }
        for watched in &mut self.server.watches {
            let lag = Duration::from_millis(self.dice.below(self.weather.watch_lag));
            let breaks = self.dice.hits(self.weather.watch_lost);
            let change = (!breaks).then(|| (version, Arc::clone(&writes)));
            // Each comes behind the one before it.
            let last = watched.queue.back().map_or(Duration::ZERO, |(due, _)| *due);
            watched.queue.push_back((last.max(self.now + lag), change));
        }
    }

    /// Delivers what is due to the watchers. For a machine that is cut off it waits.
    pub fn deliver_to_watchers(&mut self) {
        let (now, post) = (self.now, &self.messages);
        let cut = |machine| post.is_cut(machine, Direction::Back) || post.is_cut(machine, Direction::There);
        self.server.watches.retain_mut(|watched| cut(watched.machine) || watched.deliver_due(now));
        // Those whose reads are to be old have not heard for a while.
        let heard = if self.rules.broken == Some(Broken::Freshness) { 3 } else { 300 };
        for (machine, copy) in self.server.copies.iter_mut().enumerate() {
            if !cut(machine) && self.dice.hits(heard) {
                *copy = Arc::clone(&self.server.state.keys);
            }
        }
    }

    /// Gives the process the lead with a new epoch if no other process has it.
    pub fn lead(&mut self, machine: usize, process: u64) -> Result<Option<Lead>, StoreError> {
        let free = match (&self.server.lease, self.rules.lease) {
            (_, None) | (None, _) => true,
            (Some(lease), _) => lease.process == process || lease.until < self.now,
        };
        if !free {
            return Ok(None);
        }
        let last = find(&self.server.state.keys, EPOCH_KEY).map(|entry| epoch::read(&entry.value));
        let epoch = last.transpose()?.unwrap_or_default() + 1;
        let fence = self.commit(machine, Commit::new().put(EPOCH_KEY, epoch.to_string()), None)?.version;
        let until = self.now + self.rules.lease.unwrap_or_default();
        self.server.lease = Some(Lease { process, until });
        Ok(Some(Lead { epoch, fence }))
    }

    /// Whether the process still leads. A lease that ran out continues if no other process has taken the lead.
    pub fn renew(&mut self, process: u64) -> bool {
        let Some(lease) = self.rules.lease else { return true };
        self.server.renew(process, self.now, lease)
    }
}

impl Watched {
    /// `false` when it is over.
    fn deliver_due(&mut self, now: Duration) -> bool {
        while let Some((_, change)) = self.queue.pop_front_if(|(due, _)| *due <= now) {
            match change {
                Some((version, writes)) if self.watcher.send_commit(version, &writes) => {}
                Some(_) => return false,
                None => {
                    self.watcher.lose();
                    return false;
                }
            }
        }
        true
    }
}
