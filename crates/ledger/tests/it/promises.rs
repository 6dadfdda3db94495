//! The ledger's promises, one by one, through the door everybody uses.

use insta::assert_snapshot;
use jiff::SignedDuration;
use netstead_ledger::{Command, Freshness, Reply};
use netstead_model::{Labels, Order, PoolChoice, Span, Want};

use crate::support::{House, any, claim, exact, key, living, observe, restless, target};

#[tokio::test]
pub(crate) async fn asking_again_returns_the_same_address() {
    let house = House::with_lan().await;
    assert_snapshot!(house.say("ann", any("lan", "web")).await, @"10.0.3.50 for web of ann, new");
    assert_snapshot!(house.say("ann", any("lan", "web")).await, @"10.0.3.50 for web of ann, again");
    assert_snapshot!(house.say("ann", any("lan", "db")).await, @"10.0.3.51 for db of ann, new");
}

#[tokio::test]
pub(crate) async fn another_owner_hears_who_holds_the_key_unless_it_adopts() {
    let house = House::with_lan().await;
    house.claim("ann", "lan", "web").await;
    assert_snapshot!(house.say("bob", any("lan", "web")).await, @"refused: `web` in pool `lan` belongs to `ann`, who holds 10.0.3.50 with it; use another key, or adopt it");
    let adopt = claim("lan", "web", |request| request.adopt = true);
    assert_snapshot!(house.say("bob", adopt.clone()).await, @"refused: `web` of `ann` in pool `lan` is not yours");
    assert_snapshot!(house.say("bob!", adopt.clone()).await, @"10.0.3.50 for web of bob, changed");
    assert_snapshot!(house.say("bob", adopt).await, @"10.0.3.50 for web of bob, again");
    assert_eq!(house.log().await, ["pool-created", "claimed", "adopted"]);
}

#[tokio::test]
pub(crate) async fn a_repeat_with_other_labels_changes_them_and_leaves_an_event() {
    let house = House::with_lan().await;
    let first = house.claimed("ann", "lan", "web").await;
    let labelled = claim("lan", "web", |request| {
        request.labels = Some(Labels::new([("env".to_owned(), "dev".to_owned())]).unwrap());
        request.hostnames = Some(vec!["www.home.test".parse().unwrap()]);
    });
    assert_snapshot!(house.say("ann", labelled.clone()).await, @"10.0.3.50 for web of ann, changed");
    assert_snapshot!(house.say("ann", labelled).await, @"10.0.3.50 for web of ann, again");
    assert_eq!(house.holder("lan", "web").await.unwrap().id, first.id);
    assert_eq!(house.log().await, ["pool-created", "claimed", "updated"]);
    // What a repeat does not mention stays.
    house.claim("ann", "lan", "web").await;
    assert_eq!(house.holder("lan", "web").await.unwrap().details().labels.get("env"), Some("dev"));
}

#[tokio::test]
pub(crate) async fn a_past_claim_is_already_gone_and_its_address_stays_with_the_next() {
    let house = House::with_lan().await;
    let first = house.claimed("ann", "lan", "web").await;
    house.release("ann", "lan", "web").await;
    let second = house.claimed("ann", "lan", "web").await;
    assert_eq!((&second.address, second.id == first.id), (&first.address, false));
    // The answer to the first release was lost, and its caller asks once more.
    let old = target("lan", "web", Some(first.id));
    let mut shown = vec![house.say("ann", Command::Release(old.clone())).await];
    shown.push(house.say("ann", Command::Renew { target: old.clone(), ttl: None }).await);
    shown.push(house.say("ann", Command::Move { target: old, key: key("db"), owner: None }).await);
    let shown = shown.join("\n").replace(&first.id.to_string(), "ID");
    assert_snapshot!(shown, @r"
    already gone
    refused: the claim ID of `web` is gone; the key has a later claim
    refused: the claim ID of `web` is gone; the key has a later claim
    ");
    assert_eq!(house.holder("lan", "web").await.unwrap().id, second.id);
}

#[tokio::test]
pub(crate) async fn a_released_address_rests_and_its_own_key_gets_it_back() {
    let house = House::with_lan().await;
    house.claim("ann", "lan", "web").await;
    house.release("ann", "lan", "web").await;
    assert_eq!(house.claim("ann", "lan", "other").await, "10.0.3.51");
    let stolen = claim("lan", "thief", exact("10.0.3.50"));
    assert_snapshot!(house.say("bob", stolen).await, @"refused: 10.0.3.50 rests for 10m more, since the claim `web` of `ann` ended; wait, or force it");
    assert_eq!(house.claim("ann", "lan", "web").await, "10.0.3.50");
    house.release("ann", "lan", "web").await;
    house.pass(599).await;
    assert_eq!(house.claim("bob", "lan", "third").await, "10.0.3.52");
    house.pass(1).await;
    assert_eq!(house.claim("bob", "lan", "fourth").await, "10.0.3.50");
}

#[tokio::test]
pub(crate) async fn force_takes_what_rests_but_never_what_is_held() {
    let house = House::with_lan().await;
    house.claim("ann", "lan", "web").await;
    let forced = || {
        claim("lan", "thief", |request| {
            request.want = Want::Exact("10.0.3.50".parse().unwrap());
            request.force = true;
        })
    };
    assert_snapshot!(house.say("bob", forced()).await, @"refused: 10.0.3.50 is held by `web` of `ann` in pool `lan`");
    house.release("ann", "lan", "web").await;
    assert_snapshot!(house.say("bob", forced()).await, @"10.0.3.50 for thief of bob, new");
    assert_eq!(house.claim("ann", "lan", "web").await, "10.0.3.51");
}

#[tokio::test]
pub(crate) async fn when_nothing_else_is_free_what_rested_longest_goes_early() {
    let house = House::new().await;
    house.make("lan", "10.0.3.50-10.0.3.51").await;
    house.claim("ann", "lan", "a").await;
    house.claim("ann", "lan", "b").await;
    house.release("ann", "lan", "b").await;
    house.pass(10).await;
    house.release("ann", "lan", "a").await;
    assert_snapshot!(house.say("bob", any("lan", "c")).await, @"refused: pool `lan` has no free address; 2 are resting, and the next is free in 50s");
    house.pass(50).await;
    assert_eq!(house.claim("bob", "lan", "c").await, "10.0.3.51");
    assert_snapshot!(house.say("bob", any("lan", "d")).await, @"refused: pool `lan` has no free address; 1 is resting, and free in 10s");
}

#[tokio::test]
pub(crate) async fn the_order_of_the_pool_decides() {
    let house = House::new().await;
    for (name, third, order) in
        [("lowest", 1, Order::Lowest), ("next", 2, Order::Next), ("freed", 3, Order::FreedFirst)]
    {
        house
            .make_so(name, &format!("10.0.{third}.1-10.0.{third}.9"), |spec| {
                spec.order = order;
                spec.cooldown = Span::ZERO;
            })
            .await;
    }
    let mut shown = Vec::new();
    for pool in ["lowest", "next", "freed"] {
        for name in ["a", "b", "c"] {
            house.claim("ann", pool, name).await;
        }
        // .2 is freed before .1.
        house.release("ann", pool, "b").await;
        house.pass(60).await;
        house.release("ann", pool, "a").await;
        let mut line = pool.to_owned();
        for name in ["d", "e", "f"] {
            line = format!("{line} {}", house.claim("bob", pool, name).await);
        }
        shown.push(line);
    }
    assert_snapshot!(shown.join("\n"), @r"
    lowest 10.0.1.1 10.0.1.2 10.0.1.4
    next 10.0.2.4 10.0.2.5 10.0.2.6
    freed 10.0.3.1 10.0.3.2 10.0.3.4
    ");
}

#[tokio::test]
pub(crate) async fn the_first_of_several_pools_with_room_wins_and_the_key_is_one_over_all() {
    let house = House::new().await;
    house.make("small", "10.0.1.1").await;
    house.make("large", "10.0.2.1-10.0.2.9").await;
    let either = |name: &str| {
        claim("small", name, |request| {
            request.from = PoolChoice::Pools(vec!["small".parse().unwrap(), "large".parse().unwrap()]);
        })
    };
    assert_snapshot!(house.say("ann", either("a")).await, @"10.0.1.1 for a of ann, new");
    assert_snapshot!(house.say("ann", either("b")).await, @"10.0.2.1 for b of ann, new");
    house.release("ann", "small", "a").await;
    assert_snapshot!(house.say("ann", either("b")).await, @"10.0.2.1 for b of ann, again");
}

#[tokio::test]
pub(crate) async fn a_lease_is_renewed_or_expires_into_rest() {
    let house = House::with_lan().await;
    house.ask("ann", claim("lan", "web", living(60))).await.unwrap();
    house.pass(59).await;
    let renew = Command::Renew { target: target("lan", "web", None), ttl: None };
    assert_snapshot!(house.say("ann", renew.clone()).await, @"10.0.3.50 renewed for Some(60s)");
    house.pass(59).await;
    assert_eq!(house.pool("lan").await.usage.held, 1);
    house.pass(1).await;
    let usage = house.pool("lan").await.usage;
    assert_eq!((usage.held, usage.resting), (0, 1));
    assert_snapshot!(house.say("ann", renew).await, @"refused: `web` holds nothing in pool `lan`");
    assert_eq!(house.log().await, ["pool-created", "claimed", "expired"]);
}

#[tokio::test]
pub(crate) async fn a_clock_that_jumps_a_year_either_way_expires_nothing() {
    let house = House::with_lan().await;
    house.ask("ann", claim("lan", "web", living(60))).await.unwrap();
    house.claim("ann", "lan", "db").await;
    house.release("ann", "lan", "db").await;
    for years in [1, -2, 57] {
        house.clock.jump_wall(SignedDuration::from_hours(years * 365 * 24));
        house.pass(0).await;
        let usage = house.pool("lan").await.usage;
        assert_eq!((usage.held, usage.resting), (1, 1), "after {years} years");
    }
    assert_eq!(house.log().await, ["pool-created", "claimed", "claimed", "released"]);
}

#[tokio::test]
pub(crate) async fn what_was_seen_is_handed_out_to_nobody_and_never_ends_by_age() {
    let house = House::with_lan().await;
    house.ask("proxmox", observe("pve", true, &["10.0.3.50", "192.0.2.7"])).await.unwrap();
    assert_eq!(house.claim("ann", "lan", "web").await, "10.0.3.51");
    house.pass(10 * 365 * 24 * 3600).await;
    let mine = |adopt| {
        claim("lan", "old", move |request| {
            request.want = Want::Exact("10.0.3.50".parse().unwrap());
            request.adopt = adopt;
        })
    };
    assert_snapshot!(house.say("ann", mine(false)).await, @"refused: 10.0.3.50 was seen in use by `pve` since 2001-09-09T01:46:40Z; adopt it if it is yours");
    // A report that is not complete ends nothing, nor does another source.
    house.ask("proxmox", observe("pve", false, &[])).await.unwrap();
    house.ask("docker", observe("docker", true, &[])).await.unwrap();
    house.pass(3600).await;
    assert_eq!(house.pool("lan").await.usage.observed, 1);
    assert_snapshot!(house.say("ann", mine(true)).await, @"10.0.3.50 for old of ann, new");
}

#[tokio::test]
pub(crate) async fn a_sighting_ends_when_complete_reports_lack_it_beyond_grace() {
    let house = House::with_lan().await;
    house.ask("proxmox", observe("pve", true, &["10.0.3.50"])).await.unwrap();
    house.ask("proxmox", observe("pve", true, &[])).await.unwrap();
    house.pass(299).await;
    house.ask("proxmox", observe("pve", true, &[])).await.unwrap();
    assert_eq!(house.claim("ann", "lan", "a").await, "10.0.3.51");
    house.pass(1).await;
    house.ask("proxmox", observe("pve", true, &[])).await.unwrap();
    assert_eq!(house.claim("ann", "lan", "b").await, "10.0.3.50");
}

#[tokio::test]
pub(crate) async fn what_was_seen_before_there_was_a_pool_is_not_handed_out_by_one_made_later() {
    let house = House::with_lan().await;
    house.ask("proxmox", observe("pve", true, &["10.0.3.50", "192.0.2.1"])).await.unwrap();
    house.make("later", "192.0.2.1-192.0.2.9").await;
    assert_eq!(house.claim("ann", "later", "web").await, "192.0.2.2");
    let house = house.restart().await;
    house
        .ask("admin", Command::DeletePool { name: "lan".parse().unwrap(), force: None, if_version: None })
        .await
        .unwrap();
    house.make("again", "10.0.3.50-10.0.3.59").await;
    assert_eq!(house.claim("ann", "again", "web").await, "10.0.3.51");
}

#[tokio::test]
pub(crate) async fn only_who_may_write_forces_its_way_over_a_reservation() {
    let house = House::with_lan().await;
    let range = "10.0.3.54-10.0.3.55".parse().unwrap();
    let reserve =
        Command::Reserve { pool: "lan".parse().unwrap(), key: key("spare"), range, description: None };
    house.ask("ann", reserve).await.unwrap();
    let forced = |name: &str, address: &str| {
        let want = Want::Exact(address.parse().unwrap());
        claim("lan", name, move |request| (request.want, request.force) = (want, true))
    };
    assert_snapshot!(house.say("bob", forced("db", "10.0.3.54")).await, @"refused: 10.0.3.54 is reserved for `spare` of `ann` in pool `lan`, and only a caller who may write can force it");
    assert_snapshot!(house.say("ann", forced("web", "10.0.3.54")).await, @"10.0.3.54 for web of ann, new");
    assert_snapshot!(house.say("bob!", forced("db", "10.0.3.55")).await, @"10.0.3.55 for db of bob, new");
}

#[tokio::test]
pub(crate) async fn an_owner_gets_no_more_than_its_share() {
    let house = House::new().await;
    house.make_so("lan", "10.0.3.50-10.0.3.59", |spec| spec.max_per_owner = Some(2)).await;
    house.claim("ann", "lan", "a").await;
    house.claim("ann", "lan", "b").await;
    assert_snapshot!(house.say("ann", any("lan", "c")).await, @"refused: `ann` holds 2 addresses of pool `lan`, which allows 2 per owner; release one first");
    assert_eq!(house.claim("bob", "lan", "c").await, "10.0.3.52");
    assert_eq!(house.claim("ann", "lan", "a").await, "10.0.3.50");
}

#[tokio::test]
pub(crate) async fn a_restart_keeps_everything() {
    let house = House::with_lan().await;
    house.make_so("free", "10.0.4.1-10.0.4.9", restless).await;
    for name in ["a", "b", "c"] {
        house.claim("ann", "lan", name).await;
    }
    house.release("ann", "lan", "b").await;
    house.ask("proxmox", observe("pve", true, &["10.0.3.53"])).await.unwrap();
    let range = "10.0.3.54-10.0.3.55".parse().unwrap();
    let reserve =
        Command::Reserve { pool: "lan".parse().unwrap(), key: key("spare"), range, description: None };
    house.ask("ann", reserve).await.unwrap();
    let (id, before, log) = (house.ledger.id(), house.pool("lan").await, house.log().await);
    let house = house.restart().await;
    assert_eq!((house.ledger.id(), house.pool("lan").await, house.log().await), (id, before, log));
    assert_eq!(house.claim("ann", "lan", "b").await, "10.0.3.51");
    assert_eq!(house.claim("ann", "lan", "d").await, "10.0.3.56");
}

#[tokio::test]
pub(crate) async fn answers_carry_the_number_they_know_of() {
    let house = House::with_lan().await;
    let caller = netstead_ledger::Caller::new("ann");
    let done = house.ledger.submit(caller, any("lan", "web"), crate::support::PATIENCE).await.unwrap();
    assert!(matches!(done.reply, Reply::Claimed { .. }));
    let seen = house.ledger.read(Freshness::AtLeast(done.seq), netstead_ledger::Book::seq).await.unwrap();
    assert!(seen.value >= done.seq);
}
