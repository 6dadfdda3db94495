//! As dnsweaver answers those who ask how it is.

use std::{sync::Arc, time::Duration};

use netstead_api::{Api, ServeOptions, access::Tokens, bind};
use netstead_ledger::{Ledger, Options};
use netstead_model::{Clock as _, SystemClock};
use netstead_store::MemoryStore;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn a_listener_for_probes_says_that_it_ends_and_knows_nothing_else() {
    let (store, clock) = (Arc::new(MemoryStore::new()), SystemClock::shared());
    let ledger = Ledger::open(store.clone(), clock.clone(), Options::default()).await.unwrap();
    let tokens = Tokens::open(store, clock.clone()).await.unwrap();
    let api = Api::new(ledger, tokens, clock, "memory");
    let stop = CancellationToken::new();
    let options = ServeOptions { linger: Duration::from_millis(1500), ..ServeOptions::new("127.0.0.1:0") };
    let server = bind(options).await.unwrap().serve_probes(&api, stop.clone());
    let url = format!("http://{}", server.address());
    let get = async |path: &str| {
        let answer = reqwest::get(format!("{url}{path}")).await.unwrap();
        let status = answer.status().as_u16();
        (status, answer.json::<Value>().await.unwrap_or_default())
    };
    assert_eq!(get("/health").await, (200, json!({"status": "healthy"})));
    assert_eq!(get("/ready").await, (200, json!({"status": "ready"})));
    for path in ["/", "/api/v1/status", "/healthz", "/api"] {
        assert_eq!(get(path).await.0, 404, "{path}");
    }
    let begun = SystemClock.monotonic();
    stop.cancel();
    assert_eq!(get("/ready").await, (503, json!({"status": "shutting_down"})));
    assert_eq!(get("/health").await.0, 200);
    server.ended().await.unwrap();
    assert!(SystemClock.monotonic().saturating_sub(begun) < Duration::from_secs(20));
}
