//! While one commit is on its way the next group is decided: nobody hears of it too early, and nothing is left of what
//! it was built on when that fails.

use std::{sync::Arc, time::Duration};

use netstead_ledger::{Command, Freshness, Options, check};
use netstead_model::Span;
use netstead_store::{FaultyStore, MemoryStore, faults::Fault};
use tokio::time::sleep;

use crate::{
    chance::TokioClock,
    support::{House, any, claim, key, restless},
};

/// What a commit takes here.
const COMMIT: Duration = Duration::from_millis(50);
/// When the second one asks: while the commit of the first is on its way.
const MEANWHILE: Duration = Duration::from_millis(10);

/// A ledger with one pool on a slow store whose next commits meet these faults.
async fn slow(range: &str, faults: impl IntoIterator<Item = Fault>) -> (House, Arc<FaultyStore>) {
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())));
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

/// Both ask for an address of `lan`, the second one a moment later.
async fn both(house: &House) -> (String, String) {
    let second = async {
        sleep(MEANWHILE).await;
        house.say("bob", any("lan", "db")).await
    };
    tokio::join!(house.say("ann", any("lan", "web")), second)
}

/// Who holds what for a ledger that begins anew on the same store, which has no fault.
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
async fn when_a_commit_fails_what_was_decided_on_it_is_decided_anew() {
    for fault in [Fault::Fail, Fault::LoseUnknown] {
        let (house, _) = slow("10.0.0.1-10.0.0.9", [fault]).await;
        let (first, second) = both(&house).await;
        assert!(first.starts_with(NOT_TAKEN), "{fault:?}: {first}");
        assert_eq!(second, "10.0.0.1 for db of bob, new", "{fault:?}");
        assert_eq!(stored(&house).await, ["10.0.0.1 db"], "{fault:?}");
        assert_eq!(house.log().await, ["pool-created", "claimed"], "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn when_a_commit_landed_after_all_what_follows_stands_on_it() {
    let (house, _) = slow("10.0.0.1-10.0.0.9", [Fault::LandUnknown]).await;
    let (first, second) = both(&house).await;
    assert_eq!(
        (first.as_str(), second.as_str()),
        ("10.0.0.1 for web of ann, new", "10.0.0.2 for db of bob, new")
    );
    assert_eq!(stored(&house).await, ["10.0.0.1 web", "10.0.0.2 db"]);
    assert_eq!(house.log().await, ["pool-created", "claimed", "claimed"]);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_because_of_what_never_came_to_be_is_never_heard() {
    let (house, _) = slow("10.0.0.1", [Fault::LoseUnknown]).await;
    let (first, second) = both(&house).await;
    assert!(first.starts_with(NOT_TAKEN), "{first}");
    assert_eq!(second, "10.0.0.1 for db of bob, new");
    let (house, _) = slow("10.0.0.1", []).await;
    let (first, second) = both(&house).await;
    assert_eq!(first, "10.0.0.1 for web of ann, new");
    assert_eq!(second, "refused: pool `lan` has no free address, and none is resting");
}

#[tokio::test(start_paused = true)]
async fn the_second_commit_may_fail_as_well() {
    for fault in [Fault::Fail, Fault::LoseUnknown, Fault::LandUnknown] {
        let (house, _) = slow("10.0.0.1-10.0.0.9", [Fault::Pass, fault]).await;
        let (first, second) = both(&house).await;
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
async fn each_answer_comes_when_its_own_commit_is_durable_and_reads_wait_for_all() {
    let (house, store) = slow("10.0.0.1-10.0.0.9", []).await;
    let before = store.commits();
    let clock = TokioClock::shared();
    let after = |wait: Duration, command| {
        let (house, clock) = (&house, &clock);
        async move {
            sleep(wait).await;
            let answer = house.say("ann", command).await;
            (answer, clock.monotonic())
        }
    };
    let read = async {
        sleep(MEANWHILE * 2).await;
        let usage = house.ledger.read(Freshness::Stale, |book| book.pool(&"lan".parse().unwrap())).await;
        (usage.unwrap().value.unwrap().usage.held, clock.monotonic())
    };
    let (first, second, repeat, read) = tokio::join!(
        after(Duration::ZERO, any("lan", "web")),
        after(MEANWHILE, any("lan", "db")),
        after(MEANWHILE, any("lan", "web")),
        read
    );
    assert_eq!(first, ("10.0.0.1 for web of ann, new".into(), COMMIT));
    assert_eq!(second, ("10.0.0.2 for db of ann, new".into(), COMMIT * 2));
    assert_eq!(repeat, ("10.0.0.1 for web of ann, again".into(), COMMIT * 2));
    assert_eq!(read, (2, COMMIT * 2));
    assert_eq!(store.commits() - before, 2);
}

#[tokio::test(start_paused = true)]
async fn what_writes_nothing_waits_for_the_commit_before_it_and_needs_none_of_its_own() {
    let (house, store) = slow("10.0.0.1-10.0.0.9", []).await;
    house.claim("bob", "lan", "db").await;
    let before = store.commits();
    let (first, second) = both(&house).await;
    assert_eq!(first, "10.0.0.2 for web of ann, new");
    assert_eq!(second, "10.0.0.1 for db of bob, again");
    assert_eq!(store.commits() - before, 1);
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_was_deposed_meanwhile_has_done_neither() {
    let inner = Arc::new(MemoryStore::new());
    let store = Arc::new(FaultyStore::new(inner.clone()));
    let house = settled(store.clone(), "10.0.0.1-10.0.0.9").await;
    store.slow_down(COMMIT);
    let take_over = async {
        sleep(MEANWHILE * 2).await;
        House::on(inner.clone(), Options::default()).await
    };
    let ((first, second), successor) = tokio::join!(both(&house), take_over);
    let deposed = "error: another Netstead leads this store now; nothing was changed";
    assert_eq!((first.as_str(), second.as_str()), (deposed, deposed));
    assert_eq!(stored(&successor).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_ledger_that_closes_answers_what_it_has_decided() {
    let (house, _) = slow("10.0.0.1-10.0.0.9", []).await;
    let close = async {
        sleep(MEANWHILE * 2).await;
        house.ledger.close().await;
        house.say("cid", any("lan", "late")).await
    };
    let ((first, second), late) = tokio::join!(both(&house), close);
    assert_eq!(
        (first.as_str(), second.as_str()),
        ("10.0.0.1 for web of ann, new", "10.0.0.2 for db of bob, new")
    );
    assert_eq!(late, "error: the ledger cannot answer now: it is shutting down; nothing was changed");
    assert_eq!(stored(&house).await, ["10.0.0.1 web", "10.0.0.2 db"]);
}

#[tokio::test(start_paused = true)]
async fn who_waits_in_the_queue_hears_only_what_is_durable() {
    let (house, store) = slow("10.0.0.1-10.0.0.9", []).await;
    house.make_so("tight", "10.1.0.1", restless).await;
    house.claim("ann", "tight", "web").await;
    let waits = claim("tight", "db", |request| request.wait = Some(Span::from_secs(30)));
    let trouble = async {
        sleep(COMMIT * 3).await;
        // Bob's place is given up by a commit that fails, and that comes while another is on its way.
        store.script([Fault::Pass, Fault::Fail]);
        let give_up = async {
            sleep(MEANWHILE).await;
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
