//! How much is asked of a backend at a time, and how many claims may wait for it.

use std::{sync::Arc, time::Duration};

use netstead_ledger::contract::FaultyBackend;

use super::branch::{Branch, RANGE, patient, upstream};
use crate::support::{House, any, claim, create};

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
    branch.backends.set_paused(["office".parse().unwrap()].into());
    branch.wants("web").await;
    tokio::time::sleep(Duration::from_millis(30)).await;
    assert_eq!(branch.office.requests(), Vec::<String>::new());
    branch.backends.set_paused([].into());
    branch.comes_to(&["bound 10.0.3.50 own/lan/web"]).await;
}
