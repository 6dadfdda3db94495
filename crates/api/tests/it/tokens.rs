//! Tokens through the API, and what the store keeps of them.

use netstead_api::access::{Role, Tokens};
use netstead_model::SystemClock;
use serde_json::json;

use crate::support::House;

#[tokio::test]
async fn a_token_is_made_used_listed_and_revoked() {
    let house = House::with_lan().await;
    let input = json!({"subject": "ci", "role": "claim", "pools": ["lan"], "description": "the runner"});
    let made = house.post("/tokens").json(&input).go().await;
    let (secret, id) = (made.created()["secret"].as_str().unwrap(), made.body["id"].as_str().unwrap());
    assert!(secret.starts_with(&format!("nst_{id}_")));
    assert!(made.body["expires"].is_string(), "90 days unless said otherwise");
    house.put("/pools/lan/claims/k").by(secret).json(&json!({})).go().await.created();

    let listed = house.get("/tokens").go().await;
    let shown = listed.fine()["items"].as_array().unwrap().iter().find(|token| token["id"] == id).unwrap();
    assert_eq!(
        (&shown["subject"], &shown["role"], &shown["pools"]),
        (&json!("ci"), &json!("claim"), &json!(["lan"]))
    );
    assert!(shown["secret"].is_null() && !listed.text.contains(secret));

    assert_eq!(house.delete(&format!("/tokens/{id}")).go().await.status, 204);
    assert_eq!(house.delete(&format!("/tokens/{id}")).go().await.status, 204);
    house.put("/pools/lan/claims/k").by(secret).json(&json!({})).go().await.problem(401, "unauthenticated");
    house.delete("/tokens/neverwas").go().await.problem(404, "no-such-token");
    house.delete("/tokens/..%2F..%2Fledger").go().await.problem(404, "no-such-token");
}

#[tokio::test]
async fn tokens_that_cannot_be() {
    let house = House::open().await;
    for (input, status, field) in [
        (json!({"role": "read"}), 400, "subject"),
        (json!({"subject": "", "role": "read"}), 422, "subject"),
        (json!({"subject": "netstead", "role": "read"}), 422, "subject"),
        (json!({"subject": "x", "role": "god"}), 400, "role"),
        (json!({"subject": "x", "role": "read", "pools": ["ok", "No"]}), 400, "pools[1]"),
        (json!({"subject": "x", "role": "read", "zones": ["-x"]}), 400, "zones[0]"),
        (json!({"subject": "x", "role": "read", "expires_in": "90"}), 400, "expires_in"),
        (json!({"subject": "x", "role": "read", "secret": "mine"}), 400, "secret"),
    ] {
        assert_eq!(house.post("/tokens").json(&input).go().await.invalid(status).0, field, "{input}");
    }
    assert_eq!(house.get("/tokens").go().await.fine()["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn the_store_never_sees_a_secret() {
    let house = House::open().await;
    let token = house.token("ann", Role::Claim).await;
    let entries = house.store.snapshot().await.unwrap().range(b"access/token/", None, 100).await.unwrap();
    assert_eq!(entries.len(), 2);
    for entry in entries {
        let value = String::from_utf8(entry.value).unwrap();
        assert!(value.starts_with("1{"), "{value}");
        for secret in [&token, &house.admin] {
            let (_, hidden) = secret.rsplit_once('_').unwrap();
            assert!(!value.contains(hidden));
        }
    }
    assert!(!format!("{:?}", house.tokens).contains(token.rsplit_once('_').unwrap().1));
}

#[tokio::test]
async fn another_process_sees_what_was_made_and_revoked() {
    let house = House::open().await;
    let other = Tokens::open(house.store.clone(), SystemClock::shared()).await.unwrap();
    let token = house.token("ann", Role::Claim).await;
    let (_, rest) = token.split_once('_').unwrap();
    let (id, _) = rest.split_once('_').unwrap();
    until(|| other.verify(&token).is_ok()).await;
    other.revoke(id).await.unwrap();
    until(|| house.tokens.verify(&token).is_err()).await;
    house.get("/pools").by(&token).go().await.problem(401, "unauthenticated");
}

#[tokio::test]
async fn a_restore_leaves_the_local_admin_only() {
    let house = House::open().await;
    let ann = house.token("ann", Role::Claim).await;
    for number in 0..150 {
        house.token(&format!("t{number}"), Role::Read).await;
    }
    assert_eq!(house.tokens.revoke_all_but_local_admin().await.unwrap(), 151);
    assert!(house.tokens.verify(&ann).is_err());
    assert!(house.tokens.verify(&house.admin).is_ok());
    let fresh = Tokens::open(house.store.clone(), SystemClock::shared()).await.unwrap();
    assert_eq!(fresh.list().len(), 1);
}

async fn until(mut holds: impl FnMut() -> bool) {
    for _ in 0..200 {
        if holds() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("it never came true");
}
