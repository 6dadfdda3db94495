//! Claims: get, keep, renew, hand on, give back.

use std::time::Duration;

use netstead_api::{ServeOptions, access::Role};
use netstead_model::ManualClock;
use serde_json::json;

use crate::support::House;

#[tokio::test]
async fn a_claim_lives_from_first_to_last() {
    let house = House::with_lan().await;
    let made = house.put("/pools/lan/claims/web-1").json(&json!({"labels": {"env": "prod"}})).go().await;
    let claim = made.created();
    assert_eq!(claim["address"], "10.0.3.50");
    assert_eq!(claim["owner"], "root");
    assert_eq!(claim["names"], json!(["web-1.home.test"]));
    assert_eq!(claim["gateway"], "10.0.3.1");
    assert_eq!(claim["family"], "ipv4");
    let id = claim["id"].as_str().unwrap();
    assert_eq!(house.get("/pools/lan/claims/web-1").go().await.fine(), claim);

    let again = house.put("/pools/lan/claims/web-1").json(&json!({})).go().await;
    assert_eq!((again.status, &again.body), (200, claim));
    let updated =
        house.put("/pools/lan/claims/web-1").json(&json!({"hostnames": ["www.home.test"]})).go().await;
    assert_eq!((updated.status, &updated.body["names"]), (200, &json!(["www.home.test"])));
    assert_eq!(updated.body["labels"], json!({"env": "prod"}));

    let moved =
        house.post("/pools/lan/claims/web-1/move").json(&json!({"id": id, "key": "web-2"})).go().await;
    assert_eq!((&moved.fine()["key"], &moved.body["address"]), (&json!("web-2"), &json!("10.0.3.50")));
    house.get("/pools/lan/claims/web-1").go().await.problem(404, "no-such-claim");

    let gone = house.delete(&format!("/pools/lan/claims/web-2?id={id}")).go().await;
    assert_eq!(
        (gone.fine()["outcome"].as_str(), &gone.body["claim"]["key"]),
        (Some("released"), &json!("web-2"))
    );
    let gone = house.delete(&format!("/pools/lan/claims/web-2?id={id}")).go().await;
    assert_eq!(gone.fine(), &json!({"outcome": "already gone"}));
    house
        .post("/pools/lan/claims/web-2/renew")
        .json(&json!({"id": id}))
        .go()
        .await
        .problem(410, "already-gone");
    house.post("/pools/lan/claims/web-2/renew").json(&json!({})).go().await.problem(404, "no-such-claim");
}

#[tokio::test]
async fn an_address_by_name_is_got_or_its_holder_named() {
    let house = House::with_lan().await;
    let exact = json!({"address": "10.0.3.60"});
    let got = house.put("/pools/lan/claims/db").json(&exact).go().await;
    assert_eq!((got.created()["address"].as_str(), &got.body["fixed"]), (Some("10.0.3.60"), &json!(true)));
    let held = house.put("/pools/lan/claims/other").json(&exact).go().await;
    assert!(held.problem(409, "address-held").contains("`db` of `root`"));
    assert_eq!(
        held.body["facts"],
        json!({"address": "10.0.3.60", "key": "db", "owner": "root", "pool": "lan"})
    );
    let fallback = house.put("/pools/lan/claims/other").json(&json!({"prefer": "10.0.3.60"})).go().await;
    assert_eq!(fallback.created()["address"], "10.0.3.50");
    let elsewhere = json!({"address": "10.0.4.1"});
    house.put("/pools/lan/claims/third").json(&elsewhere).go().await.problem(422, "not-in-pool");
    let other = json!({"address": "10.0.3.61"});
    house.put("/pools/lan/claims/db").json(&other).go().await.problem(409, "holds-another");
}

#[tokio::test]
async fn released_addresses_rest_and_their_owner_gets_them_back() {
    let house = House::with_lan().await;
    house.claim("lan", "web-1").await;
    house.delete("/pools/lan/claims/web-1").go().await.fine();
    assert_eq!(house.claim("lan", "web-2").await, "10.0.3.51");
    let exact = json!({"address": "10.0.3.50"});
    let rests = house.put("/pools/lan/claims/web-3").json(&exact).go().await;
    rests.problem(409, "resting");
    assert!(rests.header("retry-after").parse::<u64>().unwrap() > 500);
    assert_eq!(house.claim("lan", "web-1").await, "10.0.3.50");
}

#[tokio::test]
async fn a_key_may_have_any_printable_character() {
    let house = House::with_lan().await;
    for key in ["ns%2Fname", "a%20b", "%E2%98%83", "100%25"] {
        let made = house.put(&format!("/pools/lan/claims/{key}")).json(&json!({})).go().await;
        let shown = house.get(&format!("/pools/lan/claims/{key}")).go().await;
        assert_eq!(shown.fine(), made.created());
    }
    assert_eq!(house.get("/claims?key=ns%2Fname").go().await.fine()["items"][0]["key"], "ns/name");
}

#[tokio::test]
async fn claims_are_served_by_the_first_pool_with_room_or_by_each() {
    let house = House::open().await;
    house.pool("tiny", json!({"ranges": ["10.0.1.1"], "labels": {"site": "ams"}})).await;
    house.pool("more", json!({"ranges": ["10.0.2.1-10.0.2.9"], "labels": {"site": "ams"}})).await;
    house.pool("macs", json!({"ranges": ["52:54:00:00:00:01-52:54:00:00:00:ff"]})).await;
    let any = |key: &str| json!({"key": key, "any": ["tiny", "more"]});
    let first = house.post("/claims").json(&any("a")).go().await;
    assert_eq!(first.fine()["claims"][0]["pool"], "tiny");
    assert_eq!(house.post("/claims").json(&any("b")).go().await.fine()["claims"][0]["address"], "10.0.2.1");
    assert_eq!(house.post("/claims").json(&any("a")).go().await.fine(), first.fine());
    let select = json!({"key": "c", "select": "site=ams"});
    assert_eq!(house.post("/claims").json(&select).go().await.fine()["claims"][0]["pool"], "more");

    let each = json!({"key": "vm", "each": ["more", "macs"]});
    let both = house.post("/claims").json(&each).go().await;
    let held: Vec<_> =
        both.fine()["claims"].as_array().unwrap().iter().map(|claim| claim["address"].clone()).collect();
    assert_eq!(held, ["10.0.2.3", "52:54:00:00:00:01"]);
    // All or none: `tiny` is full, so `macs` gives nothing either.
    let none = json!({"key": "vm-2", "each": ["macs", "tiny"]});
    house.post("/claims").json(&none).go().await.problem(409, "exhausted");
    house.get("/pools/macs/claims/vm-2").go().await.problem(404, "no-such-claim");
    house.post("/claims").json(&json!({"key": "x"})).go().await.invalid(422);
    house.post("/claims").json(&json!({"key": "x", "each": ["macs", "macs"]})).go().await.invalid(422);
    house
        .post("/claims")
        .json(&json!({"key": "x", "select": "site=nowhere"}))
        .go()
        .await
        .problem(404, "nothing-selected");
}

#[tokio::test]
async fn a_lease_says_when_it_ends_and_is_renewed() {
    let clock = ManualClock::default();
    let house = House::with(clock.shared(), ServeOptions::new("127.0.0.1:0")).await;
    house.pool("lan", json!({"network": "10.0.0.0/24"})).await;
    let made = house.put("/pools/lan/claims/a").json(&json!({"ttl": "1h"})).go().await;
    assert_eq!(
        (made.created()["ttl"].as_str(), made.body["until"].as_str()),
        (Some("1h"), Some("2001-09-09T02:46:40Z"))
    );
    clock.advance(Duration::from_mins(30));
    let renewed = house.post("/pools/lan/claims/a/renew").json(&json!({})).go().await;
    assert_eq!(renewed.fine()["until"], "2001-09-09T03:16:40Z");
    let longer = house.post("/pools/lan/claims/a/renew").json(&json!({"ttl": "2h"})).go().await;
    assert_eq!(longer.fine()["until"], "2001-09-09T04:16:40Z");
    let for_ever = house.put("/pools/lan/claims/a").json(&json!({"ttl": "0"})).go().await;
    assert_eq!(for_ever.fine()["until"], json!(null));
}

#[tokio::test]
async fn the_end_of_a_lease_stands_still() {
    let clock = ManualClock::default();
    let house = House::with(clock.shared(), ServeOptions::new("127.0.0.1:0")).await;
    house.pool("lan", json!({"network": "10.0.0.0/24"})).await;
    house.claim("lan", "gone").await;
    house.delete("/pools/lan/claims/gone").go().await.fine();
    let made = house.put("/pools/lan/claims/a").json(&json!({"ttl": "60s"})).go().await;
    let until = made.created()["until"].clone();
    let rested = house.get("/addresses/10.0.0.1").go().await.fine()["places"][0]["address"]["until"].clone();
    for seconds in [2, 5, 7, 9] {
        // No commit moves the ledger on; a change of the wall clock by less than a second is none.
        clock.advance(Duration::from_millis(2_500));
        clock.jump_wall(jiff::SignedDuration::from_millis(if seconds % 2 == 0 { 3 } else { -3 }));
        for path in ["/claims", "/addresses?state=held"] {
            assert_eq!(house.get(path).go().await.fine()["items"][0]["until"], until, "{path}");
        }
        let explained = house.get("/addresses/10.0.0.1").go().await;
        let place = &explained.fine()["places"][0];
        assert_eq!(place["address"]["until"], rested);
        let left = format!("for 9m {}s more", 60 - seconds);
        assert!(place["why"][0].as_str().unwrap().contains(&left), "{left}: {place}");
    }
    // A person who sets the clock sees the new time.
    clock.jump_wall(jiff::SignedDuration::from_hours(1));
    assert_eq!(house.get("/claims").go().await.fine()["items"][0]["until"], "2001-09-09T02:47:39.994Z");
}

#[tokio::test]
async fn another_owner_is_told_who_holds_the_key() {
    let house = House::with_lan().await;
    let (ann, bob) = (house.token("ann", Role::Claim).await, house.token("bob", Role::Claim).await);
    house.put("/pools/lan/claims/web").by(&ann).json(&json!({})).go().await.created();
    let held = house.put("/pools/lan/claims/web").by(&bob).json(&json!({})).go().await;
    assert!(held.problem(409, "key-held").contains("`ann`"));
    // A manager may claim for others, and take over.
    let for_bob = house.put("/pools/lan/claims/db").json(&json!({"owner": "bob"})).go().await;
    assert_eq!(for_bob.created()["owner"], "bob");
    assert_eq!(house.put("/pools/lan/claims/db").by(&bob).json(&json!({})).go().await.status, 200);
    let taken = house.put("/pools/lan/claims/web").json(&json!({"adopt": true})).go().await;
    assert_eq!(taken.fine()["owner"], "root");
}

#[tokio::test]
async fn lists_of_claims_come_in_pages_and_can_be_narrowed() {
    let house = House::with_lan().await;
    house.pool("lab", json!({"network": "10.9.0.0/24", "vrf": "lab"})).await;
    for number in 0..5 {
        house.claim("lan", &format!("k{number}")).await;
    }
    house.claim("lab", "k0").await;
    let (mut keys, mut after) = (Vec::new(), String::new());
    loop {
        let page = house.get(&format!("/claims?limit=4{after}")).go().await;
        keys.extend(
            page.fine()["items"].as_array().unwrap().iter().map(|c| format!("{} {}", c["pool"], c["key"])),
        );
        let Some(next) = page.body["next"].as_str() else { break };
        after = format!("&after={}", next.replace('/', "%2F"));
    }
    assert_eq!(keys.join(", ").replace('"', ""), "lab k0, lan k0, lan k1, lan k2, lan k3, lan k4");
    let count = async |query: &str| {
        house.get(&format!("/claims?{query}")).go().await.fine()["items"].as_array().unwrap().len()
    };
    assert_eq!(count("key=k0").await, 2);
    assert_eq!(count("key=k0&vrf=lab").await, 1);
    assert_eq!(count("pool=lan").await, 5);
    assert_eq!(count("owner=nobody").await, 0);
    house.get("/claims?after=nonsense").go().await.invalid(400);
}

#[tokio::test]
async fn a_key_that_is_a_step_in_a_path_is_refused() {
    let house = House::with_lan().await;
    for key in [".", ".."] {
        let told =
            format!("key: `{key}` cannot be a key: in the path of a URL it means another place; use another");
        let claim = json!({"key": key, "any": ["lan"]});
        assert_eq!(house.post("/claims").json(&claim).go().await.invalid(422), ("key".into(), told.clone()));
        let bulk = house.post("/bulk").json(&json!({"entries": [{"claim": claim}]})).go().await;
        assert_eq!(bulk.fine()["results"][0]["failed"]["detail"], told);
        house.claim("lan", "web").await;
        let moved = house.post("/pools/lan/claims/web/move").json(&json!({"key": key})).go().await;
        assert_eq!(moved.invalid(422), ("key".into(), told));
    }
    let claims = house.get("/claims").go().await;
    assert_eq!(claims.fine()["items"].as_array().unwrap().len(), 1);
}
