//! A request whose answer was lost is sent again.

use netstead_api::access::{NewToken, Role, Scopes};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Answer, House};

async fn twice(house: &House, method: Method, path: &str, body: Value) -> (Answer, Answer) {
    let ask = async || {
        let ask = house.ask(method.clone(), path);
        if body.is_null() { ask.go().await } else { ask.json(&body).go().await }
    };
    let first = ask().await;
    let events = house.ledger.health().seq;
    let second = ask().await;
    assert!(first.status < 300, "{path}: {first:?}");
    assert_eq!(house.ledger.health().seq, events, "a repeat of {path} changed something");
    (first, second)
}

#[tokio::test]
async fn every_kind_of_request_gives_the_same_result_again() {
    let house = House::with_lan().await;
    house.pool("macs", json!({"ranges": ["52:54:00:00:00:01-52:54:00:00:00:ff"]})).await;
    let (put, post) = (Method::PUT, Method::POST);
    let same = async |method: &Method, path: &str, body: Value| {
        let (first, second) = twice(&house, method.clone(), path, body).await;
        assert_eq!(first.body, second.body, "{path}");
        assert!(second.status == first.status || (first.status, second.status) == (201, 200), "{path}");
        first.body
    };
    same(&put, "/pools/new", json!({"network": "10.9.0.0/24"})).await;
    same(&put, "/pools/new", json!({"network": "10.9.0.0/24", "order": "next"})).await;
    same(&put, "/pools/lan/claims/a", json!({})).await;
    same(&put, "/pools/lan/claims/b", json!({"address": "10.0.3.99", "labels": {"x": "y"}})).await;
    let claim = same(&put, "/pools/lan/claims/b", json!({"ttl": "0", "hostnames": ["b.test"]})).await;
    let id = claim["id"].as_str().unwrap();
    same(&post, "/pools/lan/claims/b/renew", json!({"id": id})).await;
    same(&post, "/pools/lan/claims/b/move", json!({"id": id, "key": "c"})).await;
    same(&post, "/claims", json!({"key": "vm", "each": ["lan", "macs"]})).await;
    same(&post, "/claims", json!({"key": "any", "any": ["lan", "macs"]})).await;
    same(&post, "/bulk", json!({"entries": [{"claim": {"key": "x", "any": ["lan"]}}, {"claim": {"key": "y", "any": ["lan"]}}]})).await;
    same(&put, "/pools/lan/reservations/r", json!({"range": "10.0.3.150-10.0.3.160"})).await;
    same(&post, "/resume", json!({})).await;
    same(&post, "/check", json!({})).await;

    // What ends things says so once, and that it is gone from then on.
    let (_, again) =
        twice(&house, Method::DELETE, &format!("/pools/lan/claims/c?id={id}"), Value::Null).await;
    assert_eq!(again.fine(), &json!({"outcome": "already gone"}));
    let (_, again) = twice(&house, Method::DELETE, "/pools/lan/reservations/r", Value::Null).await;
    assert_eq!(again.fine(), &json!({"outcome": "already gone"}));
    let (_, again) = twice(&house, Method::DELETE, "/pools/new", Value::Null).await;
    again.problem(404, "no-such-pool");
    let (_, again) =
        twice(&house, put, "/observations/scan", json!({"seen": [{"address": "10.0.3.70"}]})).await;
    assert_eq!(again.fine(), &json!({"begun": 0, "ended": 0}));
}

#[tokio::test]
async fn a_late_repeat_of_a_release_does_not_touch_the_next_claim() {
    let house = House::with_lan().await;
    let first = house.put("/pools/lan/claims/web").json(&json!({})).go().await.created()["id"].clone();
    let release = format!("/pools/lan/claims/web?id={}", first.as_str().unwrap());
    assert_eq!(house.delete(&release).go().await.fine()["outcome"], "released");
    let second = house.put("/pools/lan/claims/web").json(&json!({})).go().await;
    assert_eq!(second.created()["address"], "10.0.3.50");
    assert_eq!(house.delete(&release).go().await.fine()["outcome"], "already gone");
    house.get("/pools/lan/claims/web").go().await.fine();
    let stale = json!({"id": first, "ttl": "1s"});
    house.post("/pools/lan/claims/web/renew").json(&stale).go().await.problem(410, "already-gone");
    let stale = json!({"id": first, "key": "elsewhere"});
    house.post("/pools/lan/claims/web/move").json(&stale).go().await.problem(410, "already-gone");
}

#[tokio::test]
async fn who_names_the_version_may_delete_a_pool_again() {
    let house = House::with_lan().await;
    house.pool("lab", json!({"network": "10.9.0.0/24", "vrf": "lab"})).await;
    let scopes = Scopes { vrfs: vec!["lab".parse().unwrap()], ..Scopes::default() };
    let bound = house.scoped(NewToken { scopes, ..NewToken::new("ann", Role::Write) }).await;
    for (pool, token) in [("lan", house.admin.clone()), ("lab", bound)] {
        house.claim(pool, "web").await;
        let path = format!("/pools/{pool}");
        let tag = house.get(&path).go().await.header("etag").to_owned();
        let delete = async || {
            house.delete(&format!("{path}?force=moving")).by(&token).header("if-match", &tag).go().await
        };
        assert_eq!(delete().await.fine(), &json!({"released": 1}));
        let seq = house.ledger.health().seq;
        assert_eq!(delete().await.fine(), &json!({"released": 0}));
        assert_eq!(house.ledger.health().seq, seq, "the repeat changed something");
        house.delete(&path).by(&token).go().await.problem(404, "no-such-pool");
        // Not a later one of the same name.
        let again = json!({"network": "10.7.0.0/24", "vrf": "lab"});
        house.put(&path).json(&again).go().await.created();
        delete().await.problem(412, "version-mismatch");
        house.delete(&path).go().await.fine();
    }
}
