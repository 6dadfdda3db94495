//! The stories that every server goes through.

use netstead_engine::Adoption;
use netstead_model::Marks;

use super::{
    backend::Backend,
    installation::{Installation, addresses, by_hand, snapshot},
};
use crate::support::{ZONE, context, name};

const HAND: (&str, &str) = ("hand", "192.0.2.3");

/// A server with one address made by hand, and an installation that has written `one` and `two` to it.
async fn settled(server: &impl Backend) -> Installation {
    by_hand(server, None, Some(HAND)).await;
    let mut blue = Installation::new("blue");
    blue.wants(&[("one", "10.0.0.1"), ("two", "10.0.0.2")]);
    blue.settles(server).await;
    assert_eq!(addresses(server).await, ["hand 192.0.2.3", "one 10.0.0.1", "two 10.0.0.2"]);
    blue
}

pub async fn names_come_change_and_go(server: &mut impl Backend) {
    let mut blue = settled(server).await;
    let before = snapshot(server).await;
    for _ in 0..3 {
        assert_eq!(blue.pass(server).await.applied, 0, "a repeat should write nothing");
    }
    assert_eq!(snapshot(server).await, before, "a repeat should change nothing");
    blue.wants(&[("one", "10.0.0.7"), ("three", "10.0.0.3")]);
    blue.settles(server).await;
    assert_eq!(addresses(server).await, ["hand 192.0.2.3", "one 10.0.0.7", "three 10.0.0.3"]);
    blue.wants(&[]);
    blue.settles(server).await;
    assert_eq!(addresses(server).await, ["hand 192.0.2.3"]);
    blue.stop().await;
}

pub async fn values_of_others_stay(server: &mut impl Backend) {
    let mut blue = settled(server).await;
    // A name that another program has, and one that it takes away from us.
    blue.wants(&[("hand", "10.0.0.9"), ("one", "10.0.0.1"), ("two", "10.0.0.2")]);
    blue.pass(server).await;
    assert_eq!(blue.engine().status().providers[0].blocked, 1);
    assert_eq!(addresses(server).await, ["hand 192.0.2.3", "one 10.0.0.1", "two 10.0.0.2"]);
    blue.wants(&[("two", "10.0.0.2")]);
    by_hand(server, Some(("one", "10.0.0.1")), Some(("one", "192.0.2.4"))).await;
    blue.pass(server).await;
    blue.pass(server).await;
    assert_eq!(addresses(server).await, ["hand 192.0.2.3", "one 192.0.2.4", "two 10.0.0.2"]);
    blue.stop().await;
}

pub async fn a_restart_with_the_store_writes_nothing_and_knows_what_is_ours(server: &mut impl Backend) {
    let mut blue = settled(server).await;
    let before = snapshot(server).await;
    blue.stop().await;
    assert_eq!(blue.pass(server).await.applied, 0, "nothing should be written after a restart");
    assert_eq!(snapshot(server).await, before);
    blue.stop().await;
    blue.wants(&[("two", "10.0.0.2")]);
    blue.settles(server).await;
    assert_eq!(addresses(server).await, ["hand 192.0.2.3", "two 10.0.0.2"]);
    blue.stop().await;
}

pub async fn a_restart_without_the_store_touches_nothing_until_told(server: &mut impl Backend) {
    let mut blue = settled(server).await;
    let before = snapshot(server).await;
    blue.lose_store().await;
    blue.wants(&[("one", "10.0.0.7")]);
    for _ in 0..3 {
        blue.pass(server).await;
    }
    assert_eq!(snapshot(server).await, before, "what is not known as ours should stay");
    let marked = server.open(&context()).capabilities().marks != Marks::None;
    if marked {
        let taken = blue.engine().recover("blue".parse().unwrap(), None, false, "ann").await.unwrap();
        assert_eq!(taken[0].error, None);
        let plan = taken[0].report.as_ref().unwrap().plan.as_ref().unwrap().as_dns().unwrap();
        let hash = plan.parked.as_ref().unwrap().hash.to_string();
        blue.engine().approve(&hash, "ann").await.unwrap();
    } else {
        for host in ["one", "two"] {
            let take = Adoption::Name { name: name(&format!("{host}.{ZONE}")), kind: None };
            let taken = blue.engine().adopt(take, None, false, "ann").await.unwrap();
            assert_eq!(taken[0].values.len(), 1, "{host}");
        }
    }
    blue.settles(server).await;
    let left = addresses(server).await;
    let adopted: &[&str] = &["hand 192.0.2.3", "one 10.0.0.7"];
    assert!(
        left == adopted || (!marked && left == ["hand 192.0.2.3", "one 10.0.0.7", "two 10.0.0.2"]),
        "{left:?}"
    );
    blue.stop().await;
}

pub async fn revoked_credentials_lose_nothing(server: &mut impl Backend) {
    let mut blue = settled(server).await;
    let before = snapshot(server).await;
    server.revoke(true);
    blue.wants(&[("two", "10.0.0.2"), ("three", "10.0.0.3")]);
    for _ in 0..3 {
        let report = blue.pass(server).await;
        assert!(!report.is_in_sync() && report.applied == 0, "{report:?}");
        let status = &blue.engine().status().providers[0];
        assert!(!status.in_sync && status.pending > 0 || status.error.is_some(), "{status:?}");
    }
    server.revoke(false);
    assert_eq!(snapshot(server).await, before);
    blue.settles(server).await;
    assert_eq!(addresses(server).await, ["hand 192.0.2.3", "three 10.0.0.3", "two 10.0.0.2"]);
    blue.stop().await;
}

pub async fn a_server_that_goes_and_comes_back_gets_what_it_missed(server: &mut impl Backend) {
    let mut blue = settled(server).await;
    let before = snapshot(server).await;
    server.stop();
    blue.wants(&[("two", "10.0.0.2"), ("three", "10.0.0.3")]);
    let report = blue.pass(server).await;
    assert!(!report.is_in_sync() && report.applied == 0, "{report:?}");
    server.restart();
    assert_eq!(snapshot(server).await, before);
    blue.settles(server).await;
    assert_eq!(addresses(server).await, ["hand 192.0.2.3", "three 10.0.0.3", "two 10.0.0.2"]);
    blue.stop().await;
}

pub async fn two_installations_leave_each_other_alone(server: &mut impl Backend) {
    let mut blue = settled(server).await;
    let mut green = Installation::new("green");
    // One name of the other as it is, one with another address, and one of its own.
    green.wants(&[("one", "10.0.0.1"), ("two", "10.0.0.8"), ("three", "10.0.0.3")]);
    for _ in 0..2 {
        green.pass(server).await;
        blue.settles(server).await;
    }
    let both = ["hand 192.0.2.3", "one 10.0.0.1", "three 10.0.0.3", "two 10.0.0.2"];
    assert_eq!(addresses(server).await, both);
    // Each takes away its own, and no more.
    green.wants(&[]);
    green.settles(server).await;
    assert_eq!(addresses(server).await, ["hand 192.0.2.3", "one 10.0.0.1", "two 10.0.0.2"]);
    blue.settles(server).await;
    green.wants(&[("three", "10.0.0.3")]);
    green.settles(server).await;
    blue.wants(&[]);
    blue.settles(server).await;
    assert_eq!(addresses(server).await, ["hand 192.0.2.3", "three 10.0.0.3"]);
    green.settles(server).await;
    green.stop().await;
    blue.stop().await;
}
