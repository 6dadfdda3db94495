//! Where events are, by what they concern.
//!
//! The index is derived. It is built in the background after a start, takes about 20 bytes per event, and knows hashes
//! only: what it points at is read from the store and looked at.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Arc, Mutex, PoisonError},
};

use jiff::Timestamp;
use netstead_model::{Address, Event, Ident, Key};
use netstead_store::Snapshot;
use tokio::sync::watch;

use super::postings::Postings;
use crate::{
    load::{damaged, each_entry},
    record::{self, EVENT, EventGroup},
    refusal::LedgerError,
};

#[derive(Debug)]
pub(crate) struct EventIndex {
    inner: Mutex<Inner>,
    built: watch::Sender<bool>,
}

/// Which building is meant: one that was begun again in the meantime comes to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Building(u64);

#[derive(Debug, Default)]
struct Inner {
    addresses: Postings<AtAddress>,
    keys: Postings<AtKey>,
    /// The first event of each minute in which there was one.
    minutes: BTreeMap<i64, u64>,
    count: u64,
    /// Events before this number were trimmed, save the newest of each address.
    oldest: u64,
    /// Events that were spared as the newest of their address, and since then something happened there.
    outlived: BTreeSet<u64>,
    /// How often it was begun.
    begun: u64,
}

/// Bits of a sequence number: a million millions.
const SEQ_BITS: u32 = 40;
const SEQ_MASK: u64 = (1 << SEQ_BITS) - 1;

/// From high to low 32 bits of a hash of the address, 24 of address and pool together, and the sequence number. Which
/// event goes is decided by it, so it is wide enough that two addresses never look alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct AtAddress([u32; 3]);

impl AtAddress {
    fn new(address: u32, pool: u64, seq: u64) -> Self {
        let low = pool & !SEQ_MASK | seq & SEQ_MASK;
        let half = |bits: u64| u32::try_from(bits & u64::from(u32::MAX)).unwrap_or_default();
        Self([address, half(low >> 32), half(low)])
    }

    fn same_address(self, other: Self) -> bool {
        let (Self([one, ..]), Self([two, ..])) = (self, other);
        one == two
    }

    fn seq(self) -> u64 {
        let Self([_, high, low]) = self;
        (u64::from(high) << 32 | u64::from(low)) & SEQ_MASK
    }
}

/// 24 bits of a hash and 40 of a sequence number. One that is found for another key's sake is read in vain, no more.
type AtKey = u64;

impl EventIndex {
    /// Without any event; those before `oldest` were trimmed.
    pub fn new(oldest: u64) -> Self {
        Self { inner: Mutex::new(Inner { oldest, ..Inner::default() }), built: watch::Sender::new(false) }
    }

    /// Forgets all events; those before `oldest` were trimmed.
    pub fn begin(&self, oldest: u64) -> Building {
        let mut inner = self.lock();
        *inner = Inner { oldest, begun: inner.begun + 1, ..Inner::default() };
        self.built.send_replace(false);
        Building(inner.begun)
    }

    /// Reads the events of `snapshot` up to number `last`, none of which is added beside.
    pub async fn build(
        &self,
        Building(number): Building,
        snapshot: &dyn Snapshot,
        last: u64,
    ) -> Result<(), LedgerError> {
        let mut stored = Stored::default();
        each_entry(snapshot, EVENT, |entry| {
            let group: EventGroup = record::decode(&entry.key, &entry.value).map_err(damaged)?;
            group.events.iter().filter(|event| event.seq <= last).for_each(|event| stored.add(event));
            Ok::<(), LedgerError>(())
        })
        .await?;
        let mut inner = self.lock();
        if inner.begun == number {
            inner.take_in(stored);
            self.built.send_replace(true);
        }
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

    /// Forgets `events`, now that those before `oldest` are trimmed.
    pub fn remove(&self, events: &[Arc<Event>], oldest: u64) {
        let mut inner = self.lock();
        inner.oldest = oldest;
        for event in events {
            inner.remove(event);
        }
    }

    pub fn count(&self) -> u64 {
        self.lock().count
    }

    /// Whether no later event concerns the same address: in the same pool while that `lives`, else in any. An address
    /// is in one pool of a VRF at a time, so that is the newest of each address in each VRF.
    pub fn is_newest_of_address(&self, event: &Event, lives: bool) -> bool {
        let Some((address, pool)) = place_of(event) else { return false };
        let inner = self.lock();
        let newest = if lives {
            let (first, last) = (AtAddress::new(address, pool, 0), AtAddress::new(address, pool, SEQ_MASK));
            inner.addresses.range(first..=last).next_back().map(AtAddress::seq)
        } else {
            inner.addresses.range(all_at(address)).map(AtAddress::seq).max()
        };
        newest == Some(event.seq)
    }

    /// Some of the events that were spared from trimming and need not be any more, perhaps.
    pub fn take_outlived(&self, most: usize) -> Vec<u64> {
        let mut inner = self.lock();
        std::iter::from_fn(|| inner.outlived.pop_first()).take(most).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Numbers of events that may concern this address, lowest first.
    pub fn of_address(&self, address: Address) -> Vec<u64> {
        let range = all_at(address_hash(address));
        let mut numbers: Vec<u64> = self.lock().addresses.range(range).map(AtAddress::seq).collect();
        numbers.sort_unstable();
        numbers
    }

    /// Numbers of events that may concern this key, lowest first.
    pub fn of_key(&self, key: &Key) -> Vec<u64> {
        let tag = hash(key) & !SEQ_MASK;
        self.lock().keys.range(tag..=tag | SEQ_MASK).map(|entry| entry & SEQ_MASK).collect()
    }

    /// The first event that can be as late as `since`.
    pub fn first_since(&self, since: Timestamp) -> Option<u64> {
        let minute = since.as_second().div_euclid(60);
        self.lock().minutes.range(minute..).map(|(_, seq)| *seq).min()
    }
}

impl Inner {
    fn add(&mut self, event: &Event) {
        if let Some((address, pool)) = place_of(event) {
            let spared = self.addresses.range(all_at(address)).map(AtAddress::seq);
            self.outlived.extend(spared.filter(|seq| *seq < self.oldest));
            self.addresses.insert(AtAddress::new(address, pool, event.seq));
        }
        for key in event.keys() {
            self.keys.insert(at_key(key, event.seq));
        }
        let first = self.minutes.entry(minute_of(event)).or_insert(event.seq);
        *first = (*first).min(event.seq);
        self.count += 1;
    }

    fn remove(&mut self, event: &Event) {
        if let Some((address, pool)) = place_of(event) {
            self.addresses.remove(AtAddress::new(address, pool, event.seq));
        }
        for key in event.keys() {
            self.keys.remove(at_key(key, event.seq));
        }
        self.count = self.count.saturating_sub(1);
    }

    /// Takes in what was stored before the first event that was added here.
    fn take_in(&mut self, stored: Stored) {
        self.addresses.gather(stored.addresses);
        self.keys.gather(stored.keys);
        self.count += stored.count;
        for (minute, seq) in stored.minutes {
            let first = self.minutes.entry(minute).or_insert(seq);
            *first = (*first).min(seq);
        }
        // Of each address, what was spared although there is more: whether it must stay is looked at later.
        let mut last: Option<AtAddress> = None;
        for entry in self.addresses.range(AtAddress([0; 3])..=AtAddress([u32::MAX; 3])) {
            if let Some(before) = last.replace(entry).filter(|before| before.same_address(entry)) {
                let spared = [before, entry].map(AtAddress::seq);
                self.outlived.extend(spared.into_iter().filter(|seq| *seq < self.oldest));
            }
        }
    }
}

/// What is gathered of stored events, to be sorted once.
#[derive(Debug, Default)]
struct Stored {
    addresses: Vec<AtAddress>,
    keys: Vec<AtKey>,
    minutes: BTreeMap<i64, u64>,
    count: u64,
}

impl Stored {
    fn add(&mut self, event: &Event) {
        if let Some((address, pool)) = place_of(event) {
            self.addresses.push(AtAddress::new(address, pool, event.seq));
        }
        self.keys.extend(event.keys().map(|key| at_key(key, event.seq)));
        let first = self.minutes.entry(minute_of(event)).or_insert(event.seq);
        *first = (*first).min(event.seq);
        self.count += 1;
    }
}

/// Hashes of the address an event concerns, and of it together with its pool.
fn place_of(event: &Event) -> Option<(u32, u64)> {
    let claim = event.claim()?;
    let pool: &Ident = &claim.pool;
    Some((address_hash(claim.address), hash(&(pool, claim.address))))
}

fn address_hash(address: Address) -> u32 {
    u32::try_from(hash(&address) >> 32).unwrap_or_default()
}

fn all_at(address: u32) -> std::ops::RangeInclusive<AtAddress> {
    AtAddress([address, 0, 0])..=AtAddress([address, u32::MAX, u32::MAX])
}

fn minute_of(event: &Event) -> i64 {
    event.at.as_second().div_euclid(60)
}

fn at_key(key: &Key, seq: u64) -> AtKey {
    hash(key) & !SEQ_MASK | seq & SEQ_MASK
}

fn hash<T: Hash>(thing: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    thing.hash(&mut hasher);
    hasher.finish()
}
