//! Claims that wait for an address.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use tokio::time::timeout;

use crate::support::House;

async fn full() -> Arc<House> {
    let house = House::open().await;
    house.pool("one", json!({"ranges": ["10.0.0.1"], "cooldown": "0"})).await;
    house.claim("one", "holder").await;
    Arc::new(house)
}

#[tokio::test]
async fn a_waiting_claim_gets_the_address_that_becomes_free() {
    let house = full().await;
    let waiter = tokio::spawn({
        let house = Arc::clone(&house);
        async move { house.put("/pools/one/claims/next").json(&json!({"wait": "30s"})).go().await }
    });
    let queued = async {
        while house.get("/pools/one/claims/next").go().await.body["state"] != "waiting" {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(10), queued).await.unwrap();
    let listed = house.get("/claims").go().await;
    assert_eq!(listed.fine()["items"][1]["state"], "waiting");
    assert!(house.get("/status").go().await.text.contains("1 claim waits for an address"));
    let page = house.get("/claims?limit=1").go().await;
    let next = page.fine()["next"].as_str().unwrap().to_owned();
    assert_eq!(
        house.get(&format!("/claims?limit=1&after={next}")).go().await.fine()["items"][0]["key"],
        "next"
    );

    house.delete("/pools/one/claims/holder").go().await.fine();
    let got = timeout(Duration::from_secs(10), waiter).await.unwrap().unwrap();
    assert_eq!(got.fine()["address"], "10.0.0.1");
}

#[tokio::test]
async fn who_waits_in_vain_is_told_so() {
    let house = full().await;
    let asked = house.put("/pools/one/claims/next").json(&json!({"wait": "200ms"})).go().await;
    asked.problem(409, "exhausted");
}

#[tokio::test]
async fn a_kept_claim_stays_in_the_queue_and_can_leave_it() {
    let house = full().await;
    let kept = json!({"wait": "100ms", "keep": true});
    let asked = house.put("/pools/one/claims/next").json(&kept).go().await;
    assert_eq!((asked.status, &asked.body["state"]), (202, &json!("waiting")), "{asked:?}");
    assert_eq!(asked.body["pool"], "one");
    let left = house.delete("/pools/one/claims/next").go().await;
    assert_eq!(left.fine(), &json!({"outcome": "released"}));
    house.get("/pools/one/claims/next").go().await.problem(404, "no-such-claim");
}

#[tokio::test]
async fn a_waiting_claim_does_not_keep_the_server_from_ending() {
    let house = full().await;
    let request = house.put("/pools/one/claims/next").json(&json!({"wait": "10m"})).into_request();
    let waiter = tokio::spawn(crate::support::Answer::of(request));
    tokio::time::sleep(Duration::from_millis(300)).await;
    house.shutdown.cancel();
    let answer = timeout(Duration::from_secs(5), waiter).await.unwrap().unwrap();
    assert!(answer.problem(504, "unknown").contains("ask again with the same key"));
    let house = Arc::into_inner(house).unwrap();
    timeout(Duration::from_secs(5), house.server.ended()).await.unwrap().unwrap();
}
