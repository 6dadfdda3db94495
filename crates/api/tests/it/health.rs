//! Health, status and metrics.

use std::{sync::Arc, time::Duration};

use netstead_api::ServeOptions;
use netstead_model::SystemClock;
use netstead_store::{FaultyStore, MemoryStore};
use reqwest::Method;
use serde_json::json;

use crate::support::{Answer, House};

#[tokio::test]
async fn a_healthy_server_says_so_to_everybody() {
    let house = House::open().await;
    for path in ["/healthz", "/readyz"] {
        let answer = Answer::of(house.bare(Method::GET, path)).await;
        assert_eq!((answer.status, answer.text.as_str()), (200, "ok\n"));
    }
}

#[tokio::test]
async fn a_server_without_its_store_lives_but_is_not_ready() {
    let house = House::with_lan().await;
    house.store.close().await;
    assert_eq!(Answer::of(house.bare(Method::GET, "/healthz")).await.status, 200);
    let told = Answer::of(house.bare(Method::GET, "/readyz")).await.problem(503, "not-ready");
    assert!(told.contains("the store is closed"), "{told}");
    let refused = house.get("/pools").go().await;
    refused.problem(503, "unavailable");
    assert!(!refused.header("retry-after").is_empty());
    // What is in memory can still be looked at, if old is good enough.
    house.get("/pools?stale=ok").go().await.fine();
    let metrics = Answer::of(house.bare(Method::GET, "/metrics")).await;
    assert!(metrics.text.contains("netstead_store_ready 0"), "{}", metrics.text);
}

#[tokio::test]
async fn status_says_what_a_person_must_do() {
    let house = House::open().await;
    house.pool("tiny", json!({"ranges": ["10.0.0.1-10.0.0.2"]})).await;
    let well = house.get("/status").go().await;
    assert_eq!((well.fine()["state"].as_str(), &well.body["todo"]), (Some("ready"), &json!([])));
    assert_eq!(
        (&well.body["store"], &well.body["ledger"]),
        (&json!("memory"), &json!(format!("{:08x}", house.ledger.id())))
    );
    house.claim("tiny", "a").await;
    house.claim("tiny", "b").await;
    let full = house.get("/status").go().await;
    assert!(full.fine()["todo"][0].as_str().unwrap().contains("netstead pool update tiny"), "{full:?}");
}

#[tokio::test]
async fn metrics_have_bounded_labels() {
    let house = House::with_lan().await;
    house.claim("lan", "secret-host").await;
    house.get("/pools/nowhere").go().await;
    Answer::of(house.bare(Method::from_bytes(b"FROBNICATE").unwrap(), "/some/path")).await;
    let answer = Answer::of(house.bare(Method::GET, "/metrics")).await;
    let text = answer.text;
    for line in [
        "netstead_requests_total{route=\"/api/v1/pools/{pool}/claims/{key}\",method=\"PUT\",status=\"201\"} 1",
        "netstead_requests_total{route=\"/api/v1/pools/{pool}\",method=\"GET\",status=\"404\"} 1",
        "netstead_requests_total{route=\"other\",method=\"other\",status=\"404\"} 1",
        "netstead_request_duration_seconds_count{route=\"/api/v1/pools/{pool}/claims/{key}\"} 1",
        "netstead_pool_addresses{pool=\"lan\",state=\"held\"} 1",
        "netstead_pool_addresses{pool=\"lan\",state=\"free\"} 150",
        "netstead_store_ready 1",
        "netstead_build_info{version=\"0.1.0\"} 1",
    ] {
        assert!(text.lines().any(|found| found.starts_with(line)), "{line} is missing in\n{text}");
    }
    for name in [
        "ledger_seq",
        "ledger_epoch",
        "ledger_commits_total",
        "ledger_unknown_commits_total",
        "ledger_rebuilds_total",
        "ledger_queue",
    ] {
        assert!(text.contains(&format!("\nnetstead_{name} ")), "{name} is missing in\n{text}");
    }
    assert!(
        !text.contains("secret-host") && !text.contains("root") && !text.contains("/some/path"),
        "{text}"
    );
}

#[tokio::test]
async fn metrics_need_a_token_where_others_can_reach_them() {
    let house = House::with(SystemClock::shared(), ServeOptions::new("0.0.0.0:0")).await;
    Answer::of(house.bare(Method::GET, "/metrics")).await.problem(401, "unauthenticated");
    let answer = Answer::of(house.bare(Method::GET, "/metrics").bearer_auth(&house.admin)).await;
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn freshness_can_be_chosen() {
    let house = House::with_lan().await;
    let made = house.put("/pools/lan/claims/a").json(&json!({})).go().await;
    let seq: u64 = made.header("netstead-seq").parse().unwrap();
    let seen = house.get(&format!("/claims?at_least={seq}")).go().await;
    assert!(seen.fine()["seq"].as_u64().unwrap() >= seq);
    assert_eq!(seen.header("netstead-seq"), seen.body["seq"].to_string());
    assert_eq!(seen.header("netstead-age"), "");
    let stale = house.get("/claims?stale=ok").go().await;
    assert!(stale.header("netstead-age").parse::<f64>().is_ok(), "{stale:?}");
    let never =
        house.get(&format!("/claims?at_least={}", seq + 1000)).header("netstead-timeout", "0.3").go().await;
    never.problem(504, "too-late");
}

#[tokio::test]
async fn who_has_little_time_hears_why_the_store_does_not_answer() {
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())));
    let options = ServeOptions::new("127.0.0.1:0");
    let house = House::over(store.clone(), SystemClock::shared(), options).await;
    house.get("/claims").go().await.fine();
    store.slow_down(Duration::from_mins(1));
    store.set_outage(Some("no node leads the cluster"));
    let read = house.get("/claims").header("netstead-timeout", "0.3").go().await;
    let told = read.problem(503, "unavailable");
    assert!(told.contains("no node leads the cluster") && told.contains("stale=ok"), "{told}");
    house.get("/claims?stale=ok").header("netstead-timeout", "0.3").go().await.fine();
}

#[tokio::test]
async fn the_root_leads_to_the_page_and_bodies_have_a_limit_that_can_be_set() {
    let options = ServeOptions { max_body: 2000, ..ServeOptions::new("127.0.0.1:0") };
    let house = House::with(SystemClock::shared(), options).await;
    let root = Answer::of(house.bare(Method::GET, "/")).await;
    assert!(root.status == 200 && root.text.contains("swagger-ui"), "{root:?}");
    let long = json!({"ranges": ["10.0.0.1-10.0.0.2"], "description": "x".repeat(3000)});
    house.put("/pools/lan").json(&long).go().await.problem(413, "too-large");
}
