//! Single addresses, and what was seen in use.

use netstead_api::access::{NewToken, Role, Scopes};
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
    assert!(why.contains("since the claim `web` of `root` ended"), "{why}");
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
        "10.0.3.50 held, 10.0.3.51 resting, 10.0.3.52 held, 10.0.3.53 held, 10.0.3.100-10.0.3.110 reserved"
    );
    assert_eq!(list("state=resting").await, "10.0.3.51 resting");
    assert_eq!(list("within=10.0.3.52-10.0.3.60").await, "10.0.3.52 held, 10.0.3.53 held");
    assert_eq!(list("limit=1&after=lan%2F10.0.3.50").await, "10.0.3.51 resting");
    assert_eq!(list("state=reserved&within=10.0.3.105%2F32").await, "10.0.3.105 reserved");
    assert_eq!(list("after=lan%2F10.0.3.110").await, "");
    let told = house.get("/addresses?vrf=lab").go().await.problem(404, "no-such-vrf");
    assert!(told.contains("`lab`"), "{told}");
    for path in ["/addresses?pool=nope", "/claims?pool=nope", "/reservations?pool=nope"] {
        assert!(house.get(path).go().await.problem(404, "no-such-pool").contains("`nope`"), "{path}");
    }
    house.get("/claims?vrf=lab").go().await.problem(404, "no-such-vrf");
    assert_eq!(house.get("/events?pool=nope").go().await.fine()["items"], json!([]), "it may have been");
}

#[tokio::test]
async fn what_is_set_aside_is_listed_as_stretches() {
    let house = House::open().await;
    let pool = json!({"network": "fd00::/64", "exclude": ["fd00::10-fd00::1f"], "gateway": "fd00::1"});
    house.pool("lan", pool).await;
    house.put("/pools/lan/reservations/r").json(&json!({"range": "fd00::1:0/112"})).go().await.fine();
    let seen = json!({"seen": [{"address": "fd00::1:5"}, {"address": "fd00::9"}]});
    house.put("/observations/scan").json(&seen).go().await.fine();
    let mine = json!({"address": "fd00::1:8"});
    house.put("/pools/lan/claims/r").json(&mine).go().await.created();
    let all = [
        "fd00:: excluded",
        "fd00::1 gateway",
        "fd00::9 observed",
        "fd00::10/124 excluded",
        "fd00::1:0-fd00::1:4 reserved",
        "fd00::1:5 reserved",
        "fd00::1:6/127 reserved",
        "fd00::1:8 held",
        "fd00::1:9-fd00::1:ffff reserved",
    ];
    let mut listed = Vec::new();
    let mut after = String::new();
    loop {
        let page = house.get(&format!("/addresses?limit=2{after}")).go().await;
        let line = |a: &Value| format!("{} {}", a["address"], a["state"]).replace('"', "");
        listed.extend(page.fine()["items"].as_array().unwrap().iter().map(line));
        let Some(next) = page.body["next"].as_str() else { break };
        after = format!("&after={}", next.replace('/', "%2F"));
    }
    assert_eq!(listed, all);
    let usage = house.get("/pools/lan").go().await.fine()["usage"].clone();
    assert_eq!(
        (&usage["held"], &usage["reserved"], &usage["observed"]),
        (&json!("1"), &json!("65535"), &json!("1"))
    );
    let excluded = house.get("/addresses?state=excluded").go().await;
    assert_eq!(excluded.fine()["items"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_prefix_is_explained() {
    let house = House::open().await;
    house.pool("sites", json!({"family": "prefix", "network": "fd00:2::/48", "length": 64})).await;
    house.put("/pools/sites/claims/ber").json(&json!({"length": 56})).go().await.created();
    house.pool("lan", json!({"network": "10.0.4.0/24"})).await;
    for key in ["a", "b", "c", "d", "e", "f", "g"] {
        house.claim("lan", key).await;
    }
    let explain = async |prefix: &str| {
        let answer = house.get(&format!("/addresses/{}", prefix.replace('/', "%2F"))).go().await;
        let places = answer.fine()["places"].as_array().unwrap().clone();
        let told = |place: &Value| {
            let why: Vec<&str> =
                place["why"].as_array().unwrap().iter().map(|why| why.as_str().unwrap()).collect();
            let why = why.join(" ").split(" since ").next().unwrap().to_owned();
            format!(
                "{} {}: {why}",
                place["address"]["address"].as_str().unwrap(),
                place["address"]["state"].as_str().unwrap()
            )
        };
        places.iter().map(told).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(
        explain("fd00:2:0:1::/64").await,
        "fd00:2::/56 held: fd00:2:0:1::/64 lies in pool `sites`. It is part of fd00:2::/56. fd00:2::/56 is held by `ber` of `root` in pool `sites`"
    );
    assert_eq!(
        explain("fd00:2::/48").await,
        "fd00:2::/48 mixed: fd00:2::/48 is all of pool `sites`. Of ~2^80 addresses that can be handed out: \
         ~2^72 held, ~2^80 free. Held are fd00:2::/56 by `ber`."
    );
    assert_eq!(
        explain("10.0.4.0/28").await,
        "10.0.4.0/28 mixed: 10.0.4.0/28 lies in pool `lan`. Of 15 addresses that can be handed out: 7 held, 8 free. \
         Held are 10.0.4.1 by `a`, 10.0.4.2 by `b`, 10.0.4.3 by `c`, 10.0.4.4 by `d`, 10.0.4.5 by `e`, and 2 more."
    );
    assert_eq!(
        explain("10.0.4.64/26").await,
        "10.0.4.64/26 free: 10.0.4.64/26 lies in pool `lan`. Of 64 addresses that can be handed out: 64 free."
    );
    assert!(explain("10.0.0.0/8").await.contains("All of pool `lan` lies in 10.0.0.0/8."));
    assert_eq!(explain("10.0.5.0/24").await, "");
    assert!(explain("10.0.4.1/32").await.starts_with("10.0.4.1 held: "));
    // What is inside of a prefix has its history, and a prefix that of what is inside.
    let keys = async |address: &str| {
        let page = house.get(&format!("/events?address={}", address.replace('/', "%2F"))).go().await;
        let items = page.fine()["items"].as_array().unwrap().clone();
        items.iter().map(|event| event["key"].as_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(keys("fd00:2:0:1::5").await, "ber");
    assert_eq!(keys("fd00:2:0:100::5").await, "");
    assert_eq!(keys("10.0.4.2/31").await, "c b");
    assert_eq!(keys("10.0.4.2").await, "b");
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

#[tokio::test]
async fn the_history_of_an_address_in_no_pool_is_that_of_the_pools_in_scope() {
    let house = House::open().await;
    house.pool("hidden", json!({"network": "10.0.2.0/24"})).await;
    let exact = json!({"address": "10.0.2.7"});
    house.put("/pools/hidden/claims/secret").json(&exact).go().await.created();
    let seen = json!({"vrf": "x", "seen": [{"address": "10.0.2.7"}]});
    house.put("/observations/scan").json(&seen).go().await.fine();
    let scopes = Scopes { vrfs: vec!["x".parse().unwrap()], ..Scopes::default() };
    let token = house.scoped(NewToken { scopes, ..NewToken::new("ann", Role::Read) }).await;
    let told = house.get("/addresses/10.0.2.7").by(&token).go().await;
    assert_eq!(told.fine()["places"][0]["history"], json!([]));
    assert!(!told.text.contains("hidden") && !told.text.contains("secret"), "{}", told.text);
    let all = house.get("/addresses/10.0.2.7").go().await;
    assert!(all.text.contains("secret"), "{}", all.text);
}

#[tokio::test]
async fn a_number_that_no_change_can_have_soon_is_refused_at_once() {
    let house = House::open().await;
    let newest = house.ledger.health().seq;
    // The time of the request is not waited for: it would be too long for any test.
    let ask = async |number: u64, seconds: &str| {
        let path = format!("/addresses?at_least={number}");
        house.get(&path).header("netstead-timeout", seconds).go().await
    };
    let told =
        format!("at_least: the newest change is {newest}, and no request waits for 9223372036854775808");
    assert_eq!(ask(1 << 63, "600").await.invalid(400), ("at_least".into(), told));
    // One that may still come is waited for, as long as the request may.
    let told = format!("change {} has not happened yet: the newest is {newest}", newest + 1);
    assert_eq!(ask(newest + 1, "0.1").await.problem(504, "too-late"), told);
    ask(newest, "600").await.fine();
}
