//! Many at once.

use netstead_api::access::Role;
use serde_json::{Value, json};

use crate::support::House;

fn claim(key: &str, pools: &[&str]) -> Value {
    json!({"claim": {"key": key, "each": pools}})
}

#[tokio::test]
async fn results_come_in_order() {
    let house = House::with_lan().await;
    house.pool("macs", json!({"ranges": ["52:54:00:00:00:01-52:54:00:00:00:ff"]})).await;
    house.claim("lan", "old").await;
    house.put("/pools/lan/claims/lease").json(&json!({"ttl": "1h"})).go().await.created();
    house.claim("lan", "wanderer").await;
    let entries = json!({"entries": [
        claim("vm", &["lan", "macs"]),
        {"release": {"pool": "lan", "key": "old"}},
        {"renew": {"target": {"pool": "lan", "key": "lease"}, "ttl": "2h"}},
        {"move": {"target": {"pool": "lan", "key": "wanderer"}, "key": "settler"}},
        {"release": {"pool": "lan", "key": "never-was"}},
    ]});
    let done = house.post("/bulk").json(&entries).go().await;
    let results = done.fine()["results"].as_array().unwrap();
    assert_eq!(results[0]["claimed"].as_array().unwrap().len(), 2);
    assert_eq!(results[0]["claimed"][1]["address"], "52:54:00:00:00:01");
    assert_eq!(results[1]["released"]["claim"]["address"], "10.0.3.50");
    assert_eq!(results[2]["renewed"]["ttl"], "2h");
    assert_eq!(results[3]["moved"]["key"], "settler");
    assert_eq!(results[4]["released"], json!({"outcome": "already gone"}));
}

#[tokio::test]
async fn a_large_call_is_several_commits_and_can_be_repeated() {
    let house = House::with_lan().await;
    let entries: Vec<Value> = (0..150).map(|number| claim(&format!("k{number}"), &["lan"])).collect();
    let before = house.ledger.health().counters.commits;
    let first = house.post("/bulk").json(&json!({"entries": entries})).go().await;
    assert_eq!(house.ledger.health().counters.commits - before, 3);
    let again = house.post("/bulk").json(&json!({"entries": entries})).go().await;
    assert_eq!(first.fine(), again.fine());
    let mut held: Vec<_> = first.body["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["claimed"][0]["address"].to_string())
        .collect();
    held.sort();
    held.dedup();
    assert_eq!(held.len(), 150);
}

#[tokio::test]
async fn a_refused_commit_fails_all_its_entries_and_no_others() {
    let house = House::with_lan().await;
    let mallory = house.token("mallory", Role::Claim).await;
    house.put("/pools/lan/claims/k70").by(&mallory).json(&json!({})).go().await.created();
    let entries: Vec<Value> = (0..100).map(|number| claim(&format!("k{number}"), &["lan"])).collect();
    let done = house.post("/bulk").json(&json!({"entries": entries})).go().await;
    let results = done.fine()["results"].as_array().unwrap();
    assert_eq!(results.len(), 100);
    assert!(results[..64].iter().all(|result| result["claimed"].is_array()));
    assert_eq!(results[70]["failed"]["type"], "urn:netstead:key-held");
    assert_eq!(results[70]["failed"]["facts"]["owner"], "mallory");
    let other = &results[64]["failed"];
    assert_eq!(
        (other["type"].as_str(), other["facts"]["entry"].as_str()),
        (Some("urn:netstead:not-done"), Some("70"))
    );
    assert!(other["detail"].as_str().unwrap().contains("entry 70, `k70`, was refused"));
    house.get("/pools/lan/claims/k64").go().await.problem(404, "no-such-claim");
    house.get("/pools/lan/claims/k63").go().await.fine();
}

#[tokio::test]
async fn what_cannot_be_read_or_is_out_of_reach_stops_the_call_before_anything_is_done() {
    let house = House::with_lan().await;
    let good = claim("good", &["lan"]);
    let wrong = |entry: Value| json!({"entries": [good, entry]});
    for (entry, status, field) in [
        (json!({"claim": {"key": "", "any": ["lan"]}}), 400, "entries[1].claim.key"),
        (
            json!({"claim": {"key": "k", "any": ["lan"], "claim": {"address": "x"}}}),
            400,
            "entries[1].claim.claim.address",
        ),
        (
            json!({"claim": {"key": "k", "any": ["lan"], "claim": {"wait": "1s"}}}),
            422,
            "entries[1].claim.claim.wait",
        ),
        (
            json!({"claim": {"key": "k", "any": ["lan"], "claim": {"owner": "bob"}}}),
            422,
            "entries[1].claim.claim.owner",
        ),
        (json!({"release": {"pool": "lan", "key": "k", "id": "x"}}), 400, "entries[1].release.id"),
        (json!({"renew": {"target": {"pool": "Lan", "key": "k"}}}), 400, "entries[1].renew.target.pool"),
        (json!({"move": {"target": {"pool": "lan", "key": "k"}, "key": ""}}), 400, "entries[1].move.key"),
        (json!({"move": {"target": {"pool": "lan"}, "key": "x"}}), 400, "entries[1].move.target.key"),
    ] {
        let answer = house.post("/bulk").json(&wrong(entry)).go().await;
        assert_eq!(answer.invalid(status).0, field);
    }
    house.post("/bulk").json(&json!({"entries": []})).go().await.invalid(422);
    // What is too long is not read: these are no entries.
    let many = json!({"entries": vec![7; 200_000]});
    let told = "entries: there are more than 10000, which is the most that are taken at once";
    assert_eq!(house.post("/bulk").json(&many).go().await.invalid(422), ("entries".into(), told.into()));
    let pools: Vec<String> = (0..65).map(|number| format!("p{number}")).collect();
    let each = json!({"key": "k", "each": pools});
    let told = "each: 65 pools, and at most 64 fit into one commit";
    assert_eq!(house.post("/claims").json(&each).go().await.invalid(422), ("each".into(), told.into()));
    let ann = house.token("ann", Role::Claim).await;
    let gift = json!({"move": {"target": {"pool": "lan", "key": "good"}, "key": "x", "owner": "bob"}});
    house.post("/bulk").by(&ann).json(&wrong(gift)).go().await.problem(403, "forbidden");
    assert_eq!(house.get("/claims").go().await.fine()["items"], json!([]));
}

#[tokio::test]
async fn when_the_pool_is_too_small_nothing_of_the_commit_is_done() {
    let house = House::open().await;
    house.pool("two", json!({"ranges": ["10.0.0.1-10.0.0.2"]})).await;
    let entries: Vec<Value> = (0..3).map(|number| claim(&format!("k{number}"), &["two"])).collect();
    let done = house.post("/bulk").json(&json!({"entries": entries})).go().await;
    let kinds: Vec<&str> = done.fine()["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| result["failed"]["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["urn:netstead:not-done", "urn:netstead:not-done", "urn:netstead:exhausted"]);
    assert_eq!(done.body["results"][2]["failed"]["facts"]["entry"], "2");
    assert_eq!(house.get("/claims").go().await.fine()["items"], json!([]));
}
