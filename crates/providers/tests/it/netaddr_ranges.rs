//! Ranges that change while both kinds of clients work on them: bounds, overlaps, and the leases of what a process leaves behind.

use std::{sync::Arc, time::Duration};

use netstead_providers::netaddr::{Listed, Netaddr, NetaddrError, NetaddrOptions, NewRange, RangeType};
use netstead_testkit::{NetaddrClient, netaddr_ipv4, wait_until};
use netstead_wire::etcd::EtcdConnection;
use tokio::{sync::Barrier, time::sleep};

use crate::netaddr::{Bench, LAN, client, v4};

const SOON: Duration = Duration::from_secs(30);

fn range(prefix: &str, first: &str, last: &str) -> NewRange {
    NewRange::parse(prefix, RangeType::Ipv4, first, last).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_range_in_use_is_not_deleted_and_its_neighbour_never() {
    let Some(bench) = Bench::start() else { return };
    bench.range("/r/ipv4", "10.0.3.50", "10.0.3.60").await;
    bench.range("/r/ipv4-extras/", "10.0.4.50", "10.0.4.60").await;
    let at = ["/r/ipv4".to_owned()];
    let claimed = bench.ours.claim(&at, None, "web").await.unwrap();
    let refused = bench.ours.delete_range("/r/ipv4").await.unwrap_err();
    assert_eq!(refused.to_string(), "the range `/r/ipv4` has 1 addresses in use, such as `web`");
    bench.ours.release("/r/ipv4", "web", &claimed.address, None).await.unwrap();
    assert!(bench.ours.delete_range("/r/ipv4").await.unwrap());
    assert!(!bench.ours.delete_range("/r/ipv4").await.unwrap(), "it is gone already");
    assert!(bench.ours.range("/r/ipv4-extras/").await.unwrap().is_some());
    assert_eq!(bench.original().dump("/r/ipv4").unwrap().len(), 4, "only the neighbour's keys are left");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_range_is_made_larger_and_smaller_in_place() {
    let Some(bench) = Bench::start() else { return };
    bench.range(LAN, "10.0.3.50", "10.0.3.51").await;
    assert_eq!((bench.claim("a").await, bench.claim("b").await), ("10.0.3.50".into(), "10.0.3.51".into()));
    let resize = async |first: &str, last: &str| {
        let range = NewRange::parse(LAN, RangeType::Ipv4, first, last).unwrap();
        bench.ours.resize_range(&range).await.map_err(|error| error.to_string())
    };
    resize("10.0.3.50", "10.0.3.60").await.unwrap();
    assert_eq!(bench.claim("c").await, "10.0.3.52");
    resize("10.0.3.40", "10.0.3.60").await.unwrap();
    assert_eq!(bench.claim("d").await, "10.0.3.40", "what came in at the start is free");
    bench.is_sound(LAN).await;
    let refused = resize("10.0.3.45", "10.0.3.60").await.unwrap_err();
    assert_eq!(refused, "1 addresses in use would be outside, such as 10.0.3.40 of `d`");
    bench.release("d", "10.0.3.40").await;
    resize("10.0.3.50", "10.0.3.53").await.unwrap();
    assert_eq!(bench.claim("e").await, "10.0.3.53");
    let full = bench.ours.claim(&[LAN.to_owned()], None, "f").await.map_err(|error| error.to_string());
    assert_eq!(full, Err("no address is free in `/ranges/lan/`".into()));
    bench.is_sound(LAN).await;
    let other = NewRange::parse("/ranges/other/", RangeType::Ipv4, "10.0.3.53", "10.0.3.99").unwrap();
    assert_eq!(bench.ours.overlapping(&other).await.unwrap(), [LAN]);
}

/// A first attempt wrote the list before the bounds, and did not change the bounds.
///
/// 1. The address is listed as given back. 2. A client takes it. 3. The second attempt lists it again. 4. Another client gets it too.
#[tokio::test(flavor = "multi_thread")]
async fn a_range_that_grows_downwards_lists_no_address_that_a_client_got_meanwhile() {
    let Some(bench) = Bench::start() else { return };
    bench.range(LAN, "10.0.3.50", "10.0.3.60").await;
    bench.claim("web").await;
    let mut original = bench.original();
    let early = netaddr_ipv4([10, 0, 3, 45]);
    let listed = [LAN.as_bytes(), b"data/address/deleted/", &early].concat();
    original.put(&listed, b"").unwrap();
    assert_eq!(original.create_generated(&[LAN], "taker").unwrap(), Some(early.clone()));
    bench.ours.resize_range(&range(LAN, "10.0.3.44", "10.0.3.60")).await.unwrap();
    let freed: Vec<_> = bench.ours.list(LAN, Listed::Deleted).await.unwrap();
    let freed: Vec<String> = freed.iter().map(|one| one.address.text(RangeType::Ipv4)).collect();
    assert_eq!(freed, ["10.0.3.44", "10.0.3.46", "10.0.3.47", "10.0.3.48", "10.0.3.49"]);
    for _ in 0..6 {
        let name = format!("n{}", original.dump(LAN).unwrap().len());
        assert_ne!(original.create_generated(&[LAN], &name).unwrap(), Some(early.clone()));
    }
    bench.is_sound(LAN).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_range_changes_its_bounds_while_clients_of_both_kinds_claim() {
    let Some(bench) = Bench::start() else { return };
    bench.range(LAN, "10.0.3.100", "10.0.5.255").await;
    let mut original = bench.original();
    let theirs = tokio::task::spawn_blocking(move || {
        for number in 0..60 {
            let name = format!("theirs-{number}");
            let address = original.create_generated(&[LAN], &name).unwrap();
            if let (Some(address), 0) = (address, number % 2) {
                original.delete_generated(LAN, &name, &address).unwrap();
            }
        }
    });
    let ours = client(&bench.etcd);
    let claims = tokio::spawn(async move {
        for number in 0..60 {
            let name = format!("ours-{number}");
            let claimed = ours.claim(&[LAN.to_owned()], None, &name).await.unwrap();
            if number % 2 == 0 {
                ours.release(LAN, &name, &claimed.address, None).await.unwrap();
            }
        }
    });
    for first in (40..100).rev().step_by(7) {
        let wanted = range(LAN, &format!("10.0.3.{first}"), "10.0.5.255");
        bench.ours.resize_range(&wanted).await.unwrap();
        sleep(Duration::from_millis(5)).await;
    }
    theirs.await.unwrap();
    claims.await.unwrap();
    bench.is_sound(LAN).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_range_that_grows_far_downwards_is_whole_after_every_step() {
    let Some(bench) = Bench::start() else { return };
    bench.range(LAN, "10.0.9.0", "10.0.9.9").await;
    for name in ["a", "b"] {
        bench.claim(name).await;
    }
    bench.ours.resize_range(&range(LAN, "10.0.7.0", "10.0.9.9")).await.unwrap();
    assert_eq!(bench.ours.list(LAN, Listed::Deleted).await.unwrap().len(), 512);
    assert_eq!(bench.claim("c").await, "10.0.7.0");
    bench.is_sound(LAN).await;
    bench.ours.resize_range(&range(LAN, "10.0.0.0", "10.0.9.9")).await.unwrap();
    let far = bench.ours.resize_range(&range(LAN, "9.0.0.0", "10.0.9.9")).await.unwrap_err().to_string();
    assert!(far.ends_with("4096 at most can be"), "{far}");
    bench.is_sound(LAN).await;
    // One in which nothing is held begins anew elsewhere, and nothing of the old place is left.
    for (name, address) in [("a", "10.0.9.0"), ("b", "10.0.9.1"), ("c", "10.0.7.0")] {
        bench.release(name, address).await;
    }
    bench.ours.resize_range(&range(LAN, "10.0.20.1", "10.0.20.9")).await.unwrap();
    assert_eq!(bench.claim("d").await, "10.0.20.1");
    assert!(bench.ours.list(LAN, Listed::Deleted).await.unwrap().is_empty());
    bench.is_sound(LAN).await;
    bench.release("d", "10.0.20.1").await;
    bench.ours.resize_range(&range(LAN, "10.0.19.1", "10.0.19.9")).await.unwrap();
    assert_eq!(bench.claim("e").await, "10.0.19.1");
    bench.is_sound(LAN).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_ranges_that_overlap_and_are_made_at_once_one_stays() {
    let Some(bench) = Bench::start() else { return };
    for round in 0..20 {
        let at = |name: &str| format!("/round-{round}/{name}/");
        let one = range(&at("a"), "10.0.3.1", "10.0.3.50");
        let other = range(&at("b"), "10.0.3.50", "10.0.3.99");
        let elsewhere = client(&bench.etcd);
        let made = tokio::join!(bench.ours.create_range_alone(&one), elsewhere.create_range_alone(&other));
        let there =
            [bench.ours.range(&one.prefix).await.unwrap(), bench.ours.range(&other.prefix).await.unwrap()];
        let there = there.iter().flatten().count();
        assert_eq!((usize::from(made.0.is_ok()) + usize::from(made.1.is_ok()), there), (1, 1), "{made:?}");
        let refused = [made.0, made.1].into_iter().find_map(Result::err).unwrap().to_string();
        assert!(refused.contains("` overlaps with `/round-"), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fixed_address_of_a_plan_is_kept_in_a_range_that_the_same_plan_makes() {
    let Some(bench) = Bench::start() else { return };
    let (ranges, wanted) = ([LAN.to_owned()], v4("10.0.3.50"));
    let none = bench.ours.foresee(&ranges, RangeType::Ipv4, "dns", Some(&wanted)).await;
    assert_eq!(none, Err(NetaddrError::NoRange { range: LAN.into() }));
    let other = range("/ranges/other/", "10.0.3.50", "10.0.3.60");
    assert!(bench.ours.overlapping(&other).await.unwrap().is_empty(), "a kept address is no range");
    bench.range(LAN, "10.0.3.50", "10.0.3.60").await;
    assert_eq!(bench.claim("web").await, "10.0.3.51", "a generated address goes round it");
    assert_eq!(bench.claim_fixed("dns", "10.0.3.50").await.unwrap(), "10.0.3.50");
    bench.is_sound(LAN).await;
}

/// An apply: it marks its creations, for as long as `mark_time`.
fn apply(bench: &Bench, origin: &str, mark_time: Duration) -> Netaddr {
    let connection = EtcdConnection::new(bench.etcd.endpoints());
    let (patience, origin) = (Duration::from_secs(10), Some(origin.to_owned()));
    Netaddr::new(NetaddrOptions { patience, origin, mark_time, ..NetaddrOptions::new(connection) }).unwrap()
}

/// The leases that etcd has.
fn leases(bench: &Bench) -> Vec<String> {
    let listed = bench.etcd.ctl(&["lease", "list"]).unwrap();
    let is_id = |line: &&str| line.len() == 16 && line.chars().all(|c| c.is_ascii_hexdigit());
    listed.lines().map(str::trim).filter(is_id).map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_apply_that_takes_longer_than_its_lease_goes_on_claiming_and_leaves_no_lease() {
    let Some(bench) = Bench::start() else { return };
    bench.range(LAN, "10.0.3.1", "10.0.3.200").await;
    let ours = apply(&bench, "one", Duration::from_secs(6));
    let claim = async |name: &str| ours.claim(&[LAN.to_owned()], None, name).await;
    claim("first").await.unwrap();
    let first = leases(&bench);
    assert_eq!(first.len(), 1);
    // A second one is granted before the first ends.
    for number in 0..100 {
        claim(&format!("n{number}")).await.unwrap();
        if leases(&bench).len() == 2 {
            break;
        }
        sleep(Duration::from_millis(100)).await;
    }
    let both = leases(&bench);
    assert!(both.len() == 2 && both.contains(&first[0]), "{both:?}");
    // Marks of either lease are its own.
    assert!(!ours.was_cut_off(LAN, "first").await.unwrap());
    let next = apply(&bench, "one", Duration::from_mins(1));
    assert!(next.was_cut_off(LAN, "first").await.unwrap());
    // The first one has ended.
    let gone = wait_until(SOON, || (!leases(&bench).contains(&first[0])).then_some(()));
    assert!(gone.is_some(), "{:?}", leases(&bench));
    claim("last").await.unwrap();
    // etcd ends one early, as an operator would by hand.
    for lease in leases(&bench) {
        bench.etcd.ctl(&["lease", "revoke", &lease]).unwrap();
    }
    let claimed = claim("after").await.unwrap();
    assert!(claimed.made);
    let wanted = v4("10.0.3.199");
    for lease in leases(&bench) {
        bench.etcd.ctl(&["lease", "revoke", &lease]).unwrap();
    }
    assert!(ours.claim_fixed(&[LAN.to_owned()], RangeType::Ipv4, "fixed", &wanted).await.unwrap().made);
    ours.close().await;
    assert!(leases(&bench).is_empty(), "{:?}", leases(&bench));
    bench.is_sound(LAN).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_that_ask_at_once_begin_one_mirror_and_it_is_loaded() {
    let Some(bench) = Bench::start() else { return };
    let connection = EtcdConnection::new(bench.etcd.endpoints());
    let ours = Netaddr::new(NetaddrOptions { mirror: true, ..NetaddrOptions::new(connection) }).unwrap();
    let mut ranges = Vec::new();
    for number in 0..60 {
        let prefix = format!("/many/{number}/");
        bench.range(&prefix, "10.0.3.50", "10.0.3.60").await;
        let start = Arc::new(Barrier::new(8));
        let callers: Vec<_> = (0..8)
            .map(|_| {
                let (ours, prefix, start) = (ours.clone(), prefix.clone(), Arc::clone(&start));
                tokio::spawn(async move {
                    start.wait().await;
                    ours.changed(&prefix);
                })
            })
            .collect();
        for caller in callers {
            caller.await.unwrap();
        }
        ranges.push(prefix);
    }
    let loaded = wait_until(SOON, || ranges.iter().all(|range| ours.changed(range).is_some()).then_some(()));
    let missing: Vec<_> = ranges.iter().filter(|range| ours.changed(range).is_none()).collect();
    assert!(loaded.is_some(), "never loaded: {missing:?}");
}

/// The race of three transactions (a fixed creation of the original that looked before a release), with ours as the third client.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_rounds_of_the_race_for_a_freed_address_give_it_once() {
    let Some(bench) = Bench::start() else { return };
    bench.range(LAN, "10.0.3.50", "10.0.3.60").await;
    let mut original: NetaddrClient = bench.original();
    for round in 0..1000 {
        let held = bench.claim("web").await;
        let bytes = v4(&held).into_bytes();
        let creation = original.begin_hardcoded(LAN, "fixed", &bytes).unwrap();
        bench.release("web", &held).await;
        assert!(original.finish_hardcoded(&creation).unwrap());
        let third = bench.claim("third").await;
        assert_ne!(third, held, "round {round}");
        bench.release("third", &third).await;
        assert!(original.delete_hardcoded(LAN, "fixed", &bytes).unwrap());
    }
    bench.is_sound(LAN).await;
}
