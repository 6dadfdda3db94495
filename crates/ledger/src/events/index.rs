//! The index of events: where events are, by what they concern.
//!
//! It is derived from the stored events, built in the background after a start, and takes about 25 bytes per event. It knows
//! only hashes: what it points at is read from the store and compared.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Arc, Mutex, PoisonError},
};

use jiff::Timestamp;
use netstead_model::{Address, Event, Ident, Key};
use netstead_store::{Damage, Snapshot, StoreError, each_readable};
use tokio::sync::watch;

use super::{
    postings::{Posting, Postings},
    unread::UnreadEvents,
};
use crate::record::{self, EVENT, EventGroup, event_seq};

#[derive(Debug)]
pub(crate) struct EventIndex {
    inner: Mutex<Inner>,
    built: watch::Sender<Built>,
}

/// How far the building has come.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Built {
    Not,
    /// Every stored event is known, save those that cannot be read.
    But(Arc<UnreadEvents>),
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

    fn low(self) -> u64 {
        let Self([_, high, low]) = self;
        u64::from(high) << 32 | u64::from(low)
    }

    /// Whether it is in the pool with this hash.
    fn is_in(self, pool: u64) -> bool {
        (self.low() ^ pool) & !SEQ_MASK == 0
    }
}

impl Posting for AtAddress {
    fn tag(self) -> u32 {
        let Self([address, ..]) = self;
        address
    }

    fn seq(self) -> u64 {
        self.low() & SEQ_MASK
    }
}

/// 24 bits of a hash and 40 of a sequence number. One that is found for another key's sake is read in vain, no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct AtKey(u64);

impl AtKey {
    fn new(key: &Key, seq: u64) -> Self {
        Self(hash(key) & !SEQ_MASK | seq & SEQ_MASK)
    }
}

impl Posting for AtKey {
    fn tag(self) -> u32 {
        u32::try_from(self.0 >> SEQ_BITS).unwrap_or_default()
    }

    fn seq(self) -> u64 {
        self.0 & SEQ_MASK
    }
}

impl EventIndex {
    /// Without any event; those before `oldest` were trimmed.
    pub fn new(oldest: u64) -> Self {
        Self {
            inner: Mutex::new(Inner { oldest, ..Inner::default() }),
            built: watch::Sender::new(Built::Not),
        }
    }

    /// Forgets all events; those before `oldest` were trimmed.
    pub fn begin(&self, oldest: u64) -> Building {
        let mut inner = self.lock();
        *inner = Inner { oldest, begun: inner.begun + 1, ..Inner::default() };
        self.built.send_replace(Built::Not);
        Building(inner.begun)
    }

    /// Reads the events of `snapshot` up to number `last`, none of which is added beside. What cannot be read is left out,
    /// remembered here and returned.
    pub async fn build(
        &self,
        Building(number): Building,
        snapshot: &dyn Snapshot,
        last: u64,
    ) -> Result<Option<Damage>, StoreError> {
        let (mut stored, mut unread) = (Inner::default(), UnreadEvents::default());
        let (mut known, mut open, mut malformed) = (0, None, None);
        let gap = each_readable(snapshot, EVENT.as_bytes(), |entry| {
            let first = event_seq(&entry.key);
            if let Some(begin) = open.take() {
                unread.add(begin, first);
            }
            match record::decode::<EventGroup>(&entry.key, &entry.value) {
                Ok(group) => {
                    group.events.iter().filter(|event| event.seq <= last).for_each(|event| stored.add(event));
                    known = group.events.last().map_or(known, |event| event.seq);
                }
                Err(error) => {
                    open = Some(first.unwrap_or(known));
                    malformed.get_or_insert(Damage::new(&entry.key, error.to_string()));
                }
            }
            Ok::<(), StoreError>(())
        });
        let gap = gap.await?;
        if let Some(begin) = open {
            unread.add(begin, None);
        }
        if let Some(gap) = &gap {
            let begin = first_unread(snapshot, gap.after.as_deref()).await?;
            unread.add(begin, gap.before.as_deref().and_then(event_seq));
        }
        let damage = gap.map(|gap| gap.damage()).or(malformed);
        unread.reason = damage.as_ref().map(|damage| damage.reason.clone()).unwrap_or_default();
        let mut inner = self.lock();
        if inner.begun == number {
            inner.merge_stored(stored);
            self.built.send_replace(Built::But(Arc::new(unread)));
        }
        Ok(damage)
    }

    /// Whether `building` is the newest one.
    pub fn is_current(&self, Building(number): Building) -> bool {
        self.lock().begun == number
    }

    /// Whether every stored event is known here.
    pub fn is_built(&self) -> bool {
        matches!(&*self.built.borrow(), Built::But(unread) if unread.is_empty())
    }

    /// Whether all that can be read is known here.
    pub fn is_ready(&self) -> bool {
        *self.built.borrow() != Built::Not
    }

    /// Waits until all that can be read is known, and says what cannot.
    pub async fn ready(&self) -> Arc<UnreadEvents> {
        let mut built = self.built.subscribe();
        let ready = built.wait_for(|built| *built != Built::Not).await;
        // The sender lives as long as this index: waiting cannot fail.
        match ready.as_deref() {
            Ok(Built::But(unread)) => Arc::clone(unread),
            _ => Arc::default(),
        }
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
        let Some((address, pool)) = address_hashes(event) else { return false };
        let inner = self.lock();
        let newest = inner.addresses.of(address).rfind(|entry| !lives || entry.is_in(pool));
        newest.map(AtAddress::seq) == Some(event.seq)
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
        self.lock().addresses.of(address_hash(address)).map(AtAddress::seq).collect()
    }

    /// Numbers of events that may concern this key, lowest first.
    pub fn of_key(&self, key: &Key) -> Vec<u64> {
        self.lock().keys.of(AtKey::new(key, 0).tag()).map(AtKey::seq).collect()
    }

    /// The first event that can be as late as `since`.
    pub fn first_since(&self, since: Timestamp) -> Option<u64> {
        let minute = since.as_second().div_euclid(60);
        self.lock().minutes.range(minute..).map(|(_, seq)| *seq).min()
    }
}

impl Inner {
    fn add(&mut self, event: &Event) {
        if let Some((address, pool)) = address_hashes(event) {
            self.outlived.extend(self.addresses.before(self.oldest, address).map(AtAddress::seq));
            self.addresses.insert(AtAddress::new(address, pool, event.seq));
        }
        for key in event.keys() {
            self.keys.insert(AtKey::new(key, event.seq));
        }
        let first = self.minutes.entry(minute_of(event)).or_insert(event.seq);
        *first = (*first).min(event.seq);
        self.count += 1;
    }

    fn remove(&mut self, event: &Event) {
        if let Some((address, pool)) = address_hashes(event) {
            self.addresses.remove(AtAddress::new(address, pool, event.seq));
        }
        for key in event.keys() {
            self.keys.remove(AtKey::new(key, event.seq));
        }
        self.count = self.count.saturating_sub(1);
    }

    /// Takes in what was stored before the first event that was added here.
    fn merge_stored(&mut self, stored: Self) {
        self.addresses.follow(stored.addresses);
        self.keys.follow(stored.keys);
        self.count += stored.count;
        for (minute, seq) in stored.minutes {
            let first = self.minutes.entry(minute).or_insert(seq);
            *first = (*first).min(seq);
        }
        // Of each address, what was spared although there is more: whether it must stay is looked at later.
        self.outlived.extend(self.addresses.in_company_before(self.oldest).map(AtAddress::seq));
    }
}

/// The number after the last event of the group under `after`.
async fn first_unread(snapshot: &dyn Snapshot, after: Option<&[u8]>) -> Result<u64, StoreError> {
    let Some(key) = after else { return Ok(0) };
    let group = snapshot.get(key).await?;
    let group = group.and_then(|entry| record::decode::<EventGroup>(&entry.key, &entry.value).ok());
    let last = group.and_then(|group| group.events.last().map(|event| event.seq)).or(event_seq(key));
    Ok(last.map_or(0, |last| last.saturating_add(1)))
}

/// Hashes of the address an event concerns, and of it together with its pool.
fn address_hashes(event: &Event) -> Option<(u32, u64)> {
    let claim = event.claim()?;
    let pool: &Ident = &claim.pool;
    Some((address_hash(claim.address), hash(&(pool, claim.address))))
}

fn address_hash(address: Address) -> u32 {
    u32::try_from(hash(&address) >> 32).unwrap_or_default()
}

fn minute_of(event: &Event) -> i64 {
    event.at.as_second().div_euclid(60)
}

fn hash<T: Hash>(thing: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    thing.hash(&mut hasher);
    hasher.finish()
}
