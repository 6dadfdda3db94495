//! Calls as they were sent, and sending them again without any thought.

use std::time::Duration;

use netstead_model::{Clock as _, SystemClock};
use netstead_testkit::{FakeHttp, HttpRequest, HttpResponse};
use reqwest::{Client, Method};

/// Headers that belong to a connection.
const OF_CONNECTION: [&str; 4] = ["host", "content-length", "connection", "accept-encoding"];

/// Sends calls to another server, one after the other as the provider does, and says how long that took. What the provider
/// sent `first` is sent too and not counted.
pub async fn send_again(first: &[HttpRequest], calls: &[HttpRequest], url: &str) -> Duration {
    let client = Client::builder().no_proxy().build().expect("a client");
    for call in first {
        send(&client, call, url).await;
    }
    let begun = SystemClock.monotonic();
    for call in calls {
        let status = send(&client, call, url).await.status;
        assert!(status < 400, "{} {} is answered with {status}", call.method, call.target);
    }
    SystemClock.monotonic() - begun
}

async fn send(client: &Client, call: &HttpRequest, url: &str) -> HttpResponse {
    let method = Method::from_bytes(call.method.as_bytes()).expect("a method");
    let mut request = client.request(method, format!("{url}{}", call.target));
    for (name, value) in call.headers.iter().filter(|(name, _)| !OF_CONNECTION.contains(&name.as_str())) {
        request = request.header(name, value);
    }
    let answer = request.body(call.body.clone()).send().await.expect("an answer");
    let status = answer.status().as_u16();
    let kind = answer.headers().get("content-type").and_then(|kind| kind.to_str().ok()).map(str::to_owned);
    let body = answer.text().await.expect("a body");
    let response = HttpResponse::new(status, body);
    match kind {
        Some(kind) => response.header("content-type", &kind),
        None => response,
    }
}

/// A proxy before a real server that keeps the calls.
pub fn before(url: String) -> FakeHttp {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let (runtime, client) =
        (runtime.expect("a runtime"), Client::builder().no_proxy().build().expect("a client"));
    FakeHttp::start(move |call| runtime.block_on(send(&client, call, &url)))
}
