//! Runs commands against the Book, each all or nothing, and collects their effects for one commit.

use std::sync::Arc;

use netstead_model::{Claim, Event, EventKind, Ident, Subject};

use super::{Book, Moment, pool_state::PoolState};
use crate::{
    command::{Caller, Command, MOST_ENTRIES, Reply},
    record::{Record, Slot},
    refusal::Refusal,
};

/// The effects of a group of commands, to become one commit: the new state of each record, and the events.
#[derive(Debug, Default)]
pub struct Batch {
    pub(crate) journal: Vec<Record>,
    pub(crate) events: Vec<Arc<Event>>,
    undo: Vec<Undo>,
}

/// One step of the way back.
#[derive(Debug)]
enum Undo {
    /// The slot that the record at this place of the journal replaced.
    Slot(usize, Option<Slot>),
    Record(Box<Record>),
    /// The lease of this address ended then.
    Lease(Ident, u128, u64),
    /// The caller of this waiting claim was last heard of then.
    Heard(u64, u64),
}

/// A place in a batch to which it can be taken back.
#[derive(Debug, Clone, Copy)]
pub struct Savepoint {
    journal: usize,
    undo: usize,
    events: usize,
    seq: u64,
}

/// Writes a commit may hold beside the head and the events.
pub(crate) const MOST_RECORDS: usize = netstead_store::MAX_WRITES - 2;

/// Records of a group when many ask at once.
const USUAL_RECORDS: usize = 64;

impl Batch {
    pub fn is_empty(&self) -> bool {
        self.journal.is_empty() && self.events.is_empty()
    }

    pub fn events(&self) -> &[Arc<Event>] {
        &self.events
    }

    /// The records to write, in order; a later record of the same key replaces an earlier one.
    pub fn records(&self) -> &[Record] {
        &self.journal
    }

    /// Makes room for a whole commit at the first record, not again and again on the way there.
    fn make_room(&mut self) {
        if self.journal.capacity() == 0 {
            self.journal.reserve(USUAL_RECORDS);
            self.undo.reserve(USUAL_RECORDS);
            self.events.reserve(USUAL_RECORDS);
        }
    }

    /// How many records it writes, at most.
    pub fn len(&self) -> usize {
        self.journal.len()
    }
}

impl Book {
    pub fn savepoint(&self, batch: &Batch) -> Savepoint {
        let (journal, undo, events) = (batch.journal.len(), batch.undo.len(), batch.events.len());
        Savepoint { journal, undo, events, seq: self.seq }
    }

    /// Undoes everything after `mark`.
    pub fn rewind(&mut self, batch: &mut Batch, mark: Savepoint) {
        for undo in batch.undo.drain(mark.undo.min(batch.undo.len())..).rev() {
            match undo {
                Undo::Slot(written, before) => {
                    if let Some(Record::Slot(place, _)) = batch.journal.get(written) {
                        self.absorb_slot(place, before);
                    }
                }
                Undo::Record(record) => drop(self.absorb(*record)),
                Undo::Lease(pool, number, end) => self.set_lease(&pool, number, end),
                Undo::Heard(seq, at) => self.set_heard_at(seq, at),
            }
        }
        batch.journal.truncate(mark.journal);
        batch.events.truncate(mark.events);
        self.seq = mark.seq;
    }

    /// Undoes the whole batch; `seq` is the Book's number before it.
    pub fn rewind_all(&mut self, batch: &mut Batch, seq: u64) {
        // The events stay: they are published if the commit turns out to have landed.
        let events = std::mem::take(&mut batch.events);
        self.rewind(batch, Savepoint { journal: 0, undo: 0, events: 0, seq });
        batch.events = events;
    }

    /// The refusal for a caller that asked a full pool for any address.
    pub fn exhausted(&self, pool: &Ident) -> Refusal {
        match self.pools.get(pool) {
            Some(state) => {
                let (resting, next_free) = state.resting(self.now);
                Refusal::exhausted(pool, resting, next_free)
            }
            None => Refusal::NoSuchPool { pool: pool.clone() },
        }
    }

    /// Counts a commit that carries records but no event.
    pub fn count_silent_commit(&mut self) {
        self.seq += 1;
    }

    /// Decides one command and does it, or refuses and changes nothing.
    pub fn run(
        &mut self,
        batch: &mut Batch,
        moment: Moment,
        caller: &Caller,
        command: &Command,
    ) -> Result<Reply, Refusal> {
        self.advance(moment.now);
        let mark = self.savepoint(batch);
        let mut turn = Transaction { book: self, batch, moment, caller };
        let result = turn.decide(command);
        if result.is_err() {
            self.rewind(batch, mark);
        }
        result
    }
}

/// One command at work.
pub(super) struct Transaction<'a> {
    pub book: &'a mut Book,
    pub batch: &'a mut Batch,
    pub moment: Moment,
    pub caller: &'a Caller,
}

impl Transaction<'_> {
    fn decide(&mut self, command: &Command) -> Result<Reply, Refusal> {
        match command {
            Command::CreatePool(spec) => self.create_pool(spec),
            Command::UpdatePool { spec, if_version } => self.update_pool(spec, *if_version),
            Command::DeletePool { name, force, if_version } => {
                self.delete_pool(name, force.as_deref(), *if_version)
            }
            Command::AbandonPool { name, reason, if_version } => self.abandon_pool(name, reason, *if_version),
            Command::Claim(request) => self.claim(request),
            Command::Release(target) => self.release(target),
            Command::Renew { target, ttl } => self.renew(target, *ttl),
            Command::Move { target, key, owner } => self.move_claim(target, key, owner.as_ref()),
            Command::Reserve { pool, key, range, description } => {
                self.reserve(pool, key, *range, description.as_ref())
            }
            Command::Unreserve { pool, key } => self.unreserve(pool, key),
            Command::Bulk(entries) => self.bulk(entries),
            Command::Observe(report) => Ok(self.observe(report)),
            Command::Abandon { pool, key } => self.abandon(pool, key),
            Command::SyncFilePools(specs) => self.sync_file_pools(specs),
            Command::Resume => Ok(self.resume()),
            Command::Draw(step) => self.draw_step(step),
        }
    }

    fn bulk(&mut self, entries: &[Command]) -> Result<Reply, Refusal> {
        if entries.len() > MOST_ENTRIES {
            let reason = format!("{} entries, and at most {MOST_ENTRIES} fit into one commit", entries.len());
            return Err(Refusal::invalid("entries", reason));
        }
        let mut replies = Vec::with_capacity(entries.len());
        for (place, entry) in entries.iter().enumerate() {
            let (key, decided) = match entry {
                Command::Claim(request) if request.wait.is_some() => {
                    let alone = Refusal::invalid("wait", "only a single claim can wait, not one of several");
                    (&request.key, Err(alone))
                }
                Command::Claim(request) if self.draws_from_backend(&request.from) => {
                    let reason = "a pool with a backend serves single claims only, not one of several";
                    (&request.key, Err(Refusal::invalid("pools", reason)))
                }
                Command::Claim(request) => (&request.key, self.decide(entry)),
                Command::Release(target) | Command::Renew { target, .. } | Command::Move { target, .. } => {
                    (&target.key, self.decide(entry))
                }
                _ => {
                    let reason = format!("entry {place}: only claim, release, renew and move can be bundled");
                    return Err(Refusal::invalid("entries", reason));
                }
            };
            let refused = |refusal| Refusal::Entry { place, key: key.clone(), refusal: Box::new(refusal) };
            replies.push(decided.map_err(refused)?);
        }
        Ok(Reply::Bulk(replies))
    }

    fn resume(&mut self) -> Reply {
        if self.book.paused {
            self.put(Record::Paused(false));
            self.event(EventKind::Resumed, None, None, None);
        }
        Reply::Resumed
    }

    /// Changes the Book and notes it for the commit.
    pub fn put(&mut self, record: Record) {
        let undo = match &record {
            Record::Slot(place, slot) => {
                if let Some(slot) = slot {
                    self.note_lease(slot.pool(), place.number);
                }
                let before = self.book.absorb_slot(place, slot.clone());
                Undo::Slot(self.batch.journal.len(), before)
            }
            other => {
                if let Record::Waiting(seq, _) = other {
                    self.note_heard(*seq);
                }
                Undo::Record(Box::new(self.book.absorb(other.clone())))
            }
        };
        self.batch.make_room();
        self.batch.undo.push(undo);
        self.batch.journal.push(record);
    }

    /// Gives the claim its full time again, which nothing is stored of.
    pub fn renew_lease(&mut self, claim: &Claim) {
        self.note_lease(&claim.pool, claim.address.number());
        self.book.renew_lease(claim);
    }

    /// A command that is taken back must not have lengthened a lease, nor a stay in the queue.
    fn note_lease(&mut self, pool: &Ident, number: u128) {
        let end = self.book.pools.get(pool).and_then(|state| state.lease_end(number));
        self.batch.undo.extend(end.map(|end| Undo::Lease(pool.clone(), number, end)));
    }

    pub fn note_heard(&mut self, seq: u64) {
        self.batch.undo.extend(self.book.heard_at(seq).map(|at| Undo::Heard(seq, at)));
    }

    /// The number the next event will get.
    pub fn next_seq(&self) -> u64 {
        self.book.seq + 1
    }

    pub fn event(
        &mut self,
        what: EventKind,
        before: Option<Subject>,
        after: Option<Subject>,
        reason: Option<&str>,
    ) {
        self.book.seq += 1;
        self.batch.events.push(Arc::new(Event {
            seq: self.book.seq,
            at: self.moment.wall,
            by: self.caller.subject.clone(),
            request: self.caller.request.clone(),
            what,
            reason: reason.map(Arc::from),
            before,
            after,
        }));
    }

    pub fn pool(&self, name: &Ident) -> Result<&PoolState, Refusal> {
        self.book.pools.get(name).ok_or_else(|| Refusal::NoSuchPool { pool: name.clone() })
    }

    /// Whether the caller may change what `owner` holds.
    pub fn may_touch(&self, owner: &str) -> bool {
        self.caller.manager || **self.caller.owner() == *owner
    }
}
