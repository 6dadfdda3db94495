//! Single addresses, and what was seen in use.

use serde_json::{Value, json};

use crate::support::House;

#[tokio::test]
async fn an_address_is_explained() {
    let house = House::with_lan().await;
    house.put("/pools/lan/claims/web").json(&json!({"ttl": "1h"})).go().await.created();
    let seen = house.get("/addresses/10.0.3.50").go().await;
    let place = &seen.fine()["places"][0];
    assert_eq!((&place["address"]["state"], &place["claim"]["key"]), (&json!("held"), &json!("web")));
    assert!(
        place["why"][0].as_str().unwrap().starts_with("10.0.3.50 is held by `web` of `root` in pool `lan`")
    );
    assert!(place["why"].to_string().contains("unless it is renewed"));
    assert_eq!(place["history"][0]["what"], "claimed");

    house.delete("/pools/lan/claims/web").go().await.fine();
    let state = async |address: &str| {
        let seen = house.get(&format!("/addresses/{address}")).go().await;
        let place = seen.fine()["places"][0].clone();
        (place["address"]["state"].as_str().unwrap_or("-").to_owned(), place["why"].to_string())
    };
    let (resting, why) = state("10.0.3.50").await;
    assert_eq!(resting, "resting");
    assert!(why.contains("`web` of `root` released it"), "{why}");
    assert_eq!(state("10.0.3.51").await.0, "free");
    assert_eq!(house.get("/addresses/192.0.2.1").go().await.fine()["places"], json!([]));
}

#[tokio::test]
async fn addresses_are_listed_by_state_and_range() {
    let house = House::with_lan().await;
    for number in 0..4 {
        house.claim("lan", &format!("k{number}")).await;
    }
    house.delete("/pools/lan/claims/k1").go().await.fine();
    house.put("/pools/lan/reservations/r").json(&json!({"range": "10.0.3.100-10.0.3.110"})).go().await.fine();
    let list = async |query: &str| {
        let page = house.get(&format!("/addresses?{query}")).go().await;
        let line = |a: &Value| format!("{} {}", a["address"], a["state"]).replace('"', "");
        page.fine()["items"].as_array().unwrap().iter().map(line).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(
        list("").await,
        "10.0.3.50 held, 10.0.3.51 resting, 10.0.3.52 held, 10.0.3.53 held, 10.0.3.100 reserved"
    );
    assert_eq!(list("state=resting").await, "10.0.3.51 resting");
    assert_eq!(list("within=10.0.3.52-10.0.3.60").await, "10.0.3.52 held, 10.0.3.53 held");
    assert_eq!(list("limit=1&after=lan%2F10.0.3.50").await, "10.0.3.51 resting");
    assert_eq!(list("vrf=lab").await, "");
}

#[tokio::test]
async fn what_was_seen_in_use_is_not_handed_out() {
    let house = House::with_lan().await;
    let report = json!({"complete": true, "grace": "0", "seen": [
        {"address": "10.0.3.50", "note": "printer"}, {"address": "10.0.3.51"}, {"address": "192.0.2.1"},
    ]});
    let put = async |report: &Value| house.put("/observations/scan").json(report).go().await.fine().clone();
    assert_eq!(put(&report).await, json!({"begun": 3, "ended": 0}));
    assert_eq!(put(&report).await, json!({"begun": 0, "ended": 0}));
    assert_eq!(house.claim("lan", "web").await, "10.0.3.52");
    let exact = json!({"address": "10.0.3.50"});
    let refused = house.put("/pools/lan/claims/p").json(&exact).go().await;
    assert!(refused.problem(409, "observed").contains("printer"));
    let adopted = json!({"address": "10.0.3.50", "adopt": true});
    house.put("/pools/lan/claims/p").json(&adopted).go().await.created();

    let list = house.get("/observations?source=scan").go().await;
    assert_eq!(list.fine()["items"].as_array().unwrap().len(), 3);
    assert_eq!(list.body["items"][0]["pool"], "lan");
    let page = house.get("/observations?limit=1").go().await;
    let next = page.fine()["next"].as_str().unwrap().replace('/', "%2F");
    assert_eq!(
        house.get(&format!("/observations?after={next}")).go().await.fine()["items"][0]["address"],
        "10.0.3.51"
    );
    let explained = house.get("/addresses/10.0.3.51").go().await;
    assert_eq!(explained.fine()["places"][0]["address"]["seen_by"], json!(["scan"]));
    assert_eq!(
        put(&json!({"complete": true, "grace": "0", "seen": []})).await,
        json!({"begun": 0, "ended": 3})
    );
    let wrong = json!({"seen": [{"address": "10.0.3.50"}, {"address": "x"}]});
    assert_eq!(house.put("/observations/scan").json(&wrong).go().await.invalid(400).0, "seen[1].address");
}
