//! Promise 7 and hazard A13: waiting claims are served in turn, under any leader.

use std::{sync::Arc, time::Duration};

use futures::poll;
use insta::assert_snapshot;
use netstead_ledger::{Caller, Command, LedgerError, Reply};
use netstead_model::{ClaimRequest, Labels, PoolChoice, Span, Subject, Waiting};
use netstead_store::Commit;
use tokio::task::JoinHandle;

use crate::support::{House, PATIENCE, any, claim, exact, key, restless, said, target};

/// Asks and waits for up to an hour of the ledger's clock.
fn waits(house: &House, who: &str, pool: &str, key: &str) -> JoinHandle<String> {
    tokio::spawn(asking(house, who, pool, key))
}

/// As [`waits`], and has asked when this returns: whatever is asked next is decided after it.
async fn has_asked(house: &House, who: &str, pool: &str, key: &str) -> JoinHandle<String> {
    let mut asking = Box::pin(asking(house, who, pool, key));
    assert!(poll!(&mut asking).is_pending());
    tokio::spawn(asking)
}

fn asking(house: &House, who: &str, pool: &str, key: &str) -> impl Future<Output = String> + Send + 'static {
    let (ledger, who) = (house.ledger.clone(), who.to_owned());
    let command = claim(pool, key, |request| request.wait = Some(Span::from_secs(3600)));
    async move {
        let answer = ledger.submit(Caller::new(&who), command, PATIENCE).await;
        said(&answer.map(|done| done.reply))
    }
}

async fn until_waiting(house: &House, pool: &str, count: u64) {
    for _ in 0..500 {
        if house.pool(pool).await.usage.waiting == count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    panic!("{count} should wait");
}

/// A pool of one address, held by `holder` of ann.
async fn full() -> House {
    let house = House::new().await;
    house.make_so("one", "10.0.0.1", restless).await;
    house.claim("ann", "one", "holder").await;
    house
}

#[tokio::test]
pub(crate) async fn whoever_came_first_is_served_first() {
    let house = full().await;
    let first = waits(&house, "bob", "one", "first");
    until_waiting(&house, "one", 1).await;
    let second = waits(&house, "cid", "one", "second");
    until_waiting(&house, "one", 2).await;
    house.release("ann", "one", "holder").await;
    assert_eq!(first.await.unwrap(), "10.0.0.1 for first of bob, new");
    // Who does not wait does not get in between.
    house.release("bob", "one", "first").await;
    assert_snapshot!(house.say("dan", any("one", "quick")).await, @"refused: pool `one` has no free address, and none is resting");
    assert_eq!(second.await.unwrap(), "10.0.0.1 for second of cid, new");
    assert_eq!(house.pool("one").await.usage.waiting, 0);
}

#[tokio::test]
pub(crate) async fn the_end_of_a_rest_wakes_the_queue() {
    let house = House::new().await;
    house.make("one", "10.0.0.1").await;
    house.claim("ann", "one", "holder").await;
    house.release("ann", "one", "holder").await;
    let waiter = waits(&house, "bob", "one", "web");
    until_waiting(&house, "one", 1).await;
    house.pass(59).await;
    assert!(!waiter.is_finished());
    // Its old owner and key come ahead of the queue.
    assert_eq!(house.claim("ann", "one", "holder").await, "10.0.0.1");
    house.release("ann", "one", "holder").await;
    house.pass(60).await;
    assert_eq!(waiter.await.unwrap(), "10.0.0.1 for web of bob, new");
}

#[tokio::test]
pub(crate) async fn a_place_in_the_queue_survives_a_new_leader() {
    let house = full().await;
    let old: Vec<_> = ["first", "second", "third"].map(|name| (name, "bob")).into();
    for (count, (name, who)) in old.iter().enumerate() {
        drop(waits(&house, who, "one", name));
        until_waiting(&house, "one", count as u64 + 1).await;
    }
    let house = house.restart().await;
    assert_eq!(house.pool("one").await.usage.waiting, 3);
    // They ask again in another order, and keep their places.
    let third = has_asked(&house, "bob", "one", "third").await;
    let second = has_asked(&house, "bob", "one", "second").await;
    let first = has_asked(&house, "bob", "one", "first").await;
    assert!(house.say("dan", any("one", "quick")).await.starts_with("refused"));
    house.pass(29).await;
    house.pass(29).await;
    house.release("ann", "one", "holder").await;
    assert_eq!(first.await.unwrap(), "10.0.0.1 for first of bob, new");
    house.release("bob", "one", "first").await;
    assert_eq!(second.await.unwrap(), "10.0.0.1 for second of bob, new");
    house.release("bob", "one", "second").await;
    assert_eq!(third.await.unwrap(), "10.0.0.1 for third of bob, new");
}

#[tokio::test]
pub(crate) async fn whose_caller_went_away_leaves_the_queue_unless_it_keeps_its_place() {
    let house = full().await;
    let gone = claim("one", "gone", |request| request.wait = Some(Span::ZERO));
    let kept = claim("one", "kept", |request| (request.wait, request.keep) = (Some(Span::ZERO), true));
    assert_eq!(house.say("bob", gone).await, "gone waits");
    assert_eq!(house.say("bob", kept.clone()).await, "kept waits");
    house.pass(30).await;
    assert_eq!(house.pool("one").await.usage.waiting, 1);
    house.pass(24 * 3600).await;
    house.release("ann", "one", "holder").await;
    house.pass(0).await;
    assert_eq!(house.say("bob", kept).await, "10.0.0.1 for kept of bob, again");
    let log = house.log().await;
    assert_eq!(log[2..], ["waiting", "waiting", "abandoned", "released", "claimed"]);
}

#[tokio::test]
pub(crate) async fn waiting_ends_with_exhausted_when_its_time_is_over() {
    let house = full().await;
    let waiter = waits(&house, "bob", "one", "web");
    until_waiting(&house, "one", 1).await;
    house.pass(3599).await;
    assert!(!waiter.is_finished());
    house.pass(1).await;
    assert_snapshot!(waiter.await.unwrap(), @"refused: pool `one` has no free address, and none is resting");
    assert_eq!(house.pool("one").await.usage.waiting, 0);
}

/// Waits for an hour, then asks once more without waiting: what this one says of the place is what holds.
async fn asked_again(keeps_at_first: bool, keeps_then: bool) -> (String, u64, Vec<&'static str>) {
    let house = full().await;
    let wait = |seconds, keep| {
        claim("one", "web", |request| (request.wait, request.keep) = (Some(Span::from_secs(seconds)), keep))
    };
    let (ledger, first) = (house.ledger.clone(), wait(3600, keeps_at_first));
    let waiter = tokio::spawn(async move {
        said(&ledger.submit(Caller::new("bob"), first, PATIENCE).await.map(|done| done.reply))
    });
    until_waiting(&house, "one", 1).await;
    assert_eq!(house.say("bob", wait(0, keeps_then)).await, "web waits");
    house.pass(3600).await;
    let log = house.log().await.split_off(2);
    (waiter.await.unwrap(), house.pool("one").await.usage.waiting, log)
}

#[tokio::test]
pub(crate) async fn whoever_asked_last_decides_whether_a_place_outlasts_the_wait() {
    let (heard, waiting, log) = asked_again(false, true).await;
    assert_snapshot!(heard, @"web waits");
    assert_eq!(waiting, 1);
    assert_eq!(log, ["waiting", "updated"]);

    let (heard, waiting, log) = asked_again(true, false).await;
    assert_snapshot!(heard, @"refused: pool `one` has no free address, and none is resting");
    assert_eq!(waiting, 0);
    assert_eq!(log, ["waiting", "updated", "abandoned"]);
}

#[tokio::test]
pub(crate) async fn hundreds_whose_time_is_over_at_once_all_hear_the_same() {
    let house = full().await;
    let waiters: Vec<_> = (0..250).map(|n| waits(&house, "bob", "one", &format!("k{n}"))).collect();
    until_waiting(&house, "one", 250).await;
    house.pass(3600).await;
    for waiter in waiters {
        assert_eq!(waiter.await.unwrap(), "refused: pool `one` has no free address, and none is resting");
    }
    assert_eq!(house.pool("one").await.usage.waiting, 0);
}

#[tokio::test]
pub(crate) async fn whose_place_is_given_up_hears_of_it_at_once() {
    let house = full().await;
    let (pool, name) = ("one".parse().unwrap(), key("web"));
    let abandoned = waits(&house, "bob", "one", "web");
    until_waiting(&house, "one", 1).await;
    assert_eq!(house.ask("bob", Command::Abandon { pool, key: name }).await, Ok(Reply::Gone(true)));
    assert_snapshot!(abandoned.await.unwrap(), @"refused: pool `one` has no free address, and none is resting");

    house.make("two", "10.0.0.2-10.0.0.3").await;
    house.claim("ann", "two", "a").await;
    house.claim("ann", "two", "b").await;
    let elsewhere = waits(&house, "bob", "two", "web");
    until_waiting(&house, "two", 1).await;
    house.release("ann", "two", "b").await;
    let by_force = claim("two", "web", |request| {
        exact("10.0.0.3")(request);
        request.force = true;
    });
    house.ask("bob", by_force).await.unwrap();
    assert_eq!(elsewhere.await.unwrap(), "10.0.0.3 for web of bob, again");

    let closed = waits(&house, "bob", "two", "late");
    until_waiting(&house, "two", 1).await;
    let force = Some("it goes".to_owned());
    let delete = Command::DeletePool { name: "two".parse().unwrap(), force, if_version: None };
    house.ask("admin", delete).await.unwrap();
    assert_snapshot!(closed.await.unwrap(), @"refused: there is no pool `two`");
}

/// The last event: what, by whom, with which request, and for whom.
async fn last_event(house: &House) -> String {
    let event = house.events().await.pop().unwrap();
    let (what, by, request) = (event.what.as_str(), &event.by, event.request.as_deref().unwrap_or("none"));
    let owner = match event.after.as_ref().or(event.before.as_ref()).unwrap() {
        Subject::Claim(claim) => claim.owner.clone(),
        Subject::Waiting(waiting) => waiting.owner.clone(),
        other => panic!("{other:?}"),
    };
    format!("{what} for {owner} by {by} with request {request}")
}

#[tokio::test]
pub(crate) async fn the_event_of_a_claim_that_waited_says_who_asked() {
    let house = full().await;
    let asker = |request: &str| {
        let mut caller = Caller::new("robot").manager();
        (caller.behalf, caller.request) = (Some("bob".into()), Some(request.into()));
        caller
    };
    let wait = |change: fn(&mut ClaimRequest)| {
        claim("one", "web", |request| {
            (request.wait, request.keep) = (Some(Span::ZERO), true);
            change(request);
        })
    };
    house.ledger.submit(asker("r-1"), wait(|_| {}), PATIENCE).await.unwrap();
    assert_snapshot!(last_event(&house).await, @"waiting for bob by robot with request r-1");
    // A mere repeat changes nothing, and does not become the one that asked.
    house.ledger.submit(asker("r-2"), wait(|_| {}), PATIENCE).await.unwrap();
    assert_snapshot!(last_event(&house).await, @"waiting for bob by robot with request r-1");
    let house = house.restart().await;
    house.release("ann", "one", "holder").await;
    house.pass(0).await;
    assert_snapshot!(last_event(&house).await, @"claimed for bob by robot with request r-1");
    assert_eq!(house.holder("one", "web").await.unwrap().owner.as_ref(), "bob");
}

#[tokio::test]
pub(crate) async fn a_place_that_an_older_version_stored_is_served() {
    let house = full().await;
    let wait = claim("one", "web", |request| (request.wait, request.keep) = (Some(Span::ZERO), true));
    house.ask("bob", wait).await.unwrap();
    house.ledger.close().await;
    let waits =
        house.store.snapshot().await.unwrap().range(b"ledger/wait/", None, 9).await.unwrap().remove(0);
    let mut json: serde_json::Value = serde_json::from_slice(&waits.value[1..]).unwrap();
    assert_eq!(json.as_object_mut().unwrap().remove("by"), Some("bob".into()));
    let old = netstead_ledger::record::encode(&json);
    house.store.commit(Commit::new().put(waits.key, old)).await.unwrap();
    let house = house.successor().await;
    house.release("ann", "one", "holder").await;
    house.pass(0).await;
    assert_snapshot!(last_event(&house).await, @"claimed for bob by bob with request none");
}

#[tokio::test]
pub(crate) async fn who_asks_again_while_waiting_changes_what_it_will_get() {
    let house = full().await;
    let wait = |change: fn(&mut ClaimRequest)| {
        claim("one", "web", |request| {
            request.wait = Some(Span::ZERO);
            change(request);
        })
    };
    house.ask("bob", wait(|request| request.description = Some("the first words".into()))).await.unwrap();
    let place = |reply: &Reply| match reply {
        Reply::Queued(waiting) => (waiting.seq, waiting.since),
        other => panic!("{other:?}"),
    };
    let first = house.ask("bob", wait(|_| {})).await.unwrap();
    let labelled = |request: &mut ClaimRequest| {
        request.labels = Some(Labels::new([("tier".to_owned(), "web".to_owned())]).unwrap());
        (request.ttl, request.keep) = (Some(Span::from_secs(90)), true);
    };
    let changed = house.ask("bob", wait(labelled)).await.unwrap();
    assert_eq!(place(&changed), place(&first), "it keeps its place");
    for _ in 0..2 {
        assert_eq!(house.ask("bob", wait(labelled)).await.unwrap(), changed);
    }
    assert_eq!(house.log().await[2..], ["waiting", "updated"]);
    let event = house.events().await.pop().unwrap();
    let (before, after) = (event.before.clone().unwrap(), event.after.clone().unwrap());
    assert_eq!((Reply::Queued(waiting(before)), Reply::Queued(waiting(after))), (first, changed));
    // It keeps its place now, also under a new leader.
    let house = house.restart().await;
    house.pass(3600).await;
    house.release("ann", "one", "holder").await;
    house.pass(0).await;
    let held = house.holder("one", "web").await.unwrap();
    assert_eq!(held.ttl, Some(Span::from_secs(90)));
    assert_eq!(held.details().labels.get("tier"), Some("web"));
    assert_eq!(held.details().description.as_deref(), Some("the first words"), "what is not said stays");
}

fn waiting(subject: Subject) -> Arc<Waiting> {
    match subject {
        Subject::Waiting(waiting) => waiting,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
pub(crate) async fn the_pool_named_first_serves_if_several_can() {
    let house = full().await;
    house.make_so("a-second", "10.0.1.1", restless).await;
    house.claim("ann", "a-second", "holder").await;
    let wait = claim("one", "web", |request| {
        request.from = PoolChoice::Pools(vec!["one".parse().unwrap(), "a-second".parse().unwrap()]);
        (request.wait, request.keep) = (Some(Span::ZERO), true);
    });
    assert_eq!(house.say("bob", wait.clone()).await, "web waits");
    let both = ["one", "a-second"].map(|pool| Command::Release(target(pool, "holder", None)));
    house.ask("ann", Command::Bulk(both.into())).await.unwrap();
    house.pass(0).await;
    assert_eq!(house.say("bob", wait).await, "10.0.0.1 for web of bob, again");
}

#[tokio::test]
pub(crate) async fn who_may_have_no_more_holds_up_nobody() {
    let house = House::new().await;
    house
        .make_so("two", "10.0.0.1-10.0.0.2", |spec| {
            restless(spec);
            spec.max_per_owner = Some(1);
        })
        .await;
    house.claim("ann", "two", "a").await;
    house.claim("bob", "two", "b").await;
    let wait = claim("two", "more", |request| (request.wait, request.keep) = (Some(Span::ZERO), true));
    assert_eq!(house.say("cid", wait).await, "more waits");
    // While it waits, cid gets an address another way, and with it all that the pool allows.
    let give = Command::Move { target: target("two", "a", None), key: key("c"), owner: Some("cid".into()) };
    house.ask("ann", give).await.unwrap();
    house.release("bob", "two", "b").await;
    assert_eq!(house.say("dan", any("two", "d")).await, "10.0.0.2 for d of dan, new");
}

#[tokio::test]
pub(crate) async fn a_ledger_that_closes_tells_those_who_wait() {
    let house = full().await;
    let waiter = waits(&house, "bob", "one", "web");
    until_waiting(&house, "one", 1).await;
    house.ledger.close().await;
    assert_snapshot!(waiter.await.unwrap(), @"error: it is unknown whether this was done (its claim waits in the queue: it is shutting down): ask again with the same key");
    let later = house.ask("bob", any("one", "web")).await;
    assert!(matches!(later, Err(LedgerError::Unavailable { .. })), "{later:?}");
}
