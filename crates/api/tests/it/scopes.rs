//! Tokens that are for some pools or VRFs only.

use netstead_api::access::{NewToken, Role, Scopes};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Answer, House};

/// Pools `a` (VRF default), `b` and `c` (VRF lab), one claim in each.
async fn house() -> House {
    let house = House::open().await;
    for (name, vrf, net) in [("a", "default", 1), ("b", "lab", 2), ("c", "lab", 3)] {
        house
            .pool(name, json!({"network": format!("10.0.{net}.0/24"), "vrf": vrf, "labels": {"any": "1"}}))
            .await;
        house.claim(name, "k").await;
    }
    house
}

fn scoped(role: Role, pools: &[&str], vrfs: &[&str]) -> NewToken {
    let names = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect();
    let scopes = Scopes { pools: names(pools), vrfs: names(vrfs), zones: vec![] };
    NewToken { scopes, ..NewToken::new("root", role) }
}

fn pools_in(items: &Value, field: &str) -> Vec<String> {
    let mut names: Vec<String> =
        items.as_array().unwrap().iter().map(|item| item[field].as_str().unwrap_or("-").to_owned()).collect();
    names.sort();
    names.dedup();
    names
}

#[tokio::test]
async fn lists_show_what_is_in_scope() {
    let house = house().await;
    for (pools, vrfs, visible) in [
        (vec!["a"], vec![], vec!["a"]),
        (vec![], vec!["lab"], vec!["b", "c"]),
        (vec!["a", "b"], vec!["lab"], vec!["b"]),
    ] {
        let token = house.scoped(scoped(Role::Read, &pools, &vrfs)).await;
        for (path, field) in
            [("/pools", "name"), ("/claims", "pool"), ("/addresses", "pool"), ("/events", "pool")]
        {
            let list = house.get(path).by(&token).go().await;
            assert_eq!(pools_in(&list.fine()["items"], field), visible, "{path}");
        }
        let status = house.get("/status").by(&token).go().await;
        assert_eq!(pools_in(&status.fine()["pools"], "name"), visible);
        let metrics = house
            .bare(Method::GET, "/metrics")
            .bearer_auth(&token)
            .send()
            .await
            .unwrap()
            .text()
            .await
            .unwrap();
        for name in ["a", "b", "c"] {
            assert_eq!(metrics.contains(&format!("pool=\"{name}\"")), visible.contains(&name), "{name}");
        }
    }
}

#[tokio::test]
async fn what_is_out_of_scope_is_forbidden_and_the_scope_named() {
    let house = house().await;
    let pool = json!({"network": "10.0.2.0/24", "vrf": "lab"});
    for (pools, vrfs, named) in
        [(vec!["a"], vec![], "pools `a`"), (vec![], vec!["default"], "VRFs `default`")]
    {
        let token = house.scoped(scoped(Role::Write, &pools, &vrfs)).await;
        let asks = [
            house.get("/pools/b"),
            house.get("/pools/b/claims/k"),
            house.get("/claims?pool=b"),
            house.get("/addresses?pool=b"),
            house.get("/events?pool=b"),
            house.get("/reservations?pool=b"),
            house.get("/pools/b/reservations"),
            house.delete("/pools/b?force=spite"),
            house.delete("/pools/b/claims/k"),
            house.delete("/pools/b/reservations/r"),
            house.put("/pools/b").json(&pool),
            house.put("/pools/b/claims/x").json(&json!({})),
            house.put("/pools/b/reservations/r").json(&json!({"range": "10.0.2.9"})),
            house.post("/pools/b/claims/k/renew").json(&json!({})),
            house.post("/pools/b/claims/k/move").json(&json!({"key": "x"})),
            house.post("/claims").json(&json!({"key": "x", "any": ["a", "b"]})),
            house.post("/claims").json(&json!({"key": "x", "each": ["a", "b"]})),
            house.post("/bulk").json(&json!({"entries": [{"release": {"pool": "a", "key": "k"}}, {"release": {"pool": "b", "key": "k"}}]})),
        ];
        for ask in asks {
            let answer = ask.by(&token).go().await;
            let told = answer.problem(403, "forbidden");
            assert!(told.contains(named), "{told}");
            assert!(!answer.body["facts"]["scope"].is_null());
        }
        for key in ["a", "b"] {
            assert_eq!(house.get(&format!("/pools/{key}/claims/k")).go().await.status, 200);
        }
    }
}

#[tokio::test]
async fn within_its_scope_a_token_works() {
    let house = house().await;
    let token = house.scoped(scoped(Role::Write, &["b", "new"], &["lab"])).await;
    assert_eq!(house.put("/pools/b/claims/x").by(&token).json(&json!({})).go().await.status, 201);
    house.get("/pools/b").by(&token).go().await.fine();
    // A selector finds what the token may see.
    let found = house.post("/claims").by(&token).json(&json!({"key": "s", "select": "any=1"})).go().await;
    assert_eq!(found.fine()["claims"][0]["pool"], "b");
    // A new pool must be in scope by name and by VRF.
    let (lab, other) = (json!({"network": "10.7.0.0/24", "vrf": "lab"}), json!({"network": "10.7.0.0/24"}));
    house.put("/pools/new").by(&token).json(&other).go().await.problem(403, "forbidden");
    house.put("/pools/newer").by(&token).json(&lab).go().await.problem(403, "forbidden");
    house.put("/pools/new").by(&token).json(&lab).go().await.created();
}

#[tokio::test]
async fn a_selector_reaches_all_pools_in_scope_however_many() {
    let house = House::open().await;
    let name = |number: usize| format!("p{number:02}");
    for number in 0..100 {
        let range = format!("10.9.{number}.1");
        house.pool(&name(number), json!({"ranges": [range], "labels": {"any": "1"}})).await;
    }
    let reached: Vec<String> = (20..100).filter(|number| number % 10 != 0).map(name).collect();
    let scope: Vec<&str> = reached.iter().map(String::as_str).collect();
    assert!(scope.len() > 64);
    let token = house.scoped(scoped(Role::Claim, &scope, &[])).await;
    let ask = |key: &str, wait: Option<&str>| {
        let claim = wait.map_or(json!({}), |wait| json!({"wait": wait, "keep": true}));
        house.post("/claims").json(&json!({"key": key, "select": "any=1", "claim": claim}))
    };
    for pool in &reached {
        let got = ask(&format!("of-{pool}"), None).by(&token).go().await;
        assert_eq!(got.fine()["claims"][0]["pool"], *pool, "in their order");
    }
    ask("late", None).by(&token).go().await.problem(409, "exhausted");
    let waits = ask("late", Some("0s")).by(&token).go().await;
    assert_eq!((waits.status, &waits.body["claims"][0]["state"]), (202, &json!("waiting")));
    house.delete("/pools/p99/claims/of-p99").go().await.fine();
    // Who is not limited gets what is left, up to the last one.
    let left: Vec<String> = (0..100).map(name).filter(|pool| !reached.contains(pool)).collect();
    for pool in &left {
        let got = ask(&format!("other-{pool}"), None).go().await;
        assert_eq!(got.fine()["claims"][0]["pool"], *pool);
    }
    let named = json!({"key": "many", "any": vec!["p00"; 65]});
    let (field, _) = house.post("/claims").json(&named).go().await.invalid(422);
    assert_eq!(field, "any");
}

#[tokio::test]
async fn an_address_out_of_scope_is_forbidden_wherever_it_lies() {
    let house = house().await;
    let token = house.scoped(scoped(Role::Read, &["a"], &[])).await;
    let seen = house.get("/addresses/10.0.1.1").by(&token).go().await;
    assert_eq!(seen.fine()["places"].as_array().unwrap().len(), 1);
    house.get("/events?address=10.0.1.1").by(&token).go().await.fine();
    // Whether another pool has it is not said.
    for address in ["10.0.2.1", "10.0.2.0%2F28", "192.0.2.1"] {
        for path in [format!("/addresses/{address}"), format!("/events?address={address}")] {
            let answer = house.get(&path).by(&token).go().await;
            let told = answer.problem(403, "forbidden");
            assert!(told.starts_with("your token is for the pools `a`, and "), "{told}");
            assert_eq!(answer.body["facts"]["scope"], "pools=a");
        }
    }
}

#[tokio::test]
async fn what_concerns_everything_needs_a_token_without_scopes() {
    let house = house().await;
    let token = house.scoped(scoped(Role::Admin, &["a"], &[])).await;
    let asks = [
        house.get("/tokens"),
        house.post("/tokens").json(&json!({"subject": "x", "role": "admin"})),
        house.delete("/tokens/abc"),
        house.get("/backup"),
        house.post("/check").json(&json!({})),
        house.post("/resume").json(&json!({})),
        house.put("/observations/scan").json(&json!({"seen": []})),
    ];
    for ask in asks {
        ask.by(&token).go().await.problem(403, "forbidden");
    }
}

/// Pools of two domains and of none, with a claim in each, and one in `lab` that is called otherwise.
async fn house_of_zones() -> House {
    let house = House::open().await;
    for (name, pool) in [
        ("home", json!({"network": "10.0.1.0/24", "domain": "home.test", "labels": {"site": "home"}})),
        ("lab", json!({"network": "10.0.2.0/24", "domain": "lab.test", "labels": {"site": "any"}})),
        ("other", json!({"network": "10.0.3.0/24", "domain": "home.test", "labels": {"site": "any"}})),
        ("bare", json!({"network": "10.0.4.0/24"})),
        ("macs", json!({"ranges": ["52:54:00:00:00:00-52:54:00:00:00:ff"], "domain": "home.test"})),
        ("mixed", json!({"network": "10.0.5.0/24", "domain": "lab.test"})),
    ] {
        house.pool(name, pool).await;
    }
    house.claim("home", "old").await;
    house.claim("home", "rack%2F7").await;
    for (pool, key, name) in
        [("home", "guest", "guest.lab.test"), ("mixed", "shop", "shop.home.test"), ("lab", "web", "web")]
    {
        let named = json!({"hostnames": [name]});
        house.put(&format!("/pools/{pool}/claims/{key}")).json(&named).go().await.created();
    }
    house
}

async fn of_zone(house: &House, role: Role) -> String {
    let scopes = Scopes { zones: vec!["lab.test".parse().unwrap()], ..Scopes::default() };
    house.scoped(NewToken { scopes, ..NewToken::new("root", role) }).await
}

#[tokio::test]
async fn no_claim_gets_changes_or_loses_a_name_out_of_the_zones_of_a_token() {
    let house = house_of_zones().await;
    let before = house.get("/events?limit=1000").go().await.fine()["items"].clone();
    let claim = |key: &str, pool: &str| json!({"claim": {"key": key, "any": [pool]}});
    let named = |name: &str| json!({"hostnames": [name]});
    let target = |key: &str| json!({"pool": "home", "key": key});
    for role in [Role::Claim, Role::Write] {
        let token = of_zone(&house, role).await;
        let asks = [
            // By hostname, whole or with the domain of the pool, and by key.
            (house.put("/pools/lab/claims/x").json(&named("www.home.test")), "www.home.test"),
            (house.put("/pools/bare/claims/x").json(&named("www.athelab.test")), "www.athelab.test"),
            (house.put("/pools/bare/claims/x").json(&named("www")), "www"),
            (house.put("/pools/home/claims/x").json(&named("www")), "www.home.test"),
            (house.put("/pools/home/claims/x").json(&json!({})), "x.home.test"),
            (house.put("/pools/home/claims/x").json(&json!({"hostnames": []})), "x.home.test"),
            // Wherever a choice may end.
            (house.post("/claims").json(&json!({"key": "x", "any": ["lab", "home"]})), "x.home.test"),
            (house.post("/claims").json(&json!({"key": "x", "each": ["lab", "home"]})), "x.home.test"),
            (house.post("/claims").json(&json!({"key": "x", "select": "site=home"})), "x.home.test"),
            // What is there.
            (house.put("/pools/home/claims/old").json(&named("old.lab.test")), "old.home.test"),
            (house.delete("/pools/home/claims/old"), "old.home.test"),
            (house.post("/pools/home/claims/old/renew").json(&json!({"ttl": "1h"})), "old.home.test"),
            (house.post("/pools/home/claims/old/move").json(&json!({"key": "rack/8"})), "old.home.test"),
            (house.post("/pools/home/claims/rack%2F7/move").json(&json!({"key": "www"})), "www.home.test"),
            // Among others, and one after the other.
            (
                house.post("/bulk").json(&json!({"entries": [claim("y", "lab"), claim("x", "home")]})),
                "x.home.test",
            ),
            (
                house
                    .post("/bulk")
                    .json(&json!({"entries": [claim("y", "lab"), {"release": target("old")}]})),
                "old.home.test",
            ),
            (
                house
                    .post("/bulk")
                    .json(&json!({"entries": [{"release": target("guest")}, claim("guest", "home")]})),
                "guest.home.test",
            ),
            (
                house
                    .post("/bulk")
                    .json(&json!({"entries": [{"move": {"target": target("rack/7"), "key": "www"}}]})),
                "www.home.test",
            ),
        ];
        for (ask, name) in asks {
            refused_for(&ask.by(&token).go().await, name);
        }
    }
    assert_eq!(house.get("/events?limit=1000").go().await.fine()["items"], before);
}

fn refused_for(answer: &Answer, name: &str) {
    let told = answer.problem(403, "forbidden");
    assert_eq!(told, format!("your token is for the zones `lab.test` and not for `{name}`"));
    assert_eq!(answer.body["facts"]["scope"], "zones");
}

#[tokio::test]
async fn no_pool_gets_or_loses_a_domain_out_of_the_zones_of_a_token() {
    let house = house_of_zones().await;
    let token = of_zone(&house, Role::Write).await;
    let before = house.get("/events?limit=1000").go().await.fine()["items"].clone();
    let pool = |net: u8, domain: &str| json!({"network": format!("10.0.{net}.0/24"), "domain": domain});
    for (ask, name) in [
        (house.put("/pools/new").json(&pool(9, "home.test")), "home.test"),
        (house.put("/pools/lab").json(&pool(2, "home.test")), "home.test"),
        (house.put("/pools/lab").json(&pool(2, "test")), "test"),
        (house.put("/pools/bare").json(&pool(4, "home.test")), "home.test"),
        (house.put("/pools/home").json(&pool(1, "lab.test")), "home.test"),
        (house.put("/pools/home").json(&json!({"network": "10.0.1.0/24"})), "home.test"),
        (house.delete("/pools/home?force=spite"), "home.test"),
        (house.delete("/pools/mixed?force=spite"), "shop.home.test"),
    ] {
        refused_for(&ask.by(&token).go().await, name);
    }
    assert_eq!(house.get("/events?limit=1000").go().await.fine()["items"], before);
}

#[tokio::test]
async fn within_its_zones_and_without_names_a_token_works() {
    let house = house_of_zones().await;
    let token = of_zone(&house, Role::Claim).await;
    let put = async |pool: &str, key: &str, body: Value| {
        let made = house.put(&format!("/pools/{pool}/claims/{key}")).by(&token).json(&body).go().await;
        made.created()["names"].clone()
    };
    let named = |name: &str| json!({"hostnames": [name]});
    assert_eq!(put("lab", "a", json!({})).await, json!(["a.lab.test"]));
    assert_eq!(put("lab", "b", named("www.dev.lab.test")).await, json!(["www.dev.lab.test"]));
    assert_eq!(put("lab", "c", named("www")).await, json!(["www.lab.test"]));
    assert_eq!(put("home", "d", named("d.lab.test")).await, json!(["d.lab.test"]));
    assert_eq!(put("home", "rack%2F8", json!({})).await, json!([]));
    assert_eq!(put("bare", "e", json!({})).await, json!([]));
    // A MAC address has no record.
    put("macs", "f", json!({})).await;
    let chosen = house.post("/claims").by(&token).json(&json!({"key": "g", "select": "site=any"})).go().await;
    assert_eq!(chosen.fine()["claims"][0]["pool"], "lab");

    // What has its hostnames takes them along, and a repeat is as fine as the first.
    let id = house.get("/pools/home/claims/guest").go().await.fine()["id"].clone();
    for _ in 0..2 {
        let moved = json!({"key": "visitor", "id": id});
        let moved = house.post("/pools/home/claims/guest/move").by(&token).json(&moved).go().await;
        assert_eq!(moved.fine()["names"], json!(["guest.lab.test"]));
    }
    let longer = json!({"ttl": "1h"});
    house.post("/pools/lab/claims/web/renew").by(&token).json(&longer).go().await.fine();
    let entries =
        json!([{"release": {"pool": "lab", "key": "web"}}, {"claim": {"key": "web-2", "any": ["lab"]}}]);
    let bulk = house.post("/bulk").by(&token).json(&json!({"entries": entries})).go().await;
    assert_eq!(bulk.fine()["results"][1]["claimed"][0]["names"], json!(["web-2.lab.test"]));

    let token = of_zone(&house, Role::Write).await;
    let pool = json!({"network": "10.0.9.0/24", "domain": "dev.lab.test"});
    house.put("/pools/dev").by(&token).json(&pool).go().await.created();
    house.put("/pools/dev").by(&token).json(&json!({"network": "10.0.9.0/24"})).go().await.fine();
    house.delete("/pools/dev").by(&token).go().await.fine();
}
