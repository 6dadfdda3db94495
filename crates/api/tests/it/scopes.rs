//! Tokens that are for some pools or VRFs only.

use netstead_api::access::{NewToken, Role, Scopes};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::House;

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
async fn an_address_out_of_scope_means_nothing() {
    let house = house().await;
    let token = house.scoped(scoped(Role::Read, &["a"], &[])).await;
    let seen = house.get("/addresses/10.0.1.1").by(&token).go().await;
    assert_eq!(seen.fine()["places"].as_array().unwrap().len(), 1);
    let hidden = house.get("/addresses/10.0.2.1").by(&token).go().await;
    assert_eq!(hidden.fine()["places"], json!([]));
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
