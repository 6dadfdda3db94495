//! Promise 10: who had this, and when.

use std::{sync::Arc, time::Duration};

use insta::assert_snapshot;
use netstead_ledger::{Caller, Command, EventQuery, LedgerError, Options};
use netstead_model::{Event, EventKind, Labels, Span};

use crate::{
    store_under_test,
    support::{House, PATIENCE, any, claim, key, living, observe, restless, spec, target},
};

/// One line per event: what, by whom, from whom to whom.
fn event_lines(events: &[Arc<Event>]) -> String {
    let side = |subject: &Option<netstead_model::Subject>| match subject {
        Some(netstead_model::Subject::Claim(claim)) => format!("{} of {}", claim.key, claim.owner),
        Some(netstead_model::Subject::Pool(pool)) => format!("pool {}", pool.name()),
        Some(netstead_model::Subject::Reservation(reserved)) => {
            format!("{} {}", reserved.key, reserved.range)
        }
        Some(netstead_model::Subject::Waiting(waiting)) => format!("{} waiting", waiting.key),
        None => "-".into(),
    };
    let line = |event: &Arc<Event>| {
        let address = event.address().map(|address| format!(" {address}")).unwrap_or_default();
        let reason = event.reason.as_deref().map(|reason| format!(" ({reason})")).unwrap_or_default();
        let (before, after) = (side(&event.before), side(&event.after));
        format!("{}{address} by {}: {before} -> {after}{reason}", event.what.as_str(), event.by)
    };
    events.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
pub(crate) async fn every_change_of_a_holder_or_a_pool_leaves_an_event() {
    let house = House::with_lan().await;
    let mut wider = spec("lan", "10.0.3.50-10.0.3.69");
    wider.description = Some("wider".into());
    house.ask("admin", Command::UpdatePool { spec: wider.into(), if_version: None }).await.unwrap();
    house.ask("ann", claim("lan", "web", living(60))).await.unwrap();
    let label = Labels::new([("a".to_owned(), "b".to_owned())]).unwrap();
    house.ask("ann", claim("lan", "web", |request| request.labels = Some(label))).await.unwrap();
    let to = Some("bob".into());
    house
        .ask("ann", Command::Move { target: target("lan", "web", None), key: key("db"), owner: to })
        .await
        .unwrap();
    house.ask("cid!", claim("lan", "db", |request| request.adopt = true)).await.unwrap();
    house.pass(60).await;
    let (pool, range) = ("lan".parse().unwrap(), "10.0.3.55-10.0.3.56".parse().unwrap());
    let (name, none) = (key("spare"), None);
    house.ask("ann", Command::Reserve { pool, key: name, range, description: none }).await.unwrap();
    house.ask("ann", Command::Unreserve { pool: "lan".parse().unwrap(), key: key("spare") }).await.unwrap();
    house.claim("ann", "lan", "last").await;
    let (name, force) = ("lan".parse().unwrap(), Some("the lab moves".to_owned()));
    house.ask("admin", Command::DeletePool { name, force, if_version: None }).await.unwrap();
    assert_snapshot!(event_lines(&house.events().await), @r"
    pool-created by admin: - -> pool lan
    pool-updated by admin: pool lan -> pool lan
    claimed 10.0.3.50 by ann: - -> web of ann
    updated 10.0.3.50 by ann: web of ann -> web of ann
    moved 10.0.3.50 by ann: web of ann -> db of bob
    adopted 10.0.3.50 by cid: db of bob -> db of cid
    expired 10.0.3.50 by netstead: db of cid -> - (it was not renewed)
    reserved by ann: - -> spare 10.0.3.55-10.0.3.56
    unreserved by ann: spare 10.0.3.55-10.0.3.56 -> -
    claimed 10.0.3.51 by ann: - -> last of ann
    released 10.0.3.51 by admin: last of ann -> - (the lab moves)
    pool-deleted by admin: pool lan -> - (the lab moves)
    ");
}

#[tokio::test]
pub(crate) async fn renewals_repeats_and_sightings_leave_none() {
    let house = House::with_lan().await;
    house.ask("ann", claim("lan", "web", living(60))).await.unwrap();
    for _ in 0..20 {
        house.pass(30).await;
        house.ask("ann", Command::Renew { target: target("lan", "web", None), ttl: None }).await.unwrap();
        house.ask("ann", any("lan", "web")).await.unwrap();
        house.ask("proxmox", observe("pve", true, &["10.0.3.51"])).await.unwrap();
    }
    assert_eq!(house.log().await, ["pool-created", "claimed"]);
}

#[tokio::test]
pub(crate) async fn an_event_says_who_asked_with_which_request() {
    let house = House::with_lan().await;
    let mut caller = Caller::new("terraform");
    (caller.behalf, caller.request) = (Some("web-team".into()), Some("req-1".into()));
    house.ledger.submit(caller, any("lan", "web"), PATIENCE).await.unwrap();
    let events = house.events().await;
    let event = events.last().unwrap();
    assert_eq!((&*event.by, event.request.as_deref()), ("terraform", Some("req-1")));
    assert_eq!(&*event.claim().unwrap().owner, "web-team");
    assert_eq!(event.at, house.events().await[0].at);
}

#[tokio::test]
pub(crate) async fn history_is_found_by_address_by_key_and_by_time() {
    let house = House::with_lan().await;
    house.claim("ann", "lan", "web").await;
    house.claim("ann", "lan", "other").await;
    house.release("ann", "lan", "web").await;
    house.pass(7200).await;
    house.claim("bob", "lan", "db").await;
    let to = Command::Move { target: target("lan", "db", None), key: key("web"), owner: None };
    house.ask("bob", to).await.unwrap();
    let by_address = EventQuery { address: Some("10.0.3.50".parse().unwrap()), ..EventQuery::default() };
    let by_key = EventQuery { key: Some(key("db")), ..EventQuery::default() };
    let hour =
        netstead_model::Clock::wall(&house.clock).checked_sub(jiff::SignedDuration::from_hours(1)).unwrap();
    let recent = EventQuery { since: Some(hour), ..EventQuery::default() };
    let older = EventQuery { until: Some(hour), what: Some(EventKind::Claimed), ..EventQuery::default() };
    let newest = EventQuery { newest_first: true, limit: 1, ..by_address.clone() };
    let shown = [
        event_lines(&house.find(by_address).await),
        event_lines(&house.find(by_key).await),
        event_lines(&house.find(recent).await),
        event_lines(&house.find(older).await),
        event_lines(&house.find(newest).await),
    ];
    assert_snapshot!(shown.join("\n--\n"), @r"
    claimed 10.0.3.50 by ann: - -> web of ann
    released 10.0.3.50 by ann: web of ann -> -
    claimed 10.0.3.50 by bob: - -> db of bob
    moved 10.0.3.50 by bob: db of bob -> web of bob
    --
    claimed 10.0.3.50 by bob: - -> db of bob
    moved 10.0.3.50 by bob: db of bob -> web of bob
    --
    claimed 10.0.3.50 by bob: - -> db of bob
    moved 10.0.3.50 by bob: db of bob -> web of bob
    --
    claimed 10.0.3.50 by ann: - -> web of ann
    claimed 10.0.3.51 by ann: - -> other of ann
    --
    moved 10.0.3.50 by bob: db of bob -> web of bob
    ");
    let house = house.restart().await;
    let again = EventQuery { address: Some("10.0.3.50".parse().unwrap()), ..EventQuery::default() };
    assert_eq!(event_lines(&house.find(again).await), shown[0]);
}

#[tokio::test]
pub(crate) async fn pages_of_events_go_on_where_they_ended() {
    let house = House::new().await;
    house.make("lan", "10.0.0.0/24").await;
    let many = |from: u32| Command::Bulk((from..from + 50).map(|n| any("lan", &format!("k{n}"))).collect());
    house.ask("ann", many(0)).await.unwrap();
    house.ask("ann", many(50)).await.unwrap();
    let all: Vec<u64> = house.events().await.iter().map(|event| event.seq).collect();
    assert_eq!(all.len(), 101);
    for newest_first in [false, true] {
        let (mut pages, mut after) = (Vec::new(), None);
        loop {
            let query = EventQuery { after, newest_first, limit: 7, ..EventQuery::default() };
            let page = house.ledger.events(&query).await.unwrap();
            pages.extend(page.events.iter().map(|event| event.seq));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        if newest_first {
            pages.reverse();
        }
        assert_eq!(pages, all, "newest first: {newest_first}");
    }
}

#[tokio::test]
pub(crate) async fn who_listens_hears_every_event_once_and_in_order() {
    let house = House::with_lan().await;
    let mut heard = house.ledger.subscribe();
    for name in ["a", "b", "c"] {
        house.claim("ann", "lan", name).await;
    }
    let after = house.events().await[0].seq;
    let stored = house.find(EventQuery { after: Some(after), ..EventQuery::default() }).await;
    for event in stored {
        assert_eq!(heard.recv().await.unwrap(), event);
    }
    assert!(heard.try_recv().is_err());
}

/// A house with these settings that knows all its events: before that it trims none.
async fn trimming(options: Options) -> House {
    let house = House::on(store_under_test::store().await, options).await;
    house.events().await;
    house
}

#[tokio::test]
pub(crate) async fn old_events_go_but_the_newest_of_each_address_stays() {
    let options = Options { max_events: 10, ..Options::default() };
    let house = trimming(options).await;
    house.make("lan", "10.0.3.50-10.0.3.59").await;
    house.claim("ann", "lan", "settled").await;
    for _ in 0..30 {
        house.claim("ann", "lan", "restless").await;
        house.release("ann", "lan", "restless").await;
    }
    // Looking through the events takes its time.
    house.clock.advance(Duration::from_secs(601));
    house.claim("ann", "lan", "restless").await;
    house.pass(601).await;
    let left = house.events().await;
    assert!(left.len() <= 12, "{}", event_lines(&left));
    let settled = EventQuery { address: Some("10.0.3.50".parse().unwrap()), ..EventQuery::default() };
    assert_snapshot!(event_lines(&house.find(settled.clone()).await), @"claimed 10.0.3.50 by ann: - -> settled of ann");
    let trimmed = EventQuery { what: Some(EventKind::Trimmed), ..EventQuery::default() };
    assert!(!house.find(trimmed).await.is_empty(), "trimming leaves an event");
    let past = EventQuery { after: Some(2), limit: 9, ..EventQuery::default() };
    let gone = house.ledger.events(&past).await;
    assert!(matches!(gone, Err(LedgerError::Gone { .. })), "{gone:?}");
    let house = house.restart().await;
    assert_eq!(house.find(settled).await.len(), 1);
    assert_eq!(house.claim("ann", "lan", "settled").await, "10.0.3.50");
}

#[tokio::test]
pub(crate) async fn events_older_than_they_are_kept_for_go() {
    let options = Options { retention: Span::from_secs(3600), ..Options::default() };
    let house = trimming(options).await;
    house.make("lan", "10.0.3.50-10.0.3.59").await;
    house.claim("ann", "lan", "web").await;
    house.release("ann", "lan", "web").await;
    house.pass(3601).await;
    house.claim("bob", "lan", "db").await;
    house.pass(0).await;
    assert_eq!(house.log().await, ["claimed", "trimmed"]);
}

#[tokio::test]
pub(crate) async fn what_was_spared_goes_once_something_newer_happened_there() {
    let options = Options { max_events: 10, ..Options::default() };
    let house = trimming(options).await;
    house.make("lan", "10.0.3.50-10.0.3.59").await;
    house.make("busy", "10.0.4.1").await;
    house.claim("ann", "lan", "settled").await;
    let churn = async |house: &House| {
        for _ in 0..30 {
            house.claim("ann", "busy", "restless").await;
            house.release("ann", "busy", "restless").await;
        }
        house.pass(601).await;
        house.claim("ann", "busy", "restless").await;
        house.release("ann", "busy", "restless").await;
    };
    churn(&house).await;
    let settled = EventQuery { address: Some("10.0.3.50".parse().unwrap()), ..EventQuery::default() };
    assert_snapshot!(event_lines(&house.find(settled.clone()).await), @"claimed 10.0.3.50 by ann: - -> settled of ann");
    house.release("ann", "lan", "settled").await;
    churn(&house).await;
    assert_snapshot!(event_lines(&house.find(settled.clone()).await), @"released 10.0.3.50 by ann: settled of ann -> -");
    // The same when only the index after a restart knows that the older one was spared.
    house.claim("bob", "lan", "next").await;
    let house = house.restart().await;
    churn(&house).await;
    assert_snapshot!(event_lines(&house.find(settled).await), @"claimed 10.0.3.50 by bob: - -> next of bob");
    assert_eq!(house.ledger.health().events, house.events().await.len() as u64);
}

#[tokio::test]
pub(crate) async fn the_newest_of_an_address_stays_in_each_vrf() {
    let options = Options { max_events: 10, ..Options::default() };
    let house = trimming(options).await;
    house.make_so("quiet", "10.0.3.50-10.0.3.59", |spec| spec.vrf = "lab".parse().unwrap()).await;
    house.make_so("busy", "10.0.3.50-10.0.3.59", restless).await;
    house.claim("ann", "quiet", "settled").await;
    for _ in 0..30 {
        house.claim("bob", "busy", "restless").await;
        house.release("bob", "busy", "restless").await;
    }
    house.pass(601).await;
    house.claim("bob", "busy", "restless").await;
    house.pass(601).await;
    let query = EventQuery {
        address: Some("10.0.3.50".parse().unwrap()),
        pool: Some("quiet".parse().unwrap()),
        ..EventQuery::default()
    };
    assert_snapshot!(event_lines(&house.find(query).await), @"claimed 10.0.3.50 by ann: - -> settled of ann");
}

#[tokio::test]
pub(crate) async fn a_clock_that_jumps_a_year_ahead_costs_no_history() {
    let options = Options { retention: Span::from_secs(400 * 24 * 3600), ..Options::default() };
    let house = trimming(options).await;
    house.make("lan", "10.0.3.50-10.0.3.59").await;
    house.claim("ann", "lan", "web").await;
    house.release("ann", "lan", "web").await;
    house.pass(601).await;
    house.clock.jump_wall(jiff::SignedDuration::from_hours(2 * 365 * 24));
    house.pass(601).await;
    house.claim("ann", "lan", "web").await;
    house.pass(601).await;
    assert_eq!(house.log().await, ["pool-created", "claimed", "released", "claimed"]);
    // It is believed in the end: a day for each hour it stays so.
    for _ in 0..40 {
        house.pass(24 * 3600).await;
        house.claim("ann", "lan", "db").await;
        house.release("ann", "lan", "db").await;
    }
    assert!(house.log().await.contains(&"trimmed"));
}
