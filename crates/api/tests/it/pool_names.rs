//! A token for some pools, and without zones, gives claims and pools only names below the domains of its pools.

use netstead_api::access::{NewToken, Role, Scopes};
use serde_json::{Value, json};

use crate::support::{Answer, House};

/// Pools of several domains and of none; a claim in `lab` that a caller without scopes named outside `lab.test`.
async fn house() -> House {
    let house = House::open().await;
    for (name, pool) in [
        ("home", json!({"network": "10.0.1.0/24", "domain": "home.test", "labels": {"any": "1"}})),
        (
            "lab",
            json!({"network": "10.0.2.0/24", "domain": "lab.test", "vrf": "blue", "labels": {"any": "1"}}),
        ),
        ("bare", json!({"network": "10.0.3.0/24", "vrf": "blue"})),
        ("inner", json!({"network": "10.0.4.0/24", "domain": "inner.lab.test"})),
        ("macs", json!({"ranges": ["52:54:00:00:00:00-52:54:00:00:00:ff"], "vrf": "blue"})),
    ] {
        house.pool(name, pool).await;
    }
    let named = json!({"hostnames": ["shop.home.test"]});
    house.put("/pools/lab/claims/shop").json(&named).go().await.created();
    house.claim("lab", "rack%2F7").await;
    house
}

async fn token(house: &House, role: Role, pools: &[&str], vrfs: &[&str], zones: &[&str]) -> String {
    let idents = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect();
    let zones = zones.iter().map(|name| name.parse().unwrap()).collect();
    let scopes = Scopes { pools: idents(pools), vrfs: idents(vrfs), zones };
    house.scoped(NewToken { scopes, ..NewToken::new("root", role) }).await
}

fn named(name: &str) -> Value {
    json!({"hostnames": [name]})
}

fn refused(answer: &Answer, name: &str, scope: &str) {
    let told = answer.problem(403, "forbidden");
    let below = name.strip_prefix("*.").unwrap_or(name);
    let zone =
        if below == "lab.test" { below } else { below.split_once('.').map_or(below, |(_, zone)| zone) };
    let expected = format!(
        "your token is for the {scope}, so its claims and pools may have names below `lab.test`, and not `{name}`; \
         a token that was made with `--zone {zone}` may"
    );
    assert_eq!(told, expected);
    assert_eq!(answer.body["facts"]["domains"], "lab.test");
}

#[tokio::test]
async fn a_claim_gets_no_name_out_of_the_domains_of_the_pools_its_token_is_for() {
    let house = house().await;
    let before = house.get("/events?limit=1000").go().await.fine()["items"].clone();
    for (role, pools, vrfs, scope) in [
        (Role::Claim, vec!["lab", "bare", "macs"], vec![], "pools `lab`, `bare`, `macs`"),
        (Role::Write, vec![], vec!["blue"], "VRFs `blue`"),
    ] {
        let token = token(&house, role, &pools, &vrfs, &[]).await;
        let asks = [
            (house.put("/pools/lab/claims/x").json(&named("www.home.test")), "www.home.test"),
            (house.put("/pools/lab/claims/x").json(&named("www.notlab.test")), "www.notlab.test"),
            (house.put("/pools/lab/claims/x").json(&named("lab.test")), "lab.test"),
            (house.put("/pools/lab/claims/x").json(&named("*.lab.test")), "*.lab.test"),
            (
                house.put("/pools/lab/claims/x").json(&json!({"hostnames": ["ok", "ok.home.test"]})),
                "ok.home.test",
            ),
            // The domain of a pool that the token is not for lies within.
            (house.put("/pools/lab/claims/x").json(&named("db.inner.lab.test")), "db.inner.lab.test"),
            (house.put("/pools/bare/claims/x").json(&named("www")), "www"),
            (house.put("/pools/lab/claims/shop").json(&named("shop.home.test")), "shop.home.test"),
            (
                house.post("/claims").json(
                    &json!({"key": "x", "any": ["lab", "bare"], "claim": {"hostnames": ["www.home.test"]}}),
                ),
                "www.home.test",
            ),
            (
                house
                    .post("/claims")
                    .json(&json!({"key": "x", "select": "any=1", "claim": {"hostnames": ["www.home.test"]}})),
                "www.home.test",
            ),
            (
                house.post("/bulk").json(&json!({"entries": [
                    {"claim": {"key": "y", "any": ["lab"]}},
                    {"claim": {"key": "x", "any": ["lab"], "claim": {"hostnames": ["www.home.test"]}}},
                ]})),
                "www.home.test",
            ),
            // A claim takes its hostnames along.
            (house.post("/pools/lab/claims/shop/move").json(&json!({"key": "store"})), "shop.home.test"),
            (
                house.post("/bulk").json(&json!({"entries": [
                    {"move": {"target": {"pool": "lab", "key": "shop"}, "key": "store"}},
                ]})),
                "shop.home.test",
            ),
        ];
        for (ask, name) in asks {
            refused(&ask.by(&token).go().await, name, scope);
        }
    }
    assert_eq!(house.get("/events?limit=1000").go().await.fine()["items"], before);
}

#[tokio::test]
async fn below_the_domains_of_its_pools_a_token_names_what_it_likes() {
    let house = house().await;
    let token = token(&house, Role::Claim, &["lab", "bare", "macs"], &[], &[]).await;
    let put = async |pool: &str, key: &str, body: Value| {
        let made = house.put(&format!("/pools/{pool}/claims/{key}")).by(&token).json(&body).go().await;
        made.created()["names"].clone()
    };
    assert_eq!(put("lab", "a", json!({})).await, json!(["a.lab.test"]));
    assert_eq!(put("lab", "b", named("www")).await, json!(["www.lab.test"]));
    assert_eq!(put("lab", "c", named("*.apps.lab.test")).await, json!(["*.apps.lab.test"]));
    assert_eq!(put("bare", "d", named("d.lab.test")).await, json!(["d.lab.test"]));
    assert_eq!(put("bare", "e", json!({})).await, json!([]));
    // A MAC address has no record, whatever it is called.
    put("macs", "f", named("www.home.test")).await;
    // What is there keeps its name, and may be asked for again, renewed and ended.
    let again = house.put("/pools/lab/claims/shop").by(&token).json(&json!({})).go().await;
    assert_eq!(again.fine()["names"], json!(["shop.home.test"]));
    let longer = json!({"ttl": "1h"});
    house.post("/pools/lab/claims/shop/renew").by(&token).json(&longer).go().await.fine();
    let key = json!({"key": "rack8"});
    house.post("/pools/lab/claims/rack%2F7/move").by(&token).json(&key).go().await.fine();
    house.delete("/pools/lab/claims/shop").by(&token).go().await.fine();
}

#[tokio::test]
async fn zones_go_before_pools_and_without_domains_there_are_no_names() {
    let house = house().await;
    let zoned = token(&house, Role::Claim, &["lab"], &[], &["home.test"]).await;
    let made = house.put("/pools/lab/claims/x").by(&zoned).json(&named("www.home.test")).go().await;
    assert_eq!(made.created()["names"], json!(["www.home.test"]));
    let bare = token(&house, Role::Claim, &["bare"], &[], &[]).await;
    let answer = house.put("/pools/bare/claims/x").by(&bare).json(&named("www.lab.test")).go().await;
    assert_eq!(
        answer.problem(403, "forbidden"),
        "your token is for the pools `bare`, which have no domain, so its claims and pools get no name, and not \
         `www.lab.test`; a token that was made with `--zone lab.test` may"
    );
    house.put("/pools/bare/claims/x").by(&bare).json(&json!({})).go().await.created();
}

#[tokio::test]
async fn a_pool_gets_no_domain_out_of_those_its_token_has() {
    let house = house().await;
    let scope = "pools `lab`, `bare`, `new`";
    let token = token(&house, Role::Write, &["lab", "bare", "new"], &[], &[]).await;
    let pool = |net: u8, domain: &str| json!({"network": format!("10.0.{net}.0/24"), "domain": domain, "vrf": "blue"});
    for (path, body, name) in [
        ("/pools/new", pool(9, "home.test"), "home.test"),
        ("/pools/bare", pool(3, "home.test"), "home.test"),
        ("/pools/lab", pool(2, "test"), "test"),
        ("/pools/lab", pool(2, "inner.lab.test"), "inner.lab.test"),
    ] {
        let answer = house.put(path).by(&token).json(&body).go().await;
        let told = answer.problem(403, "forbidden");
        let scoped = told.starts_with(&format!("your token is for the {scope}, "));
        assert!(scoped && told.contains(&format!("`{name}`")), "{told}");
    }
    house.put("/pools/new").by(&token).json(&pool(9, "dev.lab.test")).go().await.created();
    house.put("/pools/bare").by(&token).json(&pool(3, "lab.test")).go().await.fine();
    house.put("/pools/lab").by(&token).json(&pool(2, "lab.test")).go().await.fine();
    let bare = json!({"network": "10.0.2.0/24", "vrf": "blue"});
    house.put("/pools/lab").by(&token).json(&bare).go().await.fine();
}
