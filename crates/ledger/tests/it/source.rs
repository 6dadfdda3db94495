//! Claims as things that may have a name.

use std::time::Duration;

use insta::assert_snapshot;
use netstead_ledger::{Command, LedgerSource};
use netstead_model::Source as _;
use tokio::time::timeout;

use crate::support::{House, any, claim};

const MOMENT: Duration = Duration::from_millis(100);
const SOON: Duration = Duration::from_secs(10);

/// What is reported: each claim with its names, or why it has none, and which ended.
async fn reported(source: &LedgerSource) -> String {
    let report = source.report().await;
    let workloads = report.workloads.iter().map(|one| {
        let names: Vec<&str> = one.wishes.iter().map(|wish| wish.name.as_str()).collect();
        format!("{}: {}\n", one.id, [names.join(" "), one.why_not.join(" ")].concat())
    });
    let ended = report.ended.iter().map(|one| format!("{} ended\n", one.id));
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

    // They lose their names by what somebody asked for, and that is told.
    let mut spec = house.pool("lan").await.pool.spec.clone();
    spec.domain = None;
    house.ask("ann", Command::UpdatePool { spec: spec.into(), if_version: None }).await.unwrap();
    house.release("ann", "plain", "app").await;
    house.release("ann", "plain", "db").await;
    assert_snapshot!(reported(&source).await, @"
    lan/web: the pool has no domain
    lan/mail: the pool has no domain
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
