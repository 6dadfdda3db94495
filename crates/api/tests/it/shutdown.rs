//! Ending well.

use std::time::Duration;

use netstead_api::ServeOptions;
use netstead_model::SystemClock;
use reqwest::Method;
use serde_json::json;
use tokio::time::timeout;

use crate::support::{Answer, House};

#[tokio::test]
async fn ready_fails_at_once_and_the_rest_goes_on_for_a_while() {
    let options = ServeOptions { linger: Duration::from_millis(1500), ..ServeOptions::new("127.0.0.1:0") };
    let house = House::with(SystemClock::shared(), options).await;
    house.shutdown.cancel();
    let told = Answer::of(house.bare(Method::GET, "/readyz")).await.problem(503, "not-ready");
    assert!(told.contains("about to end"), "{told}");
    assert_eq!(Answer::of(house.bare(Method::GET, "/healthz")).await.status, 200);
    house.pool("lan", json!({"network": "10.0.0.0/24"})).await;
    timeout(Duration::from_secs(5), house.server.ended()).await.unwrap().unwrap();
    assert!(reqwest::get(format!("{}/healthz", house.url)).await.is_err());
}

#[tokio::test]
async fn a_stream_ends_and_so_does_the_server() {
    let house = House::with_lan().await;
    let mut stream = house.get("/events/stream").into_request().send().await.unwrap();
    assert_eq!(stream.status(), 200);
    house.shutdown.cancel();
    let end = async { while stream.chunk().await.unwrap().is_some() {} };
    timeout(Duration::from_secs(3), end).await.unwrap();
    timeout(Duration::from_secs(3), house.server.ended()).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_request_that_runs_is_answered() {
    let house = House::with_lan().await;
    // Its body comes slowly, across the call to end.
    let (sender, receiver) = tokio::sync::mpsc::channel::<Result<&'static str, std::io::Error>>(4);
    let body = reqwest::Body::wrap_stream(tokio_stream::wrappers::ReceiverStream::new(receiver));
    let request = house.put("/pools/lan/claims/slow").body("application/json", body).into_request();
    let asking = tokio::spawn(Answer::of(request));
    sender.send(Ok("{\"labels\":")).await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    house.shutdown.cancel();
    tokio::time::sleep(Duration::from_millis(500)).await;
    sender.send(Ok("{}}")).await.unwrap();
    drop(sender);
    assert_eq!(asking.await.unwrap().created()["address"], "10.0.3.50");
    timeout(Duration::from_secs(3), house.server.ended()).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_request_that_never_ends_is_cut_off() {
    let options = ServeOptions { grace: Duration::from_millis(500), ..ServeOptions::new("127.0.0.1:0") };
    let house = House::with(SystemClock::shared(), options).await;
    let (sender, receiver) = tokio::sync::mpsc::channel::<Result<&'static str, std::io::Error>>(4);
    let body = reqwest::Body::wrap_stream(tokio_stream::wrappers::ReceiverStream::new(receiver));
    let request = house.put("/pools/lan").body("application/json", body).into_request();
    let asking = tokio::spawn(request.send());
    sender.send(Ok("{")).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    house.shutdown.cancel();
    timeout(Duration::from_secs(5), house.server.ended()).await.unwrap().unwrap();
    assert!(asking.await.unwrap().is_err());
}

#[tokio::test]
async fn a_place_that_is_taken_is_named() {
    let house = House::open().await;
    let tokens = house.tokens.clone();
    let api = netstead_api::Api::new(house.ledger.clone(), tokens, SystemClock::shared(), "memory");
    let taken = ServeOptions::new(house.server.address().to_string());
    let error = netstead_api::serve(taken, api, house.shutdown.clone()).await.unwrap_err();
    assert_eq!(error.to_string(), format!("`{}` cannot be listened on", house.server.address()));
}
