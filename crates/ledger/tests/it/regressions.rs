//! Schedules that once went wrong here, each as short as it could be made.

use std::{sync::Arc, time::Duration};

use insta::assert_snapshot;
use netstead_ledger::{Command, Freshness, LedgerError, Options, Report, Sighting};
use netstead_model::{ClaimRequest, Ident, PoolChoice, Span, Want};
use netstead_store::{Commit, FaultyStore, faults::Fault};

use crate::support::{House, any, claim, exact, key, living, prefixes, restless, spec, target};

/// Exactly this prefix, even while it rests for another key.
fn by_force(prefix: &str) -> impl FnOnce(&mut ClaimRequest) {
    let (address, length) = prefix.split_once('/').unwrap();
    let (address, length) = (address.parse().unwrap(), length.parse().unwrap());
    move |request| (request.want, request.length, request.force) = (Want::Exact(address), Some(length), true)
}

fn reserve(pool: &str, name: &str, range: &str) -> Command {
    let range = range.parse().unwrap();
    Command::Reserve { pool: pool.parse().unwrap(), key: key(name), range, description: None }
}

#[tokio::test]
pub(crate) async fn behind_a_resting_prefix_there_may_be_a_holder() {
    let house = House::new().await;
    house.make_so("sites", "10.1.0.0/24", prefixes(26)).await;
    house.claim("ann", "sites", "first").await;
    house.claim("ann", "sites", "second").await;
    house.release("ann", "sites", "first").await;
    // 10.1.0.0/26 rests and may be taken by force; 10.1.0.64/26 is held and may not.
    assert_snapshot!(house.say("bob", claim("sites", "all", by_force("10.1.0.0/24"))).await, @"refused: 10.1.0.64/26 is held by `second` of `ann` in pool `sites`");
    let own = claim("sites", "first", |request| {
        (request.want, request.length) = (Want::Exact("10.1.0.0".parse().unwrap()), Some(24));
    });
    assert_snapshot!(house.say("ann", own).await, @"refused: 10.1.0.64/26 is held by `second` of `ann` in pool `sites`");
}

#[tokio::test]
pub(crate) async fn a_resting_prefix_does_not_come_back_over_what_was_forced_out_of_it() {
    let house = House::new().await;
    house.make_so("sites", "10.1.0.0/24", prefixes(24)).await;
    house.claim("ann", "sites", "all").await;
    house.release("ann", "sites", "all").await;
    assert_snapshot!(house.say("bob", claim("sites", "part", by_force("10.1.0.64/26"))).await, @"10.1.0.64/26 for part of bob, new");
    // Neither to its old key nor, because nothing else is free, early.
    assert_snapshot!(house.say("ann", any("sites", "all")).await, @"refused: pool `sites` has no free address; 256 are resting, and the next is free in 1m");
    house.pass(60).await;
    assert_snapshot!(house.say("cid", any("sites", "other")).await, @"refused: pool `sites` has no free address; 256 are resting");
}

#[tokio::test]
pub(crate) async fn a_pool_inside_a_prefix_leaves_the_prefix_alone_when_it_goes() {
    let house = House::new().await;
    house.make_so("sites", "10.1.0.0/16", prefixes(24)).await;
    house.claim("ann", "sites", "home").await;
    house.make_so("rooms", "10.1.0.0/24", prefixes(26)).await;
    // 10.1.0.0/26 begins where 10.1.0.0/24 does.
    house.claim("ann", "rooms", "kitchen").await;
    house.release("ann", "rooms", "kitchen").await;
    let delete = Command::DeletePool { name: "rooms".parse().unwrap(), force: None, if_version: None };
    house.ask("admin", delete).await.unwrap();
    let mut changed = spec("sites", "10.1.0.0/16");
    prefixes(25)(&mut changed);
    house.ask("admin", Command::UpdatePool { spec: changed.into(), if_version: None }).await.unwrap();
    assert_eq!(house.claim("ann", "sites", "other").await, "10.1.1.0/25");
    let house = house.restart().await;
    assert_eq!(house.holder("sites", "home").await.unwrap().held(), "10.1.0.0/24");
    assert_eq!(house.claim("bob", "sites", "third").await, "10.1.1.128/25");
}

#[tokio::test]
pub(crate) async fn a_refused_bulk_leaves_no_claim_behind_in_a_pool_inside_a_prefix() {
    let house = House::new().await;
    house.make_so("a-sites", "10.1.0.0/24", prefixes(26)).await;
    house.ask("ann", claim("a-sites", "small", exact("10.1.0.64"))).await.unwrap();
    house.release("ann", "a-sites", "small").await;
    house.ask("ann", claim("a-sites", "home", by_force("10.1.0.0/24"))).await.unwrap();
    house.make_so("rooms", "10.1.0.0/24", prefixes(26)).await;
    let failing = claim("rooms", "x", exact("192.0.2.1"));
    let bulk = Command::Bulk(vec![claim("rooms", "kitchen", exact("10.1.0.64")), failing]);
    assert!(house.say("ann", bulk).await.starts_with("refused"));
    assert_eq!(house.holder("rooms", "kitchen").await, None);
}

#[tokio::test]
pub(crate) async fn reservations_of_pools_inside_each_other_are_kept_apart() {
    let house = House::new().await;
    house.make_so("sites", "10.1.0.0/16", prefixes(24)).await;
    house.claim("ann", "sites", "home").await;
    house.make_so("rooms", "10.1.0.0/24", prefixes(26)).await;
    house.ask("ann", reserve("sites", "outer", "10.1.0.0/25")).await.unwrap();
    house.ask("ann", reserve("rooms", "inner", "10.1.0.0/26")).await.unwrap();
    let house = house.restart().await;
    let outer = house.pool("sites").await.usage;
    assert_eq!((outer.held, outer.reserved), (256, 0), "what is held is not reserved");
    assert_eq!(house.pool("rooms").await.usage.reserved, 64);
    let kept = house.ledger.read(Freshness::Stale, |book| book.reservations().count()).await.unwrap().value;
    assert_eq!(kept, 2);
}

#[tokio::test]
pub(crate) async fn a_prefix_over_two_reservations_is_for_neither_owner() {
    let house = House::new().await;
    house.make_so("sites", "10.1.0.0/24", prefixes(24)).await;
    house.ask("ann", reserve("sites", "hers", "10.1.0.0/26")).await.unwrap();
    house.ask("bob", reserve("sites", "his", "10.1.0.64/26")).await.unwrap();
    assert_snapshot!(house.say("ann", claim("sites", "all", exact("10.1.0.0"))).await, @"refused: 10.1.0.0/24 is reserved for `his` of `bob` in pool `sites`");
}

#[tokio::test]
pub(crate) async fn a_prefix_may_lie_over_the_seam_of_two_ranges() {
    let house = House::new().await;
    let seam = |spec: &mut netstead_model::PoolSpec| {
        prefixes(29)(spec);
        spec.ranges = vec!["10.1.0.0-10.1.0.11".parse().unwrap(), "10.1.0.12-10.1.0.15".parse().unwrap()];
    };
    house.make_so("sites", "10.1.0.0/24", seam).await;
    house.claim("ann", "sites", "a").await;
    assert_eq!(house.claim("ann", "sites", "b").await, "10.1.0.8/29");
    let mut described = spec("sites", "10.1.0.0/24");
    seam(&mut described);
    described.description = Some("two ranges, side by side".into());
    assert!(
        house.ask("admin", Command::UpdatePool { spec: described.into(), if_version: None }).await.is_ok()
    );
    house.release("ann", "sites", "b").await;
    assert_eq!(house.claim("ann", "sites", "b").await, "10.1.0.8/29");
}

#[tokio::test]
pub(crate) async fn the_last_of_several_addresses_comes_back_whoever_leads() {
    let house = House::with_lan().await;
    house.ask("ann", claim("lan", "web", exact("10.0.3.55"))).await.unwrap();
    house.release("ann", "lan", "web").await;
    house.pass(1).await;
    house.ask("ann", claim("lan", "web", exact("10.0.3.52"))).await.unwrap();
    house.release("ann", "lan", "web").await;
    let house = house.restart().await;
    assert_eq!(house.claim("ann", "lan", "web").await, "10.0.3.52");
    // And when that is gone, the one before.
    house.release("ann", "lan", "web").await;
    let forced = claim("lan", "thief", |request| {
        (request.want, request.force) = (Want::Exact("10.0.3.52".parse().unwrap()), true);
    });
    house.ask("bob", forced).await.unwrap();
    assert_eq!(house.claim("ann", "lan", "web").await, "10.0.3.55");
}

#[tokio::test]
pub(crate) async fn what_is_refused_lengthens_no_lease() {
    let house = House::with_lan().await;
    house.ask("ann", claim("lan", "web", living(60))).await.unwrap();
    house.pass(50).await;
    let renew = Command::Renew { target: target("lan", "web", None), ttl: None };
    let bulk = Command::Bulk(vec![renew, claim("lan", "x", exact("192.0.2.1"))]);
    assert!(house.say("ann", bulk).await.starts_with("refused"));
    let mut described = spec("lan", "10.0.3.50-10.0.3.59");
    described.description = Some("nothing about leases".into());
    house.ask("admin", Command::UpdatePool { spec: described.into(), if_version: None }).await.unwrap();
    house.pass(10).await;
    assert_eq!(house.holder("lan", "web").await, None);
}

#[tokio::test]
pub(crate) async fn many_machines_on_one_address_are_one_sighting() {
    let house = House::new().await;
    house.make("docker", "172.17.0.0/24").await;
    // Every address twice, with another note each: more changes than one commit takes.
    let twice = (1..200).flat_map(|n| [(n, "one"), (n, "two")]);
    let sighting = |(n, note): (u32, &str)| Sighting {
        address: format!("172.17.0.{n}").parse().unwrap(),
        note: Some(note.to_owned()),
    };
    let report = Report {
        source: "docker".parse().unwrap(),
        vrf: Ident::default_vrf(),
        complete: true,
        seen: twice.map(sighting).collect(),
        grace: Span::ZERO,
        ttl: None,
    };
    let answer = tokio::time::timeout(Duration::from_secs(20), house.ask("docker", Command::Observe(report)));
    assert!(answer.await.expect("it should come to an end").is_ok());
    assert_eq!(house.pool("docker").await.usage.observed, 199);
}

#[tokio::test]
pub(crate) async fn who_waits_for_a_prefix_is_not_given_an_address() {
    let house = House::new().await;
    house.make_so("sites", "10.1.0.0/26", prefixes(26)).await;
    house.make_so("lan", "10.2.0.1", restless).await;
    house.claim("ann", "sites", "all").await;
    let either = claim("sites", "web", |request| {
        request.from = PoolChoice::Pools(vec!["sites".parse().unwrap(), "lan".parse().unwrap()]);
        (request.length, request.wait, request.keep) = (Some(26), Some(Span::ZERO), true);
    });
    assert_eq!(house.say("bob", either).await, "web waits");
    house.pass(0).await;
    assert_eq!(house.pool("lan").await.usage.free, 1);
    // Nor does it hold up those who want one.
    assert_eq!(house.claim("cid", "lan", "db").await, "10.2.0.1");
}

#[tokio::test]
pub(crate) async fn what_did_not_fit_beside_a_resume_is_not_written() {
    let house = House::new().await;
    house.make("lan", "10.0.0.0/16").await;
    house.ledger.close().await;
    // A store as a restore leaves it: paused.
    let entry = house.store.get(b"ledger/head").await.unwrap().unwrap();
    let paused = String::from_utf8(entry.value).unwrap().replacen('{', "{\"paused\":true,", 1);
    house.store.commit(Commit::new().put("ledger/head", paused)).await.unwrap();
    let store = Arc::new(FaultyStore::new(house.store.clone()));
    let house = House::on(store.clone(), Options::default()).await;
    store.script([Fault::Delay(Duration::from_millis(50)), Fault::Fail]);
    // All three come together; the second bulk is put off, and its own commit fails.
    let bulk = |name: &str| Command::Bulk((0..64).map(|n| any("lan", &format!("{name}{n}"))).collect());
    let (resume, first) = (house.ask("admin", Command::Resume), house.ask("ann", bulk("a")));
    let (resume, first, second) = tokio::join!(resume, first, house.ask("bob", bulk("b")));
    assert!(resume.is_ok() && first.is_ok());
    assert!(matches!(second, Err(LedgerError::Unavailable { .. })), "{second:?}");
    let keys = house.store.snapshot().await.unwrap().range(b"ledger/addr/", None, 1000).await.unwrap();
    assert_eq!(keys.len(), 64);
}
