//! The one thread that writes.
//!
//! 1. It takes all commits that wait, and decides them in order: each sees those before it.
//! 2. It appends their writes to the log as one frame, and flushes once.
//! 3. It answers the callers. Meanwhile the next commits gather.
//! 4. It hands the group to the applier, which puts it into the database.
//!
//! So a single commit costs one flush and two hand-offs between threads, and many at once share the flush.

use std::{
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, TryRecvError},
    },
    thread,
    time::Duration,
};

use tokio::sync::oneshot;
use tracing::warn;

#[cfg(feature = "raft")]
use super::engine::DiskWrite;
use super::{
    applier::{Applier, Batch},
    commit_group::{Decision, Group, version},
    data_dir::DataDir,
    database_error::DatabaseError,
    engine::Engine,
    housekeeper::Housekeeper,
    log::Log,
    shared_state::LocalShared,
    snapshot::LocalSnapshot,
};
use crate::{Commit, Committed, StoreError, Write};

/// Most commits and about the most bytes in one group: enough to use the disk, not enough to make one wait.
const MAX_COMMITS: usize = 512;
const MAX_BYTES: usize = 4 << 20;

/// After so many bytes of the log it is looked how far the tables of the database have got.
const LOOK_AGAIN: usize = 1 << 20;

/// Up to so many comparisons a group may cost because the database lacks what came before it; then that is waited for.
const MAX_COMPARISONS: usize = 1 << 14;

/// How often a writer that has just written a large group looks for the next before it goes to sleep: when many ask, the
/// next comes within a moment, and waking up would take half of that moment.
const GLANCES: usize = 200;

/// A group of more writes than this is a large one.
const LARGE: usize = 16;

/// How often an idle writer looks whether the database is still sound.
const IDLE: Duration = Duration::from_secs(1);

pub(super) type Answer<T> = oneshot::Sender<Result<T, StoreError>>;

pub(super) enum Request {
    Commit(Commit, Answer<Committed>),
    Snapshot(Answer<LocalSnapshot>),
    /// Writes as they go to the disk; durable before the answer if the flag says so. Only where there is no log.
    #[cfg(feature = "raft")]
    Raw(Vec<DiskWrite>, bool, Answer<()>),
    Close,
}

pub(super) struct Writer {
    pub(super) shared: Arc<LocalShared>,
    pub(super) dir: DataDir,
    pub(super) requests: Receiver<Request>,
    pub(super) housekeeper: Housekeeper,
    pub(super) applier: Applier,
    /// The log that makes commits durable; a node of a cluster has fjall's journal for that.
    pub(super) log: Option<Log>,
    /// The highest number a commit was given, be it one that failed: none is given twice.
    pub(super) numbered: u64,
    /// The last group was a large one.
    pub(super) busy: bool,
    /// Bytes that went into the log since it was looked how far the tables have got.
    pub(super) unseen: usize,
    /// A database that failed and is still to be closed.
    pub(super) broken: Option<Engine>,
    /// Why the database fails again and again, where that was found.
    pub(super) damaged: Option<String>,
    /// The last failure was one of fjall's background, and its cause is not known yet.
    pub(super) unexplained: bool,
}

/// The outcome of a commit, its writes, and the caller that waits.
type Decided = (Result<Decision, DatabaseError>, Vec<Write>, Answer<Committed>);

/// Why the writer stopped serving.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stop {
    Closed,
    Broken,
}

/// Commits that arrived while the last group was being written.
#[derive(Default)]
struct WaitingRequests {
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
        while self.serve() == Stop::Broken && self.reopen_with_retries() {}

        let settled = self.settle();
        self.shared.fail("the store is closed".into());
        self.turn_away();
        self.applier.abandon();
        self.applier.stop();
        let engine = self.shared.withdraw_engine();
        engine.into_iter().chain(self.broken.take()).for_each(Engine::close);
        self.shared.watchers.end_all();
        self.housekeeper.stop();
        if let Err(error) = self.shared.high_water_mark(settled).write(self.dir.path()) {
            warn!(%error, "The high-water mark could not be written at the end.");
        }
    }

    /// Has all of it written to tables, at the end, or the journal flushed where there is no log. If that does not work,
    /// the log has it.
    fn settle(&mut self) -> bool {
        if self.log.is_none() {
            return self.shared.with_engine(|_, _| ()).is_some(); // It is flushed when it is closed.
        }
        let settled = self.applier.drain();
        let settled = settled.and_then(|()| self.shared.with_engine(|engine, _| engine.settle()).transpose());
        if let Err(trouble) = &settled {
            warn!(?trouble, "The database could not be completed at the end; the log has what it lacks.");
        }
        settled.is_ok_and(|settled| settled.is_some())
    }

    fn serve(&mut self) -> Stop {
        loop {
            match self.next() {
                Ok(first) => {
                    let waiting = self.gather(first);
                    let sound = self.write(waiting.commits);
                    #[cfg(feature = "raft")]
                    let sound = self.write_raw(waiting.raw, sound) && sound;
                    for answer in waiting.snapshots {
                        self.applier.snapshot(answer);
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
                    if let Err(trouble) = self.applier.check() {
                        self.break_off(&trouble);
                        return Stop::Broken;
                    }
                }
            }
        }
    }

    fn next(&mut self) -> Result<Request, RecvTimeoutError> {
        let glances = if self.busy { GLANCES } else { 0 };
        for _ in 0..glances {
            match self.requests.try_recv() {
                Ok(request) => return Ok(request),
                Err(TryRecvError::Disconnected) => return Err(RecvTimeoutError::Disconnected),
                Err(TryRecvError::Empty) => thread::yield_now(),
            }
        }
        self.applier.wake();
        self.requests.recv_timeout(IDLE)
    }

    fn gather(&self, first: Request) -> WaitingRequests {
        let mut waiting = WaitingRequests::default();
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
        let mut decided = Vec::with_capacity(commits.len());
        self.shared.progress.begin();
        let written = self.decide(commits, &mut decided).and_then(|group| self.make_durable(group));
        self.shared.progress.end();

        let batch = match written {
            Ok(batch) => batch,
            Err(trouble) => {
                let reason = self.break_off(&trouble);
                for (decision, _, answer) in decided {
                    let _ = answer.send(self.after_failure(decision, reason.clone()));
                }
                return false;
            }
        };
        self.shared.set_durable(self.numbered);
        let mut unwanted = Vec::with_capacity(decided.len());
        for (decision, writes, answer) in decided {
            if let Ok(Decision::Landed(version)) = &decision
                && !writes.is_empty()
            {
                unwanted.push(self.shared.watchers.broadcast_commit(*version, writes)); // Before the caller learns it.
            }
            let _ = answer.send(self.after_success(decision));
        }
        match batch.map_or(Ok(()), |batch| self.applier.apply(batch)) {
            Ok(()) => true,
            Err(trouble) => {
                self.break_off(&trouble);
                false
            }
        }
    }

    /// Decides `commits` one after the other, on what is durable and on each other.
    fn decide(
        &mut self,
        commits: Vec<(Commit, Answer<Committed>)>,
        decided: &mut Vec<Decided>,
    ) -> Result<Group, DatabaseError> {
        let conditions: usize = commits.iter().map(|(commit, _)| commit.conditions.len()).sum();
        let ready = if self.applier.pending_writes().saturating_mul(conditions) > MAX_COMPARISONS {
            self.applier.drain()
        } else {
            Ok(())
        };
        let mut group = Group::after(self.numbered);
        let shared = Arc::clone(&self.shared);
        for (commit, answer) in commits {
            let standing = |key: &[u8]| match self.applier.pending(key) {
                Some((_, content)) => Ok(content.as_deref().and_then(version)),
                None => shared.with_engine(|engine, _| engine.version(key)).unwrap_or(Ok(None)),
            };
            let decision = group.decide(&commit, standing);
            decided.push((decision, commit.writes, answer));
        }
        ready.map(|()| group)
    }

    /// Writes what `group` does to the log. `None`: it does nothing, and all it was decided on is durable.
    fn make_durable(&mut self, group: Group) -> Result<Option<Batch>, DatabaseError> {
        let revision = group.revision();
        if revision == self.numbered {
            return Ok(None);
        }
        self.numbered = revision;
        let batch = Batch { writes: group.into_writes(), revision };
        self.busy = batch.writes.len() > LARGE;
        let Some(log) = &mut self.log else {
            self.shared.with_engine(|engine, _| engine.write(&batch.writes, revision)).transpose()?;
            self.shared.set_applied(revision);
            return Ok(None);
        };
        if self.unseen >= LOOK_AGAIN {
            self.unseen = 0;
            self.applier.poll_checkpoint()?;
        }
        if !log.prepare(&batch.writes) {
            // By now the tables have what the other segment holds, unless far more is written than they can take in.
            let checkpoint = self.applier.wait_for_checkpoint(log.begun_after())?;
            log.switch_segment(checkpoint, &batch.writes)?;
            self.applier.seal();
        }
        // While this thread waits for the disk, the last group is brought into the database.
        self.applier.wake();
        self.unseen += log.commit(revision, self.applier.checkpoint())?;
        Ok(Some(batch))
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
        // With a log, what went past it would be overwritten by what it holds.
        if !sound || self.log.is_some() {
            for answer in answers {
                let _ = answer.send(Err(self.shared.unavailable()));
            }
            return false;
        }
        self.shared.progress.begin();
        self.numbered += 1;
        let written = self.shared.with_engine(|engine, _| {
            let writes: Vec<DiskWrite> = writes.into_iter().collect();
            if durable {
                engine.write(&writes, self.numbered)
            } else {
                engine.write_lazily(&writes, self.numbered)
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
            self.shared.set_applied(self.numbered);
        }
        for answer in answers {
            let _ = answer.send(Ok(()));
        }
        true
    }

    /// The answer to the caller once its group is durable.
    fn after_success(&self, decision: Result<Decision, DatabaseError>) -> Result<Committed, StoreError> {
        match decision {
            Ok(Decision::Landed(version)) => Ok(Committed { version }),
            Ok(Decision::Refused(key)) => Err(StoreError::Refused { key }),
            Err(trouble) => Err(trouble.into_error(self.dir.path(), self.shared.kind())),
        }
    }

    /// The answer to the caller when its group may be on the disk or not. A commit that would have been refused
    /// has certainly not landed, yet the reason for refusing it may be gone as well.
    fn after_failure(
        &self,
        decision: Result<Decision, DatabaseError>,
        reason: String,
    ) -> Result<Committed, StoreError> {
        match decision {
            Ok(Decision::Landed(_)) => Err(StoreError::Unknown { reason }),
            Ok(Decision::Refused(_)) => Err(StoreError::Unavailable { reason }),
            Err(trouble) => Err(trouble.into_error(self.dir.path(), self.shared.kind())),
        }
    }

    /// Answers all waiting callers that nothing can be done. `false` when the store is to be closed.
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
