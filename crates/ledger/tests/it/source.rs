//! Claims as things that may have a name.

use std::time::Duration;

use insta::assert_snapshot;
use netstead_ledger::{Command, LedgerSource};
use netstead_model::{Key, Source as _};
use tokio::time::timeout;

use crate::support::{House, any, claim};

const MOMENT: Duration = Duration::from_millis(100);
const SOON: Duration = Duration::from_secs(10);

/// The report: each claim with its names, or why it has none, and which ended.
async fn reported(source: &LedgerSource) -> String {
    let report = source.report().await;
    let workloads = report.workloads().into_iter().map(|one| {
        let names: Vec<&str> = one.wishes.iter().map(|wish| wish.name.as_str()).collect();
        format!("{}: {}\n", one.id, [names.join(" "), one.why_not.join(" ")].concat())
    });
    let mut ended: Vec<String> = report
        .ended()
        .into_iter()
        .map(|one| format!("{} {}\n", one.id, if one.asked { "ended" } else { "ended by itself" }))
        .collect();
    ended.sort();
    workloads.chain(ended).collect()
}

#[tokio::test]
async fn what_has_no_name_is_not_told_until_it_had_one() {
    let house = House::new().await;
    let source = LedgerSource::new("ledger".parse().unwrap(), house.ledger.clone());
    house.make("plain", "10.0.1.0/24").await;
    house.make_so("lan", "10.0.3.0/24", |spec| spec.domain = Some("home.test".parse().unwrap())).await;
    for (pool, key) in [("plain", "db"), ("lan", "default/web"), ("lan", "web"), ("lan", "mail")] {
        house.ask("ann", any(pool, key)).await.unwrap();
    }
    let hostname = |request: &mut netstead_model::ClaimRequest| {
        request.hostnames = Some(vec!["app.example.com".parse().unwrap()]);
    };
    house.ask("ann", claim("plain", "app", hostname)).await.unwrap();
    assert_snapshot!(reported(&source).await, @"
    lan/web: web.home.test
    lan/mail: mail.home.test
    plain/app: app.example.com
    ");

    // They lose their names by a command, and the report says so.
    let mut spec = house.pool("lan").await.pool.spec.clone();
    spec.domain = None;
    house.ask("ann", Command::UpdatePool { spec: spec.into(), if_version: None }).await.unwrap();
    house.release("ann", "plain", "app").await;
    house.release("ann", "plain", "db").await;
    assert_snapshot!(reported(&source).await, @"
    lan/mail: the pool has no domain
    lan/web: the pool has no domain
    plain/app ended
    ");
}

#[tokio::test]
async fn nobody_is_woken_for_what_has_no_name() {
    let house = House::new().await;
    house.make("plain", "10.0.1.0/24").await;
    house.make_so("lan", "10.0.3.0/24", |spec| spec.domain = Some("home.test".parse().unwrap())).await;
    let source = LedgerSource::new("ledger".parse().unwrap(), house.ledger.clone());
    house.ask("ann", any("plain", "web")).await.unwrap();
    house.ask("ann", any("lan", "default/web")).await.unwrap();
    house.release("ann", "plain", "web").await;
    timeout(MOMENT, source.changed()).await.expect_err("nothing has changed its name");
    house.ask("ann", any("lan", "web")).await.unwrap();
    timeout(SOON, source.changed()).await.expect("a name has come");
    house.release("ann", "lan", "web").await;
    timeout(SOON, source.changed()).await.expect("a name has gone");
}

/// A house with claims of every fate, and the ids of all of them.
async fn house_of_fates() -> (House, Vec<Key>) {
    let house = House::new().await;
    house.make_so("lan", "10.0.3.0/24", |spec| spec.domain = Some("home.test".parse().unwrap())).await;
    let keys = ["stays", "released", "again", "moved"];
    for key in keys {
        house.ask("ann", any("lan", key)).await.unwrap();
    }
    let short = |request: &mut netstead_model::ClaimRequest| request.ttl = Some("1m".parse().unwrap());
    house.ask("ann", claim("lan", "expired", short)).await.unwrap();
    house.release("ann", "lan", "released").await;
    house.release("ann", "lan", "again").await;
    house.ask("ann", any("lan", "again")).await.unwrap();
    let target =
        netstead_model::ClaimRef { pool: "lan".parse().unwrap(), key: "moved".parse().unwrap(), id: None };
    let to = "elsewhere".parse().unwrap();
    house.ask("ann", Command::Move { target, key: to, owner: None }).await.unwrap();
    house.pass(120).await;
    let known =
        keys.iter().chain(&["expired", "unheard-of"]).map(|key| format!("lan/{key}").parse().unwrap());
    let known = known.collect();
    (house, known)
}

#[tokio::test]
async fn ends_that_nobody_heard_are_found_among_the_events() {
    let (house, known) = house_of_fates().await;
    let source = LedgerSource::new("ledger".parse().unwrap(), house.ledger.clone());
    source.remember(known);
    assert_snapshot!(reported(&source).await, @"
    lan/stays: stays.home.test
    lan/again: again.home.test
    lan/elsewhere: elsewhere.home.test
    lan/expired ended by itself
    lan/moved ended
    lan/released ended
    ");
    assert!(!reported(&source).await.contains("ended"), "they are told once");
}

#[tokio::test]
async fn ends_are_told_also_when_more_happened_than_anybody_could_hear() {
    let (house, _) = house_of_fates().await;
    let source = LedgerSource::new("ledger".parse().unwrap(), house.ledger.clone());
    reported(&source).await;
    house.release("ann", "lan", "stays").await;
    for _ in 0..2100 {
        house.ask("ann", any("lan", "busy")).await.unwrap();
        house.release("ann", "lan", "busy").await;
    }
    let said = reported(&source).await;
    assert!(said.contains("lan/stays ended\n") && said.contains("lan/busy ended\n"), "{said}");
}
