//! Pools: making, changing, nesting and removing them. Hazard A14.

use insta::assert_snapshot;
use netstead_ledger::{Caller, Command, Freshness, Reply};
use netstead_model::{Ident, PoolSpec};

use crate::support::{House, PATIENCE, any, claim, create, exact, prefixes, restless, said, spec, target};

fn delete(name: &str, force: Option<&str>, if_version: Option<u64>) -> Command {
    Command::DeletePool { name: name.parse().unwrap(), force: force.map(ToOwned::to_owned), if_version }
}

fn update(spec: PoolSpec, if_version: Option<u64>) -> Command {
    Command::UpdatePool { spec: spec.into(), if_version }
}

#[tokio::test]
pub(crate) async fn pools_of_one_vrf_never_overlap() {
    let house = House::with_lan().await;
    assert_snapshot!(house.say("admin", create("lan2", "10.0.3.59-10.0.3.70", |_| {})).await, @"refused: the ranges of pool `lan2` and of pool `lan` overlap at 10.0.3.59-10.0.3.70, and both are in VRF `default`");
    assert_snapshot!(house.say("admin", create("net", "10.0.0.0/16", prefixes(24))).await, @"refused: the ranges of pool `net` and of pool `lan` overlap at 10.0.0.0/16, and both are in VRF `default`");
    house.make_so("far", "10.0.3.50-10.0.3.59", |spec| spec.vrf = "red".parse().unwrap()).await;
    assert_eq!(house.claim("ann", "far", "web").await, house.claim("ann", "lan", "web").await);
}

#[tokio::test]
pub(crate) async fn a_pool_may_lie_inside_a_held_prefix_which_then_stays() {
    let house = House::new().await;
    house.make_so("sites", "fd00:2::/48", prefixes(64)).await;
    assert_snapshot!(house.say("admin", create("lan6", "fd00:2::/64", |_| {})).await, @"refused: the ranges of pool `lan6` and of pool `sites` overlap at fd00:2::/64, and both are in VRF `default`");
    assert_eq!(house.claim("ann", "sites", "home").await, "fd00:2::/64");
    house.make("lan6", "fd00:2::/64").await;
    assert_eq!(house.claim("ann", "lan6", "web").await, "fd00:2::1");
    assert_eq!(house.claim("ann", "sites", "office").await, "fd00:2:0:1::/64");
    let back = Command::Release(target("sites", "home", None));
    assert_snapshot!(house.say("ann", back.clone()).await, @"refused: fd00:2::/64 carries pool `lan6`; delete that pool first");
    let gone = house.ask("admin", delete("sites", Some("all of it"), None)).await;
    assert_snapshot!(said(&gone), @"refused: fd00:2::/64 carries pool `lan6`; delete that pool first");
    house.ask("admin", delete("lan6", Some("it moves"), None)).await.unwrap();
    assert_snapshot!(house.say("ann", back).await, @"fd00:2::/64 released");
}

#[tokio::test]
pub(crate) async fn the_lease_of_a_prefix_with_a_pool_in_it_goes_on() {
    let house = House::new().await;
    house.make_so("sites", "10.1.0.0/16", prefixes(24)).await;
    house.ask("ann", claim("sites", "home", crate::support::living(60))).await.unwrap();
    house.make("lan", "10.1.0.0/24").await;
    house.pass(61).await;
    assert_eq!(house.pool("sites").await.usage.claims, 1);
    house.ask("admin", delete("lan", None, None)).await.unwrap();
    house.pass(61).await;
    assert_eq!(house.pool("sites").await.usage.claims, 0);
}

#[tokio::test]
pub(crate) async fn a_change_that_would_strand_a_holder_is_refused() {
    let house = House::with_lan().await;
    house.ask("ann", claim("lan", "web", exact("10.0.3.57"))).await.unwrap();
    assert_snapshot!(house.say("admin", update(spec("lan", "10.0.3.50-10.0.3.56"), None)).await, @"refused: 10.0.3.57, held by `web` of `ann`, would fall outside pool `lan`; release it first");
    let mut gateway = spec("lan", "10.0.3.50-10.0.3.59");
    gateway.gateway = Some("10.0.3.57".parse().unwrap());
    assert_snapshot!(house.say("admin", update(gateway, None)).await, @"refused: 10.0.3.57, held by `web` of `ann`, would fall outside pool `lan`; release it first");
    assert_snapshot!(house.say("admin", update(spec("lan", "10.0.3.57-10.0.3.58"), None)).await, @"pool lan as of 4");
    assert_eq!(house.claim("ann", "lan", "db").await, "10.0.3.58");
}

#[tokio::test]
pub(crate) async fn a_change_names_the_version_it_was_made_from() {
    let house = House::with_lan().await;
    let version = house.pool("lan").await.pool.version;
    let change = |text: &str| {
        let mut spec = spec("lan", "10.0.3.50-10.0.3.59");
        spec.description = Some(text.into());
        spec
    };
    let first = house.say("admin", update(change("mine"), Some(version))).await;
    // Its answer was lost; the same again says the same, although the version has moved on.
    assert_eq!(house.say("admin", update(change("mine"), Some(version))).await, first);
    let other = house.say("admin", update(change("yours"), Some(version))).await;
    assert_snapshot!(other, @"refused: pool `lan` changed meanwhile: it has version 3 and not 2; look at it again");
}

#[tokio::test]
pub(crate) async fn a_pool_in_use_stays_unless_forced_with_a_reason() {
    let house = House::new().await;
    house.make("lan", "10.0.0.0/23").await;
    for from in (0..300).step_by(60) {
        let bulk = (from..from + 60).map(|n| any("lan", &format!("k{n}"))).collect();
        house.ask("ann", Command::Bulk(bulk)).await.unwrap();
    }
    let version = house.pool("lan").await.pool.version;
    assert_snapshot!(house.say("admin", delete("lan", None, Some(version))).await, @"refused: pool `lan` has 300 claims and 0 reservations; release them, or force it with a reason");
    // It takes several commits, each of which names the version the caller has seen.
    let gone = house.ask("admin", delete("lan", Some("the lab moves"), Some(version))).await;
    assert_eq!(gone, Ok(Reply::PoolDeleted { released: 300, left: 0, owed: 0 }));
    let events = house.events().await;
    let released = events.iter().filter(|event| event.what.as_str() == "released");
    assert!(released.clone().all(|event| event.reason.as_deref() == Some("the lab moves")));
    assert_eq!((released.count(), events.last().unwrap().what.as_str()), (300, "pool-deleted"));
}

#[tokio::test]
pub(crate) async fn what_rests_goes_on_resting_under_another_pool() {
    let house = House::with_lan().await;
    house.claim("ann", "lan", "web").await;
    house.release("ann", "lan", "web").await;
    house.ask("admin", delete("lan", None, None)).await.unwrap();
    house.make("home", "10.0.3.0/24").await;
    assert_snapshot!(house.say("bob", claim("home", "db", exact("10.0.3.50"))).await, @"refused: 10.0.3.50 rests for 10m more, since the claim `web` of `ann` ended; wait, or force it");
    // The same when only part of a pool goes to another.
    house.ask("ann", claim("home", "web", exact("10.0.3.51"))).await.unwrap();
    house.release("ann", "home", "web").await;
    house.ask("admin", update(spec("home", "10.0.3.128/25"), None)).await.unwrap();
    assert_eq!(house.pool("home").await.usage.resting, 0);
    house.make("lan", "10.0.3.50-10.0.3.59").await;
    assert_eq!(house.pool("lan").await.usage.resting, 2);
    assert_eq!(house.claim("bob", "lan", "db").await, "10.0.3.52");
    let house = house.restart().await;
    assert_eq!(house.pool("lan").await.usage.resting, 2);
    assert_eq!(house.pool("home").await.usage.resting, 0);
}

#[tokio::test]
pub(crate) async fn pools_of_the_file_are_changed_by_the_file_only() {
    let house = House::new().await;
    let pool = |n: usize| spec(&format!("p{n}"), &format!("10.0.{n}.0/24"));
    let all: Vec<PoolSpec> = (0..150).map(pool).collect();
    let synced = house.ask("admin", Command::SyncFilePools(all.clone())).await.unwrap();
    assert!(matches!(&synced, Reply::Synced { created, .. } if created.len() == 150), "{synced:?}");
    let again = house.ask("admin", Command::SyncFilePools(all)).await.unwrap();
    let nothing = Reply::Synced { created: vec![], updated: vec![], detached: vec![], more: false };
    assert_eq!(again, nothing);
    assert_snapshot!(house.say("admin", delete("p1", None, None)).await, @"refused: pool `p1` is in the configuration file; change it there");
    // What is no longer in the file stays, and belongs to people again.
    let emptied = house.ask("admin", Command::SyncFilePools(Vec::new())).await.unwrap();
    assert!(matches!(&emptied, Reply::Synced { detached, .. } if detached.len() == 150), "{emptied:?}");
    assert!(house.ask("admin", delete("p1", None, None)).await.is_ok());
}

#[tokio::test]
pub(crate) async fn a_reserved_range_is_for_its_owner_by_name() {
    let house = House::with_lan().await;
    let (pool, range): (Ident, _) = ("lan".parse().unwrap(), "10.0.3.50-10.0.3.51".parse().unwrap());
    let reserve = Command::Reserve { pool, key: crate::support::key("spare"), range, description: None };
    house.ask("ann", reserve.clone()).await.unwrap();
    assert_eq!(house.ask("ann", reserve.clone()).await, house.ask("ann", reserve).await);
    assert_eq!(house.claim("ann", "lan", "web").await, "10.0.3.52");
    assert_snapshot!(house.say("bob", claim("lan", "db", exact("10.0.3.50"))).await, @"refused: 10.0.3.50 is reserved for `spare` of `ann` in pool `lan`");
    assert_snapshot!(house.say("ann", claim("lan", "db", exact("10.0.3.50"))).await, @"10.0.3.50 for db of ann, new");
}

#[tokio::test]
pub(crate) async fn a_reservation_that_is_repeated_with_other_words_says_them_and_leaves_an_event() {
    let house = House::with_lan().await;
    let reserve = |words: Option<&str>| Command::Reserve {
        pool: "lan".parse().unwrap(),
        key: crate::support::key("spare"),
        range: "10.0.3.50-10.0.3.51".parse().unwrap(),
        description: words.map(ToOwned::to_owned),
    };
    let mut words = Vec::new();
    for said in [Some("for later"), None, Some("for now"), Some("for now"), Some("")] {
        let Ok(Reply::Reserved(reservation)) = house.ask("ann", reserve(said)).await else {
            panic!("{said:?}")
        };
        words.push(reservation.description.clone());
    }
    let expected = [Some("for later"), Some("for later"), Some("for now"), Some("for now"), None];
    assert_eq!(words.iter().map(Option::as_deref).collect::<Vec<_>>(), expected);
    assert_eq!(house.log().await[1..], ["reserved", "updated", "updated"]);
    let house = house.restart().await;
    let stored = house.ledger.read(Freshness::Fresh, |book| book.reservations().cloned().collect::<Vec<_>>());
    assert_eq!(stored.await.unwrap().value[0].description, None);
}

#[tokio::test]
pub(crate) async fn only_the_owner_or_a_manager_touches_a_claim() {
    let house = House::new().await;
    house.make_so("lan", "10.0.3.50-10.0.3.59", restless).await;
    house.claim("ann", "lan", "web").await;
    let release = Command::Release(target("lan", "web", None));
    assert_snapshot!(house.say("bob", release.clone()).await, @"refused: `web` of `ann` in pool `lan` is not yours");
    let manager = house.ledger.submit(Caller::new("bob").manager(), release, PATIENCE).await;
    assert_snapshot!(said(&manager.map(|done| done.reply)), @"10.0.3.50 released");
}

#[tokio::test]
pub(crate) async fn a_prefix_over_the_seam_of_two_ranges_is_as_good_as_any() {
    let house = House::new().await;
    house
        .make_so("sites", "10.4.0.0/24", |spec| {
            prefixes(23)(spec);
            spec.ranges = vec!["10.4.1.0/24".parse().unwrap(), "10.4.0.0/24".parse().unwrap()];
        })
        .await;
    assert_eq!(house.claim("ann", "sites", "campus").await, "10.4.0.0/23");
    let report = netstead_ledger::check::check(&*house.store).await.unwrap();
    assert_eq!((report.problems, report.claims), (Vec::new(), 1));
}
