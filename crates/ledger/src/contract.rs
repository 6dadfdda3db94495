//! The promises of every pool backend, as checks that end the test with a sentence when one is broken; and a backend that breaks
//! down in every way.
//!
//! ```no_run
//! # async fn example(subject: netstead_ledger::contract::Subject) {
//! netstead_ledger::contract::pools(&subject).await;
//! # }
//! ```

#![allow(
    clippy::panic,
    clippy::missing_panics_doc,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a promise that is broken ends the test"
)]

mod faulty;

use std::sync::Arc;

use netstead_model::{Address, BackendClaim, BackendErrorKind, BackendObject, GivenBack, PoolBackend, Want};

pub use self::faulty::{Faults, FaultyBackend};

/// A backend to be checked, with a pool of which nothing is held, and in which nothing rests.
#[derive(Debug, Clone)]
pub struct Subject {
    pub backend: Arc<dyn PoolBackend>,
    pub pool: String,
    /// How many addresses it has: 3 to 100.
    pub size: usize,
    /// An address that the pool does not have.
    pub outside: Address,
}

/// Checks all promises. The pool is as before afterwards.
pub async fn pools(subject: &Subject) {
    a_key_has_one_object(subject).await;
    an_exact_address_is_given_or_refused(subject).await;
    a_release_ends_exactly_one_object(subject).await;
    a_full_pool_says_so_and_serves_again(subject).await;
    a_list_has_everything_page_by_page(subject).await;
    a_pool_that_does_not_exist_is_refused(subject).await;
}

impl Subject {
    fn ask(&self, key: &str, want: Want) -> BackendClaim {
        let (pool, key) = (self.pool.clone(), format!("own/lan/{key}"));
        BackendClaim { pool, key, want, length: None, note: "a test".into() }
    }

    async fn claim(&self, key: &str) -> BackendObject {
        self.backend.claim(&self.ask(key, Want::Any)).await.expect("a pool with room gives an address")
    }

    async fn release(&self, object: &BackendObject) {
        let given = self.backend.release(&self.pool, object).await;
        assert_eq!(given, Ok(GivenBack::Done), "an object that exists can be released");
    }
}

async fn a_key_has_one_object(subject: &Subject) {
    let info = subject.backend.describe(&subject.pool).await.expect("a pool is described");
    let sign = subject.backend.changed(&subject.pool).await.expect("a pool has a sign, or none");
    let one = subject.claim("one").await;
    assert_eq!(one.key, "own/lan/one", "an object carries the key it was claimed with");
    let inside = info.ranges.iter().any(|range| range.contains(one.address))
        || info.network.is_some_and(|network| network.contains(one.address));
    assert!(inside, "{} is an address of the described pool", one.address);
    let again = subject.claim("one").await;
    assert_eq!(
        (again.reference, again.address),
        (one.reference.clone(), one.address),
        "a repeat is the same"
    );
    let other = subject.claim("other").await;
    assert_ne!(other.address, one.address, "two keys have two addresses");
    let found = subject.backend.look_up(&subject.pool, &one.key).await.expect("a key can be looked up");
    let found: Vec<_> = found.into_iter().map(|object| (object.reference, object.address)).collect();
    assert_eq!(found, [(one.reference.clone(), one.address)], "a look-up finds the object");
    let nothing = subject.backend.look_up(&subject.pool, "own/lan/nothing").await;
    assert_eq!(nothing, Ok(Vec::new()), "a key without an object has none");
    let after = subject.backend.describe(&subject.pool).await.expect("a pool is described");
    assert_eq!((after.size, after.free), (info.size, info.free - 2), "what is held is not free");
    let changed = subject.backend.changed(&subject.pool).await.expect("a pool has a sign, or none");
    assert!(sign.is_none() || sign != changed, "the sign differs after a change");
    subject.release(&other).await;
    let exchanged = subject.claim("exchanged").await;
    let sign = subject.backend.changed(&subject.pool).await.expect("a pool has a sign, or none");
    assert!(sign.is_none() || sign != changed, "the sign differs when one object took the place of another");
    subject.release(&one).await;
    subject.release(&exchanged).await;
}

async fn an_exact_address_is_given_or_refused(subject: &Subject) {
    let any = subject.claim("one").await;
    subject.release(&any).await;
    let exact = Want::Exact(any.address);
    let taken = subject.backend.claim(&subject.ask("exact", exact)).await.expect("a free address is given");
    assert_eq!(taken.address, any.address, "an exact claim gets the address");
    let refused = subject.backend.claim(&subject.ask("second", exact)).await.map_err(|error| error.kind);
    assert_eq!(refused, Err(BackendErrorKind::Held), "a held address is refused");
    let outside = subject.ask("third", Want::Exact(subject.outside));
    let refused = subject.backend.claim(&outside).await.map_err(|error| error.kind);
    assert_eq!(refused, Err(BackendErrorKind::NotHere), "an address of another pool is refused");
    for key in ["own/lan/second", "own/lan/third"] {
        let found = subject.backend.look_up(&subject.pool, key).await;
        assert_eq!(found, Ok(Vec::new()), "a refused claim leaves no object");
    }
    subject.release(&taken).await;
}

async fn a_release_ends_exactly_one_object(subject: &Subject) {
    let first = subject.claim("one").await;
    subject.release(&first).await;
    let repeated = subject.backend.release(&subject.pool, &first).await;
    assert_eq!(repeated, Ok(GivenBack::AlreadyGone), "a second release touches nothing");
    let second = subject.claim("one").await;
    let late = subject.backend.release(&subject.pool, &first).await;
    assert_eq!(
        late,
        Ok(GivenBack::AlreadyGone),
        "a late release does not end a later object of the same key"
    );
    let found = subject.backend.look_up(&subject.pool, &second.key).await.map(|found| found.len());
    assert_eq!(found, Ok(1), "the later object is there");
    subject.release(&second).await;
}

async fn a_full_pool_says_so_and_serves_again(subject: &Subject) {
    let mut held = Vec::new();
    for number in 0..subject.size {
        held.push(subject.claim(&format!("key-{number}")).await);
    }
    let full = subject.backend.claim(&subject.ask("late", Want::Any)).await.map_err(|error| error.kind);
    assert_eq!(full, Err(BackendErrorKind::Exhausted), "a full pool says so");
    let repeated = subject.claim("key-0").await;
    assert_eq!(repeated.address, held[0].address, "a full pool still knows its keys");
    subject.release(&held[1]).await;
    let late = subject.claim("late").await;
    assert_eq!(late.address, held[1].address, "what was released is given again");
    held[1] = late;
    for object in &held {
        subject.release(object).await;
    }
}

async fn a_list_has_everything_page_by_page(subject: &Subject) {
    let mut held = Vec::new();
    for number in 0..subject.size {
        held.push(subject.claim(&format!("key-{number}")).await);
    }
    let list = async |prefix: &str| {
        let (mut keys, mut after) = (Vec::new(), None);
        loop {
            let page = subject.backend.list(&subject.pool, prefix, after.as_deref()).await;
            let page = page.expect("a pool can be listed");
            keys.extend(page.objects.into_iter().map(|object| object.key));
            after = page.next;
            if after.is_none() {
                keys.sort();
                return keys;
            }
        }
    };
    let mut keys: Vec<_> = held.iter().map(|object| object.key.clone()).collect();
    keys.sort();
    assert_eq!(list("own/lan/").await, keys, "a list has every object of the prefix once");
    assert_eq!(list("own/lan/key-0").await, ["own/lan/key-0"], "and no other");
    for object in &held {
        subject.release(object).await;
    }
}

async fn a_pool_that_does_not_exist_is_refused(subject: &Subject) {
    let ask = BackendClaim { pool: "nowhere".into(), ..subject.ask("one", Want::Any) };
    let claimed = subject.backend.claim(&ask).await.map_err(|error| error.kind);
    assert_eq!(claimed, Err(BackendErrorKind::NoSuchPool), "no address of a pool that does not exist");
    let described = subject.backend.describe("nowhere").await.map_err(|error| error.kind);
    assert_eq!(described, Err(BackendErrorKind::NoSuchPool), "no description of it either");
}
