//! [`Ledger`]: the handle through which the other crates use the ledger.

use std::{
    sync::{Arc, RwLockReadGuard, atomic::Ordering::Relaxed},
    time::Duration,
};

use jiff::Timestamp;
use netstead_model::{Clock, Event};
use netstead_store::{Damage, DamageLog, Epoch, Store, StoreError};
use tokio::{
    sync::{
        Mutex, broadcast,
        mpsc::{self, error::TrySendError},
        oneshot, watch,
    },
    task::JoinHandle,
    time::timeout,
};

use crate::{
    book::Book,
    check::{CheckReport, check},
    command::{Caller, Command, Reply, add_up},
    events::{self, EventPage, EventQuery},
    follower::Follower,
    leadership::{LeadershipGrant, LeadershipLoop},
    load,
    options::{Health, Options},
    record::{self, EVENT, HEAD_KEY, Head},
    refusal::LedgerError,
    sabotage::Sabotage,
    shared_state::{Confirmation, Durable, LedgerShared, State},
    writer::Request,
};

/// Requests that may wait for the writer before callers have to wait for a place.
const QUEUE: usize = 4096;
/// How long a fresh read waits for the store.
const READ_PATIENCE: Duration = Duration::from_secs(10);
/// Longest a caller may wait in the queue with one request.
const LONGEST_WAIT: Duration = Duration::from_hours(24);

/// How new an answer must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Freshness {
    /// It knows of everything acknowledged before it was asked for, by anybody.
    #[default]
    Fresh,
    /// The state of this node, at once.
    Stale,
    /// It knows of this sequence number.
    AtLeast(u64),
}

/// The reply to a command, and the sequence number it was decided at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    pub reply: Reply,
    pub seq: u64,
}

/// A value that was read, its sequence number, and how long ago the store last confirmed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadAnswer<T> {
    pub value: T,
    pub seq: u64,
    pub age: Duration,
}

impl<T> ReadAnswer<T> {
    /// The answer with its value changed, as of the same moment.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> ReadAnswer<U> {
        ReadAnswer { value: change(self.value), seq: self.seq, age: self.age }
    }
}

impl<T, E> ReadAnswer<Result<T, E>> {
    pub fn transpose(self) -> Result<ReadAnswer<T>, E> {
        let (seq, age) = (self.seq, self.age);
        self.value.map(|value| ReadAnswer { value, seq, age })
    }
}

/// Pools and claims. Cheap to clone; all clones are the same ledger.
#[derive(Debug, Clone)]
pub struct Ledger {
    shared: Arc<LedgerShared>,
    requests: mpsc::Sender<Request>,
    grants: mpsc::Sender<LeadershipGrant>,
    task: Arc<Mutex<Option<JoinHandle<()>>>>,
}

/// The role of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It reads what the leader commits. It may be about to lead.
    Following,
    /// It decides, for everybody.
    Leading { epoch: u64 },
}

impl Ledger {
    /// Opens the ledger in `store`, makes one if there is none, and takes the lead: an older leader's next commit is
    /// refused by the store.
    pub async fn open(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        options: Options,
    ) -> Result<Self, LedgerError> {
        let ledger = Self::follow(store, clock, options).await?;
        match ledger.lead().await {
            Ok(_) => Ok(ledger),
            Err(error) => {
                ledger.close().await;
                Err(error)
            }
        }
    }

    /// Opens the ledger in `store` without leading: what others commit is followed and can be read. If there is no ledger
    /// yet, it is empty until one is made. Where the store cannot be asked, its own copy is used.
    pub async fn follow(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        options: Options,
    ) -> Result<Self, LedgerError> {
        let (requests, inbox) = mpsc::channel(QUEUE);
        let (turns, waiting_turns) = mpsc::channel(1);
        let shared = Arc::new(LedgerShared::new(store, clock, options));
        let mut follower = Follower::new(shared.clone());
        follower.connect().await?;
        let keeper = tokio::spawn(LeadershipLoop::new(shared.clone(), inbox, waiting_turns, follower).run());
        Ok(Self { shared, requests, grants: turns, task: Arc::new(Mutex::new(Some(keeper))) })
    }

    /// Waits until the store grants this process the lead, and leads: from then on [`Ledger::submit`] works, until another
    /// process takes over. Then it follows again, and this may be called anew.
    ///
    /// A caller that stops waiting may still come to lead.
    pub async fn lead(&self) -> Result<Epoch, LedgerError> {
        let epoch = self.shared.store.lead().await?;
        self.lead_in(epoch).await?;
        Ok(epoch)
    }

    /// The second half of [`Ledger::lead`], for a caller that took the lead of the store itself, to check something before
    /// anything is written.
    pub async fn lead_in(&self, epoch: Epoch) -> Result<(), LedgerError> {
        let (answer, answered) = oneshot::channel();
        self.grants.send(LeadershipGrant { epoch: epoch.0, answer }).await.map_err(|_| closed())?;
        answered.await.map_err(|_| closed())?
    }

    /// The Book as it is at this moment, be it ahead of the store.
    pub(crate) fn book(&self) -> RwLockReadGuard<'_, Book> {
        self.shared.book()
    }

    pub(crate) fn omits(&self, what: Sabotage) -> bool {
        self.shared.options.omits(what)
    }

    /// Whether this process leads; changes wake.
    pub fn role(&self) -> watch::Receiver<Role> {
        self.shared.role.subscribe()
    }

    /// Does what is asked, durably, or says why not. A claim that waits does so beside `patience`.
    ///
    /// After [`LedgerError::Unknown`] the same command may be sent again: it gives the same result.
    pub async fn submit(
        &self,
        caller: Caller,
        command: Command,
        patience: Duration,
    ) -> Result<Done, LedgerError> {
        if !command.may_take_several_commits() {
            return self.submit_once(caller, command, patience).await;
        }
        let mut sum: Option<Reply> = None;
        loop {
            let done = self.submit_once(caller.clone(), command.clone(), patience).await;
            let done = done.map_err(|error| if sum.is_some() { half_done(error) } else { error })?;
            let (reply, more) = add_up(sum.take(), done.reply);
            if !more {
                return Ok(Done { reply, seq: done.seq });
            }
            sum = Some(reply);
        }
    }

    async fn submit_once(
        &self,
        caller: Caller,
        command: Command,
        patience: Duration,
    ) -> Result<Done, LedgerError> {
        if !self.shared.leads() {
            let over = *self.shared.state.borrow() == State::Closed;
            return Err(if over { closed() } else { LedgerError::NotLeading });
        }
        let wait = match &command {
            Command::Claim(request) => request.wait.map_or(Duration::ZERO, Duration::from).min(LONGEST_WAIT),
            _ => Duration::ZERO,
        };
        let deadline = self.shared.clock.monotonic().saturating_add(patience);
        let (answer, answered) = oneshot::channel();
        let request = Request { caller, command, deadline, wait, answer };
        match self.requests.try_send(request) {
            Ok(()) => {}
            Err(TrySendError::Closed(_)) => return Err(closed()),
            Err(TrySendError::Full(request)) => match timeout(patience, self.requests.send(request)).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Err(closed()),
                Err(_) => return Err(LedgerError::TooLate),
            },
        }
        // The writer itself keeps the deadline until it decides; what is decided is awaited a little longer.
        let longest = patience + wait + self.shared.options.learn_timeout;
        match timeout(longest, answered).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(closed()),
            Err(_) => Err(LedgerError::Unknown { reason: "the store does not answer".into() }),
        }
    }

    /// Looks into the Book. `look` may run more than once; what it returns was durable when this returns.
    pub async fn read<T>(
        &self,
        freshness: Freshness,
        mut look: impl FnMut(&Book) -> T,
    ) -> Result<ReadAnswer<T>, LedgerError> {
        let shared = &self.shared;
        let work = async {
            let least = match freshness {
                Freshness::Fresh => self.confirm_head().await?,
                Freshness::AtLeast(seq) => seq,
                Freshness::Stale => 0,
            };
            let mut durable = shared.durable.subscribe();
            let hasty = shared.options.omits(Sabotage::DurableReads);
            loop {
                let rewinds = durable.borrow_and_update().rewinds;
                let (value, seq) = {
                    let book = shared.book();
                    (look(&book), book.seq())
                };
                if seq >= least {
                    let known = |durable: &Durable| durable.seq >= seq || durable.rewinds != rewinds || hasty;
                    let reached = durable.wait_for(known).await;
                    let Ok(reached) = reached.map(|durable| *durable) else { return Err(closed()) };
                    if reached.rewinds == rewinds {
                        return Ok(ReadAnswer { value, seq, age: shared.age() });
                    }
                } else if durable.changed().await.is_err() {
                    return Err(closed());
                }
            }
        };
        match timeout(READ_PATIENCE, work).await {
            Ok(result) => result,
            Err(_) => Err(LedgerError::Unavailable {
                reason: "what was asked for is not known here in time".into(),
            }),
        }
    }

    /// Asks the store for the head, so that an answer cannot come from a former leader.
    async fn confirm_head(&self) -> Result<u64, LedgerError> {
        let shared = &self.shared;
        if *shared.state.borrow() == State::Closed {
            return Err(closed());
        }
        if shared.options.omits(Sabotage::Asking) {
            return Ok(shared.durable.borrow().seq);
        }
        let asked_at = shared.clock.monotonic();
        let stored = match shared.store.get(HEAD_KEY.as_bytes()).await {
            // A commit that failed was taken out of the Book, or waits to be: all that was ever acknowledged is there.
            Err(StoreError::Unavailable { .. }) if shared.is_sole_leader() => {
                return Ok(shared.durable.borrow().seq);
            }
            stored => stored?,
        };
        let Some(entry) = stored else {
            // There is no ledger yet.
            return if shared.book().seq() == 0 {
                Ok(0)
            } else {
                Err(LedgerError::Damaged { reason: "its head is gone".into() })
            };
        };
        let head: Head = record::decode(&entry.key, &entry.value).map_err(load::damaged)?;
        if shared.durable.borrow().seq >= head.seq {
            shared.confirmed.send_replace(Confirmation::at(asked_at));
        }
        Ok(head.seq)
    }

    /// A page of events. Only durable ones are ever seen.
    pub async fn events(&self, query: &EventQuery) -> Result<EventPage, LedgerError> {
        if let Some(after) =
            query.after.filter(|after| !query.newest_first && after.saturating_add(1) < self.oldest_event())
        {
            let reason = format!("events up to {} were trimmed, and {after} is older", self.oldest_event());
            return Err(LedgerError::Gone { reason });
        }
        let found = events::find(&self.shared.index, &*self.shared.store, query).await;
        if let Err(LedgerError::Damaged { reason }) = &found {
            self.shared.damage.note(Damage::new(EVENT.as_bytes(), reason));
        }
        found
    }

    /// Events as they become durable. Who falls behind reads them with [`Ledger::events`].
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<Event>> {
        self.shared.events.subscribe()
    }

    /// The id of this ledger; a restore draws a new one.
    pub fn id(&self) -> u32 {
        self.shared.book().ledger()
    }

    /// Events before this number were trimmed.
    pub fn oldest_event(&self) -> u64 {
        *self.shared.oldest.borrow()
    }

    pub fn health(&self) -> Health {
        let state = self.shared.state.borrow().clone();
        let store = self.shared.store.health();
        let reason = match (state, store) {
            (State::Ready | State::Following, netstead_store::Health::Ready) => None,
            (_, netstead_store::Health::Failed { reason }) | (State::Recovering { reason }, _) => {
                Some(reason)
            }
            (State::Closed, _) => Some("it is shutting down".into()),
        };
        let (seq, paused) = {
            let book = self.shared.book();
            (book.seq(), book.paused())
        };
        Health {
            ready: reason.is_none(),
            reason,
            seq,
            epoch: self.shared.epoch.load(Relaxed),
            paused,
            events: self.shared.index.count(),
            waiting_requests: QUEUE - self.requests.capacity(),
            counters: self.shared.counters.now(),
            damage: self.shared.damage.all(),
        }
    }

    /// The time of day at which the Book's [`Book::now`] was `time`: what is left of a lease or a rest counts from then. On a
    /// follower that is the current time.
    pub fn wall_at(&self, time: u64) -> Timestamp {
        let clock = &*self.shared.clock;
        if self.shared.leads() { self.shared.time.wall(time, clock) } else { clock.wall() }
    }

    /// Where damage that is found is remembered, whatever finds it; [`Health::damage`] has what is there.
    pub fn damage(&self) -> &DamageLog {
        &self.shared.damage
    }

    /// Checks everything that is stored, and remembers the damage that is there now instead of what was known.
    pub async fn check_store(&self) -> Result<CheckReport, LedgerError> {
        let report = check(&*self.shared.store).await?;
        self.shared.damage.replace(report.damage());
        Ok(report)
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        &self.shared.store
    }

    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.shared.clock
    }

    /// Ends leading or following, once a running commit is answered. The store stays open: it is the caller's.
    pub async fn close(&self) {
        self.shared.stop.cancel();
        if let Some(keeper) = self.task.lock().await.take()
            && let Err(error) = keeper.await
        {
            tracing::error!(%error, "The ledger's task ended badly.");
        }
    }
}

/// The outcome of a command whose first commits are durable and whose next one failed.
fn half_done(error: LedgerError) -> LedgerError {
    match error {
        LedgerError::NotLeading | LedgerError::TooLate | LedgerError::Unavailable { .. } => {
            LedgerError::Unknown { reason: format!("a part of it was done, then: {}", error.cause()) }
        }
        other => other,
    }
}

fn closed() -> LedgerError {
    LedgerError::Unavailable { reason: "it is shutting down".into() }
}
