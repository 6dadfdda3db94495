//! The failing schedules of the hazards A1 to A16: each of them broke a plausible ledger once.

use std::{sync::Arc, time::Duration};

use insta::assert_snapshot;
use netstead_ledger::{
    Caller, Command, EventQuery, LedgerError, Options, Reply, Role, backup, record::Record,
};
use netstead_model::{ClaimRequest, Clock as _, Range, Reservation, Span};
use netstead_store::{
    Commit, FaultyStore, Health, Store as _,
    faults::Fault::{Delay, LandUnknown, LoseUnknown},
};

use crate::{
    store_under_test,
    support::{House, PATIENCE, any, claim, exact, key, living, observe, restless, said, spec, target},
};

#[tokio::test]
pub(crate) async fn a1_a_second_leader_fences_the_first() {
    let first = House::with_lan().await;
    first.claim("ann", "lan", "web").await;
    let second = first.successor().await;
    assert_snapshot!(first.say("ann", any("lan", "db")).await, @"error: another Netstead leads this store now; nothing was changed");
    assert_eq!(second.claim("bob", "lan", "db").await, "10.0.3.51");
    assert_eq!(second.claim("ann", "lan", "web").await, "10.0.3.50");
    assert_eq!(*first.ledger.role().borrow(), Role::Following);
}

#[tokio::test]
pub(crate) async fn a1_a_commit_that_landed_unnoticed_is_noticed() {
    let store = store_under_test::faulty().await;
    let house = House::on(store.clone(), Options::default()).await;
    house.make("lan", "10.0.3.50-10.0.3.59").await;
    // The commit lands, its answer is lost; so is that of the commit with which the writer makes sure.
    store.script([LandUnknown, LandUnknown]);
    assert_snapshot!(house.say("ann", any("lan", "web")).await, @"10.0.3.50 for web of ann, new");
    store.script([LoseUnknown, LoseUnknown]);
    assert_snapshot!(house.say("bob", any("lan", "db")).await, @"error: the ledger cannot answer now: the store did not take it (the test lost the answer); nothing was changed");
    assert_eq!(house.claim("cid", "lan", "third").await, "10.0.3.51");
    assert_eq!(house.log().await, ["pool-created", "claimed", "claimed"]);
    let of_web = EventQuery { key: Some(key("web")), ..EventQuery::default() };
    assert_eq!(house.find(of_web).await.len(), 1, "the index knows of it too");
}

#[tokio::test]
pub(crate) async fn a1_what_a_deposed_leader_cannot_learn_is_unknown() {
    let inner = store_under_test::store().await;
    let store = Arc::new(FaultyStore::new(inner.clone()));
    let first = House::on(store.clone(), Options::default()).await;
    first.make("lan", "10.0.3.50-10.0.3.59").await;
    // Its commit lands, and before it can look whether it did, another node takes over.
    let cut_off = store.clone();
    store.decide(move |_, _| {
        cut_off.set_outage(Some("the network is gone"));
        LandUnknown
    });
    let answer = async { first.say("ann", any("lan", "web")).await };
    let successor = async {
        while store.health() == Health::Ready {
            tokio::task::yield_now().await;
        }
        let second = House::on(inner, Options::default()).await;
        store.set_outage(None);
        second
    };
    let (answer, second) = tokio::join!(answer, successor);
    assert_snapshot!(answer, @"error: it is unknown whether this was done (another Netstead leads this store now): ask again with the same key");
    assert_eq!(second.say("ann", any("lan", "web")).await, "10.0.3.50 for web of ann, again");
}

#[tokio::test]
pub(crate) async fn a2_a_repeat_on_a_stale_leader_is_refused() {
    let first = House::new().await;
    first.make_so("lan", "10.0.3.50-10.0.3.59", restless).await;
    first.claim("ann", "lan", "web").await;
    let second = first.successor().await;
    second.release("ann", "lan", "web").await;
    assert_eq!(second.claim("bob", "lan", "db").await, "10.0.3.50");
    // The first has the claim in memory and nothing to write.
    assert_snapshot!(first.say("ann", any("lan", "web")).await, @"error: another Netstead leads this store now; nothing was changed");
    // What it is asked to read it learns from the second.
    assert_eq!(first.holder("lan", "web").await, None);
    assert_eq!(first.holder("lan", "db").await.map(|claim| claim.owner.to_string()).as_deref(), Some("bob"));
}

#[tokio::test]
pub(crate) async fn a2_a_repeat_waits_for_the_commit_it_repeats() {
    let store = store_under_test::faulty().await;
    let house = House::on(store.clone(), Options::default()).await;
    house.make("lan", "10.0.3.50-10.0.3.59").await;
    store.script([Delay(Duration::from_millis(80))]);
    let stored =
        || async { store.snapshot().await.unwrap().range(b"ledger/addr/", None, 9).await.unwrap().len() };
    let first = house.ask("ann", any("lan", "web"));
    let second = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let answer = house.say("ann", any("lan", "web")).await;
        (answer, stored().await)
    };
    let reading = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        (house.holder("lan", "web").await.is_some(), stored().await)
    };
    let (first, (second, there), (seen, then)) = tokio::join!(first, second, reading);
    assert_eq!((said(&first).as_str(), there), ("10.0.3.50 for web of ann, new", 1));
    assert_eq!(second, "10.0.3.50 for web of ann, again");
    assert!(!seen || then == 1, "a read saw what was not durable");
}

#[tokio::test]
pub(crate) async fn a4_a_request_that_comes_too_late_is_dropped() {
    let store = store_under_test::faulty().await;
    let house = House::on(store.clone(), Options::default()).await;
    house.make("lan", "10.0.3.50-10.0.3.59").await;
    store.script([Delay(Duration::from_millis(80))]);
    let first = house.ask("ann", any("lan", "web"));
    let late = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let asked = house.ledger.submit(Caller::new("bob"), any("lan", "db"), Duration::from_millis(500));
        let (answer, ()) = tokio::join!(asked, async { house.clock.advance(Duration::from_secs(1)) });
        answer
    };
    let (first, late) = tokio::join!(first, late);
    assert!(first.is_ok());
    assert_eq!(late, Err(LedgerError::TooLate));
    assert_eq!(house.holder("lan", "db").await, None);
}

#[tokio::test]
pub(crate) async fn a5_ledger_time_stands_still_while_nobody_leads() {
    let house = House::with_lan().await;
    house.ask("ann", claim("lan", "web", living(60))).await.unwrap();
    house.claim("ann", "lan", "db").await;
    house.release("ann", "lan", "db").await;
    house.pass(50).await;
    // A year without a leader, and a new one whose clock knows nothing of it.
    let house = house.restart().await;
    let usage = house.pool("lan").await.usage;
    assert_eq!((usage.held, usage.resting), (1, 1));
    // A new leader gives each lease its full time, and lets rests go on from where they were.
    house.pass(59).await;
    assert_eq!(house.pool("lan").await.usage.held, 1);
    house.pass(1).await;
    assert_eq!(house.pool("lan").await.usage.held, 0);
    house.pass(600).await;
    assert_eq!(house.pool("lan").await.usage.resting, 0);
}

#[tokio::test]
pub(crate) async fn a6_many_hosts_may_report_one_address() {
    let house = House::new().await;
    house.make("docker", "172.17.0.0/24").await;
    let hosts = ["h1", "h2", "h3", "h4", "h5"];
    for host in hosts {
        house.ask(host, observe(host, true, &["172.17.0.2"])).await.unwrap();
    }
    let commits = house.ledger.health().counters.commits;
    for host in hosts {
        house.ask(host, observe(host, true, &["172.17.0.2"])).await.unwrap();
    }
    assert_eq!(house.ledger.health().counters.commits, commits, "what is known needs no commit");
    for host in &hosts[..4] {
        house.ask(host, observe(host, true, &[])).await.unwrap();
        house.pass(300).await;
        house.ask(host, observe(host, true, &[])).await.unwrap();
    }
    assert_eq!(house.pool("docker").await.usage.observed, 1, "one host still sees it");
}

#[tokio::test]
pub(crate) async fn a8_sixty_four_entries_are_one_commit_and_more_are_refused() {
    let house = House::new().await;
    house.make("lan", "10.0.0.0/24").await;
    let entries = |count: u32| Command::Bulk((0..count).map(|n| any("lan", &format!("k{n}"))).collect());
    let before = house.ledger.health().counters.commits;
    assert!(matches!(house.ask("ann", entries(64)).await, Ok(Reply::Bulk(replies)) if replies.len() == 64));
    assert_eq!(house.ledger.health().counters.commits, before + 1);
    assert_snapshot!(house.say("ann", entries(65)).await, @"refused: entries: 65 entries, and at most 64 fit into one commit");
    assert_eq!(house.pool("lan").await.usage.held, 64);
}

#[tokio::test]
pub(crate) async fn a8_a_bulk_fits_however_many_ask_beside_it() {
    let house = House::new().await;
    house.make("lan", "10.0.0.0/16").await;
    let bulk = |name: &str| Command::Bulk((0..64).map(|n| any("lan", &format!("{name}-{n}"))).collect());
    let mut all = Vec::new();
    for task in 0..40 {
        let (ledger, command) = (house.ledger.clone(), bulk(&format!("bulk{task}")));
        all.push(tokio::spawn(async move { ledger.submit(Caller::new("ann"), command, PATIENCE).await }));
        for single in 0..20 {
            let (ledger, command) = (house.ledger.clone(), any("lan", &format!("single-{task}-{single}")));
            all.push(tokio::spawn(async move { ledger.submit(Caller::new("bob"), command, PATIENCE).await }));
        }
    }
    for task in all {
        task.await.unwrap().unwrap();
    }
    assert_eq!(house.pool("lan").await.usage.held, 40 * 64 + 40 * 20);
}

#[tokio::test]
pub(crate) async fn a8_a_bulk_is_all_or_none() {
    let house = House::with_lan().await;
    house.claim("bob", "lan", "taken").await;
    let bulk = Command::Bulk(vec![any("lan", "a"), claim("lan", "b", exact("10.0.3.50")), any("lan", "c")]);
    assert_snapshot!(house.say("ann", bulk).await, @"refused: entry 1, `b`: 10.0.3.50 is held by `taken` of `bob` in pool `lan`");
    assert_eq!((house.pool("lan").await.usage.held, house.log().await.len()), (1, 2));
}

#[tokio::test]
pub(crate) async fn a10_a_restored_ledger_hands_out_nothing_by_itself_until_it_is_resumed() {
    let house = House::with_lan().await;
    house.claim("ann", "lan", "web").await;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("backup");
    let mut file = tokio::fs::File::create(&path).await.unwrap();
    backup::write(&*house.store, &house.clock, &mut file).await.unwrap();
    let store = store_under_test::store().await;
    backup::restore(&*store, &house.clock, &path, 1, |_, _| true).await.unwrap();
    let restored = House::on(store, Options::default()).await;
    assert_ne!(restored.ledger.id(), house.ledger.id());
    let mut shown = vec![restored.say("ann", any("lan", "web")).await];
    shown.push(restored.say("ann", any("lan", "new")).await);
    shown.push(restored.say("ann", claim("lan", "db", exact("10.0.3.57"))).await);
    for _ in 0..2 {
        assert_eq!(restored.ask("admin", Command::Resume).await, Ok(Reply::Resumed));
    }
    shown.push(restored.say("ann", any("lan", "new")).await);
    assert_snapshot!(shown.join("\n"), @r"
    10.0.3.50 for web of ann, again
    refused: this ledger was restored from a backup and hands out no address by itself until `netstead resume`; exact claims work
    10.0.3.57 for db of ann, new
    10.0.3.51 for new of ann, new
    ");
    let restored = restored.restart().await;
    assert!(!restored.ledger.health().paused);
}

#[tokio::test]
pub(crate) async fn a16_an_outage_is_told_and_heals() {
    let store = store_under_test::faulty().await;
    let options = Options { learn_timeout: Duration::ZERO, ..Options::default() };
    let house = House::on(store.clone(), options).await;
    house.make("lan", "10.0.3.50-10.0.3.59").await;
    house.claim("ann", "lan", "web").await;
    store.set_outage(Some("the disk is full"));
    assert_snapshot!(house.say("bob", any("lan", "db")).await, @"error: the ledger cannot answer now: the store cannot be used now: the disk is full; nothing was changed");
    assert!(!house.ledger.health().ready);
    store.set_outage(None);
    let patience = Duration::from_secs(30);
    let mut answer = Err(LedgerError::TooLate);
    for _ in 0..100 {
        answer = house.ledger.submit(Caller::new("bob"), any("lan", "db"), patience).await;
        if answer.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(said(&answer.map(|done| done.reply)), "10.0.3.51 for db of bob, new");
    assert!(house.ledger.health().ready);
    assert!(house.ledger.health().counters.rebuilds > 0);
}

#[tokio::test]
pub(crate) async fn a11_what_is_large_still_goes_in_time() {
    let house = House::new().await;
    house.make("lan", "10.0.0.0/24").await;
    let words = |n: usize| {
        let labels = (0..64).map(|l| (format!("label-{l}"), format!("{n:0>250}")));
        netstead_model::Labels::new(labels).unwrap()
    };
    for n in 0..100 {
        let change = |request: &mut ClaimRequest| {
            request.labels = Some(words(n));
            request.ttl = Some(Span::from_secs(60));
        };
        house.ask("ann", claim("lan", &format!("k{n}"), change)).await.unwrap();
    }
    // All end in one moment, and the events of their ends are larger than a commit.
    house.pass(60).await;
    for _ in 0..20 {
        house.pass(0).await;
    }
    assert_eq!(house.pool("lan").await.usage.held, 0);
    for n in 0..100 {
        let change = |request: &mut ClaimRequest| request.labels = Some(words(n));
        house.ask("ann", claim("lan", &format!("k{n}"), change)).await.unwrap();
    }
    let force = Some("it goes".to_owned());
    let gone = house
        .ask("admin", Command::DeletePool { name: spec("lan", "10.0.0.1").name, force, if_version: None });
    assert_eq!(gone.await, Ok(Reply::PoolDeleted { released: 100, left: 0, owed: 0 }));
    assert!(house.say("ann", Command::Release(target("lan", "k1", None))).await.contains("no pool"));
}

#[tokio::test]
pub(crate) async fn a11_a_pool_goes_whatever_waits_there_or_is_reserved() {
    let house = House::new().await;
    house.make_so("lan", "10.0.0.0/28", restless).await;
    for n in 0..14 {
        house.claim("ann", "lan", &format!("k{n}")).await;
    }
    for n in 0..60 {
        let fat = |request: &mut ClaimRequest| {
            let labels = (0..64).map(|l| (format!("label-{l}"), format!("{n:0>250}")));
            request.labels = Some(netstead_model::Labels::new(labels).unwrap());
            request.description = Some("\u{1f3e0}".repeat(1000));
            (request.wait, request.keep) = (Some(Span::ZERO), true);
        };
        house.ask("bob", claim("lan", &format!("w{n}"), fat)).await.unwrap();
    }
    let reserve = |words: usize| {
        let (pool, range) = ("lan".parse().unwrap(), "10.0.0.0".parse().unwrap());
        Command::Reserve { pool, key: key("spare"), range, description: Some("\u{1f3e0}".repeat(words)) }
    };
    assert_snapshot!(house.say("ann", reserve(1001)).await, @"refused: description: it is longer than 1000 characters");
    house.ask("ann", reserve(1000)).await.unwrap();
    // Older versions let reservations have as many words as fitted into a commit.
    house.ledger.close().await;
    for n in 1..6 {
        let range: Range = format!("10.0.0.{n}").parse().unwrap();
        let words = Reservation {
            pool: "lan".parse().unwrap(),
            key: key(&format!("words-{n}")),
            owner: "ann".into(),
            range,
            since: house.clock.wall(),
            description: Some("x".repeat(500_000)),
        };
        let (pool, first) = (words.pool.clone(), range.first().number());
        let write = Record::Reservation { pool, first, value: Some(words.into()) }.write().unwrap();
        house.store.commit(Commit { conditions: Vec::new(), writes: vec![write] }).await.unwrap();
    }
    let house = house.successor().await;
    let force = Some("it goes".to_owned());
    let gone = house
        .ask("admin", Command::DeletePool { name: spec("lan", "10.0.0.1").name, force, if_version: None });
    assert_eq!(gone.await, Ok(Reply::PoolDeleted { released: 14, left: 0, owed: 0 }));
    let log = house.log().await;
    let count = |what: &str| log.iter().filter(|kind| **kind == what).count();
    assert_eq!((count("abandoned"), count("unreserved")), (60, 6));
}
