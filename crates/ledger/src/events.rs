//! The log of events: finding them by address, key and time without reading all of them.
//!
//! The index is derived. It is built in the background after a start, takes about 25 bytes per event, and knows hashes
//! only: what it points at is read from the store and looked at.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Arc, Mutex, PoisonError},
};

use jiff::Timestamp;
use netstead_model::{Address, Event, EventKind, Ident, Key};
use netstead_store::{Snapshot, Store};
use tokio::sync::watch;

use crate::{
    load::{damaged, each_entry},
    record::{self, EVENT, EventGroup, event_key, event_seq},
    refusal::LedgerError,
};

/// Which events are asked for; every field narrows.
#[derive(Debug, Clone, Default)]
pub struct EventQuery {
    pub address: Option<Address>,
    pub key: Option<Key>,
    pub pool: Option<Ident>,
    /// Only pools of this list: what the caller may see. Events of no pool are left out then.
    pub pools: Option<Vec<Ident>>,
    pub what: Option<EventKind>,
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
    /// Go on behind this number; below it when the newest come first.
    pub after: Option<u64>,
    pub newest_first: bool,
    pub limit: usize,
}

/// A page of events, and where the next one begins if there may be one.
#[derive(Debug, Clone, Default)]
pub struct EventPage {
    pub events: Vec<Arc<Event>>,
    pub next: Option<u64>,
}

/// Groups looked at for one page when nothing but a scan can find what is asked for.
const SCANNED_AT_MOST: usize = 20_000;
const GROUPS: usize = 256;
const SEQ_BITS: u32 = 36;
const SEQ_MASK: u64 = (1 << SEQ_BITS) - 1;

/// Where events are, by what they concern.
#[derive(Debug)]
pub(crate) struct EventIndex {
    inner: Mutex<Inner>,
    built: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Inner {
    /// 28 bits of a hash and 36 of a sequence number.
    addresses: BTreeSet<u64>,
    keys: BTreeSet<u64>,
    /// The first event of each minute in which there was one.
    minutes: BTreeMap<i64, u64>,
    count: u64,
}

impl EventIndex {
    pub fn new() -> Self {
        Self { inner: Mutex::new(Inner::default()), built: watch::Sender::new(false) }
    }

    /// Reads every event of `snapshot`, which must be older than the first event that is added beside.
    pub async fn build(&self, snapshot: &dyn Snapshot) -> Result<(), LedgerError> {
        each_entry(snapshot, EVENT, |entry| {
            let group: EventGroup = record::decode(&entry.key, &entry.value).map_err(damaged)?;
            self.add(&group.events);
            Ok::<(), LedgerError>(())
        })
        .await?;
        self.built.send_replace(true);
        Ok(())
    }

    /// Whether every stored event is known here.
    pub fn is_built(&self) -> bool {
        *self.built.borrow()
    }

    pub async fn ready(&self) {
        let mut built = self.built.subscribe();
        // The sender lives as long as this index: waiting cannot fail.
        let _ = built.wait_for(|built| *built).await;
    }

    pub fn add(&self, events: &[Arc<Event>]) {
        let mut inner = self.lock();
        for event in events {
            inner.add(event);
        }
    }

    pub fn remove(&self, events: &[Arc<Event>]) {
        let mut inner = self.lock();
        for event in events {
            inner.remove(event);
        }
    }

    pub fn count(&self) -> u64 {
        self.lock().count
    }

    /// Whether no later event concerns the same address.
    pub fn is_newest_of_address(&self, event: &Event) -> bool {
        let Some(address) = event.address() else { return false };
        let tag = tag(&address);
        self.lock()
            .addresses
            .range(tag..=tag | SEQ_MASK)
            .next_back()
            .is_some_and(|last| last & SEQ_MASK == event.seq)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Numbers of events that may concern what is asked for, or nothing if only a scan can tell.
    fn candidates(&self, query: &EventQuery) -> Option<Vec<u64>> {
        let inner = self.lock();
        let numbers = |set: &BTreeSet<u64>, tag: u64| -> Vec<u64> {
            set.range(tag..=tag | SEQ_MASK).map(|entry| entry & SEQ_MASK).collect()
        };
        match (&query.address, &query.key) {
            (Some(address), _) => Some(numbers(&inner.addresses, tag(address))),
            (None, Some(key)) => Some(numbers(&inner.keys, tag(key))),
            (None, None) => None,
        }
    }

    /// The first event that can be as late as `since`.
    fn first_since(&self, since: Timestamp) -> Option<u64> {
        let minute = since.as_second().div_euclid(60);
        self.lock().minutes.range(minute..).map(|(_, seq)| *seq).min()
    }
}

impl Inner {
    fn add(&mut self, event: &Event) {
        if let Some(address) = event.address() {
            self.addresses.insert(tag(&address) | event.seq & SEQ_MASK);
        }
        for key in event.keys() {
            self.keys.insert(tag(key) | event.seq & SEQ_MASK);
        }
        let minute = event.at.as_second().div_euclid(60);
        let first = self.minutes.entry(minute).or_insert(event.seq);
        *first = (*first).min(event.seq);
        self.count += 1;
    }

    fn remove(&mut self, event: &Event) {
        if let Some(address) = event.address() {
            self.addresses.remove(&(tag(&address) | event.seq & SEQ_MASK));
        }
        for key in event.keys() {
            self.keys.remove(&(tag(key) | event.seq & SEQ_MASK));
        }
        self.count = self.count.saturating_sub(1);
    }
}

fn tag<T: Hash>(thing: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    thing.hash(&mut hasher);
    hasher.finish() & !SEQ_MASK
}

impl EventQuery {
    fn wants(&self, event: &Event) -> bool {
        let pool = event.pool();
        let position = match self.after {
            Some(after) if self.newest_first => event.seq < after,
            Some(after) => event.seq > after,
            None => true,
        };
        position
            && self.address.is_none_or(|address| event.address() == Some(address))
            && self.key.as_ref().is_none_or(|key| event.keys().any(|one| one == key))
            && self.pool.as_ref().is_none_or(|name| pool == Some(name))
            && self.pools.as_ref().is_none_or(|names| pool.is_some_and(|name| names.contains(name)))
            && self.what.is_none_or(|what| what == event.what)
            && self.since.is_none_or(|since| event.at >= since)
            && self.until.is_none_or(|until| event.at <= until)
    }
}

/// One page of what `query` asks for, out of the store.
pub(crate) async fn find(
    index: &EventIndex,
    store: &dyn Store,
    query: &EventQuery,
) -> Result<EventPage, LedgerError> {
    index.ready().await;
    let snapshot = store.snapshot().await?;
    match index.candidates(query) {
        Some(numbers) => by_number(&*snapshot, numbers, query).await,
        None => scan(index, &*snapshot, query).await,
    }
}

async fn by_number(
    snapshot: &dyn Snapshot,
    mut numbers: Vec<u64>,
    query: &EventQuery,
) -> Result<EventPage, LedgerError> {
    if query.newest_first {
        numbers.reverse();
    }
    let mut page = EventPage::default();
    for seq in numbers {
        if query.after.is_some_and(|after| if query.newest_first { seq >= after } else { seq <= after }) {
            continue;
        }
        let before = event_key(seq.saturating_add(1));
        let group = snapshot.range_back(EVENT.as_bytes(), Some(before.as_bytes()), 1).await?;
        for event in decode_groups(&group)? {
            if event.seq == seq && query.wants(&event) {
                page.events.push(event);
            }
        }
        if page.events.len() >= query.limit {
            page.next = page.events.last().map(|event| event.seq);
            break;
        }
    }
    Ok(page)
}

async fn scan(
    index: &EventIndex,
    snapshot: &dyn Snapshot,
    query: &EventQuery,
) -> Result<EventPage, LedgerError> {
    let mut page = EventPage::default();
    let first = match query.since {
        Some(since) => match index.first_since(since) {
            Some(first) => first,
            None => return Ok(page),
        },
        None => 0,
    };
    // A group stands under its first number, so the one that `after` lies in may begin before it.
    let mut position: Option<Vec<u8>> = if query.newest_first {
        query.after.map(|after| event_key(after).into_bytes()) // groups that begin below it
    } else {
        let from = query.after.map_or(first, |after| first.max(after.saturating_add(1)));
        let before = event_key(from.saturating_add(1));
        let around = snapshot.range_back(EVENT.as_bytes(), Some(before.as_bytes()), 1).await?;
        around
            .first()
            .and_then(|entry| event_seq(&entry.key))
            .and_then(|seq| seq.checked_sub(1))
            .map(|seq| event_key(seq).into_bytes())
    };
    let mut scanned = 0;
    loop {
        let groups = if query.newest_first {
            snapshot.range_back(EVENT.as_bytes(), position.as_deref(), GROUPS).await?
        } else {
            snapshot.range(EVENT.as_bytes(), position.as_deref(), GROUPS).await?
        };
        for entry in &groups {
            let mut events = decode_groups(std::slice::from_ref(entry))?;
            if query.newest_first {
                events.reverse();
            }
            for event in events {
                scanned += 1;
                if query.newest_first && event.seq < first {
                    return Ok(page);
                }
                let reached = event.seq;
                if query.wants(&event) {
                    page.events.push(event);
                }
                if page.events.len() >= query.limit || scanned >= SCANNED_AT_MOST {
                    page.next = Some(reached);
                    return Ok(page);
                }
            }
        }
        match groups.last() {
            Some(last) if groups.len() == GROUPS => position = Some(last.key.clone()),
            _ => return Ok(page),
        }
    }
}

fn decode_groups(entries: &[netstead_store::Entry]) -> Result<Vec<Arc<Event>>, LedgerError> {
    let mut events = Vec::new();
    for entry in entries {
        let group: EventGroup = record::decode(&entry.key, &entry.value).map_err(damaged)?;
        events.extend(group.events);
    }
    Ok(events)
}
