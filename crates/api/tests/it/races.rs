//! Many at the same door.

use std::{collections::BTreeSet, sync::Arc};

use netstead_api::access::Role;
use serde_json::json;

use crate::support::{Answer, House, client};

async fn race(house: &Arc<House>, clients: usize) -> Vec<Answer> {
    let mut running = Vec::new();
    for number in 0..clients {
        let token = house.token(&format!("client-{number}"), Role::Claim).await;
        let house = Arc::clone(house);
        running.push(tokio::spawn(async move {
            // A client of its own: no connection is shared.
            let url = format!("{}/api/v1/pools/race/claims/k{number}", house.url);
            Answer::of(client().put(url).bearer_auth(token).json(&json!({}))).await
        }));
    }
    let mut answers = Vec::new();
    for one in running {
        answers.push(one.await.unwrap());
    }
    answers
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_clients_get_sixty_four_addresses() {
    let house = Arc::new(House::open().await);
    house.pool("race", json!({"ranges": ["10.0.0.1-10.0.0.64"]})).await;
    let answers = race(&house, 64).await;
    let got: BTreeSet<_> = answers.iter().map(|answer| answer.created()["address"].to_string()).collect();
    assert_eq!(got.len(), 64);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_one_address_short_exactly_one_is_told_so() {
    let house = Arc::new(House::open().await);
    house.pool("race", json!({"ranges": ["10.0.0.1-10.0.0.63"]})).await;
    let answers = race(&house, 64).await;
    let (got, rest): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 201);
    let addresses: BTreeSet<_> = got.iter().map(|answer| answer.body["address"].to_string()).collect();
    assert_eq!((got.len(), addresses.len(), rest.len()), (63, 63, 1));
    let told = rest[0].problem(409, "exhausted");
    assert!(told.contains("pool `race` has no free address"), "{told}");
    assert_eq!(rest[0].body["facts"], json!({"pool": "race", "resting": "0"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_askers_for_one_key_get_one_address() {
    let house = Arc::new(House::with_lan().await);
    let ask = async || house.put("/pools/lan/claims/one").json(&json!({})).go().await;
    let answers = futures::future::join_all((0..64).map(|_| ask())).await;
    let got: BTreeSet<_> = answers.iter().map(|answer| answer.fine()["address"].to_string()).collect();
    assert_eq!(got.len(), 1);
    assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 1);
}
