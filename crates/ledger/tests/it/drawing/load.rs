//! How much is asked of a backend at a time, and how many claims may wait for it.

use std::{sync::Arc, time::Duration};

use netstead_ledger::contract::FaultyBackend;

use super::branch::{Branch, RANGE, patient, upstream};
use crate::support::{House, any, claim, create, restless};

#[tokio::test]
async fn a_backend_is_asked_eight_things_at_a_time() {
    let house = House::new().await;
    let range = "10.0.8.1-10.0.8.60";
    house.ask("admin!", create("lan", range, upstream)).await.unwrap();
    let office = Arc::new(FaultyBackend::new(range.parse().unwrap()));
    office.set(|faults| faults.late = Some(Duration::from_millis(3)));
    let branch = Branch::idle(house, office.clone());
    for number in 0..40 {
        branch.wants(&format!("web-{number}")).await;
    }
    branch.work();
    while office.objects().len() < 40 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert_eq!(office.most_claiming(), 8);
}

#[tokio::test]
async fn ten_thousand_claims_may_wait_for_a_backend_and_other_pools_are_not_blocked() {
    let house = House::new().await;
    house.ask("admin!", create("lan", RANGE, upstream)).await.unwrap();
    house.make("own", "10.0.4.1-10.0.4.9").await;
    let branch = Branch::idle(house, Arc::new(FaultyBackend::new(RANGE.parse().unwrap())));
    for batch in 0..100 {
        let asked = (0..100).map(|number| {
            let command = claim("lan", &format!("web-{batch}-{number}"), patient);
            branch.house.ask("ann", command)
        });
        for answer in futures::future::join_all(asked).await {
            answer.unwrap();
        }
    }
    let refused = branch.say("ann", any("lan", "one-more")).await;
    assert_eq!(
        refused,
        "refused: backend `office` of pool `lan`: 10000 claims wait for it already; ask again later"
    );
    assert_eq!(branch.say("ann", any("own", "web")).await, "10.0.4.1 for web of ann, new");
}

#[tokio::test]
async fn a_paused_backend_is_not_asked() {
    let branch = Branch::new().await;
    branch.pause(true);
    branch.wants("web").await;
    tokio::time::sleep(Duration::from_millis(30)).await;
    assert_eq!(branch.office.requests(), Vec::<String>::new());
    branch.pause(false);
    branch.comes_to(&["bound 10.0.3.50 own/lan/web"]).await;
}

#[tokio::test]
async fn addresses_go_back_while_many_claims_wait() {
    let house = House::new().await;
    let range = "10.0.8.1-10.0.8.60";
    let made = create("lan", range, |spec| {
        upstream(spec);
        restless(spec);
    });
    house.ask("admin!", made).await.unwrap();
    let branch = Branch::idle(house, Arc::new(FaultyBackend::new(range.parse().unwrap())));
    branch.work();
    branch.wants("old").await;
    branch.comes_to(&["bound 10.0.8.1 own/lan/old"]).await;
    branch.pause(true);
    branch.release("old").await;
    for number in 0..40 {
        branch.wants(&format!("web-{number}")).await;
    }
    branch.office.set(|faults| faults.late = Some(Duration::from_millis(3)));
    branch.pause(false);
    while branch.office.requests().len() < 42 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let requests = branch.office.requests();
    let back = requests.iter().position(|request| request == "release own/lan/old").unwrap();
    assert!(back < 20, "it went back as number {back} of {requests:?}");
}

#[tokio::test]
async fn an_address_rests_to_its_end_once_the_backend_has_free_ones_again() {
    let branch = Branch::new().await;
    branch.wants("a").await;
    branch.comes_to(&["bound 10.0.3.50 own/lan/a"]).await;
    for number in 1..5 {
        branch.office.take(format!("10.0.3.5{number}").parse().unwrap(), &format!("other-{number}"));
    }
    branch.wants("b").await;
    branch.pass(1).await;
    assert_eq!(branch.account().await, ["bound 10.0.3.50 own/lan/a", "waiting own/lan/b"]);
    branch.office.lose("other-1");
    branch.pass(31).await;
    branch.comes_to(&["bound 10.0.3.50 own/lan/a", "bound 10.0.3.51 own/lan/b"]).await;
    branch.release("a").await;
    branch.pass(120).await;
    assert_eq!(branch.account().await, ["bound 10.0.3.51 own/lan/b", "resting 10.0.3.50 own/lan/a"]);
}
