//! Follows a ledger that another process leads: loads the Book once and then feeds it from the store's watch.
//!
//! So reads can be answered on this node, and taking over takes one commit instead of another load.

use std::{sync::Arc, time::Duration};

use netstead_model::Event;
use netstead_store::{Commit, Condition, Snapshot, StoreError, Version, Watch, WatchItem, Write};
use tokio::time::timeout;

use crate::{
    events,
    fencing::new_ledger,
    load::{self, Loaded, RESTORING_KEY},
    migrate::SEALED_KEY,
    record::{self, EVENT, EventGroup, HEAD_KEY, Head, Malformed, PREFIX, Record, event_seq},
    refusal::LedgerError,
    sabotage::Sabotage,
    shared_state::LedgerShared,
};

/// How long a new leader waits for the watch to bring what the store has; then it loads everything again.
const CATCH_UP: Duration = Duration::from_millis(1500);
/// How often the head may change while it is being taken over.
const ATTEMPTS: usize = 16;
/// Commits that trim events after which the index of a follower is built anew, to forget them.
const TRIMMED: usize = 1000;

pub(crate) struct Follower {
    shared: Arc<LedgerShared>,
    /// The head the Book is at; `None` before there is a ledger.
    position: Option<(Head, Version)>,
    watch: Option<Watch>,
    /// Commits that trimmed events, which the index still knows.
    trims: usize,
}

/// The content of one commit of the leader.
struct LeaderCommit {
    head: Head,
    records: Vec<Record>,
    events: Vec<Arc<Event>>,
    trimmed: bool,
}

impl Follower {
    pub fn new(shared: Arc<LedgerShared>) -> Self {
        Self { shared, position: None, watch: None, trims: 0 }
    }

    pub fn is_connected(&self) -> bool {
        self.watch.is_some()
    }

    /// This process led up to this head: later commits are still to be loaded.
    pub fn go_on_from(&mut self, head: Head, version: Version) {
        self.position = Some((head, version));
        self.watch = None;
    }

    /// Loads the ledger and begins to follow it from there. From an old copy it is not connected: to be tried again.
    pub async fn connect(&mut self) -> Result<(), LedgerError> {
        let store = self.shared.store.clone();
        let watch = store.watch(PREFIX.as_bytes()).await?;
        let (snapshot, current) = match store.snapshot().await {
            Ok(snapshot) => (snapshot, true),
            // What is here is better than nothing; reads say how old it is.
            Err(error) => (store.own_snapshot().await.map_err(|_| error)?, false),
        };
        if !current && self.position.is_some() {
            return Ok(()); // Nothing older than what is known can be of use.
        }
        match load::load(snapshot.clone()).await? {
            Some(loaded) => self.adopt(loaded, snapshot.clone()).await?,
            None => self.shared.rebuild_index(snapshot.clone(), 0, 0),
        }
        if !current {
            // Nothing says how much was committed elsewhere after the newest event of the copy.
            let newest = events::newest(&*snapshot).await.unwrap_or_default();
            let age = newest.map(|at| self.shared.clock.wall().duration_since(at));
            self.shared.set_unconfirmed(age.and_then(|age| age.try_into().ok()).unwrap_or_default());
        }
        // An old copy ends before the watch begins: what lies between would be missed.
        self.watch = (current || self.shared.options.omits(Sabotage::Gaps)).then_some(watch);
        Ok(())
    }

    async fn adopt(&mut self, loaded: Loaded, snapshot: Arc<dyn Snapshot>) -> Result<(), LedgerError> {
        let Loaded { mut book, head, version } = loaded;
        book.follow(&head, Vec::new());
        let known =
            self.position.as_ref().map(|(known, _)| known).filter(|known| known.ledger == head.ledger);
        let missed = match known {
            Some(known) if known.seq > head.seq => {
                return Err(LedgerError::Unavailable {
                    reason: "the store is behind what it told before".into(),
                });
            }
            Some(known) => events::behind(&*snapshot, known.seq).await?,
            None => (Vec::new(), false),
        };
        self.shared.replace_book(book);
        self.shared.set_durable_head(&head);
        // A subscriber that cannot be told everything notices: it is told more than it can keep.
        let (events, whole) = missed;
        self.shared.publish(&events);
        if !whole {
            self.trims = 0;
            self.shared.rebuild_index(snapshot, head.oldest, head.seq);
        }
        self.position = Some((head, version));
        Ok(())
    }

    /// Waits for the next commit of the leader and applies it. Dropping the future loses nothing.
    pub async fn apply_next_commit(&mut self) {
        if self.trims >= TRIMMED {
            self.forget_trimmed().await;
        }
        let Some(watch) = &mut self.watch else { return };
        let taken = match watch.next().await {
            Some(WatchItem::Changed { version, writes }) => self.apply_commit(version, &writes),
            Some(WatchItem::Lost) | None => Ok(false),
        };
        match taken {
            Ok(true) => {}
            Ok(false) => self.watch = None,
            Err(error) => {
                tracing::error!(%error, "What the leader wrote cannot be understood; the ledger is loaded anew.");
                self.watch = None;
            }
        }
    }

    /// Returns whether the commit could be applied; if not, the ledger must be loaded again.
    fn apply_commit(&mut self, version: Version, writes: &[Write]) -> Result<bool, Malformed> {
        let known = self.position.as_ref().map_or(0, |(head, _)| head.seq);
        let Some(news) = read(writes, known)? else { return Ok(false) };
        match &self.position {
            Some((head, _)) if head.ledger == news.head.ledger => {
                if news.head.seq <= head.seq {
                    return Ok(true); // Loaded already.
                }
                // Numbers leave nothing out, so what is not the next one says that something was missed.
                let first = news.events.first().map_or(news.head.seq, |event| event.seq);
                if first != head.seq + 1 && !self.shared.options.omits(Sabotage::Gaps) {
                    return Ok(false);
                }
            }
            // A ledger that was just made, or restored.
            _ => return Ok(false),
        }
        self.shared.book_mut().follow(&news.head, news.records);
        self.shared.set_durable_head(&news.head);
        self.shared.publish(&news.events);
        self.trims += usize::from(news.trimmed);
        self.position = Some((news.head, version));
        Ok(true)
    }

    /// Builds the index of events without those that are no more.
    async fn forget_trimmed(&mut self) {
        self.trims = 0;
        if let (Some((head, _)), Ok(snapshot)) = (&self.position, self.shared.store.snapshot().await) {
            self.shared.rebuild_index(snapshot, head.oldest, head.seq);
        }
    }

    /// Replaces the head, so that no commit begun before can land any more, once the Book stands where the store does.
    pub async fn take_over(&mut self, epoch: u64) -> Result<(Head, Version), LedgerError> {
        for _ in 0..ATTEMPTS {
            self.catch_up().await?;
            let (head, condition) = match &self.position {
                Some((head, version)) => (head.clone(), Condition::Version(HEAD_KEY.into(), *version)),
                None => {
                    (new_ledger(&self.shared.options.randomness).head, Condition::Absent(HEAD_KEY.into()))
                }
            };
            if head.epoch > epoch {
                return Err(LedgerError::NotLeading);
            }
            let batch = self.shared.options.randomness.number();
            let head = Head { epoch, batch, seq: head.seq + 1, ..head };
            let commit = Commit::new()
                .when(condition)
                .when(Condition::Absent(RESTORING_KEY.to_vec()))
                .when(Condition::Absent(SEALED_KEY.to_vec()))
                .put(HEAD_KEY, record::encode(&head));
            match self.shared.store.commit(commit).await {
                Ok(committed) => return self.lead_from(head, committed.version).await,
                // Another commit was faster, the outcome is unknown, or the store was sealed: look again.
                Err(StoreError::Refused { key }) if key == RESTORING_KEY || key == SEALED_KEY => {
                    self.connect().await?;
                }
                Err(StoreError::Refused { .. } | StoreError::Unknown { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(LedgerError::Unavailable { reason: "the head of the ledger keeps changing under us".into() })
    }

    /// Brings the Book up to date with the store.
    async fn catch_up(&mut self) -> Result<(), LedgerError> {
        let stored = self.shared.store.get(HEAD_KEY.as_bytes()).await?;
        if let Some(entry) = stored.as_ref().filter(|_| self.shared.options.omits(Sabotage::CatchingUp)) {
            let head = record::decode(&entry.key, &entry.value).map_err(load::damaged)?;
            self.position = Some((head, entry.version));
            return Ok(());
        }
        let stored = stored.map(|entry| entry.version);
        let hearing = async {
            while self.is_connected() && self.position.as_ref().map(|(_, version)| *version) != stored {
                self.apply_next_commit().await;
            }
        };
        let late = timeout(CATCH_UP, hearing).await.is_err();
        if late || !self.is_connected() {
            self.connect().await?;
        }
        Ok(())
    }

    async fn lead_from(&mut self, head: Head, version: Version) -> Result<(Head, Version), LedgerError> {
        self.watch = None;
        {
            let mut book = self.shared.book_mut();
            if self.position.is_none() {
                *book = crate::book::Book::new(&head);
            }
            book.follow(&head, Vec::new());
            book.begin_to_lead();
        }
        self.shared.set_durable_head(&head);
        if self.position.is_none() || self.trims > 0 {
            let snapshot = self.shared.store.snapshot().await?;
            self.trims = 0;
            self.shared.rebuild_index(snapshot, head.oldest, head.seq);
        }
        self.position = Some((head.clone(), version));
        Ok((head, version))
    }
}

/// Reads the writes of one commit, given events up to `known`; `None` when they are no commit of a leader.
fn read(writes: &[Write], known: u64) -> Result<Option<LeaderCommit>, Malformed> {
    let (mut head, mut records, mut events, mut trimmed) = (None, Vec::new(), Vec::new(), false);
    for write in writes {
        match write {
            Write::Put(key, value) if key == HEAD_KEY.as_bytes() => head = Some(record::decode(key, value)?),
            Write::Put(key, value) if key.starts_with(EVENT.as_bytes()) => {
                // What stands below is rewritten when some of its events were trimmed.
                if event_seq(key).is_some_and(|first| first > known) {
                    let group: EventGroup = record::decode(key, value)?;
                    events.extend(group.events);
                } else {
                    trimmed = true;
                }
            }
            Write::Put(key, value) => records.extend(Record::decode(key, value)?),
            Write::Delete(key) if key == HEAD_KEY.as_bytes() => return Ok(None),
            Write::Delete(key) if key.starts_with(EVENT.as_bytes()) => trimmed = true,
            Write::Delete(key) => records.extend(Record::removed(key)?),
        }
    }
    Ok(head.map(|head| LeaderCommit { head, records, events, trimmed }))
}
