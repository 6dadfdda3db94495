//! The one thread that writes.
//!
//! It takes all commits that wait, decides them in order, makes what they write durable with one fsync and
//! answers. While it does, the next ones gather. So a lonely commit costs one fsync and two hand-offs, and
//! many at once share it.

use std::{
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, TryRecvError},
    },
    time::Duration,
};

use tokio::sync::oneshot;
use tracing::warn;

#[cfg(feature = "raft")]
use super::engine::DiskWrite;
use super::{
    data_dir::DataDir,
    engine::Engine,
    group::{Decision, Group},
    housekeeper::Housekeeper,
    mark::Mark,
    shared::Shared,
    trouble::Trouble,
    view::LocalSnapshot,
};
use crate::{Commit, Committed, StoreError, Write};

/// Most commits and about the most bytes in one group: enough to use the disk, not enough to make one wait.
const MAX_COMMITS: usize = 512;
const MAX_BYTES: usize = 4 << 20;

/// How often an idle writer looks whether the database is still sound.
const IDLE: Duration = Duration::from_secs(1);

pub(super) type Answer<T> = oneshot::Sender<Result<T, StoreError>>;

pub(super) enum Request {
    Commit(Commit, Answer<Committed>),
    Snapshot(Answer<LocalSnapshot>),
    /// Writes as they go to the disk; durable before the answer if the flag says so.
    #[cfg(feature = "raft")]
    Raw(Vec<DiskWrite>, bool, Answer<()>),
    Close,
}

pub(super) struct Writer {
    pub(super) shared: Arc<Shared>,
    pub(super) dir: DataDir,
    pub(super) requests: Receiver<Request>,
    pub(super) housekeeper: Housekeeper,
    /// The highest number a commit was given, be it one that failed: none is given twice.
    pub(super) numbered: u64,
    /// A database that failed and is still to be closed.
    pub(super) broken: Option<Engine>,
}

/// Why the writer stopped serving.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stop {
    Closed,
    Broken,
}

/// What arrived while the last group was being written.
#[derive(Default)]
struct Waiting {
    commits: Vec<(Commit, Answer<Committed>)>,
    snapshots: Vec<Answer<LocalSnapshot>>,
    #[cfg(feature = "raft")]
    raw: Vec<(Vec<DiskWrite>, bool, Answer<()>)>,
    bytes: usize,
    close: bool,
}

impl Writer {
    /// Serves until the store is closed. Everything is given back when this returns.
    pub(super) fn run(mut self) {
        while self.serve() == Stop::Broken && self.heal() {}

        self.shared.fail("the store is closed".into());
        self.turn_away();
        let engine = self.shared.take_back();
        let closed = engine.is_some();
        engine.into_iter().chain(self.broken.take()).for_each(Engine::close);
        self.shared.watchers.end_all();
        self.housekeeper.stop();
        let mark = Mark { revision: self.shared.durable(), closed };
        if let Err(error) = mark.write(self.dir.path()) {
            warn!(%error, "The high-water mark could not be written at the end.");
        }
    }

    fn serve(&mut self) -> Stop {
        loop {
            match self.requests.recv_timeout(IDLE) {
                Ok(first) => {
                    let waiting = self.gather(first);
                    let sound = self.write(waiting.commits);
                    #[cfg(feature = "raft")]
                    let sound = self.write_raw(waiting.raw, sound) && sound;
                    for answer in waiting.snapshots {
                        let _ = answer.send(LocalSnapshot::take(&self.shared));
                    }
                    if waiting.close {
                        return Stop::Closed;
                    }
                    if !sound {
                        return Stop::Broken;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Stop::Closed,
                Err(RecvTimeoutError::Timeout) => {
                    if let Some(Err(trouble)) = self.shared.with_engine(|engine, _| engine.check()) {
                        self.break_off(&trouble);
                        return Stop::Broken;
                    }
                }
            }
        }
    }

    fn gather(&self, first: Request) -> Waiting {
        let mut waiting = Waiting::default();
        let mut next = Some(first);
        while let Some(request) = next {
            match request {
                Request::Commit(commit, answer) => {
                    waiting.bytes += commit.writes.iter().map(Write::bytes).sum::<usize>();
                    waiting.commits.push((commit, answer));
                }
                Request::Snapshot(answer) => waiting.snapshots.push(answer),
                #[cfg(feature = "raft")]
                Request::Raw(writes, durable, answer) => {
                    waiting.bytes += writes.iter().map(raw_bytes).sum::<usize>();
                    waiting.raw.push((writes, durable, answer));
                }
                Request::Close => waiting.close = true,
            }
            let full = waiting.commits.len() >= MAX_COMMITS || waiting.bytes >= MAX_BYTES;
            next = if full || waiting.close { None } else { self.requests.try_recv().ok() };
        }
        waiting
    }

    /// Makes `commits` durable and answers them. `false` if that failed; they are answered then, too.
    fn write(&mut self, commits: Vec<(Commit, Answer<Committed>)>) -> bool {
        if commits.is_empty() {
            return true;
        }
        let mut group = Group::after(self.numbered);
        let mut decided = Vec::with_capacity(commits.len());
        self.shared.progress.begin();
        let written = self.shared.with_engine(|engine, _| {
            for (commit, answer) in commits {
                let decision = group.decide(&commit, |key| engine.version(key));
                decided.push((decision, commit.writes, answer));
            }
            if group.revision() == self.numbered {
                return Ok(()); // Nothing to write, and all it was decided on is durable.
            }
            self.numbered = group.revision();
            engine.write(group.into_writes(), self.numbered)
        });
        self.shared.progress.end();

        if let Some(Err(trouble)) = written {
            let reason = self.break_off(&trouble);
            for (decision, _, answer) in decided {
                let _ = answer.send(self.after_failure(decision, reason.clone()));
            }
            return false;
        }
        self.shared.set_durable(self.numbered);
        for (decision, writes, answer) in decided {
            let _ = answer.send(self.after_success(decision, writes));
        }
        true
    }

    /// Writes all of `raw` together and answers. `false` if that failed.
    #[cfg(feature = "raft")]
    fn write_raw(&mut self, raw: Vec<(Vec<DiskWrite>, bool, Answer<()>)>, sound: bool) -> bool {
        if raw.is_empty() {
            return true;
        }
        let durable = raw.iter().any(|(_, durable, _)| *durable);
        let mut answers = Vec::with_capacity(raw.len());
        // fjall gives a whole batch one number, so a key must stand in it once: the last one wins.
        let mut writes = std::collections::BTreeMap::new();
        for (group, _, answer) in raw {
            writes.extend(group);
            answers.push(answer);
        }
        if !sound {
            for answer in answers {
                let _ = answer.send(Err(self.shared.unavailable()));
            }
            return false;
        }
        self.shared.progress.begin();
        self.numbered += 1;
        let written = self.shared.with_engine(|engine, _| {
            let writes = writes.into_iter().collect();
            if durable {
                engine.write(writes, self.numbered)
            } else {
                engine.write_lazily(writes, self.numbered)
            }
        });
        self.shared.progress.end();
        if let Some(Err(trouble)) = written {
            let reason = self.break_off(&trouble);
            for answer in answers {
                let _ = answer.send(Err(StoreError::Unknown { reason: reason.clone() }));
            }
            return false;
        }
        if durable {
            self.shared.set_durable(self.numbered);
        }
        for answer in answers {
            let _ = answer.send(Ok(()));
        }
        true
    }

    /// What the caller learns once its group is durable. The watchers learn it first.
    fn after_success(
        &self,
        decision: Result<Decision, Trouble>,
        writes: Vec<Write>,
    ) -> Result<Committed, StoreError> {
        match decision {
            Ok(Decision::Landed(version)) => {
                if !writes.is_empty() {
                    self.shared.watchers.tell(version, writes);
                }
                Ok(Committed { version })
            }
            Ok(Decision::Refused(key)) => Err(StoreError::Refused { key }),
            Err(trouble) => Err(trouble.into_error(self.dir.path())),
        }
    }

    /// What the caller learns when its group may be on the disk or not. A commit that would have been refused
    /// has certainly not landed, yet the reason for refusing it may be gone as well.
    fn after_failure(
        &self,
        decision: Result<Decision, Trouble>,
        reason: String,
    ) -> Result<Committed, StoreError> {
        match decision {
            Ok(Decision::Landed(_)) => Err(StoreError::Unknown { reason }),
            Ok(Decision::Refused(_)) => Err(StoreError::Unavailable { reason }),
            Err(trouble) => Err(trouble.into_error(self.dir.path())),
        }
    }

    /// Answers whoever waits that nothing can be done. `false` when the store is to be closed.
    pub(super) fn turn_away(&self) -> bool {
        let mut go_on = true;
        loop {
            match self.requests.try_recv() {
                Ok(Request::Commit(_, answer)) => drop(answer.send(Err(self.shared.unavailable()))),
                Ok(Request::Snapshot(answer)) => drop(answer.send(Err(self.shared.unavailable()))),
                #[cfg(feature = "raft")]
                Ok(Request::Raw(_, _, answer)) => drop(answer.send(Err(self.shared.unavailable()))),
                Ok(Request::Close) => go_on = false,
                Err(TryRecvError::Disconnected) => return false,
                Err(TryRecvError::Empty) => return go_on,
            }
        }
    }
}

#[cfg(feature = "raft")]
fn raw_bytes((key, content): &DiskWrite) -> usize {
    key.len() + content.as_ref().map_or(0, Vec::len)
}
