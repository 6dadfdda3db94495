//! The same claims over HTTP, as a user's program sends them.

use std::{path::Path, time::Duration};

use netstead_api::{
    Api, ServeOptions,
    access::{NewToken, Role, Tokens},
};
use netstead_client::{Client, Options, types::ClaimInput};
use netstead_model::{Clock as _, SystemClock};
use tokio_util::sync::CancellationToken;

use crate::{
    book::rate,
    durable,
    report::{Report, median},
};

const SLICE: Duration = Duration::from_millis(300);
const ROUNDS: usize = 20;

pub fn measure(report: &mut Report, dir: &Path) {
    durable::runtime().block_on(async {
        let (ledger, store) = durable::open(&dir.join("api")).await;
        durable::make_pool(&ledger, "big", "10.0.0.0/8").await;
        let tokens = Tokens::open(store.clone(), SystemClock::shared()).await.expect("tokens");
        let (_, secret) = tokens.create(NewToken::new("bench", Role::Claim)).await.expect("a token");
        let api = Api::new(ledger.clone(), tokens, SystemClock::shared(), "local");
        let stop = CancellationToken::new();
        let server =
            netstead_api::serve(ServeOptions::new("127.0.0.1:0"), api, stop.clone()).await.expect("a server");
        let url = format!("http://{}", server.address());
        let client = Client::new(&url, Some(secret.expose()), Options::default()).expect("a client");
        let (mut one, mut many) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            one.push(claims_per_second(&client, &format!("one-{round}"), 1).await);
            many.push(claims_per_second(&client, &format!("many-{round}"), 64).await);
        }
        stop.cancel();
        server.ended().await.expect("an end");
        ledger.close().await;
        store.close().await;
        let to_one = durable::ratio(&many, &one);
        report.note("API, 1 client", median(one), "claims/s");
        report.note("API, 64 clients", median(many), "claims/s");
        report.note("API, 64 clients to 1 client", to_one, "x");
    });
}

async fn claims_per_second(client: &Client, names: &str, clients: u64) -> f64 {
    let start = SystemClock.monotonic();
    let tasks: Vec<_> = (0..clients)
        .map(|number| {
            let (client, names) = (client.clone(), names.to_owned());
            tokio::spawn(async move {
                let mut count = 0u64;
                while SystemClock.monotonic() - start < SLICE {
                    let key = format!("{names}-{number}-{count}");
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
    rate(count, SystemClock.monotonic() - start)
}
