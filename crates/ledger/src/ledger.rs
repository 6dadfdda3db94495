//! The ledger as the other rooms see it.

use std::{
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
    time::Duration,
};

use netstead_model::{Clock, Event};
use netstead_store::{Condition, Snapshot, Store, StoreError};
use tokio::{
    sync::{
        Mutex, broadcast,
        mpsc::{self, error::TrySendError},
        oneshot, watch,
    },
    task::JoinHandle,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use crate::{
    book::Book,
    chance::Chance,
    command::{Caller, Command, Reply},
    events::{self, EventIndex, EventPage, EventQuery},
    load::{self, Loaded},
    options::{Health, LiveCounters, Options},
    record::{self, HEAD_KEY, Head},
    refusal::{LedgerError, Refusal},
    writer::{Request, Writer},
};

/// Requests that may wait for the writer before callers have to wait for a place.
const QUEUE: usize = 4096;
/// Events a slow subscriber may be behind before it has to read them from the store.
const EVENT_BACKLOG: usize = 4096;
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
    /// What is known here, at once.
    Stale,
    /// It knows of this sequence number.
    AtLeast(u64),
}

/// What a command did, and the sequence number it was decided at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    pub reply: Reply,
    pub seq: u64,
}

/// What was seen, at which sequence number, and how long ago the store last confirmed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen<T> {
    pub value: T,
    pub seq: u64,
    pub age: Duration,
}

/// Pools and claims. Cheap to clone; all clones are the same ledger.
#[derive(Debug, Clone)]
pub struct Ledger {
    shared: Arc<Shared>,
    requests: mpsc::Sender<Request>,
    writer: Arc<Mutex<Option<JoinHandle<()>>>>,
}

/// How far what is in the Book is durable. A read that saw more waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Durable {
    pub seq: u64,
    /// Raised when the Book was taken back: what was read before then may never have been.
    pub rewinds: u64,
}

/// Whether the writer works, and if not, why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum State {
    Ready,
    Recovering {
        reason: String,
    },
    /// Another process leads this store.
    Deposed,
    Closed,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub options: Options,
    pub book: RwLock<Book>,
    pub durable: watch::Sender<Durable>,
    pub state: watch::Sender<State>,
    /// Monotonic time at which the store last confirmed the head.
    pub confirmed: watch::Sender<Duration>,
    pub events: broadcast::Sender<Arc<Event>>,
    pub index: EventIndex,
    pub counters: LiveCounters,
    pub epoch: u64,
    pub oldest: watch::Sender<u64>,
    pub stop: CancellationToken,
}

impl Shared {
    pub fn book(&self) -> RwLockReadGuard<'_, Book> {
        self.book.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn book_mut(&self) -> RwLockWriteGuard<'_, Book> {
        self.book.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ledger {
    /// Opens the ledger in `store`, makes one if there is none, and takes the lead: an older leader's next commit is
    /// refused by the store.
    pub async fn open(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        options: Options,
    ) -> Result<Self, LedgerError> {
        let epoch = store.lead().await?.0;
        let (loaded, snapshot) = take_over(&*store, &options.chance, epoch, None, &mut false).await?;
        let (requests, inbox) = mpsc::channel(QUEUE);
        let shared = Arc::new(Shared {
            durable: watch::Sender::new(Durable { seq: loaded.head.seq, rewinds: 0 }),
            state: watch::Sender::new(State::Ready),
            confirmed: watch::Sender::new(clock.monotonic()),
            events: broadcast::Sender::new(EVENT_BACKLOG),
            index: EventIndex::new(loaded.head.oldest),
            counters: LiveCounters::default(),
            oldest: watch::Sender::new(loaded.head.oldest),
            stop: CancellationToken::new(),
            book: RwLock::new(loaded.book),
            store,
            clock,
            options,
            epoch,
        });
        let writer = Writer::new(shared.clone(), inbox, loaded.head, loaded.version);
        let writer = tokio::spawn(writer.run());
        let indexed = shared.clone();
        tokio::spawn(async move {
            if let Err(error) = indexed.index.build(&*snapshot).await {
                tracing::error!(%error, "The index of events could not be built; history does not answer.");
            }
        });
        Ok(Self { shared, requests, writer: Arc::new(Mutex::new(Some(writer))) })
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
            let done = self.submit_once(caller.clone(), command.clone(), patience).await?;
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
    ) -> Result<Seen<T>, LedgerError> {
        let shared = &self.shared;
        let work = async {
            let least = match freshness {
                Freshness::Fresh => self.confirm_head().await?,
                Freshness::AtLeast(seq) => seq,
                Freshness::Stale => 0,
            };
            let mut durable = shared.durable.subscribe();
            loop {
                let rewinds = durable.borrow_and_update().rewinds;
                let (value, seq) = {
                    let book = shared.book();
                    (look(&book), book.seq())
                };
                if seq >= least {
                    let reached =
                        durable.wait_for(|durable| durable.seq >= seq || durable.rewinds != rewinds).await;
                    let Ok(reached) = reached.map(|durable| *durable) else { return Err(closed()) };
                    if reached.rewinds == rewinds {
                        let age = shared.clock.monotonic().saturating_sub(*shared.confirmed.borrow());
                        return Ok(Seen { value, seq, age });
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

    /// Asks the store where the ledger stands, so that an answer cannot be that of a leader who is none any more.
    async fn confirm_head(&self) -> Result<u64, LedgerError> {
        match &*self.shared.state.borrow() {
            State::Deposed => return Err(deposed()),
            State::Closed => return Err(closed()),
            State::Ready | State::Recovering { .. } => {}
        }
        let entry = self.shared.store.get(HEAD_KEY.as_bytes()).await?;
        let entry = entry.ok_or_else(|| LedgerError::Damaged { reason: "its head is gone".into() })?;
        let head: Head = record::decode(&entry.key, &entry.value).map_err(load::damaged)?;
        if head.epoch > self.shared.epoch {
            return Err(deposed());
        }
        self.shared.confirmed.send_replace(self.shared.clock.monotonic());
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
        events::find(&self.shared.index, &*self.shared.store, query).await
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
            (State::Ready, netstead_store::Health::Ready) => None,
            (_, netstead_store::Health::Failed { reason }) | (State::Recovering { reason }, _) => {
                Some(reason)
            }
            (State::Deposed, _) => Some(deposed().to_string()),
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
            epoch: self.shared.epoch,
            paused,
            events: self.shared.index.count(),
            waiting_requests: QUEUE - self.requests.capacity(),
            counters: self.shared.counters.now(),
        }
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        &self.shared.store
    }

    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.shared.clock
    }

    /// Ends the writer once its running commit is answered. The store stays open: it is the caller's.
    pub async fn close(&self) {
        self.shared.stop.cancel();
        if let Some(writer) = self.writer.lock().await.take()
            && let Err(error) = writer.await
        {
            tracing::error!(%error, "The ledger's writer ended badly.");
        }
    }
}

pub(crate) fn deposed() -> LedgerError {
    LedgerError::Unavailable { reason: "another Netstead leads this store now".into() }
}

fn closed() -> LedgerError {
    LedgerError::Unavailable { reason: "it is shutting down".into() }
}

/// Long work takes several commits: adds the answers up, and says whether there is more to do.
fn add_up(sum: Option<Reply>, reply: Reply) -> (Reply, bool) {
    match (sum, reply) {
        (Some(Reply::PoolDeleted { released: before, .. }), Reply::PoolDeleted { released, left }) => {
            (Reply::PoolDeleted { released: before + released, left }, left > 0)
        }
        (_, reply @ Reply::PoolDeleted { left, .. }) => (reply, left > 0),
        (Some(first @ Reply::Observed { .. }), Reply::Observed { more, .. }) => (first, more),
        (
            Some(Reply::Synced { created: mut c, updated: mut u, detached: mut d, .. }),
            Reply::Synced { created, updated, detached, more },
        ) => {
            c.extend(created);
            u.extend(updated);
            d.extend(detached);
            (Reply::Synced { created: c, updated: u, detached: d, more }, more)
        }
        (_, reply @ (Reply::Observed { more, .. } | Reply::Synced { more, .. })) => (reply, more),
        (_, reply) => (reply, false),
    }
}

/// Loads the ledger and replaces its head, so that no commit begun before can land any more.
///
/// `own` is the batch this process last tried, and `landed` becomes true once it was seen at the head. It stays so over
/// several calls: after a take-over whose answer was lost, the head is that of the take-over. When the stored head is
/// of a later epoch, somebody else leads.
pub(crate) async fn take_over(
    store: &dyn Store,
    chance: &Chance,
    epoch: u64,
    own: Option<u64>,
    landed: &mut bool,
) -> Result<(Loaded, Arc<dyn Snapshot>), LedgerError> {
    for _ in 0..16 {
        let loaded = load::load(store).await?;
        *landed |= loaded.as_ref().is_some_and(|loaded| Some(loaded.head.batch) == own);
        if loaded.as_ref().is_some_and(|loaded| loaded.head.epoch > epoch) {
            return Err(deposed());
        }
        let (condition, mut loaded) = match loaded {
            Some(loaded) => (Condition::Version(HEAD_KEY.into(), loaded.version), loaded),
            None => (Condition::Absent(HEAD_KEY.into()), new_ledger(chance)),
        };
        loaded.head = Head { epoch, batch: chance.number(), seq: loaded.head.seq + 1, ..loaded.head };
        loaded.book.count_silent_commit();
        let commit =
            netstead_store::Commit::new().when(condition).put(HEAD_KEY, record::encode(&loaded.head));
        match store.commit(commit).await {
            Ok(committed) => {
                loaded.version = committed.version;
                return Ok((loaded, store.snapshot().await?));
            }
            // Somebody was quicker, or it is not known: look again.
            Err(StoreError::Refused { .. } | StoreError::Unknown { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(LedgerError::Unavailable { reason: "the head of the ledger keeps changing under us".into() })
}

fn new_ledger(chance: &Chance) -> Loaded {
    let head = Head {
        ledger: chance.id(),
        seq: 0,
        epoch: 0,
        batch: 0,
        time: 0,
        paused: false,
        oldest: 0,
        calendar: None,
    };
    Loaded { book: Book::new(&head), head, version: netstead_store::Version(0) }
}

impl LedgerError {
    /// Whether asking again later can help without changing the request.
    pub fn is_refusal(&self) -> Option<&Refusal> {
        if let Self::Refused(refusal) = self { Some(refusal) } else { None }
    }
}
