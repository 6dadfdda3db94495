//! The same claims over HTTP, as a user's program sends them.

use std::path::Path;

use netstead_api::{
    Api, ServeOptions,
    access::{NewToken, Role, Tokens},
};
use netstead_client::{Client, Options, types::ClaimInput};
use netstead_model::{Clock as _, SystemClock};
use tokio_util::sync::CancellationToken;

use crate::{book::rate, durable};

pub async fn claims_per_second(dir: &Path, clients: u64) -> f64 {
    let (ledger, store) = durable::open(dir).await;
    durable::make_pool(&ledger, "big", "10.0.0.0/8").await;
    let tokens = Tokens::open(store.clone(), SystemClock::shared()).await.expect("tokens");
    let (_, secret) = tokens.create(NewToken::new("bench", Role::Claim)).await.expect("a token");
    let api = Api::new(ledger.clone(), tokens, SystemClock::shared(), "local");
    let stop = CancellationToken::new();
    let server =
        netstead_api::serve(ServeOptions::new("127.0.0.1:0"), api, stop.clone()).await.expect("a server");
    let url = format!("http://{}", server.address());
    let client = Client::new(&url, Some(secret.expose()), Options::default()).expect("a client");
    let start = SystemClock.monotonic();
    let tasks: Vec<_> = (0..clients)
        .map(|number| {
            let client = client.clone();
            tokio::spawn(async move {
                let mut count = 0u64;
                while SystemClock.monotonic() - start < durable::SLICE {
                    let key = format!("client-{number}-{count}");
                    client.claim("big", &key, &ClaimInput::default()).await.expect("an address");
                    count += 1;
                }
                count
            })
        })
        .collect();
    let mut count = 0;
    for task in tasks {
        count += task.await.expect("a client");
    }
    let took = SystemClock.monotonic() - start;
    stop.cancel();
    server.ended().await.expect("an end");
    ledger.close().await;
    store.close().await;
    rate(count, took)
}
