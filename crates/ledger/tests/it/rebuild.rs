//! A Book is a function of what the store holds: built anew from the stored bytes it does what the living one does.

use std::{collections::BTreeMap, sync::Arc};

use netstead_ledger::{
    AddressFilter, AddressState, AddressView, Book, Caller, ClaimFilter, ClaimView, Command, Moment, Refusal,
    Reply,
    book::Batch,
    record::{Head, Record},
};
use netstead_model::{ClaimRequest, Ident, Key, Observation, PoolStatus, Reservation, Waiting, Want};
use netstead_store::{Commit, MAX_WRITES, Store, Write};
use proptest::{prelude::*, test_runner::TestCaseError};
use tokio::runtime::Runtime;

use crate::{
    properties::{LEDGER, wall},
    store_check::problems_of,
};

/// The content of the store, and the Book of a follower that reads it commit by commit.
#[derive(Default)]
pub(crate) struct Stored {
    keys: BTreeMap<Vec<u8>, Vec<u8>>,
    follower: Option<Book>,
    /// Where it stands as well, if this is about a store.
    store: Option<BlockingStore>,
}

/// A store, and the means to wait for it.
pub(crate) struct BlockingStore {
    pub runtime: Arc<Runtime>,
    pub store: Arc<dyn Store>,
}

impl BlockingStore {
    fn commit_all(&self, writes: BTreeMap<Vec<u8>, Write>) {
        let writes: Vec<Write> = writes.into_values().collect();
        for chunk in writes.chunks(MAX_WRITES) {
            let commit = Commit { conditions: Vec::new(), writes: chunk.to_vec() };
            self.runtime.block_on(self.store.commit(commit)).unwrap();
        }
    }

    fn everything(&self) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let all = self.runtime.block_on(async {
            let snapshot = self.store.snapshot().await.unwrap();
            snapshot.range(b"", None, usize::MAX).await.unwrap()
        });
        all.into_iter().map(|entry| (entry.key, entry.value)).collect()
    }
}

/// All that can be seen of a Book, and what it would do next.
#[derive(Debug, PartialEq)]
pub(crate) struct Face {
    pools: Vec<PoolStatus>,
    claims: Vec<ClaimView>,
    addresses: Vec<AddressView>,
    waiting: Vec<Waiting>,
    reservations: Vec<Reservation>,
    observations: Vec<Observation>,
    seq: u64,
    due: Option<u64>,
    next: Vec<(Ident, Result<Reply, Refusal>)>,
}

/// Without `leases`, how long claims still live is left out: a new leader gives them their full time.
pub(crate) fn face(book: &Book, leases: bool) -> Face {
    let mut claims = book.claims(&ClaimFilter::default(), None, usize::MAX);
    let mut addresses = book.addresses(&AddressFilter::default(), None, usize::MAX);
    if !leases {
        let shown = addresses.iter_mut().filter_map(|view| match &mut view.state {
            AddressState::Held(held) => Some(held),
            _ => None,
        });
        for view in claims.iter_mut().chain(shown) {
            view.left = None;
        }
    }
    let mut observations: Vec<_> = book.observations().map(|seen| (**seen).clone()).collect();
    observations.sort_by_key(|seen| (seen.vrf.clone(), seen.address, seen.source.clone()));
    Face {
        pools: book.pools().collect(),
        claims,
        addresses,
        waiting: book.waitings().map(|waiting| (**waiting).clone()).collect(),
        reservations: book.reservations().map(|reserved| (**reserved).clone()).collect(),
        observations,
        seq: book.seq(),
        due: book.next_due().filter(|_| leases),
        next: probes(book),
    }
}

/// Addresses that old and new keys would get from each pool, of each length.
fn probes(book: &Book) -> Vec<(Ident, Result<Reply, Refusal>)> {
    let moment = Moment { now: book.now(), wall: wall(), random: 7 };
    let mut answers = Vec::new();
    for status in book.pools() {
        let name = status.pool.name().clone();
        let lengths = match status.pool.spec.kind().unwrap().bits() {
            _ if status.pool.spec.family != netstead_model::Family::Prefix => vec![None],
            128 => vec![None, Some(62), Some(64)],
            _ => vec![None, Some(27), Some(28), Some(30)],
        };
        for key in ["new", "k0", "k1", "k2", "k3"] {
            for length in &lengths {
                let key: Key = key.parse().unwrap();
                let mut request = ClaimRequest::any(name.clone(), key);
                request.length = *length;
                let mut copy = book.clone();
                let mut batch = Batch::default();
                let answer =
                    copy.run(&mut batch, moment, &Caller::new("ann"), &Command::Claim(request.into()));
                answers.push((name.clone(), answer));
            }
        }
        // Whatever is taken by force: nothing but a holder stops it.
        for reply in
            book.addresses(&AddressFilter { pool: Some(name.clone()), ..AddressFilter::default() }, None, 99)
        {
            let mut request = ClaimRequest::any(name.clone(), "forced".parse().unwrap());
            (request.want, request.force) = (Want::Exact(reply.address), true);
            let mut copy = book.clone();
            let command = Command::Claim(request.into());
            let answer = copy.run(&mut Batch::default(), moment, &Caller::new("zoe"), &command);
            answers.push((name.clone(), answer));
        }
    }
    answers
}

impl Stored {
    pub fn on(place: BlockingStore) -> Self {
        Self { store: Some(place), ..Self::default() }
    }

    /// `batch` is committed, and brought the Book to where it is.
    pub fn commit_batch(&mut self, batch: &Batch, book: &Book) {
        // A commit names each key once, and followers hear of its writes in any order.
        let mut writes: BTreeMap<Vec<u8>, Write> = BTreeMap::new();
        for write in batch.records().iter().filter_map(Record::write) {
            writes.insert(write.key().clone(), write);
        }
        if let Some(place) = &self.store {
            place.commit_all(writes.clone());
        }
        let mut records = Vec::new();
        for write in writes.into_values().rev() {
            match write {
                Write::Put(key, value) => {
                    records.extend(Record::decode(&key, &value).unwrap());
                    self.keys.insert(key, value);
                }
                Write::Delete(key) => {
                    records.extend(Record::removed(&key).unwrap());
                    self.keys.remove(&key);
                }
            }
        }
        let head = head_of(book);
        self.follower.get_or_insert_with(|| Book::new(&head)).follow(&head, records);
    }

    fn load(&self, book: &Book) -> Book {
        let mut loaded = Book::new(&head_of(book));
        for prefix in ["ledger/pool/", "ledger/reserved/", "ledger/addr/", "ledger/seen/", "ledger/wait/"] {
            for (key, value) in self.keys.iter().filter(|(key, _)| key.starts_with(prefix.as_bytes())) {
                loaded.absorb(Record::decode(key, value).unwrap().unwrap());
            }
        }
        loaded
    }

    /// Builds a Book out of the bytes and compares it with the living one.
    pub fn check(&self, book: &Book, moment: Moment) -> Result<(), TestCaseError> {
        if let Some(place) = &self.store {
            prop_assert_eq!(place.everything(), self.keys.clone(), "the store holds something else");
        }
        prop_assert_eq!(problems_of(&self.keys, &head_of(book)), "", "the store is not sound");
        let mut loaded = self.load(book);
        prop_assert_eq!(face(&loaded, false), face(book, false), "built anew, the Book is another");
        if let Some(mut follower) = self.follower.clone() {
            follower.advance(book.now());
            prop_assert_eq!(face(&follower, false), face(book, false), "who follows has another Book");
            follower.begin_to_lead();
            let mut living = book.clone();
            living.begin_to_lead();
            prop_assert_eq!(face(&follower, true), face(&living, true), "who takes over has another Book");
        }
        let mut living = book.clone();
        let later = Moment { now: moment.now + 45_000, ..moment };
        // Sightings missed and callers heard are not stored, nor are leases: only rests are looked at here.
        loaded.advance(later.now);
        living.advance(later.now);
        prop_assert_eq!(face(&loaded, false), face(&living, false), "later, the Book is another");
        Ok(())
    }
}

fn head_of(book: &Book) -> Head {
    let (seq, time, paused) = (book.seq(), book.now(), book.paused());
    Head { ledger: LEDGER, seq, epoch: 1, batch: 1, time, paused, oldest: 0, calendar: None }
}
