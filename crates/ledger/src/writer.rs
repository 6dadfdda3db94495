//! The one writer of a ledger: decides the waiting requests with the Book, commits the effects, then answers.
//!
//! Every commit replaces the key `ledger/head` (sequence number, epoch, batch id) on condition that its version is the one
//! this Book was built from. So two processes that both believe they lead never hand out the same address:
//!
//! 1. Node A leads with epoch 7. The head is at version 40. A decides `web` = 10.0.0.5 and stalls before it commits.
//! 2. Node B is granted epoch 8. Its Book has everything up to head version 40 (see `follower`), and B replaces the head:
//!    version 41, epoch 8.
//! 3. B claims 10.0.0.5 for `db`. The commit needs version 41 and lands: version 42.
//! 4. A goes on and sends its commit, which needs version 40. The store refuses it.
//! 5. A loads the ledger (see `recovery`), finds epoch 8 at the head and stops leading. The caller of `web` is told that
//!    nothing was done, and asks B.
//!
//! If A's commit lands between 1 and 2, B's replacement is refused: B brings its Book up to date first and tries again.
//!
//! - `deciding`: requests through the Book, into a group that fits one commit.
//! - `commit_group`: such a group, with its writes, events and answers.
//! - `in_flight_commit`: the commit on its way, and the next group that is decided meanwhile.
//! - `answering`: answers for callers and waiting claims; the loss of leadership.
//! - `recovery`: what to do after a commit that failed or got no answer.
//! - `retention`: deletes old events.

mod answering;
mod commit_group;
mod deciding;
mod in_flight_commit;
mod recovery;
mod retention;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use netstead_model::Waiting;
use netstead_store::Version;
use tokio::{
    sync::{mpsc, oneshot},
    time::sleep,
};

use self::{commit_group::Group, retention::Retention};
use crate::{
    book::{Book, Moment},
    command::{Caller, Command, Reply},
    leadership::EpochWatch,
    ledger::Done,
    record::{Calendar, Head},
    refusal::{LedgerError, Refusal},
    shared_state::{LedgerShared, State},
};

/// One command, its caller and the channel for the answer.
#[derive(Debug)]
pub(crate) struct Request {
    pub caller: Caller,
    pub command: Command,
    /// Monotonic time after which the caller has given up.
    pub deadline: Duration,
    /// How long a claim may stay in the queue.
    pub wait: Duration,
    pub answer: oneshot::Sender<Result<Done, LedgerError>>,
}

/// A caller whose claim is in the queue.
#[derive(Debug)]
struct Waiter {
    request: Request,
    until: Duration,
    queued: Reply,
}

/// Requests looked at for one commit.
const GROUP: usize = 256;
/// How often the callers of waiting claims are counted as present.
const PRESENCE: Duration = Duration::from_secs(5);

pub(crate) struct Writer {
    shared: Arc<LedgerShared>,
    inbox: mpsc::Receiver<Request>,
    /// The epoch this writer was elected in.
    epoch: u64,
    epoch_watch: EpochWatch,
    /// Another process leads.
    deposed: bool,
    /// Requests to decide next: received and not decided yet, or decided and too many for the last commit.
    put_off: VecDeque<Request>,
    head: Head,
    version: Version,
    last_commit: Duration,
    retention: Retention,
    waiters: BTreeMap<u64, Vec<Waiter>>,
}

impl Writer {
    pub fn new(
        shared: Arc<LedgerShared>,
        inbox: mpsc::Receiver<Request>,
        mut head: Head,
        version: Version,
    ) -> Self {
        let now = shared.clock.monotonic();
        shared.time.begin(head.time, &*shared.clock);
        // From the first event on: a clock that jumps before any was trimmed makes none old.
        head.calendar.get_or_insert(Calendar { at: shared.clock.wall(), time: head.time });
        Self {
            epoch: head.epoch,
            epoch_watch: EpochWatch::new(shared.store.clone(), head.epoch),
            deposed: false,
            put_off: VecDeque::new(),
            last_commit: now,
            retention: Retention::default(),
            waiters: BTreeMap::new(),
            shared,
            inbox,
            head,
            version,
        }
    }

    /// Leads until it is stopped or another process takes over. Returns the queue of requests, and the last head that is
    /// known to be durable.
    pub async fn run(mut self) -> (mpsc::Receiver<Request>, Head, Version) {
        let stop = self.shared.stop.clone();
        while !self.deposed {
            let pause = self.pause();
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = self.epoch_watch.until_superseded() => {
                    self.lose_leadership(Group::default());
                    break;
                }
                () = std::future::ready(()), if !self.put_off.is_empty() => {}
                request = self.inbox.recv() => match request {
                    Some(request) => self.put_off.push_back(request),
                    None => break,
                },
                () = sleep(pause) => {}
            }
            self.commit_groups().await;
        }
        if !self.deposed {
            self.shared.state.send_replace(State::Closed);
            self.refuse_all(&LedgerError::Unavailable { reason: "it is shutting down".into() });
        }
        (self.inbox, self.head, self.version)
    }

    /// How long the writer may sleep when no request arrives.
    fn pause(&self) -> Duration {
        let book = self.shared.book();
        let now = self.ledger_time();
        let due = book.next_due().map(|due| Duration::from_millis(due.saturating_sub(now).max(1)));
        let due = due.unwrap_or(Duration::from_hours(1)).min(self.until_tick(book.depends_on_time()));
        let due = due.min(self.until_trim());
        let first_wait = self.waiters.values().flatten().map(|waiter| waiter.until).min();
        let wait = first_wait.map(|until| until.saturating_sub(self.shared.clock.monotonic()).min(PRESENCE));
        due.min(wait.unwrap_or(Duration::from_hours(1))).max(Duration::from_millis(1))
    }

    fn until_tick(&self, depends: bool) -> Duration {
        if !depends {
            return Duration::from_hours(1);
        }
        let since = self.shared.clock.monotonic().saturating_sub(self.last_commit);
        self.shared.options.time_interval.saturating_sub(since)
    }

    fn ledger_time(&self) -> u64 {
        self.shared.time.now(&*self.shared.clock)
    }

    fn moment(&self) -> Moment {
        Moment {
            now: self.ledger_time(),
            wall: self.shared.clock.wall(),
            random: self.shared.options.randomness.number(),
        }
    }

    /// Moves received requests to `put_off`.
    fn collect_requests(&mut self) {
        while self.put_off.len() < GROUP {
            match self.inbox.try_recv() {
                Ok(request) => self.put_off.push_back(request),
                Err(_) => break,
            }
        }
    }

    /// Decides, commits and answers one group after the other, until no request waits.
    async fn commit_groups(&mut self) {
        self.collect_requests();
        let mut group = self.begin_group();
        self.decide_requests(&mut group, GROUP);
        let tick = self.until_tick(self.shared.book().depends_on_time()).is_zero();
        if group.is_silent() && !tick {
            let nobody_asks = group.answers.is_empty() && group.timed_out.is_empty();
            self.confirm(group).await;
            if !nobody_asks {
                return;
            }
        } else {
            let mut flight = self.start_commit(group).await;
            loop {
                let ahead = self.decide_ahead(&mut flight).await;
                let Some(next) = self.finish_commit(flight, ahead).await else { break };
                flight = next;
            }
        }
        if !self.deposed {
            self.trim_if_due().await;
        }
    }
}

impl Request {
    /// Whether a backend is to answer while the caller, who did not ask to wait, is kept.
    fn wants_backend_at_once(&self, waiting: &Waiting) -> bool {
        let asks_to_wait = match &self.command {
            Command::Claim(request) => request.wait.is_some() || request.keep,
            _ => true,
        };
        waiting.draw.is_some() && !asks_to_wait
    }
}

impl Waiter {
    /// The refusal for a caller whose claim got no address in time.
    fn refusal(&self, book: &Book) -> Option<Refusal> {
        let Reply::Queued(waiting) = &self.queued else { return None };
        let now = book.waiting_at(waiting.seq).unwrap_or(waiting);
        if let Some(refusal) = book.draw_refusal(now) {
            return Some(refusal);
        }
        waiting.pools.first().map(|pool| book.exhausted(pool))
    }
}
