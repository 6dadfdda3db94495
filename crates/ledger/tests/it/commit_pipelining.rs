//! While one commit is on its way the next group is decided: no caller hears of it too early, and nothing is left of what
//! it was built on when that fails.

use std::{sync::Arc, time::Duration};

use netstead_ledger::{Command, Freshness, Options, check};
use netstead_model::Span;
use netstead_store::{FaultyStore, faults::Fault};
use tokio::time::sleep;

use crate::{
    determinism::TokioClock,
    store_under_test::{self, is_timeless, let_time_pass},
    support::{House, any, claim, key, restless},
};

/// The time of a commit here.
const COMMIT: Duration = Duration::from_millis(150);
/// Enough for what is asked to be decided, and less than a commit takes.
const MEANWHILE: Duration = Duration::from_millis(20);

/// The commit with this number is on its way.
async fn under_way(store: &FaultyStore, number: u64) {
    while store.commits() <= number {
        sleep(Duration::from_millis(1)).await;
    }
}

/// A ledger with one pool on a slow store whose next commits meet these faults.
async fn slow(range: &str, faults: impl IntoIterator<Item = Fault>) -> (House, Arc<FaultyStore>) {
    let store = store_under_test::faulty().await;
    let house = settled(store.clone(), range).await;
    store.slow_down(COMMIT);
    store.script(faults);
    (house, store)
}

/// A ledger with the pool `lan` that has nothing else on its mind: the first commit after its index is built trims.
async fn settled(store: Arc<FaultyStore>, range: &str) -> House {
    let house = House::on(store, Options::default()).await;
    house.events().await;
    house.make("lan", range).await;
    house
}

/// Both ask for an address of `lan`, the second one while the commit of the first is on its way.
async fn both(house: &House, store: &FaultyStore) -> (String, String) {
    let number = store.commits();
    let second = async {
        under_way(store, number).await;
        house.say("bob", any("lan", "db")).await
    };
    tokio::join!(house.say("ann", any("lan", "web")), second)
}

/// Holders as a new ledger on the same store, which has no fault, reads them.
async fn stored(house: &House) -> Vec<String> {
    assert_eq!(check::check(&*house.store).await.unwrap().problems, []);
    let fresh = house.successor().await;
    let mut held = Vec::new();
    for key in ["web", "db"] {
        held.extend(fresh.holder("lan", key).await.map(|claim| format!("{} {key}", claim.held())));
    }
    held
}

const NOT_TAKEN: &str = "error: the ledger cannot answer now: the store did not take it";

#[tokio::test(start_paused = true)]
pub(crate) async fn when_a_commit_fails_what_was_decided_on_it_is_decided_anew() {
    let_time_pass();
    for fault in [Fault::Fail, Fault::LoseUnknown] {
        let (house, store) = slow("10.0.0.1-10.0.0.9", [fault]).await;
        let (first, second) = both(&house, &store).await;
        assert!(first.starts_with(NOT_TAKEN), "{fault:?}: {first}");
        assert_eq!(second, "10.0.0.1 for db of bob, new", "{fault:?}");
        assert_eq!(stored(&house).await, ["10.0.0.1 db"], "{fault:?}");
        assert_eq!(house.log().await, ["pool-created", "claimed"], "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
pub(crate) async fn when_a_commit_landed_after_all_what_follows_stands_on_it() {
    let_time_pass();
    let (house, store) = slow("10.0.0.1-10.0.0.9", [Fault::LandUnknown]).await;
    let (first, second) = both(&house, &store).await;
    assert_eq!(
        (first.as_str(), second.as_str()),
        ("10.0.0.1 for web of ann, new", "10.0.0.2 for db of bob, new")
    );
    assert_eq!(stored(&house).await, ["10.0.0.1 web", "10.0.0.2 db"]);
    assert_eq!(house.log().await, ["pool-created", "claimed", "claimed"]);
}

#[tokio::test(start_paused = true)]
pub(crate) async fn a_refusal_because_of_what_never_came_to_be_is_never_heard() {
    let_time_pass();
    let (house, store) = slow("10.0.0.1", [Fault::LoseUnknown]).await;
    let (first, second) = both(&house, &store).await;
    assert!(first.starts_with(NOT_TAKEN), "{first}");
    assert_eq!(second, "10.0.0.1 for db of bob, new");
    let (house, store) = slow("10.0.0.1", []).await;
    let (first, second) = both(&house, &store).await;
    assert_eq!(first, "10.0.0.1 for web of ann, new");
    assert_eq!(second, "refused: pool `lan` has no free address, and none is resting");
}

#[tokio::test(start_paused = true)]
pub(crate) async fn the_second_commit_may_fail_as_well() {
    let_time_pass();
    for fault in [Fault::Fail, Fault::LoseUnknown, Fault::LandUnknown] {
        let (house, store) = slow("10.0.0.1-10.0.0.9", [Fault::Pass, fault]).await;
        let (first, second) = both(&house, &store).await;
        assert_eq!(first, "10.0.0.1 for web of ann, new", "{fault:?}");
        if fault == Fault::LandUnknown {
            assert_eq!(second, "10.0.0.2 for db of bob, new");
            assert_eq!(stored(&house).await, ["10.0.0.1 web", "10.0.0.2 db"]);
        } else {
            assert!(second.starts_with(NOT_TAKEN), "{fault:?}: {second}");
            assert_eq!(stored(&house).await, ["10.0.0.1 web"], "{fault:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
pub(crate) async fn each_answer_comes_when_its_own_commit_is_durable_and_reads_wait_for_all() {
    let_time_pass();
    let (house, store) = slow("10.0.0.1-10.0.0.9", []).await;
    let before = store.commits();
    let clock = TokioClock::shared();
    let say = async |command| {
        let answer = house.say("ann", command).await;
        (answer, clock.monotonic())
    };
    let meanwhile = async |command| {
        under_way(&store, before).await;
        say(command).await
    };
    let read = async {
        under_way(&store, before).await;
        sleep(MEANWHILE).await;
        let usage = house.ledger.read(Freshness::Stale, |book| book.pool(&"lan".parse().unwrap())).await;
        (usage.unwrap().value.unwrap().usage.held, clock.monotonic())
    };
    let (first, second, repeat, read) =
        tokio::join!(say(any("lan", "web")), meanwhile(any("lan", "db")), meanwhile(any("lan", "web")), read);
    assert_eq!(first.0, "10.0.0.1 for web of ann, new");
    assert_eq!(second.0, "10.0.0.2 for db of ann, new");
    assert_eq!(repeat.0, "10.0.0.1 for web of ann, again");
    assert_eq!(read.0, 2);
    let times = [first.1, second.1, repeat.1, read.1];
    let earliest = [COMMIT, COMMIT * 2, COMMIT * 2, COMMIT * 2];
    if is_timeless() {
        assert_eq!(times, earliest);
    } else {
        assert!(times.iter().zip(&earliest).all(|(time, earliest)| time >= earliest), "{times:?}");
    }
    assert_eq!(store.commits() - before, 2);
}

#[tokio::test(start_paused = true)]
pub(crate) async fn what_writes_nothing_waits_for_the_commit_before_it_and_needs_none_of_its_own() {
    let_time_pass();
    let (house, store) = slow("10.0.0.1-10.0.0.9", []).await;
    house.claim("bob", "lan", "db").await;
    let before = store.commits();
    let (first, second) = both(&house, &store).await;
    assert_eq!(first, "10.0.0.2 for web of ann, new");
    assert_eq!(second, "10.0.0.1 for db of bob, again");
    assert_eq!(store.commits() - before, 1);
}

#[tokio::test(start_paused = true)]
pub(crate) async fn a_leader_that_was_deposed_meanwhile_has_done_neither() {
    let_time_pass();
    let inner = store_under_test::store().await;
    let store = Arc::new(FaultyStore::new(inner.clone()));
    let house = settled(store.clone(), "10.0.0.1-10.0.0.9").await;
    // So slow that taking over is faster, on any store.
    store.slow_down(COMMIT * 20);
    let number = store.commits();
    let take_over = async {
        under_way(&store, number).await;
        sleep(MEANWHILE).await;
        House::on(inner.clone(), Options::default()).await
    };
    let ((first, second), successor) = tokio::join!(both(&house, &store), take_over);
    let deposed = "error: another Netstead leads this store now; nothing was changed";
    assert_eq!((first.as_str(), second.as_str()), (deposed, deposed));
    assert_eq!(stored(&successor).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
pub(crate) async fn a_ledger_that_closes_answers_what_it_has_decided() {
    let_time_pass();
    let (house, store) = slow("10.0.0.1-10.0.0.9", []).await;
    let number = store.commits();
    let close = async {
        under_way(&store, number).await;
        sleep(MEANWHILE).await;
        house.ledger.close().await;
        house.say("cid", any("lan", "late")).await
    };
    let ((first, second), late) = tokio::join!(both(&house, &store), close);
    assert_eq!(
        (first.as_str(), second.as_str()),
        ("10.0.0.1 for web of ann, new", "10.0.0.2 for db of bob, new")
    );
    assert_eq!(late, "error: the ledger cannot answer now: it is shutting down; nothing was changed");
    assert_eq!(stored(&house).await, ["10.0.0.1 web", "10.0.0.2 db"]);
}

#[tokio::test(start_paused = true)]
pub(crate) async fn who_waits_in_the_queue_hears_only_what_is_durable() {
    let_time_pass();
    let (house, store) = slow("10.0.0.1-10.0.0.9", []).await;
    house.make_so("tight", "10.1.0.1", restless).await;
    house.claim("ann", "tight", "web").await;
    let waits = claim("tight", "db", |request| request.wait = Some(Span::from_secs(30)));
    let trouble = async {
        while house.pool("tight").await.usage.waiting == 0 {
            sleep(MEANWHILE).await;
        }
        // Bob's place is given up by a commit that fails, and that comes while another is on its way.
        store.script([Fault::Pass, Fault::Fail]);
        let number = store.commits();
        let give_up = async {
            under_way(&store, number).await;
            let (pool, key) = ("tight".parse().unwrap(), key("db"));
            house.say("bob", Command::Abandon { pool, key }).await
        };
        let (other, given_up) = tokio::join!(house.say("cid", any("lan", "other")), give_up);
        assert_eq!(other, "10.0.0.1 for other of cid, new");
        assert!(given_up.starts_with(NOT_TAKEN), "{given_up}");
        house.release("ann", "tight", "web").await;
    };
    let (served, ()) = tokio::join!(house.say("bob", waits), trouble);
    assert_eq!(served, "10.1.0.1 for db of bob, new");
}
