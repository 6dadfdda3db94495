//! Requests that are not meant for us.

use netstead_api::ServeOptions;
use netstead_model::SystemClock;
use reqwest::Method;

use crate::support::{Answer, House};

#[tokio::test]
async fn a_forged_host_is_turned_away_everywhere() {
    let house = House::open().await;
    for path in
        ["/api/v1/pools", "/api/v1/openapi.json", "/api/", "/healthz", "/readyz", "/metrics", "/nowhere"]
    {
        for host in ["evil.example", "127.0.0.1.evil.example", "evil.example:5301"] {
            let request = house.bare(Method::GET, path).bearer_auth(&house.admin).header("host", host);
            let told = Answer::of(request).await.problem(421, "bad-host");
            assert!(told.contains(host), "{told}");
        }
    }
    let port = house.server.address().port();
    for host in [format!("localhost:{port}"), "localhost".into(), "10.1.2.3".into(), "[::1]:99".into()] {
        house.get("/pools").header("host", &host).go().await.fine();
    }
}

#[tokio::test]
async fn configured_names_and_the_listen_host_are_ours() {
    let options = ServeOptions { names: vec!["ipam.home.test".into()], ..ServeOptions::new("localhost:0") };
    let house = House::with(SystemClock::shared(), options).await;
    house.get("/pools").header("host", "IPAM.home.test:80").go().await.fine();
    house.get("/pools").header("host", "other.home.test").go().await.problem(421, "bad-host");
}

#[tokio::test]
async fn a_page_of_somebody_else_gets_no_answer() {
    let house = House::open().await;
    let own = house.url.clone();
    let body = serde_json::json!({"network": "10.9.0.0/24"});
    for origin in ["https://evil.example", "null", "http://localhost:1", &own.replace("http", "https")] {
        let answer = house.put("/pools/new").header("origin", origin).json(&body).go().await;
        answer.problem(403, "bad-origin");
    }
    house.get("/pools/new").go().await.problem(404, "no-such-pool");
    house.put("/pools/new").header("origin", &own).json(&body).go().await.created();
}

#[tokio::test]
async fn every_answer_carries_an_id_and_errors_are_always_problems() {
    let house = House::open().await;
    let given = house.get("/pools").header("x-request-id", "order 66").go().await;
    assert_eq!(given.header("x-request-id"), "order 66");
    let long = "x".repeat(129);
    for wrong in [&*long, "", "tab\there"] {
        let made = house.get("/pools").header("x-request-id", wrong).go().await;
        assert_eq!(made.header("x-request-id").len(), 16, "{wrong}");
    }
    house.get("/nowhere").go().await.problem(404, "not-found");
    Answer::of(house.bare(Method::GET, "/nowhere")).await.problem(404, "not-found");
    let wrong_way = house.ask(Method::PATCH, "/pools/lan").go().await;
    wrong_way.problem(405, "method-not-allowed");
    assert!(wrong_way.header("allow").contains("PUT"), "{wrong_way:?}");
    Answer::of(house.bare(Method::POST, "/healthz")).await.problem(405, "method-not-allowed");
}

#[tokio::test]
async fn the_id_of_a_request_is_in_the_event_it_caused() {
    let house = House::with_lan().await;
    let path = "/pools/lan/claims/web";
    house.put(path).header("x-request-id", "deploy-17").json(&serde_json::json!({})).go().await.created();
    let events = house.get("/events?key=web").go().await;
    assert_eq!(events.fine()["items"][0]["request"], "deploy-17");
    assert_eq!(events.body["items"][0]["by"], "root");
}
