//! The state that the handles of a ledger and its background task share.

use std::{
    sync::{
        Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use netstead_model::{Clock, Event};
use netstead_store::{DamageLog, Snapshot, Store, StoreError};
use tokio::{
    sync::{broadcast, watch},
    time::sleep,
};
use tokio_util::sync::CancellationToken;

use crate::{
    book::Book,
    events::EventIndex,
    ledger::Role,
    ledger_time::LedgerTime,
    options::{LiveCounters, Options},
    record::Head,
};

/// Events a slow subscriber may be behind before it has to read them from the store.
const EVENT_BACKLOG: usize = 4096;

/// Pauses before the index of events is built again from a store that failed.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Up to which number the Book is durable. A read that saw more waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Durable {
    pub seq: u64,
    /// Raised when the Book was taken back: what was read before then may never have been.
    pub rewinds: u64,
}

/// The health of the ledger, with the reason if it is ill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum State {
    Following,
    /// It leads, and the writer works.
    Ready,
    /// It leads, and has lost touch with the store.
    Recovering {
        reason: String,
    },
    Closed,
}

#[derive(Debug)]
pub(crate) struct LedgerShared {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub options: Options,
    pub book: RwLock<Book>,
    pub durable: watch::Sender<Durable>,
    pub state: watch::Sender<State>,
    pub role: watch::Sender<Role>,
    /// Goes on while this process leads.
    pub time: LedgerTime,
    /// When the Book was last known to be the newest.
    pub confirmed: watch::Sender<Confirmation>,
    pub events: broadcast::Sender<Arc<Event>>,
    pub index: EventIndex,
    /// Damage that was found, in the files of the store or in the data they hold.
    pub damage: DamageLog,
    pub counters: LiveCounters,
    /// The epoch of the leader, as far as this process knows.
    pub epoch: AtomicU64,
    pub oldest: watch::Sender<u64>,
    pub stop: CancellationToken,
}

/// The moment at which the Book was known to be the newest.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Confirmation {
    /// Monotonic time at which the Book was compared with the store, or loaded from a copy.
    at: Duration,
    /// How old the Book was then.
    age: Duration,
}

impl Confirmation {
    /// The store confirmed the head at this monotonic time.
    pub fn at(at: Duration) -> Self {
        Self { at, age: Duration::ZERO }
    }
}

impl LedgerShared {
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, options: Options) -> Self {
        Self {
            book: RwLock::new(Book::new(&Head::nowhere())),
            durable: watch::Sender::new(Durable { seq: 0, rewinds: 0 }),
            state: watch::Sender::new(State::Following),
            role: watch::Sender::new(Role::Following),
            time: LedgerTime::default(),
            confirmed: watch::Sender::new(Confirmation::at(clock.monotonic())),
            events: broadcast::Sender::new(EVENT_BACKLOG),
            index: EventIndex::new(0),
            damage: store.damage().cloned().unwrap_or_default(),
            counters: LiveCounters::default(),
            epoch: AtomicU64::new(0),
            oldest: watch::Sender::new(0),
            stop: CancellationToken::new(),
            store,
            clock,
            options,
        }
    }

    pub fn book(&self) -> RwLockReadGuard<'_, Book> {
        self.book.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn book_mut(&self) -> RwLockWriteGuard<'_, Book> {
        self.book.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn leads(&self) -> bool {
        matches!(*self.role.borrow(), Role::Leading { .. })
    }

    /// Whether this ledger leads and nothing else can commit to its store.
    pub fn is_sole_leader(&self) -> bool {
        self.options.exclusive && self.leads()
    }

    /// The Book is built anew: what was read of the former one may never have been.
    pub fn replace_book(&self, book: Book) {
        *self.book_mut() = book;
        self.durable.send_modify(|durable| durable.rewinds += 1);
    }

    /// This is where the ledger durably stands.
    pub fn set_durable_head(&self, head: &Head) {
        self.confirmed.send_replace(Confirmation::at(self.clock.monotonic()));
        self.epoch.store(head.epoch, Relaxed);
        self.oldest.send_replace(head.oldest);
        self.durable.send_modify(|durable| durable.seq = head.seq);
    }

    /// The Book comes from this node's own copy, and the newest event in it has this age.
    pub fn set_unconfirmed(&self, age: Duration) {
        self.confirmed.send_replace(Confirmation { at: self.clock.monotonic(), age });
    }

    /// How long ago the Book was last known to be the newest.
    pub fn age(&self) -> Duration {
        if self.is_sole_leader() {
            return Duration::ZERO;
        }
        let Confirmation { at, age } = *self.confirmed.borrow();
        self.clock.monotonic().saturating_sub(at).saturating_add(age)
    }

    /// Sends durable events to the subscribers.
    pub fn publish(&self, events: &[Arc<Event>]) {
        self.index.add(events);
        for event in events {
            // There may be no subscriber.
            let _ = self.events.send(event.clone());
        }
    }

    /// Forgets the index of events and builds it from those of `snapshot` up to number `last`, beside what is going on.
    ///
    /// A store that fails is asked again. Events that cannot be read are damage: they are left out and remembered.
    pub fn rebuild_index(self: &Arc<Self>, snapshot: Arc<dyn Snapshot>, oldest: u64, last: u64) {
        let build = self.index.begin(oldest);
        let shared = self.clone();
        tokio::spawn(async move {
            let (mut snapshot, mut pause) = (Ok(snapshot), FIRST_PAUSE);
            loop {
                let built = match &snapshot {
                    Ok(snapshot) => shared.index.build(build, &**snapshot, last).await,
                    Err(error) => Err(StoreError::Unavailable { reason: format!("{error}") }),
                };
                let error = match built {
                    Ok(damage) => {
                        damage.map(|damage| shared.damage.note(damage));
                        return;
                    }
                    Err(error) => error,
                };
                tracing::warn!(%error, retry_in = ?pause, "The index of events could not be built yet; history waits.");
                if shared.stop.run_until_cancelled(sleep(pause)).await.is_none()
                    || !shared.index.is_current(build)
                {
                    return;
                }
                pause = (pause * 2).min(LONGEST_PAUSE);
                snapshot = shared.store.snapshot().await;
            }
        });
    }
}
