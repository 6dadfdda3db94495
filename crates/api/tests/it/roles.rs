//! Who may do what.

use netstead_api::{
    ServeOptions,
    access::{NewToken, Role},
};
use netstead_model::{ManualClock, Span};
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;

use crate::support::House;

/// Every route with the least role it needs.
fn routes() -> Vec<(Method, &'static str, Role, Value)> {
    use Role::{Admin, Claim, Read, Write};
    let (get, put, post, delete) = (Method::GET, Method::PUT, Method::POST, Method::DELETE);
    vec![
        (get.clone(), "/status", Read, json!(null)),
        (get.clone(), "/pools", Read, json!(null)),
        (get.clone(), "/pools/lan", Read, json!(null)),
        (put.clone(), "/pools/new", Write, json!({"network": "10.9.0.0/24"})),
        (delete.clone(), "/pools/new", Write, json!(null)),
        (put.clone(), "/pools/lan/claims/k", Claim, json!({})),
        (get.clone(), "/pools/lan/claims/root", Read, json!(null)),
        (post.clone(), "/pools/lan/claims/k/renew", Claim, json!({})),
        (post.clone(), "/pools/lan/claims/k/move", Claim, json!({"key": "k"})),
        (delete.clone(), "/pools/lan/claims/k", Claim, json!(null)),
        (post.clone(), "/claims", Claim, json!({"key": "k", "any": ["lan"]})),
        (get.clone(), "/claims", Read, json!(null)),
        (post.clone(), "/bulk", Claim, json!({"entries": [{"release": {"pool": "lan", "key": "k"}}]})),
        (get.clone(), "/addresses", Read, json!(null)),
        (get.clone(), "/addresses/10.0.3.50", Read, json!(null)),
        (get.clone(), "/pools/lan/reservations", Read, json!(null)),
        (put.clone(), "/pools/lan/reservations/r", Write, json!({"range": "10.0.3.100"})),
        (delete.clone(), "/pools/lan/reservations/r", Write, json!(null)),
        (get.clone(), "/reservations", Read, json!(null)),
        (get.clone(), "/events", Read, json!(null)),
        (put.clone(), "/observations/scan", Write, json!({"seen": []})),
        (get.clone(), "/observations", Read, json!(null)),
        (get.clone(), "/tokens", Admin, json!(null)),
        (post.clone(), "/tokens", Admin, json!({"subject": "x", "role": "read"})),
        (post.clone(), "/resume", Admin, json!({})),
        (get.clone(), "/sources", Read, json!(null)),
        (get.clone(), "/providers", Read, json!(null)),
        (get.clone(), "/workloads", Read, json!(null)),
        (get.clone(), "/zones", Read, json!(null)),
        (get.clone(), "/plans", Read, json!(null)),
        (get.clone(), "/records", Read, json!(null)),
        (get.clone(), "/names/www.home.test", Read, json!(null)),
        (put.clone(), "/records/www.home.test/A", Write, json!({"values": ["10.0.3.9"]})),
        (delete.clone(), "/records/www.home.test/A", Write, json!(null)),
        (delete.clone(), "/records/www.home.test", Write, json!(null)),
        (post.clone(), "/apply", Write, json!({})),
        (post.clone(), "/pause", Write, json!({})),
        (get.clone(), "/backup", Admin, json!(null)),
        (post.clone(), "/check", Admin, json!({})),
    ]
}

#[tokio::test]
async fn each_role_may_do_what_it_says_and_no_more() {
    let house = House::with_names().await;
    house.claim("lan", "root").await;
    for role in Role::ALL {
        let token = house.token("someone", role).await;
        for (method, path, needs, body) in routes() {
            let ask = house.ask(method.clone(), path).by(&token);
            let answer = if body.is_null() { ask.go().await } else { ask.json(&body).go().await };
            if role >= needs {
                assert!(answer.status < 300, "{role} {method} {path}: {answer:?}");
            } else {
                let told = answer.problem(403, "forbidden");
                assert!(told.contains(needs.as_str()) && told.contains(role.as_str()), "{told}");
            }
        }
    }
}

#[tokio::test]
async fn without_a_valid_token_nothing_is_done() {
    let clock = ManualClock::default();
    let house = House::with(clock.shared(), ServeOptions::new("127.0.0.1:0")).await;
    house.pool("lan", json!({"network": "10.0.3.0/24"})).await;
    let short = NewToken { lifetime: Some(Span::from_secs(60)), ..NewToken::new("brief", Role::Admin) };
    let short = house.scoped(short).await;
    house.get("/pools").by(&short).go().await.fine();
    clock.advance(Duration::from_mins(1));

    let other_secret = format!("{}x", house.admin);
    let (id, _) = house.admin.rsplit_once('_').unwrap();
    let wrong = [String::new(), "hello".into(), "nst_a_b".into(), other_secret, id.to_owned(), short.clone()];
    for (method, path, _, body) in routes() {
        let answer = house.ask(method.clone(), path).by_nobody().json(&body).go().await;
        assert!(answer.problem(401, "unauthenticated").contains("netstead token create"));
        assert!(answer.header("www-authenticate").starts_with("Bearer"));
        for token in &wrong {
            let answer = house.ask(method.clone(), path).by(token).json(&body).go().await;
            let told = answer.problem(401, "unauthenticated");
            assert!(token.is_empty() || !told.contains(token.as_str()), "{told}");
        }
    }
    let expired = house.get("/pools").by(&short).go().await;
    assert!(expired.problem(401, "unauthenticated").contains("expired at 2001-09-09T01:47:40Z"));
    let basic = house.get("/pools").by_nobody().header("authorization", "Basic cm9vdDpyb290").go().await;
    basic.problem(401, "unauthenticated");
    // Neither is a token in another place one.
    house
        .get(&format!("/pools?token={}", house.admin))
        .by_nobody()
        .go()
        .await
        .problem(401, "unauthenticated");
    house.get("/pools/new").go().await.problem(404, "no-such-pool");
}

#[tokio::test]
async fn a_token_of_role_claim_forces_nothing_out_of_a_reservation() {
    let house = House::with_lan().await;
    let (bob, eve) = (house.token("bob", Role::Claim).await, house.token("eve", Role::Write).await);
    let path = "/pools/lan/reservations/spare";
    house.put(path).json(&json!({"range": "10.0.3.54-10.0.3.55"})).go().await.fine();
    let forced = |address: &str| json!({"address": address, "force": true});
    let refused = house.put("/pools/lan/claims/b").by(&bob).json(&forced("10.0.3.54")).go().await;
    assert!(refused.problem(403, "force-denied").contains("only a caller who may write can force it"));
    assert_eq!(refused.body["facts"]["owner"], "root");
    house.put("/pools/lan/claims/e").by(&eve).json(&forced("10.0.3.54")).go().await.created();
}

#[tokio::test]
async fn a_token_of_role_claim_touches_its_own_claims_only() {
    let house = House::with_lan().await;
    let (ann, bob) = (house.token("ann", Role::Claim).await, house.token("bob", Role::Claim).await);
    house.put("/pools/lan/claims/a").by(&ann).json(&json!({})).go().await.created();
    let path = "/pools/lan/claims/a";
    house.delete(path).by(&bob).go().await.problem(403, "not-yours");
    house
        .post(&format!("{path}/renew"))
        .by(&bob)
        .json(&json!({"ttl": "1h"}))
        .go()
        .await
        .problem(403, "not-yours");
    house
        .post(&format!("{path}/move"))
        .by(&bob)
        .json(&json!({"key": "b"}))
        .go()
        .await
        .problem(403, "not-yours");
    house.put(path).by(&bob).json(&json!({"adopt": true})).go().await.problem(403, "not-yours");
    let stolen = json!({"entries": [{"claim": {"key": "a", "any": ["lan"], "claim": {"adopt": true}}}]});
    let refused = house.post("/bulk").by(&bob).json(&stolen).go().await;
    assert_eq!(refused.fine()["results"][0]["failed"]["type"], "urn:netstead:not-yours");
    let named = house.put("/pools/lan/claims/x").by(&bob).json(&json!({"owner": "ann"})).go().await;
    named.problem(403, "forbidden");
    assert_eq!(named.body["field"], "owner");
    house.put("/pools/lan/claims/x").by(&bob).json(&json!({"owner": "bob"})).go().await.created();
    let gift = json!({"key": "a", "owner": "bob"});
    house.post(&format!("{path}/move")).by(&ann).json(&gift).go().await.problem(403, "forbidden");
    let still = house.get(path).go().await;
    assert_eq!((still.fine()["owner"].as_str(), &still.body["ttl"]), (Some("ann"), &json!(null)));
    // Two tokens of one subject are the same owner.
    let ann_too = house.token("ann", Role::Claim).await;
    assert_eq!(house.delete(path).by(&ann_too).go().await.fine()["outcome"], "released");
}
