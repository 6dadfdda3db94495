//! Several processes on one store: one leads, the others read along and can take over.

use std::time::Duration;

use insta::assert_snapshot;
use netstead_ledger::{Command, EventQuery, Freshness, Ledger, LedgerError, Options, Role};
use netstead_model::ManualClock;
use tokio::time::timeout;

use crate::{
    rebuild::face,
    store_under_test,
    support::{House, any, claim, key, living, observe, target},
};

const SOON: Duration = Duration::from_secs(10);

/// The Books of both at the same sequence number, how long leases run left out.
async fn assert_same(leader: &House, follower: &House) {
    let at = leader.ledger.read(Freshness::Fresh, |book| face(book, false)).await.unwrap();
    let there = follower.ledger.read(Freshness::AtLeast(at.seq), |book| face(book, false)).await.unwrap();
    assert_eq!(at.value, there.value);
}

#[tokio::test]
pub(crate) async fn who_follows_reads_what_was_acknowledged_and_decides_nothing() {
    let leader = House::with_lan().await;
    leader.claim("ann", "lan", "web").await;
    let follower = leader.follower().await;
    for number in 0..20 {
        let name = format!("k{number}");
        if number < 8 {
            leader.claim("ann", "lan", &name).await;
            // At once, from the other process.
            assert!(follower.holder("lan", &name).await.is_some(), "{name}");
        } else if number < 12 {
            leader.release("ann", "lan", &format!("k{}", number - 8)).await;
            assert!(follower.holder("lan", &format!("k{}", number - 8)).await.is_none());
        }
    }
    leader.ask("admin!", observe("docker", true, &["10.0.3.59"])).await.unwrap();
    assert_same(&leader, &follower).await;
    assert_snapshot!(follower.say("ann", any("lan", "new")).await, @"error: another Netstead leads this store now; nothing was changed");
    assert_eq!(follower.log().await, leader.log().await);
    let of_web = || EventQuery { key: Some(key("web")), ..EventQuery::default() };
    assert_eq!(follower.find(of_web()).await, leader.find(of_web()).await);
    assert!(follower.ledger.health().ready);
}

#[tokio::test]
pub(crate) async fn the_lead_goes_back_and_forth_and_events_reach_everybody_once() {
    let first = House::with_lan().await;
    let second = first.follower().await;
    let mut heard_by_second = second.ledger.subscribe();
    let mut heard_by_first = first.ledger.subscribe();
    let houses = [&first, &second];
    for round in 0..6 {
        let (leader, other) = (houses[round % 2], houses[(round + 1) % 2]);
        if round > 0 {
            leader.ledger.lead().await.unwrap();
            let mut role = other.ledger.role();
            timeout(SOON, role.wait_for(|role| *role == Role::Following)).await.unwrap().unwrap();
        }
        leader.claim("ann", "lan", &format!("k{round}")).await;
        assert_eq!(other.ask("ann", any("lan", "x")).await, Err(LedgerError::NotLeading));
        assert!(other.holder("lan", &format!("k{round}")).await.is_some());
        assert_same(leader, other).await;
    }
    for heard in [&mut heard_by_first, &mut heard_by_second] {
        let mut keys = Vec::new();
        while let Ok(Ok(event)) = timeout(Duration::from_millis(200), heard.recv()).await {
            keys.extend(event.keys().map(ToString::to_string));
        }
        assert_eq!(keys, ["k0", "k1", "k2", "k3", "k4", "k5"]);
    }
}

#[tokio::test]
pub(crate) async fn before_there_is_a_ledger_there_is_nothing_to_read_and_then_there_is() {
    let store = store_under_test::store().await;
    let clock = ManualClock::default();
    let early = Ledger::follow(store.clone(), clock.shared(), Options::default()).await.unwrap();
    assert_eq!(early.read(Freshness::Fresh, |book| book.pools().count()).await.unwrap().value, 0);
    assert!(early.events(&EventQuery { limit: 9, ..EventQuery::default() }).await.unwrap().events.is_empty());
    let leader = House::on(store, Options::default()).await;
    leader.make("lan", "10.0.3.50-10.0.3.59").await;
    let seen = early.read(Freshness::Fresh, |book| (book.pools().count(), book.ledger())).await.unwrap();
    assert_eq!(seen.value, (1, leader.ledger.id()));
}

#[tokio::test]
pub(crate) async fn who_missed_too_much_loads_everything_anew() {
    let leader = House::new().await;
    leader.make("lan", "10.0.0.0/16").await;
    let follower = leader.follower().await;
    let mut heard = follower.ledger.subscribe();
    // The follower gets no turn meanwhile: its watch breaks.
    for number in 0..70 {
        let bulk = (0..64).map(|entry| any("lan", &format!("k{number}-{entry}"))).collect();
        leader.ask("ann", Command::Bulk(bulk)).await.unwrap();
    }
    assert_same(&leader, &follower).await;
    let count = || EventQuery { key: Some(key("k69-63")), ..EventQuery::default() };
    assert_eq!(follower.find(count()).await.len(), 1);
    assert!(heard.recv().await.is_ok() || !heard.is_empty());
}

#[tokio::test]
pub(crate) async fn a_new_leader_gives_each_lease_its_full_time_whatever_it_followed() {
    let leader = House::with_lan().await;
    leader.ask("ann", claim("lan", "web", living(60))).await.unwrap();
    let follower = leader.follower().await;
    leader.pass(50).await;
    let renew = Command::Renew { target: target("lan", "web", None), ttl: None };
    leader.ask("ann", renew).await.unwrap();
    leader.pass(50).await;
    // Renewals are not stored: who follows cannot know how long it has.
    let left = |house: &House| {
        let ledger = house.ledger.clone();
        async move {
            let pool = "lan".parse().unwrap();
            let seen = ledger.read(Freshness::Fresh, |book| book.claim(&pool, &key("web"))).await.unwrap();
            seen.value.unwrap().left
        }
    };
    assert_eq!(left(&leader).await, Some(Duration::from_secs(10)));
    assert_eq!(left(&follower).await, None);
    follower.ledger.lead().await.unwrap();
    assert_eq!(left(&follower).await, Some(Duration::from_mins(1)));
    follower.pass(59).await;
    assert!(follower.holder("lan", "web").await.is_some());
    follower.pass(2).await;
    assert!(follower.holder("lan", "web").await.is_none());
}

#[tokio::test]
pub(crate) async fn who_closes_gives_up_the_lead_and_who_follows_goes_on() {
    let leader = House::with_lan().await;
    let follower = leader.follower().await;
    leader.claim("ann", "lan", "web").await;
    leader.ledger.close().await;
    assert_snapshot!(leader.say("ann", any("lan", "db")).await, @"error: the ledger cannot answer now: it is shutting down; nothing was changed");
    follower.ledger.lead().await.unwrap();
    assert_eq!(follower.claim("ann", "lan", "web").await, "10.0.3.50");
    assert_eq!(follower.claim("ann", "lan", "db").await, "10.0.3.51");
    follower.ledger.close().await;
    follower.store.close().await;
}
