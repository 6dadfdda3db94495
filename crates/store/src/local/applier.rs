//! Applies durable groups to the database, off the path of the callers that wait for the disk.
//!
//! 1. The writer appends a group to the log, flushes it, and answers its callers. The group is durable.
//! 2. The applier puts the group into the database, where it can be read. Small groups are applied by the writer itself, large
//!    ones by a thread of their own while the writer flushes the next group.
//! 3. A read first waits until every group that was durable when it began is applied.

use std::{
    collections::VecDeque,
    io, mem,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::Duration,
};

use super::{
    database_error::DatabaseError,
    engine::{DiskWrite, Engine},
    shared_state::LocalShared,
    snapshot::LocalSnapshot,
    writer::Answer,
};

/// Up to this many writes are applied by the writer itself.
const SMALL: usize = 16;

/// So many bytes may wait in memory; then the writer waits.
const MAX_WAITING: usize = 32 << 20;

/// The pause between two checks of the database, for callers that wait for it.
const GLANCE: Duration = Duration::from_millis(1);

/// The writes of a durable group.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) writes: Vec<DiskWrite>,
    pub(super) revision: u64,
}

enum Job {
    Apply(Arc<Batch>),
    Snapshot(Answer<LocalSnapshot>),
    /// Everything before is to be written to tables.
    Seal,
}

/// The writer's side.
pub(super) struct Applier {
    shared: Arc<LocalShared>,
    queue: Arc<Queue>,
    thread: JoinHandle<()>,
    /// Batches that may not be in the database yet, in order.
    recent: VecDeque<Arc<Batch>>,
    /// The thread may not know of all it was given.
    asleep: bool,
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    /// One is being done.
    busy: bool,
    bytes: usize,
    /// An error; nothing is done any more until the writer has taken it.
    trouble: Option<DatabaseError>,
    stop: bool,
    checkpoints: Checkpoints,
}

/// Which revisions the tables have.
#[derive(Debug, Default)]
struct Checkpoints {
    reached: u64,
    /// Numbers of [`Engine::apply`] with the revision each stands for.
    ahead: VecDeque<(u64, u64)>,
}

impl Checkpoints {
    fn note(&mut self, number: u64, revision: u64) {
        self.ahead.push_back((number, revision));
    }

    fn reach(&mut self, persisted: u64) -> u64 {
        while let Some((_, revision)) = self.ahead.pop_front_if(|(number, _)| *number <= persisted) {
            self.reached = revision;
        }
        self.reached
    }
}

impl Applier {
    pub(super) fn start(shared: Arc<LocalShared>, revision: u64) -> io::Result<Self> {
        let queue = Arc::new(Queue::default());
        queue.lock().checkpoints.reached = revision;
        let thread = thread::Builder::new().name("netstead-apply".into()).spawn({
            let (shared, queue) = (Arc::clone(&shared), Arc::clone(&queue));
            move || queue.work(&shared)
        })?;
        Ok(Self { shared, queue, thread, recent: VecDeque::new(), asleep: false })
    }

    /// The last value of a key, as it is on disk, in a batch that may not be in the database yet.
    pub(super) fn pending(&self, key: &[u8]) -> Option<&DiskWrite> {
        let batches = self.recent.iter().rev();
        batches.flat_map(|batch| &batch.writes).find(|(other, _)| other == key)
    }

    /// How many writes [`Applier::pending`] may have to look at.
    pub(super) fn pending_writes(&mut self) -> usize {
        let applied = self.shared.applied();
        while self.recent.pop_front_if(|batch| batch.revision <= applied).is_some() {}
        self.recent.iter().map(|batch| batch.writes.len()).sum()
    }

    /// Waits until the database has everything.
    pub(super) fn drain(&mut self) -> Result<(), DatabaseError> {
        self.wait(|state| state.jobs.is_empty() && !state.busy)?;
        self.recent.clear();
        Ok(())
    }

    /// Takes over a batch that is durable. Waits if too much is on its way already. The thread of its own is not woken
    /// for it: [`Applier::wake`] does that at a moment when it delays no caller.
    pub(super) fn apply(&mut self, batch: Batch) -> Result<(), DatabaseError> {
        if batch.writes.len() <= SMALL && self.queue.lock().is_idle() {
            self.recent.clear();
            return self
                .shared
                .with_engine(|engine, _| self.queue.apply(&self.shared, engine, &batch))
                .unwrap_or(Ok(()));
        }
        self.wait(|state| state.bytes < MAX_WAITING)?;
        let batch = Arc::new(batch);
        self.recent.push_back(Arc::clone(&batch));
        self.queue.put(Job::Apply(batch));
        self.asleep = true;
        Ok(())
    }

    /// Has the thread go on with what it was given.
    pub(super) fn wake(&mut self) {
        if mem::take(&mut self.asleep) {
            self.queue.changed.notify_all();
        }
    }

    /// Answers with a view that has every batch taken over so far.
    pub(super) fn snapshot(&self, answer: Answer<LocalSnapshot>) {
        if self.queue.lock().is_idle() {
            let _ = answer.send(LocalSnapshot::capture(&self.shared));
        } else {
            self.queue.push(Job::Snapshot(answer));
        }
    }

    /// Has every batch taken over so far written to tables.
    pub(super) fn seal(&self) {
        self.queue.push(Job::Seal);
    }

    /// The revision up to which the tables have everything, as far as was looked.
    pub(super) fn checkpoint(&self) -> u64 {
        self.queue.lock().checkpoints.reached
    }

    /// Looks how far the tables have got.
    pub(super) fn poll_checkpoint(&self) -> Result<u64, DatabaseError> {
        let persisted = self.shared.with_engine(|engine, _| engine.persisted()).transpose()?;
        Ok(self.queue.lock().checkpoints.reach(persisted.unwrap_or_default()))
    }

    /// Waits until the tables have everything up to `revision`, and says how far they have got.
    pub(super) fn wait_for_checkpoint(&mut self, revision: u64) -> Result<u64, DatabaseError> {
        self.wake();
        loop {
            let reached = self.poll_checkpoint()?;
            if reached >= revision {
                return Ok(reached);
            }
            self.check()?;
            thread::sleep(GLANCE);
        }
    }

    /// Whether something went wrong, here or in fjall's background.
    pub(super) fn check(&mut self) -> Result<(), DatabaseError> {
        if let Some(trouble) = self.queue.lock().trouble.take() {
            return Err(trouble);
        }
        self.shared.with_engine(|engine, _| engine.check()).unwrap_or(Ok(()))
    }

    /// Forgets what is on its way: it is in the log. Nothing touches the database when this returns.
    pub(super) fn abandon(&mut self) {
        let mut state = self.queue.lock();
        let jobs = mem::take(&mut state.jobs);
        state.bytes = 0;
        while state.busy {
            state = self.queue.sleep(state);
        }
        state.trouble = None;
        state.checkpoints = Checkpoints::default();
        drop(state);
        self.recent.clear();
        turn_away(&self.shared, jobs);
    }

    /// Goes on with a database that was opened again at `revision`.
    pub(super) fn resume(&mut self, revision: u64) {
        self.queue.lock().checkpoints = Checkpoints { reached: revision, ahead: VecDeque::new() };
    }

    pub(super) fn stop(self) {
        self.queue.lock().stop = true;
        self.queue.changed.notify_all();
        let _ = self.thread.join(); // A panic in there has been reported, and there is nothing left to do.
    }

    fn wait(&mut self, until: impl Fn(&State) -> bool) -> Result<(), DatabaseError> {
        self.wake();
        let mut state = self.queue.lock();
        loop {
            if let Some(trouble) = state.trouble.take() {
                return Err(trouble);
            }
            if until(&state) {
                return Ok(());
            }
            state = self.queue.sleep(state);
        }
    }
}

impl State {
    fn is_idle(&self) -> bool {
        self.jobs.is_empty() && !self.busy && self.trouble.is_none()
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sleep<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, job: Job) {
        let mut state = self.lock();
        if let Job::Apply(batch) = &job {
            state.bytes += batch.bytes();
        }
        state.jobs.push_back(job);
    }

    fn push(&self, job: Job) {
        self.put(job);
        self.changed.notify_all();
    }

    fn work(&self, shared: &Arc<LocalShared>) {
        let mut state = self.lock();
        while !state.stop {
            let next = if state.trouble.is_some() { None } else { state.jobs.pop_front() };
            let Some(job) = next else {
                state = self.sleep(state);
                continue;
            };
            state.busy = true;
            drop(state);
            let bytes = if let Job::Apply(batch) = &job { batch.bytes() } else { 0 };
            let outcome = self.perform(shared, job);
            state = self.lock();
            state.busy = false;
            state.bytes = state.bytes.saturating_sub(bytes);
            if let Err(trouble) = outcome {
                state.trouble = Some(trouble);
            }
            self.changed.notify_all();
        }
    }

    fn perform(&self, shared: &Arc<LocalShared>, job: Job) -> Result<(), DatabaseError> {
        match job {
            Job::Apply(batch) => {
                shared.with_engine(|engine, _| self.apply(shared, engine, &batch)).unwrap_or(Ok(()))
            }
            Job::Seal => shared.with_engine(|engine, _| engine.seal()).unwrap_or(Ok(())),
            Job::Snapshot(answer) => {
                let _ = answer.send(LocalSnapshot::capture(shared));
                Ok(())
            }
        }
    }

    fn apply(&self, shared: &LocalShared, engine: &Engine, batch: &Batch) -> Result<(), DatabaseError> {
        let number = engine.apply(&batch.writes, batch.revision)?;
        self.lock().checkpoints.note(number, batch.revision);
        shared.set_applied(batch.revision);
        Ok(())
    }
}

impl Batch {
    fn bytes(&self) -> usize {
        self.writes.iter().map(|(key, content)| key.len() + content.as_ref().map_or(0, Vec::len)).sum()
    }
}

fn turn_away(shared: &LocalShared, jobs: VecDeque<Job>) {
    for job in jobs {
        if let Job::Snapshot(answer) = job {
            let _ = answer.send(Err(shared.unavailable()));
        }
    }
}
