//! The stories that every server goes through.

use std::time::Duration;

use netstead_engine::Adoption;
use netstead_model::{Marks, RecordType};

use super::{
    backend::{BUSY, Backend, Failure},
    installation::{Installation, addresses, by_hand, snapshot},
};
use crate::support::{ZONE, a, context, name, set};

/// How long a silent server is waited for.
const SILENCE: Duration = Duration::from_millis(400);
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

pub async fn revoked_credentials_lose_nothing<B: Backend>(server: &mut B) {
    if !B::HAS_CREDENTIALS {
        return;
    }
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

/// Half a listing is no listing: what it lacks is not taken for gone, nor written twice.
pub async fn a_listing_that_breaks_off_changes_nothing(server: &mut impl Backend) {
    let mut blue = settled(server).await;
    let before = snapshot(server).await;
    // A process that starts has to read everything.
    blue.stop().await;
    blue.wants(&[("two", "10.0.0.2"), ("three", "10.0.0.3")]);
    server.cut_listings();
    for _ in 0..2 {
        let report = blue.pass(server).await;
        assert!(!report.is_in_sync() && report.applied == 0, "{report:?}");
    }
    server.heal();
    assert_eq!(snapshot(server).await, before);
    blue.settles(server).await;
    assert_eq!(addresses(server).await, ["hand 192.0.2.3", "three 10.0.0.3", "two 10.0.0.2"]);
    blue.stop().await;
}

/// A server that accepts connections and never answers: each request ends in its time, and nothing is taken for gone or done.
pub async fn a_server_that_falls_silent_gets_what_it_missed(server: &mut impl Backend) {
    let mut blue = settled(server).await;
    let before = snapshot(server).await;
    blue.waits_at_most(SILENCE);
    for (round, changes) in [(1, false), (2, true)] {
        blue.stop().await;
        let address = format!("10.0.{round}.3");
        blue.wants(&[("two", "10.0.0.2"), ("three", &address)]);
        // The guards remember what was changed.
        blue.rest(Duration::from_mins(11));
        if !server.fall_silent(changes) {
            return;
        }
        let failed = server.failed();
        for _ in 0..2 {
            let report = blue.pass(server).await;
            assert!(!report.is_in_sync() && report.applied == 0, "silent for changes: {changes}: {report:?}");
        }
        assert!(server.failed() > failed, "it was not silent");
        server.heal();
        if round == 1 {
            assert_eq!(snapshot(server).await, before);
        }
        blue.settles(server).await;
        let three = format!("three {address}");
        assert_eq!(addresses(server).await, ["hand 192.0.2.3", &three, "two 10.0.0.2"]);
        assert_eq!(blue.pass(server).await.applied, 0, "a second pass should write nothing");
    }
    blue.stop().await;
}

/// The first change of a write, or the second one, is refused for now, fails, or loses its answer. What follows writes what is
/// missing, and then nothing more.
pub async fn a_change_that_fails_is_made_up_for<B: Backend>(server: &mut B) {
    let mut blue = settled(server).await;
    let failures = B::FAILURES.iter().flat_map(|failure| [(0, *failure), (1, *failure)]);
    let rounds = (1..).zip(failures);
    for (round, (passing, failure)) in rounds {
        let hosts = ["one", "two", "three"].map(|host| (host, format!("10.0.{round}.{}", host.len())));
        let comes = (format!("w{round}"), format!("10.1.0.{round}"));
        let mut wanted: Vec<(&str, &str)> = hosts.iter().map(|(host, at)| (*host, at.as_str())).collect();
        wanted.push((&comes.0, &comes.1));
        blue.wants(&wanted);
        // Longer than the guards remember what was changed.
        blue.rest(Duration::from_mins(11));
        let failed = server.failed();
        server.fail_change(passing, failure);
        blue.pass(server).await;
        server.heal();
        // A server that takes everything in one request never sees a second change.
        assert!(server.failed() > failed || passing > 0, "{failure:?} did not happen");
        if failure == Failure::Busy {
            tokio::time::sleep(BUSY).await;
        }
        blue.settles(server).await;
        wanted.push(HAND);
        wanted.sort_unstable();
        let wanted: Vec<String> = wanted.iter().map(|(host, at)| format!("{host} {at}")).collect();
        assert_eq!(addresses(server).await, wanted, "after {failure:?} at change {passing}");
        assert_eq!(
            blue.pass(server).await.applied,
            0,
            "after {failure:?} a second pass should write nothing"
        );
    }
    blue.stop().await;
}

/// Each record is on the server in the end, or the plan says that the server cannot hold it; none is sent in vain.
pub async fn what_it_cannot_hold_is_refused_in_the_plan(server: &mut impl Backend) {
    let mut blue = settled(server).await;
    let wanted = [
        a(&format!("*.apps.{ZONE}"), &["10.0.0.9"]),
        set(&format!("text.{ZONE}"), RecordType::Txt, &[r#""a\001b""#]),
        set(&format!("mail.{ZONE}"), RecordType::Mx, &["10 mail.example.net."]),
        set(&format!("_web._tcp.{ZONE}"), RecordType::Srv, &["1 2 443 host.example.net."]),
        set(&format!("alias.{ZONE}"), RecordType::Cname, &[&format!("one.{ZONE}.")]),
    ];
    blue.wants_records(&wanted);
    blue.settles(server).await;
    let report = blue.pass(server).await;
    let refused = &report.plan.as_ref().unwrap().as_dns().unwrap().refused;
    let there = snapshot(server).await;
    for record in &wanted {
        let stands = there.iter().any(|set| (&set.name, set.kind) == (&record.name, record.kind));
        let said: Vec<&str> =
            refused.iter().filter(|one| one.name == record.name).map(|one| one.why.as_str()).collect();
        assert_eq!(said.is_empty(), stands, "{record:?}: {said:?}");
        assert!(said.iter().all(|why| why.starts_with("`lan-1` cannot hold ")), "{said:?}");
    }
    assert_eq!(blue.engine().status().providers[0].rejected, []);
    blue.stop().await;
}

pub async fn one_of_two_servers_may_die<B: Backend>(server: &mut B) {
    let Some(mut other) = B::start_with_access() else { return };
    let mut blue = Installation::new("blue");
    blue.wants(&[("one", "10.0.0.1"), ("two", "10.0.0.2")]);
    blue.settles_on(&[server, &other]).await;
    other.stop();
    blue.wants(&[("two", "10.0.0.2"), ("three", "10.0.0.3")]);
    let reports = blue.pass_on(&[server, &other]).await;
    let [alive, dead] = reports.as_slice() else { panic!("{reports:?}") };
    assert!(alive.is_in_sync(), "{alive:?}");
    assert!(!dead.is_in_sync() && dead.applied == 0, "{dead:?}");
    let both = ["three 10.0.0.3", "two 10.0.0.2"];
    assert_eq!(addresses(server).await, both);
    other.restart();
    assert_eq!(addresses(&other).await, ["one 10.0.0.1", "two 10.0.0.2"]);
    blue.settles_on(&[server, &other]).await;
    assert_eq!(
        (addresses(server).await, addresses(&other).await),
        (both.map(str::to_owned).into(), both.map(str::to_owned).into())
    );
    blue.stop().await;
}
